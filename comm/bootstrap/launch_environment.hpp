#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus {

/// Who started the ranks, in the order in which they are looked for.
enum class Launcher : std::uint8_t {
    kNone,      ///< no variables: a world of one
    kIsthmus,   ///< ISTHMUS_RANK, ISTHMUS_WORLD_SIZE
    kTorchrun,  ///< RANK, WORLD_SIZE: torchrun, or whoever sets these
    kOpenMpi,   ///< OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
    kPmi,       ///< PMI_RANK, PMI_SIZE: MPICH, Intel MPI, MVAPICH
    kSlurm,     ///< SLURM_PROCID, SLURM_NTASKS
};

/// "isthmus run", "torchrun", "Open MPI", "PMI", "Slurm", "nothing".
std::string_view nameOf(Launcher launcher);

/// What readLaunchEnvironment needs: nothing else of the process is looked at.
struct LaunchFacts {
    std::map<std::string, std::string, std::less<>> variables;
    /// The launcher's process on this node, such as "hydra_pmi_proxy 4711 88123": all ranks that
    /// one launch started here see the same, and no other launch.
    std::string launcherProcess;
    unsigned userId = 0;
};

/// What the launcher told this process.
struct LaunchEnvironment {
    Launcher launcher = Launcher::kNone;
    int rank = 0;
    int ranks = 1;
    int localRank = 0;
    int localRanks = 0;  ///< 0: unknown
    /// Where the ranks meet, as ISTHMUS_STORE would say it; empty in a world of one.
    std::string store;
    /// Names this start of this job: equal on all its ranks. No secret.
    std::string jobId;
    /// One line for the log: which source was used and where the store is.
    std::string explanation;

    bool isOneNode() const { return ranks == 1 || localRanks == ranks; }
};

/// Pure. kConfiguration when a source is incomplete, when two disagree (both are named), or when it
/// does not say where the ranks can meet.
///
/// Order: isthmus run, torchrun, Open MPI, PMI, Slurm; the first that is there is used. Slurm's own
/// variables may disagree with the others, since srun and sbatch start other launchers; torchrun's
/// (those with TORCHELASTIC_RUN_ID) may disagree with Open MPI's and PMI's for the same reason. The
/// script that sbatch runs is no rank, whatever SLURM_PROCID says there; what srun starts is.
/// Store: ISTHMUS_STORE; else, when all ranks are on one node, a local name made from the job's id;
/// else MASTER_ADDR with the port after MASTER_PORT (torch's own store has MASTER_PORT); else,
/// under Slurm (also with PMI's variables from srun), the first node of the list with a port made
/// from the job's id.
Result<LaunchEnvironment> readLaunchEnvironment(const LaunchFacts& facts);

/// The facts of this process, from its environment and /proc.
LaunchFacts launchFacts();

/// Slurm's compressed form: "n[01-02,07],login" is n01, n02, n07, login.
Result<std::vector<std::string>> expandNodeList(std::string_view text);

/// Slurm's tasks on each node of a job: "2(x3),1" is 2, 2, 2, 1.
Result<std::vector<int>> expandTaskCounts(std::string_view text);

}  // namespace isthmus
