#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/axis.hpp"
#include "scheduler/model/model.hpp"
#include "scheduler/model/stage_cut.hpp"

namespace isthmus::scheduler {

/// Parameters of a layer or a stage that one rank works with, before anything is sharded by data.
struct LocalParameters {
    std::int64_t dense = 0;
    std::int64_t denseTrained = 0;  ///< of these
    std::int64_t replicated = 0;    ///< trained, and whole on each rank of a tensor group
    std::int64_t expert = 0;        ///< of the experts that live on this rank

    LocalParameters& operator+=(const LocalParameters& other);
    std::int64_t all() const { return dense + expert; }
    std::int64_t trained() const { return denseTrained + expert; }

    bool operator==(const LocalParameters&) const = default;
};

/// What a layer has of its own.
LocalParameters localParameters(const Layer& layer, const Degrees& degrees);

/// What a layer has of another's, if that one lives elsewhere.
LocalParameters tiedParameters(const Layer& layer, const Degrees& degrees);

/// By layer of `stage`: its own parameters, and shared ones with the first that needs a copy here.
std::vector<LocalParameters> parametersOfStage(const Model& model, const StageCut& cut, int stage,
                                               const Degrees& degrees);

/// The least whole number that is not below `dividend / divisor`; neither is negative.
constexpr std::int64_t dividedUp(std::int64_t dividend, std::int64_t divisor) {
    return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}

}  // namespace isthmus::scheduler
