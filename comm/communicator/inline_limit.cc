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
    const int processors = countOf(all);
    return allowed == 0 ? processors : std::min(processors, allowed);
}

std::int64_t inlineBytesFor(const Options& options, const std::vector<CallingCard>& cards) {
    if (!options.text("ISTHMUS_INLINE").empty()) return options.integer("ISTHMUS_INLINE");
    auto ranks = static_cast<int>(cards.size());
    for (const CallingCard& card : cards) ranks = std::max<int>(ranks, card.ranksOnNode);
    return ranks > processorsOf(cards) ? kInlineWhereShared : kInlineWhereAlone;
}

}  // namespace isthmus
