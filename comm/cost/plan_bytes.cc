#include "comm/cost/plan_bytes.hpp"

#include "comm/plan/chunking.hpp"

namespace isthmus {
namespace {

bool isOneBlock(Collective collective) {
    return collective == Collective::kAllReduce || collective == Collective::kBroadcast ||
           collective == Collective::kReduce;
}

// Which cut of a block a location is.
int cutOf(const Plan& plan, const Location& location) {
    const auto slot = static_cast<std::size_t>(location.chunk);
    switch (location.buffer) {
    case Buffer::kScratch:
        return plan.scratch[slot].chunk;
    case Buffer::kShared:
        return plan.shared[slot].chunk;
    case Buffer::kInput:
    case Buffer::kOutput:
        break;
    }
    return location.chunk % plan.chunking.chunksPerBlock();
}

}  // namespace

PlanCall PlanCall::of(Collective collective, DataType type, std::uint64_t bytes, int ranks) {
    const std::uint64_t blocks = isOneBlock(collective) ? 1 : static_cast<std::uint64_t>(ranks);
    PlanCall call;
    call.type = type;
    call.blockElements = static_cast<std::int64_t>(bytes / blocks / bytesOf(type));
    return call;
}

SegmentSizes segmentSizes(const PlanCall& call) {
    const std::int64_t small = call.blockElements / call.segments;
    return {small, small + 1, static_cast<int>(call.blockElements % call.segments)};
}

std::uint64_t bytesOf(const Plan& plan, const Slice& slice, std::int64_t elements, DataType type) {
    std::uint64_t total = 0;
    for (const Location& location : slice) {
        total += static_cast<std::uint64_t>(
            chunkOf(plan.chunking, cutOf(plan, location), elements).elements);
    }
    return total * bytesOf(type);
}

double shareOfBlock(const Plan& plan, const Step& step) {
    const bool isSend = step.verb == Verb::kSend;
    const auto positionOf = [](const Fraction& cut) {
        return static_cast<double>(cut.numerator) / static_cast<double>(cut.denominator);
    };
    double share = 0;
    for (const Location& location : isSend ? step.sources.front() : step.target) {
        const auto cut = static_cast<std::size_t>(cutOf(plan, location));
        share += positionOf(plan.chunking.cuts[cut + 1]) - positionOf(plan.chunking.cuts[cut]);
    }
    return step.verb == Verb::kReduce ? share * static_cast<double>(step.sources.size()) : share;
}

std::vector<WireBytes> wireBytesOfRanks(std::span<const Plan> plans, const Layout& layout,
                                        const PlanCall& call) {
    std::vector<WireBytes> ranks(plans.size());
    const SegmentSizes sizes = segmentSizes(call);
    const auto large = static_cast<std::uint64_t>(sizes.largeOnes);
    const std::uint64_t small = static_cast<std::uint64_t>(call.segments) - large;
    for (const Plan& plan : plans) {
        for (const Step& step : plan.steps) {
            if (step.verb != Verb::kSend) continue;
            const Rank peer = step.peers.front();
            if (layout.nodeOf(peer) == layout.nodeOf(plan.me)) continue;
            const Slice& slice = step.sources.front();
            const std::uint64_t bytes =
                small * bytesOf(plan, slice, sizes.small, call.type) +
                (large == 0 ? 0 : large * bytesOf(plan, slice, sizes.large, call.type));
            ranks[static_cast<std::size_t>(plan.me)].egress += bytes;
            ranks[static_cast<std::size_t>(peer)].ingress += bytes;
        }
    }
    return ranks;
}

std::vector<WireBytes> wireBytesOfNodes(std::span<const Plan> plans, const Layout& layout,
                                        const PlanCall& call) {
    std::vector<WireBytes> nodes(layout.nodes.size());
    const std::vector<WireBytes> ranks = wireBytesOfRanks(plans, layout, call);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        WireBytes& node = nodes[static_cast<std::size_t>(layout.nodeOf(static_cast<Rank>(rank)))];
        node.egress += ranks[rank].egress;
        node.ingress += ranks[rank].ingress;
    }
    return nodes;
}

}  // namespace isthmus
