#pragma once

#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/model/job.hpp"
#include "scheduler/model/model.hpp"
#include "scheduler/model/stage_cut.hpp"

namespace isthmus::scheduler {

/// What the devices of each stage can do. Empty lists: all alike, no limit.
struct StageDevices {
    std::vector<double> speed;              ///< operations a second, of one device
    std::vector<std::int64_t> memoryBytes;  ///< runtime and fragmentation taken off
    double linkBytesPerSecond = 0;          ///< between stages, of one rank; 0: not looked at
};

/// Where a model was cut and by which rule.
struct ModelCut {
    StageCut cut;
    double slowest = 0;    ///< seconds of a micro-batch on the slowest stage; by `memory`, bytes;
                           ///< by a count, the largest one
    bool isExact = false;  ///< no other cut is better by that measure
    std::string how;       ///< "chain", "12 down-sets", "linearised and refined", "as given", ...
};

/// Cuts `model` into the stages of `degrees`. `method`:
///   time            the slowest stage as fast as can be, within the devices' memory
///   alpa            the least sum + (m - 1) x slowest, within the devices' memory
///   memory          the fullest stage as empty as can be
///   uniform         equal numbers of layers
///   parameters      the most parameters of a stage as few as can be
///   type:<regex>    the same of layers whose type or name it is found in, case ignored
///   tree            modules by the dots in their names, d'Hondt's rule; device 0 may wait for a
///                   later one, so that only trees which make a pipeline are taken
///   manual:<a,b,..> the first layer of each stage (0 may be left out), or
///   manual:<layers>:<a,b,..>, which says how many layers it is meant for
/// kInvalidArgument: the method or what it asks for is impossible. kResource: nothing fits.
Result<ModelCut> cutModel(const Model& model, const Job& job, const Degrees& degrees,
                          const std::string& method, const StageDevices& devices = {});

/// Operations of one sample in `layer`, forward, backward and again.
double operationsOf(const Layer& layer, const Job& job);

}  // namespace isthmus::scheduler
