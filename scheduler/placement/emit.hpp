#pragma once

#include <string>
#include <string_view>

#include "scheduler/placement/placement.hpp"

namespace isthmus::scheduler {

/// What launchers and frameworks read.
enum class Target : std::uint8_t {
    kTorchrun,    ///< shell script, started once on every host: static rendezvous, ranks relabelled
    kOpenMpi,     ///< rankfile
    kSlurm,       ///< SLURM_HOSTFILE for srun --distribution=arbitrary: a host a rank
    kKubernetes,  ///< JSON: completion index to node and device
    kMegatron,    ///< flags
    kDeepSpeed,   ///< Python: the topology's axes
    kTorchtitan,  ///< flags
    kNccl,        ///< environment
};

Result<Target> targetNamed(std::string_view name);
/// "torchrun, openmpi, slurm, ...".
std::string targetNames();

/// The text; it ends with a new line.
std::string emit(const Placement& placement, Target target);

}  // namespace isthmus::scheduler
