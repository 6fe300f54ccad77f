#include "comm/algorithm/entries.hpp"

#include "comm/algorithm/halving.hpp"
#include "comm/algorithm/inlined.hpp"
#include "comm/algorithm/one_level.hpp"
#include "comm/algorithm/one_node.hpp"
#include "comm/algorithm/two_hop.hpp"
#include "comm/algorithm/two_level.hpp"
#include "comm/plan/chunking.hpp"

namespace isthmus {
namespace {

Chunking whole(const Layout&) {
    return {};
}

Chunking pieceForEachRank(const Layout& layout) {
    return evenChunking(layout.ranks());
}

Chunking halves(const Layout&) {
    return evenChunking(2);
}

Chunking pieceForEachThatHalves(const Layout& layout) {
    return evenChunking(halvingWorkers(layout.ranks()));
}

bool isOneNode(const Layout& layout) {
    return layout.nodes.size() == 1;
}

bool isAny(const Layout&) {
    return true;
}

bool isSeveralNodes(const Layout& layout) {
    return layout.nodes.size() > 1 || layout.ranks() == 1;
}

bool isSeveralNodesWithShares(const Layout& layout) {
    return layout.nodes.size() > 1 && !layout.shares.empty();
}

constexpr bool kSafe = true;
constexpr bool kUnsafe = false;
constexpr bool kOneLevel = false;
constexpr bool kLevels = true;

constexpr std::string_view kOwn = "own: derivation in comm/algorithm/DESIGN.md";
constexpr std::string_view kPatarasuk = "Patarasuk and Yuan 2009, doi 10.1016/j.jpdc.2008.09.002";
constexpr std::string_view kThakur = "Thakur et al. 2005, doi 10.1177/1094342005051521";
constexpr std::string_view kRabenseifner =
    "Rabenseifner 2004, doi 10.1007/978-3-540-24685-5_1; any count by folding";
constexpr std::string_view kChan = "Chan et al., PPoPP 2006: both directions of a ring";
constexpr std::string_view kSanders = "Sanders et al. 2009, doi 10.1016/j.parco.2009.09.001";
constexpr std::string_view kBruck = "Bruck et al. 1997, doi 10.1109/71.642949";
constexpr std::string_view kBytePs = "Jiang et al., BytePS, OSDI 2020, Theorem 1; no servers";
constexpr std::string_view kRuefenacht =
    "Ruefenacht et al., recursive multiplying, Parallel Computing 69, 2017; scattering: own";
constexpr std::string_view kPxn = "PXN, NVIDIA NCCL 2.12, 2022; unequal nodes: own";
constexpr std::string_view kHensgen = "Hensgen et al. 1988, doi 10.1007/BF01379320";
constexpr std::string_view kBlueConnect = "Cho et al., BlueConnect, MLSys 2019; unequal nodes: own";

using Write = void (*)(PlanBuilder&, const Scene&);
using Cut = Chunking (*)(const Layout&);

Entry byMessages(std::string_view name, Collective collective, std::string_view meaning,
                 std::string_view source, Cut cut, Write write, bool isInPlaceSafe = kSafe) {
    return {{name, collective, meaning, source, kOneLevel, {Mapping::kNone}, isInPlaceSafe, isAny},
            cut,
            write};
}

Entry inNode(std::string_view name, Collective collective, std::string_view meaning, Cut cut,
             Write write, bool isInPlaceSafe = kSafe) {
    const std::vector<Mapping> mappings = {Mapping::kAll, Mapping::kShared};
    return {{name, collective, meaning, kOwn, kOneLevel, mappings, isInPlaceSafe, isOneNode},
            cut,
            write};
}

Entry twoLevel(std::string_view name, Collective collective, std::string_view meaning,
               std::string_view source, Cut cut, Write write, bool isInPlaceSafe = kSafe) {
    const std::vector<Mapping> mappings = {Mapping::kAll, Mapping::kShared};
    return {{name, collective, meaning, source, kLevels, mappings, isInPlaceSafe, isSeveralNodes},
            cut,
            write};
}

/// The same plan whether buffers are mapped or not: ranks need not wait for each other to choose.
Entry anyMapping(Entry entry) {
    entry.facts.mappings = {Mapping::kShared};
    return entry;
}

/// Where layouts say what each node owns.
Entry withShares(Entry entry) {
    entry.facts.fits = isSeveralNodesWithShares;
    return entry;
}

/// A rank would need its peers' counts.
Entry equalBlocks(Entry entry) {
    entry.facts.servesCounts = false;
    return entry;
}

void addInNode(std::vector<Entry>& all) {
    using enum Collective;
    const Cut each = pieceForEachRank;
    all.push_back(inNode("direct", kAllReduce,
                         "each rank sums one piece of all inputs and copies it to all outputs",
                         each, directAllReduce));
    all.push_back(
        inNode("direct", kAllGather, "each rank reads everybody's input", whole, directAllGather));
    all.push_back(inNode("direct", kReduceScatter, "each rank sums its block of all inputs", whole,
                         directReduceScatter));
    all.push_back(
        equalBlocks(inNode("direct", kAllToAll, "each rank reads its block of every input", whole,
                           directAllToAll, kUnsafe)));
    all.push_back(
        inNode("direct", kBroadcast, "each rank reads the root's input", whole, directBroadcast));
    all.push_back(inNode("direct", kReduce,
                         "each rank sums one piece of all inputs into the root's output", each,
                         directReduce));
    all.push_back(inNode("direct", kGather, "each rank writes its block into the root's output",
                         whole, directGather));
    all.push_back(inNode("direct", kScatter, "each rank reads its block of the root's input", whole,
                         directScatter));
    all.push_back(anyMapping(
        inNode("direct", kBarrier, "each rank signals all others", whole, directBarrier)));
}

void addInlined(std::vector<Entry>& all) {
    using enum Collective;
    constexpr std::string_view kMeaning = "tiny calls: everybody shows its input, one meeting";
    all.push_back(anyMapping(inNode("inline", kAllReduce, kMeaning, whole, inlineAllReduce)));
    all.push_back(anyMapping(inNode("inline", kAllGather, kMeaning, whole, inlineAllGather)));
    all.push_back(
        anyMapping(inNode("inline", kReduceScatter, kMeaning, whole, inlineReduceScatter)));
    all.push_back(
        equalBlocks(anyMapping(inNode("inline", kAllToAll, kMeaning, whole, inlineAllToAll))));
    all.push_back(anyMapping(inNode("inline", kBroadcast, kMeaning, whole, inlineBroadcast)));
    all.push_back(anyMapping(inNode("inline", kReduce, kMeaning, whole, inlineReduce)));
    all.push_back(anyMapping(inNode("inline", kGather, kMeaning, whole, inlineGather)));
    all.push_back(anyMapping(inNode("inline", kScatter, kMeaning, whole, inlineScatter)));
}

void addReducingTwoLevel(std::vector<Entry>& all) {
    using enum Collective;
    all.push_back(twoLevel("two_level_ring", kAllReduce,
                           "sum in the node, ring over each shard's rail, spread in the node",
                           kBlueConnect, shardsByNodes, twoLevelRingAllReduce));
    all.push_back(twoLevel("two_level_exchange", kAllReduce,
                           "the same with all to all on the rail: two rounds", kBlueConnect,
                           shardsByNodes, twoLevelExchangeAllReduce));
    all.push_back(twoLevel("two_level_doubling", kAllReduce,
                           "the same with recursive doubling on the rail: small payloads", kThakur,
                           wholeShards, twoLevelDoublingAllReduce));
    all.push_back(
        twoLevel("two_level_halving", kAllReduce,
                 "the same with halving and doubling on the rail: log2 rounds, least bytes",
                 kRabenseifner, shardsByHalvingNodes, twoLevelHalvingAllReduce));
    all.push_back(twoLevel("two_level_butterfly", kAllReduce,
                           "the same by digits of the node's number: few rounds for any count",
                           kRuefenacht, shardsByNodes, twoLevelButterflyAllReduce));
    all.push_back(twoLevel("two_level_bidirectional_ring", kAllReduce,
                           "the same round a ring both ways: half its rounds", kChan, shardsByNodes,
                           twoLevelBidirectionalAllReduce));
    all.push_back(twoLevel("two_level_double_tree", kAllReduce,
                           "the same up and down two trees of nodes at once", kSanders, halfShards,
                           twoLevelDoubleTreeAllReduce));
    all.push_back(withShares(twoLevel("two_level_owners", kAllReduce,
                                      "exchange where each node owns what its card has time for",
                                      kBytePs, shardsByShares, twoLevelExchangeAllReduce)));
    all.push_back(twoLevel("two_level_exchange", kReduceScatter,
                           "each node sums a block, the sums go straight to its rank", kBlueConnect,
                           whole, twoLevelExchangeReduceScatter));
    all.push_back(twoLevel("two_level_ring", kReduceScatter,
                           "each node adds its sum of a block on the way round to its rank",
                           kBlueConnect, whole, twoLevelRingReduceScatter));
    all.push_back(twoLevel("two_level_chain", kReduce,
                           "sum in the node, shards flow from node to node to the root's", kOwn,
                           wholeShards, twoLevelChainReduce));
    all.push_back(twoLevel("two_level_binomial", kReduce,
                           "the same over a binomial tree of nodes: small payloads", kThakur,
                           wholeShards, twoLevelBinomialReduce));
    all.push_back(twoLevel("two_level_double_tree", kReduce,
                           "the same over two trees of nodes, half the payload in each", kSanders,
                           halfShards, twoLevelDoubleTreeReduce));
}

void addOrderedTwoLevel(std::vector<Entry>& all) {
    using enum Collective;
    constexpr std::string_view kMeaning =
        "the sum walks through the ranks in their order, node by node: the same bits anywhere";
    all.push_back(twoLevel("two_level_ordered", kAllReduce, kMeaning, kOwn, wholeShards,
                           twoLevelOrderedAllReduce));
    all.push_back(twoLevel("two_level_ordered", kReduceScatter, kMeaning, kOwn, whole,
                           twoLevelOrderedReduceScatter));
    all.push_back(
        twoLevel("two_level_ordered", kReduce, kMeaning, kOwn, wholeShards, twoLevelOrderedReduce));
}

/// Those whose every element is the same left fold over the ranks.
void markRankOrder(std::vector<Entry>& all) {
    for (Entry& entry : all) {
        const std::string_view name = entry.facts.name;
        const bool isOrdered = name == "direct" || name == "inline" || name == "two_level_ordered";
        entry.facts.isInRankOrder = isOrdered && reduces(entry.facts.collective);
    }
}

void addMovingTwoLevel(std::vector<Entry>& all) {
    using enum Collective;
    all.push_back(twoLevel("two_level_exchange", kAllGather,
                           "each block goes once into each node, then round in it", kBlueConnect,
                           whole, twoLevelExchangeAllGather));
    all.push_back(twoLevel("two_level_ring", kAllGather,
                           "each block goes from node to node, and round in each", kBlueConnect,
                           whole, twoLevelRingAllGather));
    all.push_back(equalBlocks(twoLevel("two_level_pairwise", kAllToAll,
                                       "a message for each rank elsewhere, memory in the node",
                                       kThakur, whole, twoLevelPairwiseAllToAll, kUnsafe)));
    all.push_back(equalBlocks(twoLevel("two_level_pairwise_copied", kAllToAll,
                                       "the same out of copies: may run in place", kThakur, whole,
                                       twoLevelCopiedPairwiseAllToAll)));
    all.push_back(anyMapping(
        equalBlocks(twoLevel("two_level_node_first", kAllToAll,
                             "a node's blocks for a rank elsewhere in one message: small blocks",
                             kPxn, whole, nodeFirstAllToAll))));
    all.push_back(
        anyMapping(equalBlocks(twoLevel("two_level_rail_first", kAllToAll,
                                        "my blocks for another node in one message: small blocks",
                                        kPxn, whole, railFirstAllToAll))));
    all.push_back(twoLevel("two_level_chain", kBroadcast,
                           "shards flow from node to node, each through its own rank", kOwn,
                           wholeShards, twoLevelChainBroadcast));
    all.push_back(twoLevel("two_level_binomial", kBroadcast,
                           "the same over a binomial tree of nodes: small payloads", kThakur,
                           wholeShards, twoLevelBinomialBroadcast));
    all.push_back(twoLevel("two_level_double_tree", kBroadcast,
                           "the same over two trees of nodes, half the payload in each", kSanders,
                           halfShards, twoLevelDoubleTreeBroadcast));
    all.push_back(twoLevel("two_level_linear", kGather,
                           "each block goes straight to the root's node, to all of its ranks", kOwn,
                           whole, twoLevelLinearGather));
    all.push_back(twoLevel("two_level_linear", kScatter,
                           "each block comes straight from the root's node, from all of its ranks",
                           kOwn, whole, twoLevelLinearScatter));
    all.push_back(anyMapping(twoLevel("two_level_dissemination", kBarrier,
                                      "the node's first ranks meet in log2 rounds", kHensgen, whole,
                                      twoLevelBarrier)));
}

void addReducingByMessages(std::vector<Entry>& all) {
    using enum Collective;
    const Cut each = pieceForEachRank;
    all.push_back(byMessages("ring", kAllReduce, "reduce-scatter and all-gather round a ring",
                             kPatarasuk, each, ringAllReduceOfAll));
    all.push_back(byMessages("exchange", kAllReduce, "everybody to everybody, twice", kThakur, each,
                             exchangeAllReduceOfAll));
    all.push_back(byMessages("doubling", kAllReduce, "recursive doubling: small payloads", kThakur,
                             whole, doublingAllReduceOfAll));
    all.push_back(byMessages("halving", kAllReduce,
                             "halving and doubling, neighbours first: log2 rounds", kRabenseifner,
                             pieceForEachThatHalves, halvingAllReduceOfAll));
    all.push_back(byMessages("butterfly", kAllReduce,
                             "by digits, neighbours first: few rounds and least bytes, any count",
                             kRuefenacht, each, butterflyAllReduceOfAll));
    all.push_back(byMessages("bidirectional_ring", kAllReduce,
                             "round a ring both ways at once: half its rounds", kChan, each,
                             bidirectionalAllReduceOfAll));
    all.push_back(byMessages("double_tree", kAllReduce,
                             "up and down two binary trees at once, half the payload in each",
                             kSanders, halves, doubleTreeAllReduceOfAll));
    all.push_back(byMessages("ring", kReduceScatter, "sums grow round a ring", kPatarasuk, whole,
                             ringReduceScatterOfAll));
    all.push_back(byMessages("exchange", kReduceScatter, "everybody to everybody", kThakur, whole,
                             exchangeReduceScatterOfAll));
    all.push_back(byMessages("halving", kReduceScatter,
                             "recursive halving, neighbours first: log2 rounds", kRabenseifner,
                             whole, halvingReduceScatterOfAll));
    all.push_back(byMessages("butterfly", kReduceScatter,
                             "by digits, neighbours first: few rounds and least bytes, any count",
                             kRuefenacht, whole, butterflyReduceScatterOfAll));
    all.push_back(byMessages("bidirectional_ring", kReduceScatter,
                             "sums grow round a ring both ways: half its rounds", kChan, whole,
                             bidirectionalReduceScatterOfAll));
    all.push_back(
        byMessages("chain", kReduce, "sums flow from rank to rank", kOwn, whole, chainReduceOfAll));
    all.push_back(byMessages("binomial", kReduce, "binomial tree: small payloads", kThakur, whole,
                             binomialReduceOfAll));
    all.push_back(byMessages("double_tree", kReduce,
                             "two binary trees at once, half the payload in each", kSanders, halves,
                             doubleTreeReduceOfAll));
}

void addMovingByMessages(std::vector<Entry>& all) {
    using enum Collective;
    all.push_back(byMessages("ring", kAllGather, "blocks go round a ring", kPatarasuk, whole,
                             ringAllGatherOfAll));
    all.push_back(byMessages("exchange", kAllGather, "everybody to everybody", kThakur, whole,
                             exchangeAllGatherOfAll));
    all.push_back(byMessages("bruck", kAllGather, "log2 rounds of growing runs: small payloads",
                             kBruck, whole, bruckAllGatherOfAll));
    all.push_back(byMessages("bruck4", kAllGather, "log4 rounds of three messages: small payloads",
                             kBruck, whole, bruck4AllGatherOfAll));
    all.push_back(byMessages("butterfly", kAllGather,
                             "by digits, neighbours last: few rounds and least bytes, any count",
                             kRuefenacht, whole, butterflyAllGatherOfAll));
    all.push_back(byMessages("bidirectional_ring", kAllGather,
                             "blocks go round a ring both ways: half its rounds", kChan, whole,
                             bidirectionalAllGatherOfAll));
    all.push_back(byMessages("pairwise", kAllToAll, "a message for each other rank", kThakur, whole,
                             pairwiseAllToAllOfAll, kUnsafe));
    all.push_back(byMessages("pairwise_copied", kAllToAll,
                             "the same out of copies: may run in place", kThakur, whole,
                             copiedPairwiseAllToAllOfAll));
    all.push_back(
        equalBlocks(byMessages("bruck", kAllToAll, "log2 rounds of half of all blocks: tiny blocks",
                               kBruck, whole, bruckAllToAllOfAll)));
    all.push_back(
        equalBlocks(byMessages("bruck4", kAllToAll, "log4 rounds of three messages: tiny blocks",
                               kBruck, whole, bruck4AllToAllOfAll)));
    all.push_back(
        equalBlocks(byMessages("butterfly", kAllToAll, "a hop for each digit: small blocks",
                               kRuefenacht, whole, butterflyAllToAllOfAll)));
    all.push_back(byMessages("chain", kBroadcast, "the payload flows from rank to rank", kOwn,
                             whole, chainBroadcastOfAll));
    all.push_back(byMessages("binomial", kBroadcast, "binomial tree: small payloads", kThakur,
                             whole, binomialBroadcastOfAll));
    all.push_back(byMessages("double_tree", kBroadcast,
                             "two binary trees at once, half the payload in each", kSanders, halves,
                             doubleTreeBroadcastOfAll));
    all.push_back(byMessages("linear", kGather, "everybody sends to the root", kThakur, whole,
                             linearGatherOfAll));
    all.push_back(byMessages("linear", kScatter, "the root sends to everybody", kThakur, whole,
                             linearScatterOfAll));
    all.push_back(byMessages("dissemination", kBarrier, "log2 rounds of signals", kHensgen, whole,
                             disseminationBarrierOfAll));
}

}  // namespace

const std::vector<Entry>& entries() {
    static const std::vector<Entry> all = [] {
        std::vector<Entry> list;
        addInNode(list);
        addInlined(list);
        addReducingTwoLevel(list);
        addOrderedTwoLevel(list);
        addMovingTwoLevel(list);
        addReducingByMessages(list);
        addMovingByMessages(list);
        markRankOrder(list);
        return list;
    }();
    return all;
}

const Entry* findEntry(Collective collective, std::string_view name) {
    for (const Entry& entry : entries()) {
        if (entry.facts.collective == collective && entry.facts.name == name) return &entry;
    }
    return nullptr;
}

}  // namespace isthmus
