#include "comm/selector/select.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "comm/engine/call.hpp"
#include "comm/selector/many_nodes.hpp"
#include "comm/selector/reasons.hpp"

namespace isthmus {
namespace {

using Names = std::vector<std::string_view>;

constexpr std::string_view kLeaders = "two_level_leaders";

// Up to this many nodes every rank of a rail talks to all others directly: two rounds of latency
// instead of 2(N - 1), and few enough senders not to flood one receiver's queue (collectives.md
// 2.2: one-shot wins for N <= 4 to 8).
constexpr std::size_t kExchangeNodes = 4;

// Between racks 2 (R - 1) hops cost more than as many messages at once up to here: 16 racks of four
// nodes of eight 12.9 ms instead of 19.0 for 64 MiB (benchmarks/scale).
constexpr std::size_t kExchangeRacks = 16;

// A message below this costs more in latency and system calls than in wire time at 10 Gbit/s
// (15 us there are 18 KB; twice that, because a ring waits for both ends).
constexpr std::uint64_t kSmallMessageBytes = 32 << 10;

// All-reduce over two nodes: doubling moves the same bytes in half the rounds, but every rank then
// reduces the whole shard; pays while the shard stays in the L2 cache.
constexpr std::uint64_t kDoublingBytes = 256 << 10;

// Below this what counts are rounds and messages: over four emulated nodes of two ranks (1 Gbit/s,
// two cores) doubling took 0.6 ms where the exchange, which sends fewer bytes, took 1.1 to 1.5 ms.
constexpr std::uint64_t kFewRoundsBytes = 16 << 10;

// All-to-all: blocks up to this travel together, one message between two nodes for each rank there.
// On the same nodes 0.7 to 0.9 ms instead of 1.5 to 1.8; with blocks of 32 KiB the copies cost
// more.
constexpr std::uint64_t kGatheredBlockBytes = 8 << 10;

// Over nodes of several ranks one message for a pair of nodes beats one for each rank while copies
// cost less than messages. Four emulated nodes of two ranks (5 Gbit/s, two cores): all-reduce of 8
// bytes 140 -> 75 us, of 32 KiB 300 -> 120 us, of 64 KiB 330 -> 225 us, of 128 KiB 410 -> 450 us;
// all-gather of 16 KiB 190 -> 82 us, of 256 KiB as before; broadcast of 4 KiB 74 -> 35 us, of 64
// KiB 140 -> 220 us.
constexpr std::uint64_t kLedBytes = 32 << 10;
// Of a tree, to all nodes together: in a loop 8 and 16 KiB over 2 nodes 19 and 49 us (a tree of
// nodes 20 and 25), 4, 8 and 16 KiB over 4 nodes 62-87, 120-140 and 150-230 us (62-80, 82-110 and
// 103-141).
constexpr std::uint64_t kLedTreeBytes = 16 << 10;
// What a leader reads of its node.
constexpr std::uint64_t kLedNodeBytes = 128 << 10;
constexpr std::uint64_t kMostLedBytes = 1 << 20;  // asked for by name: scratch grows with it

// More passes than this only grow counters: 64 K passes of the default 1 MiB are 64 GiB.
constexpr std::uint64_t kMostSegments = 1 << 16;

std::size_t largestNode(const Layout& layout) {
    std::size_t most = 0;
    for (const std::vector<Rank>& node : layout.nodes) most = std::max(most, node.size());
    return most;
}

std::size_t smallestNode(const Layout& layout) {
    std::size_t least = layout.nodes.empty() ? 0 : layout.nodes.front().size();
    for (const std::vector<Rank>& node : layout.nodes) least = std::min(least, node.size());
    return least;
}

// Every rank adds up all of an inline all-reduce: beyond this more is read than a meeting costs.
// Four ranks on two cores, arena: 16 KiB 10 us (direct 12), 32 KiB 16 (12).
constexpr std::int64_t kInlineSumBytes = 16 << 10;

std::uint64_t inlineLimit(const CallShape& call, const SelectorOptions& options) {
    const bool isSum = call.collective == Collective::kAllReduce;
    const std::int64_t most =
        isSum ? std::min(options.inlineBytes, kInlineSumBytes) : options.inlineBytes;
    return static_cast<std::uint64_t>(most);
}

// Up to here it is quicker that every rank adds up all of what others show after one meeting than
// that each adds up its share and shows that in turn: ordinary buffers, 16, 32, 64 KiB, two ranks
// with a core each 6.7 9.6 16 us in shares, 4.3 5.5 9.4 so; four on two cores, 32 KiB, 26 and 18.
bool isStagedOnce(const CallShape& call, const Layout& layout) {
    constexpr std::uint64_t kReadByEachRank = 128 << 10;
    return call.collective == Collective::kAllReduce && layout.nodes.size() == 1 &&
           layout.ranks() > 1 && layout.summing.empty() &&
           call.bytes * static_cast<std::uint64_t>(layout.ranks()) <= kReadByEachRank;
}

bool isInline(const CallShape& call, const SelectorOptions& options) {
    // Slots of a lane have the same names on all ranks of a node, so there is one for every block.
    return !call.hasCounts && call.bytes <= inlineLimit(call, options);
}

// collectives.md 2.1, skewed nodes: a direct exchange of blocks loads the card of a big node with
// one copy per other node; a ring loads nobody with more than arrives everywhere anyway.
bool exchangeKeepsBound(const Layout& layout) {
    const std::size_t ranks = static_cast<std::size_t>(layout.ranks());
    return (layout.nodes.size() - 1) * largestNode(layout) <= ranks - smallestNode(layout);
}

Names allReduceOverNodes(const CallShape& call, const Layout& layout) {
    const std::size_t nodes = layout.nodes.size();
    const std::uint64_t shard = call.bytes / largestNode(layout);
    const bool isQuick = std::has_single_bit(nodes) && call.bytes <= kFewRoundsBytes;
    if (isQuick || (nodes == 2 && shard <= kDoublingBytes)) return {"doubling", "exchange", "ring"};
    if (!layout.shares.empty()) return {"owners", "exchange"};
    if (nodes <= kExchangeNodes || shard / nodes < kSmallMessageBytes) return {"exchange", "ring"};
    return {"ring", "exchange"};
}

Names blocksOverNodes(const CallShape& call, const Layout& layout) {
    if (!exchangeKeepsBound(layout)) return {"ring", "exchange"};
    const std::uint64_t block = call.bytes / static_cast<std::uint64_t>(layout.ranks());
    const bool few = layout.nodes.size() <= kExchangeNodes;
    return few || block < kSmallMessageBytes ? Names{"exchange", "ring"}
                                             : Names{"ring", "exchange"};
}

Names allToAllOverNodes(const CallShape& call, const Layout& layout) {
    const std::uint64_t block = call.bytes / static_cast<std::uint64_t>(layout.ranks());
    return block <= kGatheredBlockBytes ? Names{"node_first", "pairwise"}
                                        : Names{"pairwise", "exchange"};
}

// A chain loads every card with the operand once, whatever the size. A tree loads the root's more
// often; over many nodes, and for small operands only, its fewer rounds are worth that.
Names rootedOverNodes(const CallShape& call, const Layout& layout) {
    const bool isSmall = call.bytes <= kSmallMessageBytes;
    return isSmall && layout.nodes.size() > kExchangeNodes ? Names{"binomial", "chain"}
                                                           : Names{"chain", "binomial"};
}

// How the part between nodes should go, best first.
Names betweenNodes(const CallShape& call, const Layout& layout) {
    switch (call.collective) {
    case Collective::kAllReduce:
        return allReduceOverNodes(call, layout);
    case Collective::kAllGather:
    case Collective::kReduceScatter:
        return blocksOverNodes(call, layout);
    case Collective::kAllToAll:
        return allToAllOverNodes(call, layout);
    case Collective::kBroadcast:
    case Collective::kReduce:
        return rootedOverNodes(call, layout);
    case Collective::kGather:
    case Collective::kScatter:
        return {"linear", "direct"};
    case Collective::kBarrier:
        return {"dissemination"};
    }
    return {};
}

const Algorithm* fitting(Collective collective, std::string_view name, const Layout& layout) {
    const Algorithm* entry = findAlgorithm(collective, name);
    return entry != nullptr && entry->fits(layout) ? entry : nullptr;
}

const Algorithm* firstFitting(const Layout& layout, Collective collective, bool usesLevels) {
    for (const Algorithm& entry : catalogue()) {
        if (entry.collective == collective && entry.usesLevels == usesLevels &&
            entry.fits(layout)) {
            return &entry;
        }
    }
    return nullptr;
}

const Algorithm* chooseUnequalExchange(const Layout& layout) {
    for (const std::string_view name : {"direct", "two_level_pairwise", "pairwise"}) {
        if (const Algorithm* entry = fitting(Collective::kAllToAll, name, layout)) return entry;
    }
    return nullptr;
}

const Algorithm* chooseInNode(const CallShape& call, const Layout& layout,
                              const SelectorOptions& options) {
    if (isInline(call, options)) {
        if (const Algorithm* entry = fitting(call.collective, "inline", layout)) return entry;
    }
    if (const Algorithm* entry = fitting(call.collective, "direct", layout)) return entry;
    return firstFitting(layout, call.collective, false);
}

// Some ranks of this all-reduce only add.
bool isForSumming(const CallShape& call, const Layout& layout) {
    return call.collective == Collective::kAllReduce && !layout.summing.empty();
}

const Algorithm* chooseSumming(const CallShape& call, const Layout& layout) {
    const Algorithm* const levels = fitting(call.collective, "two_level_summing", layout);
    const bool isPlain = levels == nullptr || call.isInRankOrder;
    return isPlain ? fitting(call.collective, "summing", layout) : levels;
}

// Large calls over racks, whose links are taken to be slower than cards (formation drops racks
// whose links are not): each link carries the least. Small ones have no use for two more rounds.
const Algorithm* chooseOverRacks(const CallShape& call, const Layout& layout) {
    if (layout.racks.empty() || call.bytes <= kFewRoundsBytes) return nullptr;
    const bool areFew = layout.byRack().nodes.size() <= kExchangeRacks;
    const bool isRing = call.collective == Collective::kAllReduce && !areFew;
    return fitting(call.collective, isRing ? "three_level_ring" : "three_level_exchange", layout);
}

// Inside one node nothing waits for a wire. Small segments keep the scratch of a window in a
// core's L2 cache; large ones let a rank run ahead of others that are not on a processor now:
// 64 MB on an idle machine took the same time from 256 to 768 KiB, and beside two busy loops
// on two cores a third more in segments of 256 KiB than of 512 KiB.
constexpr std::uint64_t kMostInNode = 512 << 10;

// Between nodes even a call of one segment's size gains from being cut: its part inside the node
// then runs beside the wire, and a chain of nodes fills. Four passes hide three quarters of that;
// pieces below 256 KiB would cost more in messages than they hide.
std::uint64_t segmentBytesFor(const CallShape& call, const Layout& layout,
                              const SelectorOptions& options) {
    constexpr std::uint64_t kLeast = 256 << 10;
    const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(options.segmentBytes, 1));
    if (layout.nodes.size() < 2)
        return std::min(most, std::clamp(call.bytes / 8, kLeast, kMostInNode));
    return std::max(std::min(most, std::max(kLeast, call.bytes / 4)), leastPassBytes(call, layout));
}

// One rank of each node speaks for it.
const Algorithm* chooseLeaders(const CallShape& call, const Layout& layout) {
    const bool isTree =
        call.collective == Collective::kBroadcast || call.collective == Collective::kReduce;
    const std::size_t ranks = largestNode(layout);
    const bool isSmall = call.bytes <= (isTree ? kLedTreeBytes / layout.nodes.size() : kLedBytes) &&
                         call.bytes * ranks <= kLedNodeBytes;
    return isSmall && ranks > 1 ? fitting(call.collective, kLeaders, layout) : nullptr;
}

const Algorithm* chooseOverNodes(const CallShape& call, const Layout& layout,
                                 const SelectorOptions& options) {
    if (call.isInRankOrder) return fitting(call.collective, "two_level_ordered", layout);
    if (const Algorithm* entry = chooseLeaders(call, layout)) return entry;
    if (const Algorithm* entry = chooseOverRacks(call, layout)) return entry;
    const auto many = algorithmForMany(call, layout, segmentBytesFor(call, layout, options));
    if (const Algorithm* entry = fitting(call.collective, many, layout)) return entry;
    for (const std::string_view name : betweenNodes(call, layout)) {
        const std::string composed = "two_level_" + std::string(name);
        if (const Algorithm* entry = fitting(call.collective, composed, layout)) return entry;
    }
    if (const Algorithm* entry = fitting(call.collective, "two_level", layout)) return entry;
    if (const Algorithm* entry = firstFitting(layout, call.collective, true)) return entry;
    for (const std::string_view name : betweenNodes(call, layout)) {
        if (const Algorithm* entry = fitting(call.collective, name, layout)) return entry;
    }
    return firstFitting(layout, call.collective, false);
}

// A rank knows its own row and column of an all-to-all with counts, and inside its node where its
// peers keep what is for it: blocks travel alone, and no size is agreed.
bool isUnequalExchange(const CallShape& call) {
    return call.hasCounts && call.collective == Collective::kAllToAll;
}

// Why `entry` cannot serve the call; empty: it can.
std::string objectionOf(const Algorithm& entry, const CallShape& call,
                        const SelectorOptions& options) {
    if (isUnequalExchange(call) && !entry.servesCounts) {
        return "does not serve blocks of different sizes: direct, pairwise and two_level_pairwise "
               "do";
    }
    if (call.isInRankOrder && !entry.isInRankOrder) {
        return "does not add in the order of ranks, as this call must: direct, inline, "
               "summing and two_level_ordered do";
    }
    if (entry.name == "inline" && call.bytes > inlineLimit(call, options)) {
        return "serves up to " + std::to_string(inlineLimit(call, options)) +
               " bytes (ISTHMUS_INLINE), not " + std::to_string(call.bytes);
    }
    if (entry.name == kLeaders && call.bytes > kMostLedBytes) {
        return "serves up to " + std::to_string(kMostLedBytes) + " bytes, not " +
               std::to_string(call.bytes);
    }
    return "";
}

Result<const Algorithm*> wishedEntry(const CallShape& call, const Layout& layout,
                                     const SelectorOptions& options) {
    const std::string& name = options.algorithm;
    const auto wrong = [&](const std::string& why) {
        return Status::invalidArgument("algorithm \"" + name + "\" for " +
                                       std::string(nameOf(call.collective)) + " " + why);
    };
    const Algorithm* wished = findAlgorithm(call.collective, name);
    if (wished == nullptr) {
        return Status::invalidArgument("unknown algorithm \"" + name + "\" for " +
                                       std::string(nameOf(call.collective)) + ": known are " +
                                       knownAlgorithms(call.collective));
    }
    if (!wished->fits(layout)) {
        return wrong("does not fit a layout of " + std::to_string(layout.nodes.size()) + " nodes" +
                     (isForSumming(call, layout) ? " with ranks that only add" : ""));
    }
    const std::string objection = objectionOf(*wished, call, options);
    if (!objection.empty()) return wrong(objection);
    return wished;
}

// What ISTHMUS_ALGORITHM says for this call; nullptr: nothing that fits.
const Algorithm* entrySet(const CallShape& call, const Layout& layout,
                          const SelectorOptions& options) {
    const std::uint64_t bytes = isUnequalExchange(call) ? 0 : call.bytes;  // the latter not agreed
    for (const AlgorithmRule& rule : options.rules) {
        if (!rule.isFor(call.collective, bytes, layout)) continue;
        const Algorithm* const entry = fitting(call.collective, rule.algorithm, layout);
        if (entry != nullptr && objectionOf(*entry, call, options).empty()) return entry;
    }
    return nullptr;
}

Result<const Algorithm*> chooseEntry(const CallShape& call, const Layout& layout,
                                     const SelectorOptions& options) {
    if (!options.algorithm.empty()) return wishedEntry(call, layout, options);
    if (const Algorithm* const set = entrySet(call, layout, options)) return set;
    if (isUnequalExchange(call)) return chooseUnequalExchange(layout);
    if (isForSumming(call, layout)) return chooseSumming(call, layout);
    const Algorithm* const entry = layout.nodes.size() > 1 ? chooseOverNodes(call, layout, options)
                                                           : chooseInNode(call, layout, options);
    if (entry == nullptr) {
        return Status::internal("no algorithm for " + std::string(nameOf(call.collective)));
    }
    return entry;
}

int segmentsOf(const CallShape& call, const Layout& layout, const SelectorOptions& options) {
    const std::uint64_t segment = segmentBytesFor(call, layout, options);
    if (isUnequalExchange(call) || call.collective == Collective::kBarrier || call.bytes <= segment)
        return 1;
    return static_cast<int>(std::min(1 + (call.bytes - 1) / segment, kMostSegments));
}

// Of each block: as much as in a segment of equal ones. Among many ranks that would be little for
// the few blocks that have something in them.
std::uint64_t pieceBytesFor(const Layout& layout, const SelectorOptions& options) {
    constexpr std::uint64_t kLeastPiece = 32 << 10;
    const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(options.segmentBytes, 1));
    return std::min(most, std::max(kLeastPiece, std::min(most, kMostInNode) / largestNode(layout)));
}

}  // namespace

