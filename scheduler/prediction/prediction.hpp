#pragma once

#include <string>
#include <vector>

#include "scheduler/cut/model_cut.hpp"
#include "scheduler/memory/stage_memory.hpp"
#include "scheduler/prediction/node_bytes.hpp"
#include "scheduler/prediction/surroundings.hpp"
#include "scheduler/time/step_time.hpp"

namespace isthmus::scheduler {

/// What one step of a model is like on a placement. A value.
struct Prediction {
    struct Stage {
        std::vector<int> layers;
        std::string firstLayer;  ///< names
        std::string lastLayer;
        StageTime time;
        StageMemory memory;
        std::int64_t deviceBytes = 0;  ///< of its smallest device; 0: unknown

        bool fits() const { return deviceBytes == 0 || memory.total() <= deviceBytes; }
    };

    std::string model;
    Objective objective = Objective::kCrossNodeBytes;
    std::string cutMethod;  ///< as it was asked for
    std::string cutHow;
    bool isCutExact = false;
    std::vector<Stage> stages;
    StepTime step;
    AxisVolumes volumes;
    std::vector<NodeBytes> nodes;      ///< exact, also where groups are spread over several axes
    std::string megatronLayout;        ///< empty: Megatron has no layout for it
    std::vector<std::string> assumed;  ///< of the cluster, where the topology is silent

    /// The stage that lacks most, or has least to spare; the largest where devices are unknown.
    int fullestStage() const;
    bool fits() const;
};

/// Cuts, counts, and runs a step of `job` in virtual time; `nodeOfRank` numbers ranks as Shape
/// does. `cut` is one of cutModel's for these degrees. Errors as volumesOf, memoryOf and stepTime.
Result<Prediction> predict(const Model& model, const Job& job, const Degrees& degrees,
                           const ModelCut& cut, const Cluster& cluster,
                           std::span<const int> nodeOfRank);

/// What each rank of the stage that sends most sends, axis by axis.
AxisBytes mostOfStages(const AxisVolumes& volumes);

}  // namespace isthmus::scheduler
