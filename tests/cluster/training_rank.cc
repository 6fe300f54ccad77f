// A rank that trains a step and compares what its node's ranks sent with what was predicted.
//   training_rank TENSOR DATA PIPE ZERO SHARD ALGORITHM   (ring or two_level_ring)
// Ranks are numbered as Shape has them. Rank 0 prints "NODE EGRESS INGRESS" of each node.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "scheduler/prediction/node_bytes.hpp"
#include "tests/cluster/training_step.hpp"

namespace isthmus::test {
namespace {

using scheduler::Axis;
using scheduler::NodeTraffic;
using scheduler::Span;
using scheduler::Way;

struct Plan {
    scheduler::Degrees degrees{1};
    scheduler::Job job;
    scheduler::AxisVolumes volumes;
    std::string algorithm;
};

scheduler::Model chain() {
    scheduler::Model model;
    model.elementBytes = 4;
    for (int number = 0; number < kLayers; ++number) {
        scheduler::Layer layer;
        layer.name = "layer" + std::to_string(number);
        layer.parameters = 2 * kWidth * kInner;
        layer.boundaryBytes = layer.reductionBytes = 4 * kWidth;
        layer.tensorForward = layer.tensorBackward = 1;
        model.layers.push_back(layer);
    }
    return model;
}

Plan planOf(char** words) {
    Plan plan;
    plan.degrees[Axis::kTensor] = std::atoi(words[1]);
    plan.degrees[Axis::kData] = std::atoi(words[2]);
    plan.degrees[Axis::kPipe] = std::atoi(words[3]);
    plan.job.globalBatch = kGlobalBatch;
    plan.job.microBatch = kMicroBatch;
    plan.job.precision = plan.job.gradientPrecision = scheduler::Precision::kFloat32;
    plan.job.zeroStage = std::atoi(words[4]);
    plan.job.shard = std::atoi(words[5]);
    plan.job.order = scheduler::PipelineOrder::kGpipe;
    plan.job.pipeCopies = scheduler::PipeCopies::kEach;
    plan.algorithm = words[6];
    const auto volumes = scheduler::volumesOf(
        chain(), plan.job, plan.degrees, scheduler::evenCut(plan.degrees[Axis::kPipe], 1, kLayers));
    if (!volumes.ok()) {
        std::fprintf(stderr, "%s\n", volumes.status().what().c_str());
        std::exit(1);
    }
    plan.volumes = *volumes;
    return plan;
}

/// This rank's group of the span, made by all ranks of all stages together.
Group groupOf(const Plan& plan, Span span, isthmusComm_t world, int rank) {
    int color = 0;
    for (int stage = 0; stage < plan.degrees[Axis::kPipe]; ++stage) {
        for (const std::vector<int>& members : groupsOf(plan.volumes, span, stage)) {
            if (std::find(members.begin(), members.end(), rank) != members.end()) {
                return {world, members, color, plan.algorithm};
            }
            ++color;
        }
    }
    std::fprintf(stderr, "rank %d is in no group\n", rank);
    std::exit(1);
}

void fill(Part& part, const Plan& plan, isthmusComm_t world, int rank) {
    const scheduler::Shape shape(plan.degrees);
    part.tensor = plan.degrees[Axis::kTensor];
    part.data = plan.degrees[Axis::kData];
    part.stages = plan.degrees[Axis::kPipe];
    part.tensorRank = shape.coordinate(rank, Axis::kTensor);
    part.dataRank = shape.coordinate(rank, Axis::kData);
    part.stage = shape.coordinate(rank, Axis::kPipe);
    part.zeroStage = plan.job.zeroStage;
    part.world = world;
    if (part.stage > 0) part.previous = rank - shape.stride(Axis::kPipe);
    if (part.stage + 1 < part.stages) part.next = rank + shape.stride(Axis::kPipe);
    const bool isSharded = plan.job.zeroStage > 0;
    part.tensorGroup = groupOf(plan, Span::kTensor, world, rank);
    part.dataGroup = groupOf(plan, isSharded ? Span::kShard : Span::kData, world, rank);
    part.replicas = groupOf(plan, Span::kReplicate, world, rank);
}

/// What this process has sent to other nodes, and received.
std::array<std::uint64_t, 2> counted(isthmusComm_t world) {
    isthmusWireCounters_t counters = {};
    counters.size = sizeof counters;
    must(isthmusWireCounters(world, &counters), "counters");
    return {counters.sent_payload, counters.received_payload};
}

/// The same weights as one process has after a step, but for the order of additions.
bool trainedAlike(const Part& part, const Trainer& trainer) {
    Part alone;
    Trainer one(alone);
    one.step();
    bool isAlike = true;
    for (const int layer : trainer.layers()) {
        const std::vector<float> mine = trainer.weightsOf(layer);
        const std::vector<float> all = one.weightsOf(layer);
        const std::size_t half = mine.size() / 2;
        for (std::size_t at = 0; at < mine.size(); ++at) {
            const std::size_t begin = static_cast<std::size_t>(part.tensorRank) * half;
            const std::size_t place = at < half ? begin + at : all.size() / 2 + begin + at - half;
            isAlike = isAlike && std::abs(mine[at] - all[place]) < 1e-5F;
        }
    }
    return isAlike;
}

int run(char** words) {
    const Plan plan = planOf(words);
    isthmusComm_t world = nullptr;
    must(isthmusCommInitEnv(&world, nullptr), "join");
    int rank = 0;
    int ranks = 0;
    must(isthmusCommUserRank(world, &rank), "rank");
    must(isthmusCommCount(world, &ranks), "count");
    std::vector<int> nodeOfRank(static_cast<std::size_t>(ranks));
    must(isthmusCommNodes(world, nodeOfRank.data()), "nodes");
    bool isEqual = true;
    {
        Part part;
        fill(part, plan, world, rank);
        Trainer trainer(part);
        must(isthmusBarrier(world, nullptr, nullptr), "barrier");
        const auto before = counted(world);
        trainer.step();
        auto mine = counted(world);
        for (std::size_t at = 0; at < 2; ++at) mine[at] -= before[at];
        std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(ranks));
        must(isthmusAllGather(mine.data(), all.data(), 2, isthmusUint64, world, nullptr, nullptr),
             "all-gather");
        const int nodes = *std::max_element(nodeOfRank.begin(), nodeOfRank.end()) + 1;
        const Way way = plan.algorithm == "ring" ? Way::kFlatRing : Way::kTwoLevel;
        const auto predicted = scheduler::bytesOfNodes(plan.volumes, nodeOfRank, nodes, way);
        for (int node = 0; node < nodes; ++node) {
            NodeTraffic real;
            for (std::size_t each = 0; each < nodeOfRank.size(); ++each) {
                if (nodeOfRank[each] != node) continue;
                real.egress += static_cast<std::int64_t>(all[2 * each]);
                real.ingress += static_cast<std::int64_t>(all[2 * each + 1]);
            }
            const NodeTraffic wanted = predicted[static_cast<std::size_t>(node)].all();
            if (rank == 0) {
                std::printf("%d %lld %lld\n", node, static_cast<long long>(real.egress),
                            static_cast<long long>(real.ingress));
            }
            if (real == wanted) continue;
            isEqual = false;
            if (rank != 0) continue;
            std::printf("node %d: predicted %lld out, %lld in\n", node,
                        static_cast<long long>(wanted.egress),
                        static_cast<long long>(wanted.ingress));
        }
        if (!trainedAlike(part, trainer)) {
            std::printf("rank %d has other weights than one process\n", rank);
            isEqual = false;
        }
    }
    must(isthmusCommDestroy(world), "destroy");
    return isEqual ? 0 : 1;
}

}  // namespace
}  // namespace isthmus::test

int main(int count, char** words) {
    if (count != 7) return 2;
    return isthmus::test::run(words);
}
