#include "comm/selector/many_nodes.hpp"

#include <algorithm>
#include <bit>

#include "comm/algorithm/butterfly.hpp"

namespace isthmus {
namespace {

// An exchange sends a message to every other node in each pass, a ring goes round by as many hops;
// by digits the same bytes take a few of both. Simulated (benchmarks/scale, 100 Gbit/s cards), ring
// or exchange beside butterfly: 64 nodes of one rank, all-reduce of 64 KiB 262 and 86 us, of 64 MiB
// 41.5 and 11.6 ms; 32 nodes of eight, 1 MiB 592 and 329 us, all-gather of 64 MiB 10.3 and 5.5 ms.
constexpr std::size_t kFewNodes = 8;
constexpr int kLargestDigit = 8;  // one of many values is an exchange again

// Below this a message costs more in latency and system calls than in wire time (select.cc).
constexpr std::uint64_t kSmallMessageBytes = 32 << 10;

// Below this doubling has the fewest rounds and messages (select.cc).
bool isForDoubling(const CallShape& call, const Layout& layout) {
    return std::has_single_bit(layout.nodes.size()) && call.bytes <= 16 << 10;
}

bool areMany(const Layout& layout) {
    const std::size_t first = layout.nodes.front().size();
    const auto isEqual = [&](const std::vector<Rank>& node) { return node.size() == first; };
    const std::vector<int> digits = radicesOf(static_cast<int>(layout.nodes.size()));
    return layout.nodes.size() > kFewNodes &&
           std::all_of(layout.nodes.begin(), layout.nodes.end(), isEqual) &&
           *std::max_element(digits.begin(), digits.end()) <= kLargestDigit;
}

}  // namespace

std::string_view algorithmForMany(const CallShape& call, const Layout& layout,
                                  std::uint64_t segmentBytes) {
    if (!areMany(layout) || !layout.shares.empty()) return "";
    switch (call.collective) {
    case Collective::kAllReduce:
        return isForDoubling(call, layout) ? "" : "two_level_butterfly";
    case Collective::kAllGather:
    case Collective::kReduceScatter:
        return call.hasCounts ? "" : "butterfly";
    case Collective::kBroadcast:
    case Collective::kReduce:
        // A chain fills with as many passes as there are nodes.
        return call.bytes > kSmallMessageBytes && call.bytes / segmentBytes < layout.nodes.size()
                   ? "two_level_double_tree"
                   : "";
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kBarrier:
        break;
    }
    return "";
}

std::uint64_t leastPassBytes(const CallShape& call, const Layout& layout) {
    if (call.collective != Collective::kAllToAll) return 0;
    return kSmallMessageBytes * static_cast<std::uint64_t>(layout.ranks());
}

}  // namespace isthmus
