#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <isthmus/status.hpp>
#include <isthmus/store.hpp>

#include "comm/base/knobs.hpp"
#include "comm/bootstrap/launch_environment.hpp"
#include "comm/bootstrap/rendezvous.hpp"

namespace isthmus {

/// The options of this process. A wrong interface is an error at once and on every rank, not on
/// some after having waited for the others.
Result<Options> environmentOptions();

/// Where the ranks of this process's job met; kept until the process ends, since rank 0 may serve
/// it.
struct EnvironmentJob {
    LaunchEnvironment environment;
    std::shared_ptr<Rendezvous> rendezvous;  ///< null: one rank, which met nobody
    std::shared_ptr<Store> store;            ///< null: the same

    /// For Runtime::ofProcess.
    std::string towards() const;
};

/// Meets the ranks that the launcher started, at the first call. Collective then. Any thread.
/// Errors: kConfiguration (options, environment), kTimeout after `limit`, those of meet().
Result<EnvironmentJob*> meetByEnvironment(std::chrono::milliseconds limit);

}  // namespace isthmus
