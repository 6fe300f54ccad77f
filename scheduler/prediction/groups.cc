#include "scheduler/prediction/groups.hpp"

#include <algorithm>

namespace isthmus::scheduler {

namespace {

using Groups = std::vector<std::vector<int>>;

bool hasTied(const StageVolumes& stage) {
    return std::any_of(stage.traffic.begin(), stage.traffic.end(),
                       [](const Traffic& call) { return call.span == Span::kTied; });
}

Groups tiedGroups(const AxisVolumes& volumes, int stage, int ranksOfStage) {
    const auto stages = static_cast<int>(volumes.stages.size());
    std::vector<int> with;
    for (int each = 0; each < stages; ++each) {
        if (hasTied(volumes.stages[static_cast<std::size_t>(each)])) with.push_back(each);
    }
    Groups groups;
    if (with.size() < 2 || with.front() != stage) return groups;
    for (int rank = 0; rank < ranksOfStage; ++rank) {
        groups.emplace_back();
        for (const int each : with) groups.back().push_back(each * ranksOfStage + rank);
    }
    return groups;
}

}  // namespace

Groups groupsOf(const AxisVolumes& volumes, Span span, int stage) {
    const Degrees& degrees = volumes.degrees;
    const int tensor = degrees[Axis::kTensor];
    const int context = degrees[Axis::kContext];
    const int expert = degrees[Axis::kExpert];
    const int copies = context * expert * degrees[Axis::kData];  // of a dense layer
    if (span == Span::kTied) return tiedGroups(volumes, stage, tensor * copies);
    const int shard = static_cast<int>(volumes.shard) * context;
    // Which group a copy is in; tensor groups are the other way round.
    const auto groupOf = [&](int copy) {
        switch (span) {
        case Span::kContext:
            return copy / context;
        case Span::kExpert:
            return copy % context + copy / (context * expert) * context;
        case Span::kShard:
            return copy / shard;
        case Span::kReplicate:
            return copy % shard;
        case Span::kExpertData:
            return copy / context % expert;
        default:
            return 0;
        }
    };
    const bool isTensor = span == Span::kTensor;
    const int groupsOfCopies = isTensor ? copies : copies / static_cast<int>(volumes.ranksOf(span));
    const int count = isTensor ? copies : groupsOfCopies * tensor;
    Groups groups(static_cast<std::size_t>(count));
    for (int copy = 0; copy < copies; ++copy) {
        for (int part = 0; part < tensor; ++part) {
            const int group = isTensor ? copy : groupOf(copy) * tensor + part;
            groups[static_cast<std::size_t>(group)].push_back((stage * copies + copy) * tensor +
                                                              part);
        }
    }
    return groups;
}

}  // namespace isthmus::scheduler
