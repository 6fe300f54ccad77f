#include "scheduler/prediction/node_bytes.hpp"

#include <algorithm>
#include <map>

namespace isthmus::scheduler {

namespace {

Transfer transferOf(Collective kind) {
    switch (kind) {
    case Collective::kAllGather:
        return Transfer::kAllGather;
    case Collective::kReduceScatter:
        return Transfer::kReduceScatter;
    case Collective::kAllToAll:
        return Transfer::kAllToAll;
    default:
        return Transfer::kAllReduce;
    }
}

void add(NodeTraffic& to, const NodeTraffic& more, std::int64_t times = 1) {
    to.egress += more.egress * times;
    to.ingress += more.ingress * times;
}

/// One span of one stage: groups that lie alike over their nodes send alike.
class SpanCount {
public:
    SpanCount(const AxisVolumes& volumes, Span span, int stage, Way way) : way_(way) {
        for (const Traffic& call : volumes.stages[static_cast<std::size_t>(stage)].traffic) {
            if (call.span == span) calls_.push_back(call);
        }
    }

    bool isSilent() const { return calls_.empty(); }

    /// By node of `members`: all calls of a group that has so many members on each.
    const std::vector<NodeTraffic>& of(const std::vector<int>& members) {
        const auto [known, isNew] = known_.try_emplace(members);
        if (!isNew) return known->second;
        known->second.resize(members.size());
        for (const Traffic& call : calls_) {
            const Transfer kind = transferOf(call.kind);
            const auto moved = way_ == Way::kTwoLevel ? twoLevelTraffic(kind, call.bytes, members)
                                                      : flatTraffic(kind, call.bytes, members);
            for (std::size_t node = 0; node < moved.size(); ++node) {
                add(known->second[node], moved[node], call.calls);
            }
        }
        return known->second;
    }

private:
    Way way_;
    std::vector<Traffic> calls_;
    std::map<std::vector<int>, std::vector<NodeTraffic>> known_;
};

void addSpan(const AxisVolumes& volumes, Span span, int stage, std::span<const int> nodeOfRank,
             Way way, std::vector<NodeBytes>& nodes) {
    SpanCount count(volumes, span, stage, way);
    if (count.isSilent()) return;
    for (const std::vector<int>& group : groupsOf(volumes, span, stage)) {
        std::map<int, int> on;
        for (const int rank : group) ++on[nodeOfRank[static_cast<std::size_t>(rank)]];
        if (on.size() < 2) continue;
        std::vector<int> members;
        for (const auto& [node, ranks] : on) members.push_back(ranks);
        const std::vector<NodeTraffic>& moved = count.of(members);
        std::size_t place = 0;
        for (const auto& [node, ranks] : on) {
            add(nodes[static_cast<std::size_t>(node)][span], moved[place++]);
        }
    }
}

void addPipe(const AxisVolumes& volumes, int stage, std::span<const int> nodeOfRank,
             std::vector<NodeBytes>& nodes) {
    const auto stages = static_cast<int>(volumes.stages.size());
    const auto ranks = static_cast<int>(nodeOfRank.size()) / stages;
    const StageVolumes& here = volumes.stages[static_cast<std::size_t>(stage)];
    const auto nodeOf = [&](int ofStage, int rank) {
        const int place = ofStage * ranks + rank;
        return nodeOfRank[static_cast<std::size_t>(place)];
    };
    const auto send = [&](int to, std::int64_t bytes) {
        if (bytes == 0) return;
        for (int rank = 0; rank < ranks; ++rank) {
            const int from = nodeOf(stage, rank);
            const int other = nodeOf(to, rank);
            if (from == other) continue;
            nodes[static_cast<std::size_t>(from)].pipe.egress += bytes;
            nodes[static_cast<std::size_t>(other)].pipe.ingress += bytes;
        }
    };
    send((stage + 1) % stages, here.toNextBytes);
    send((stage + stages - 1) % stages, here.toPreviousBytes);
}

}  // namespace

NodeTraffic NodeBytes::all() const {
    NodeTraffic sum = pipe;
    for (const NodeTraffic& one : spans) add(sum, one);
    return sum;
}

std::vector<NodeBytes> bytesOfNodes(const AxisVolumes& volumes, std::span<const int> nodeOfRank,
                                    int nodes, Way way) {
    std::vector<NodeBytes> bytes(static_cast<std::size_t>(nodes));
    for (int stage = 0; stage < static_cast<int>(volumes.stages.size()); ++stage) {
        for (const Span span : kSpans) addSpan(volumes, span, stage, nodeOfRank, way, bytes);
        addPipe(volumes, stage, nodeOfRank, bytes);
    }
    return bytes;
}

NodeCost costOf(const std::vector<NodeBytes>& nodes) {
    NodeCost cost;
    for (const NodeBytes& node : nodes) {
        const std::int64_t egress = node.all().egress;
        cost.most = std::max(cost.most, egress);
        cost.sum += egress;
    }
    return cost;
}

}  // namespace isthmus::scheduler
