#include "comm/algorithm/entry_kinds.hpp"
#include "comm/algorithm/summing.hpp"
#include "comm/algorithm/three_level.hpp"
#include "comm/algorithm/two_hop.hpp"
#include "comm/algorithm/two_level.hpp"

namespace isthmus {
namespace {

bool isSeveralNodesWithShares(const Layout& layout) {
    return layout.nodes.size() > 1 && !layout.shares.empty() && layout.summing.empty();
}

bool hasSumming(const Layout& layout) {
    return !layout.summing.empty();
}

bool isSeveralNodesWithSumming(const Layout& layout) {
    return layout.nodes.size() > 1 && !layout.summing.empty();
}

bool isInRacks(const Layout& layout) {
    return layout.nodes.size() > 1 && !layout.racks.empty();
}

bool isInRacksWithData(const Layout& layout) {
    return isInRacks(layout) && layout.summing.empty();
}

}  // namespace

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
    all.push_back(withFit(twoLevel("two_level_owners", kAllReduce,
                                   "exchange where each node owns what its card has time for",
                                   kBytePs, shardsByShares, twoLevelExchangeAllReduce),
                          isSeveralNodesWithShares));
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

void addLeaders(std::vector<Entry>& all) {
    using enum Collective;
    const auto led = [](Collective collective, std::string_view meaning, Write write) {
        return anyMapping(
            twoLevel("two_level_leaders", collective, meaning, kLeaders, whole, write));
    };
    all.push_back(led(kAllReduce, "a rank of each node adds, and doubles with the others: small",
                      leadersAllReduce));
    all.push_back(led(kAllGather,
                      "a rank of each node collects, Bruck's rounds between them: small",
                      leadersAllGather));
    all.push_back(led(kReduceScatter, "a rank of each node adds, and swaps sums with others: small",
                      leadersReduceScatter));
    all.push_back(equalBlocks(
        led(kAllToAll, "a rank of each node collects, one message for each other node: small",
            leadersAllToAll)));
    all.push_back(led(kBroadcast,
                      "binomial tree over a rank of each node, on through memory: small",
                      leadersBroadcast));
    all.push_back(
        led(kReduce, "a rank of each node adds, binomial tree over them: small", leadersReduce));
}

void addSumming(std::vector<Entry>& all) {
    using enum Collective;
    all.push_back(
        withFit(byMessages("summing", kAllReduce, "ranks without data add up pieces of the others'",
                           kServers, piecesOfSumming, summingAllReduce),
                hasSumming));
    all.push_back(anyMapping(withFit(
        twoLevel("two_level_summing", kAllReduce,
                 "nodes add up what their ranks have, ranks without data add up for the nodes",
                 kServers, shardsOfSumming, twoLevelSummingAllReduce),
        isSeveralNodesWithSumming)));
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

void addMovingTwoLevel(std::vector<Entry>& all) {
    using enum Collective;
    all.push_back(twoLevel("two_level_exchange", kAllGather,
                           "each block goes once into each node, then round in it", kBlueConnect,
                           whole, twoLevelExchangeAllGather));
    all.push_back(twoLevel("two_level_ring", kAllGather,
                           "each block goes from node to node, and round in each", kBlueConnect,
                           whole, twoLevelRingAllGather));
    all.push_back(twoLevel("two_level_pairwise", kAllToAll,
                           "a message for each rank elsewhere, memory in the node", kThakur, whole,
                           twoLevelPairwiseAllToAll, kUnsafe));
    all.push_back(twoLevel("two_level_pairwise_copied", kAllToAll,
                           "the same out of copies: may run in place", kThakur, whole,
                           twoLevelCopiedPairwiseAllToAll));
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

void addThreeLevel(std::vector<Entry>& all) {
    using enum Collective;
    all.push_back(withFit(twoLevel("three_level_exchange", kAllReduce,
                                   "scatter sums in the node, in the rack, sum between racks, back",
                                   kBlueConnect, piecesOfLevels, threeLevelExchangeAllReduce),
                          isInRacksWithData));
    all.push_back(
        withFit(twoLevel("three_level_ring", kAllReduce, "the same with a ring between racks",
                         kBlueConnect, piecesOfLevels, threeLevelRingAllReduce),
                isInRacksWithData));
    all.push_back(withFit(twoLevel("three_level_exchange", kReduceScatter,
                                   "one sum of each block leaves a node, and one a rack",
                                   kBlueConnect, whole, threeLevelReduceScatter),
                          isInRacks));
    all.push_back(withFit(twoLevel("three_level_exchange", kAllGather,
                                   "each block goes once into each rack, and once into each node",
                                   kBlueConnect, whole, threeLevelAllGather),
                          isInRacks));
    all.push_back(equalBlocks(withFit(
        byMessages("rack_first", kAllToAll,
                   "my blocks for another rack in one message: small blocks, few of them between",
                   kPxn, whole, rackFirstAllToAll),
        isInRacks)));
}

}  // namespace isthmus
