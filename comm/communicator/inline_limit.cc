#include "comm/communicator/inline_limit.hpp"

#include <algorithm>
#include <bit>

#include "comm/selector/select.hpp"

namespace isthmus {
namespace {

int countOf(const Bytes& mask) {
    int bits = 0;
    for (const std::byte each : mask) bits += std::popcount(std::to_integer<unsigned>(each));
    return bits;
}

}  // namespace

int processorsOf(const std::vector<CallingCard>& cards) {
    Bytes all;
    int allowed = 0;  // the least that a container allows; 0: none does
    for (const CallingCard& card : cards) {
        const Bytes& mine = card.cpuMask;
        if (mine.size() > all.size()) all.resize(mine.size());
        for (std::size_t at = 0; at < mine.size(); ++at) all[at] |= mine[at];
        if (card.cpusAllowed >= countOf(mine)) continue;
        allowed = allowed == 0 ? card.cpusAllowed : std::min<int>(allowed, card.cpusAllowed);
    }
    const int processors = all.empty() ? static_cast<int>(cards.size()) : countOf(all);
    return allowed == 0 ? processors : std::min(processors, allowed);
}

// A virtual machine or container of few processors is told of the host's whole cache, which others
// share: no machine has had much more than 8 MiB for each core (second and third level together).
// With 2 of a Xeon's and 260 MiB reported, 64 MiB between two ranks took twice as long stored
// through the caches (benchmarks/NOTES.md).
std::size_t cacheBytesFor(int processors, std::size_t reported) {
    constexpr std::size_t kMostForEach = std::size_t{8} << 20;
    return std::min(reported, kMostForEach * static_cast<std::size_t>(processors));
}

std::int64_t inlineBytesFor(const Options& options, const std::vector<CallingCard>& cards) {
    if (!options.text("ISTHMUS_INLINE").empty()) return options.integer("ISTHMUS_INLINE");
    const bool wasShared = std::any_of(
        cards.begin(), cards.end(), [](const CallingCard& card) { return card.sharesProcessors; });
    const bool isShared = wasShared || static_cast<int>(cards.size()) > processorsOf(cards);
    return isShared ? kInlineWhereShared : kInlineWhereAlone;
}

}  // namespace isthmus