bool dependsOnOrder(Collective collective, DataType type, ReduceOp op) {
    const bool isArithmetic = op == ReduceOp::kSum || op == ReduceOp::kProd || op == ReduceOp::kAvg;
    return reduces(collective) && isArithmetic && isFloating(partOf(type));
}

bool roundsInHops(Collective collective, DataType type, ReduceOp op) {
    return dependsOnOrder(collective, type, op) && bytesOf(type) == 2;
}

Result<Selection> select(const CallShape& call, const Layout& layout,
                         const SelectorOptions& options) {
    const Result<const Algorithm*> entry = chooseEntry(call, layout, options);
    if (!entry.ok()) return entry.status();
    Selection selection;
    selection.algorithm = std::string((*entry)->name);
    const bool isTiny = (*entry)->name == "inline" || (*entry)->name == kLeaders;
    selection.segments = isTiny ? 1 : segmentsOf(call, layout, options);
    if (isUnequalExchange(call)) selection.pieceBytes = pieceBytesFor(layout, options);
    const int passes = selection.pieceBytes > 0 ? kMaxWindow : selection.segments;
    selection.window = std::clamp(options.window, 1, std::min(passes, kMaxWindow));
    selection.segmentsWhenMapped = layout.nodes.size() == 1 ? 1 : selection.segments;
    selection.stagesOnce = (*entry)->name == "direct" && isStagedOnce(call, layout);
    return selection;
}

std::string reasonOf(const Selection& selection, const CallShape& call, const Layout& layout,
                     const SelectorOptions& options) {
    if (!options.algorithm.empty()) return "asked for by the caller";
    const Algorithm* const set = entrySet(call, layout, options);
    if (set != nullptr && set->name == selection.algorithm) return "set by ISTHMUS_ALGORITHM";
    if (isForSumming(call, layout)) return "some ranks hold no data and only add";
    if (layout.nodes.size() > 1 && call.isInRankOrder) {
        return "in the order of ranks: operands are combined as on one node";
    }
    if (layout.nodes.size() <= 1) {
        return selection.algorithm == "inline"
                   ? "tiny: one meeting inside the node costs less than two"
                   : "one node: ranks read and write each other's memory";
    }
    return reasonOverNodes(selection.algorithm, layout, exchangeKeepsBound(layout));
}

}  // namespace isthmus
