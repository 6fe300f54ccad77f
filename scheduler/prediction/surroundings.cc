#include "scheduler/prediction/surroundings.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "scheduler/prediction/groups.hpp"

namespace isthmus::scheduler {

namespace {

constexpr double kBitsOfByte = 8;

/// "312", "12.5": up to three digits behind the point.
std::string shortText(double value) {
    std::string text = std::to_string(value);
    text.resize(std::min(text.size(), text.find('.') + 4));
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
}

/// `value` when it is known; otherwise what there is stays, and `what` says so.
void take(double value, double& rate, std::string what, std::vector<std::string>& assumed) {
    if (value > 0) {
        rate = value;
    } else {
        assumed.push_back(std::move(what));
    }
}

/// The least of what every device or node says; 0 when one does not.
class Least {
public:
    void add(double value) { least_ = std::min(least_, value); }
    double value() const { return least_ == kNone ? 0 : least_; }

private:
    static constexpr double kNone = std::numeric_limits<double>::max();
    double least_ = kNone;
};

void placeSpan(const AxisVolumes& volumes, Span span, std::span<const int> nodeOfRank, int nodes,
               SpanPlace& place) {
    std::vector<int> groupsOnNode(static_cast<std::size_t>(nodes));
    for (int stage = 0; stage < static_cast<int>(volumes.stages.size()); ++stage) {
        for (const std::vector<int>& group : groupsOf(volumes, span, stage)) {
            std::map<int, int> on;
            for (const int rank : group) ++on[nodeOfRank[static_cast<std::size_t>(rank)]];
            place.nodes = std::max(place.nodes, static_cast<int>(on.size()));
            for (const auto& [node, ranks] : on) {
                place.ranksOnNode = std::max(place.ranksOnNode, ranks);
                if (on.size() > 1) ++groupsOnNode[static_cast<std::size_t>(node)];
            }
        }
    }
    place.groupsOnNode = std::max(1, *std::max_element(groupsOnNode.begin(), groupsOnNode.end()));
    place.isHierarchical = false;  // as the bytes are counted: one ring that leaves a node once
}

}  // namespace

ClusterRates ratesOf(const Cluster& cluster) {
    Least flops;
    Least memory;
    Least cards;
    for (const Node& node : cluster.nodes) {
        cards.add(node.bitsPerSecond());
        for (const Device& device : node.devices) {
            flops.add(device.flopsPerSecond);
            memory.add(device.memoryBytesPerSecond);
        }
    }
    ClusterRates answer;
    Rates& rates = answer.rates;
    std::vector<std::string>& assumed = answer.assumed;
    take(flops.value(), rates.operationsPerSecond,
         "devices compute " + shortText(rates.operationsPerSecond / 1e12) + " Tflop/s (A100, bf16)",
         assumed);
    take(memory.value(), rates.memoryBytesPerSecond,
         "their memory moves " + shortText(rates.memoryBytesPerSecond / 1e9) + " GB/s (A100-80G)",
         assumed);
    take(cluster.levels.back().bitsPerSecond / kBitsOfByte, rates.insideBytesPerSecond,
         "a rank has " + shortText(rates.insideBytesPerSecond / 1e9) +
             " GB/s each way inside its node (NVLink 3)",
         assumed);
    take(cards.value() / kBitsOfByte, rates.cardBytesPerSecond,
         "the cards of a node carry " + shortText(rates.cardBytesPerSecond * kBitsOfByte / 1e9) +
             " Gbit/s each way",
         assumed);
    if (cluster.levels.back().latencySeconds > 0) {
        rates.insideLatencySeconds = cluster.levels.back().latencySeconds;
    }
    const std::size_t depth = cluster.levels.size();
    if (depth > 1 && cluster.levels[depth - 2].latencySeconds > 0) {
        rates.acrossLatencySeconds = cluster.levels[depth - 2].latencySeconds;
    }
    rates.communicatorBytesPerSecond = cluster.communicatorBitsPerSecond / kBitsOfByte;
    assumed.push_back(shortText(rates.operationsReached) + " of the operations, " +
                      shortText(rates.bytesReached) + " of the bytes inside and " +
                      shortText(rates.cardReached) +
                      " of the cards are reached (two rows of arXiv 2205.05198, table 5)");
    return answer;
}

JobPlace placeOf(const AxisVolumes& volumes, const Cluster& cluster,
                 std::span<const int> nodeOfRank) {
    JobPlace place;
    const auto nodes = static_cast<int>(cluster.nodes.size());
    for (const Span span : kSpans) placeSpan(volumes, span, nodeOfRank, nodes, place[span]);
    const auto stages = static_cast<int>(volumes.stages.size());
    const auto ranks = static_cast<int>(nodeOfRank.size()) / stages;
    const auto nodeOf = [&](int ofStage, int rank) {
        const int at = ofStage * ranks + rank;
        return nodeOfRank[static_cast<std::size_t>(at)];
    };
    std::vector<int> senders(cluster.nodes.size());
    for (int stage = 0; stage < stages; ++stage) {
        bool crosses = false;
        const int next = (stage + 1) % stages;
        for (int rank = 0; rank < ranks; ++rank) {
            const int from = nodeOf(stage, rank);
            const int to = nodeOf(next, rank);
            if (from == to) continue;
            crosses = true;
            if (next == 0 && volumes.stages.back().toNextBytes == 0) continue;
            // One sends activations, the other their gradients back.
            ++senders[static_cast<std::size_t>(from)];
            ++senders[static_cast<std::size_t>(to)];
        }
        place.linkCrosses.push_back(crosses);
        place.pipeCrosses = place.pipeCrosses || crosses;
    }
    place.pipeSendersOnNode = std::max(1, *std::max_element(senders.begin(), senders.end()));
    const std::vector<StageDevice> devices = devicesOfStages(cluster, nodeOfRank, stages);
    double slowest = std::numeric_limits<double>::max();
    for (const StageDevice& device : devices) slowest = std::min(slowest, device.flopsPerSecond);
    for (const StageDevice& device : devices) {
        place.stageSpeed.push_back(slowest > 0 ? device.flopsPerSecond / slowest : 1);
    }
    return place;
}

std::vector<StageDevice> devicesOfStages(const Cluster& cluster, std::span<const int> nodeOfRank,
                                         int stages) {
    std::vector<StageDevice> answer;
    std::vector<std::size_t> taken(cluster.nodes.size());
    const std::size_t ranks = nodeOfRank.size() / static_cast<std::size_t>(stages);
    for (std::size_t rank = 0; rank < nodeOfRank.size(); ++rank) {
        const auto node = static_cast<std::size_t>(nodeOfRank[rank]);
        const Device& device = cluster.nodes[node].devices[taken[node]++];
        if (rank % ranks == 0) {
            answer.push_back({device.flopsPerSecond, device.memoryBytes});
            continue;
        }
        answer.back().flopsPerSecond =
            std::min(answer.back().flopsPerSecond, device.flopsPerSecond);
        answer.back().memoryBytes = std::min(answer.back().memoryBytes, device.memoryBytes);
    }
    return answer;
}

}  // namespace isthmus::scheduler
