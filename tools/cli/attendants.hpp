#pragma once

#include <sys/types.h>

#include <string>

#include <isthmus/status.hpp>

#include "comm/base/unique_fd.hpp"
#include "comm/bootstrap/job_key.hpp"
#include "tools/cluster/namespaces.hpp"

namespace isthmus::cli {

/// A process of ours beside the launcher, alive as long as this is. It ends by itself when the
/// launcher does.
class Attendant {
public:
    Attendant() = default;
    Attendant(pid_t pid, UniqueFd lifeline) : pid_(pid), lifeline_(std::move(lifeline)) {}
    Attendant(Attendant&& other) noexcept
        : pid_(std::exchange(other.pid_, -1)), lifeline_(std::move(other.lifeline_)) {}
    Attendant& operator=(Attendant&& other) noexcept;
    ~Attendant() { end(); }

    pid_t pid() const { return pid_; }

    /// Tells it that all is well, and waits for it.
    void end();

private:
    pid_t pid_ = -1;
    UniqueFd lifeline_;
};

/// Serves the job's rendezvous store. In a process, so that a launcher that waits for a slow reader
/// of its output holds up no rank; in the network of `where` if given.
struct StoreHost {
    Attendant process;
    std::string place;  ///< as ISTHMUS_STORE wants it
};
Result<StoreHost> startStoreHost(const std::string& address, const JobKey& key,
                                 const cluster::Namespaces* where);

/// Ends every process of the run, and forgets its cluster (a name, or empty), should the launcher
/// be killed before it can do so itself.
Result<Attendant> startWatcher(const std::string& runId, const std::string& clusterName);

/// Kills every process that carries the run's id in its environment, also those that left their
/// process group. Returns how many it found.
int killRun(const std::string& runId);

}  // namespace isthmus::cli
