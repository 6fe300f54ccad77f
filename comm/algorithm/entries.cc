#include "comm/algorithm/entries.hpp"

#include "comm/algorithm/entry_kinds.hpp"
#include "comm/algorithm/inlined.hpp"
#include "comm/algorithm/one_level.hpp"
#include "comm/algorithm/one_node.hpp"

namespace isthmus {
namespace {

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
    all.push_back(inNode("direct", kAllToAll, "each rank reads its block of every input", whole,
                         directAllToAll, kUnsafe));
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

/// Those whose every element is the same left fold over the ranks.
void markRankOrder(std::vector<Entry>& all) {
    for (Entry& entry : all) {
        const std::string_view name = entry.facts.name;
        const bool isOrdered = name == "direct" || name == "inline" || name == "summing" ||
                               name == "two_level_ordered";
        entry.facts.isInRankOrder = isOrdered && reduces(entry.facts.collective);
    }
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
        addLeaders(list);
        addSumming(list);
        addMovingTwoLevel(list);
        addThreeLevel(list);
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
