#include "comm/bootstrap/launch_environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <optional>

#include "comm/base/digest.hpp"
#include "comm/bootstrap/host_port.hpp"

namespace isthmus {

namespace {

/// Which variables a launcher sets. The first names must be there for it to count.
struct Source {
    Launcher launcher;
    const char* rank;
    const char* ranks;
    const char* localRank;
    const char* localRanks;
};

constexpr Source kSources[] = {
    {Launcher::kIsthmus, "ISTHMUS_RANK", "ISTHMUS_WORLD_SIZE", "ISTHMUS_LOCAL_RANK",
     "ISTHMUS_LOCAL_WORLD_SIZE"},
    {Launcher::kTorchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {Launcher::kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::kPmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {Launcher::kSlurm, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""},
};

/// Variables that tell one start of a job from another, in the same words on all its ranks. Not
/// MASTER_ADDR: nodes may know the same host by different names.
constexpr const char* kJobNames[] = {
    "TORCHELASTIC_RUN_ID",
    "MASTER_PORT",
    "PMIX_NAMESPACE",
    "OMPI_MCA_ess_base_jobid",
    "OMPI_MCA_orte_precondition_transports",
    "PMI_JOBID",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
};

/// Counted by each node's torchrun for itself, so the nodes of one start may differ.
constexpr const char* kNodeNames[] = {"TORCHELASTIC_RESTART_COUNT"};

/// Slurm's derived ports lie below the range from which kernels give out ports of their own accord
/// (ip(7), ip_local_port_range: 32768 up), and above those of usual services.
constexpr std::uint64_t kFirstSlurmPort = 20000;
constexpr std::uint64_t kSlurmPorts = 10000;

struct Place {
    const Source* source = nullptr;
    int rank = 0;
    int ranks = 1;
    int localRank = -1;
    int localRanks = 0;
};

std::string describe(const Place& place) {
    std::string text(nameOf(place.source->launcher));
    return text + " (" + place.source->rank + " " + std::to_string(place.rank) + ", " +
           place.source->ranks + " " + std::to_string(place.ranks) + ")";
}

class Reader {
public:
    explicit Reader(const LaunchFacts& facts) : facts_(facts) {}

    Result<LaunchEnvironment> read() {
        const auto places = findPlaces();
        if (!places.ok()) return places.status();
        LaunchEnvironment found;
        if (places->empty()) {
            found.localRanks = 1;
            found.explanation = "no launcher's variables: a world of one rank";
            return found;
        }
        ISTHMUS_TRY(checkAgreement(*places));
        place_ = places->front();
        isSlurmTask_ = std::any_of(places->begin(), places->end(), [&](const Place& place) {
            return place.source->launcher == Launcher::kSlurm && place.rank == place_.rank &&
                   place.ranks == place_.ranks;
        });
        found.launcher = place_.source->launcher;
        found.rank = place_.rank;
        found.ranks = place_.ranks;
        found.localRanks = localRanks(*places);
        found.localRank = place_.localRank < 0 ? 0 : place_.localRank;
        found.jobId = jobId(found.isOneNode());
        if (found.ranks > 1) {
            auto store = findStore(found);
            if (!store.ok()) return store.status();
            found.store = std::move(*store);
        }
        found.explanation = "rank " + std::to_string(found.rank) + " of " +
                            std::to_string(found.ranks) + " from " + describe(place_) +
                            (found.store.empty() ? "" : ", store " + found.store + storeFrom_);
        return found;
    }

private:
    const std::string* variable(std::string_view name) const {
        const auto found = facts_.variables.find(name);
        return found == facts_.variables.end() || found->second.empty() ? nullptr : &found->second;
    }
    std::string text(std::string_view name) const {
        const auto* value = variable(name);
        return value == nullptr ? std::string() : *value;
    }

    /// Nothing when it is not set.
    Result<std::optional<int>> number(const char* name) const {
        const auto* value = variable(name);
        if (value == nullptr) return std::optional<int>();
        int number = 0;
        const auto* last = value->data() + value->size();
        const auto [end, error] = std::from_chars(value->data(), last, number);
        if (error != std::errc() || end != last || number < 0) {
            return Status::configuration(std::string(name) + " says \"" + *value +
                                         "\", expected a whole number, 0 or more");
        }
        return std::optional<int>(number);
    }

    Result<std::vector<Place>> findPlaces() const {
        std::vector<Place> places;
        for (const Source& source : kSources) {
            if (source.launcher == Launcher::kSlurm && isBatchScript()) continue;
            const auto rank = number(source.rank);
            if (!rank.ok()) return rank.status();
            const bool isStep =
                source.launcher == Launcher::kSlurm && variable("SLURM_STEP_NUM_TASKS") != nullptr;
            const char* ranksName = isStep ? "SLURM_STEP_NUM_TASKS" : source.ranks;
            const auto ranks = number(ranksName);
            if (!ranks.ok()) return ranks.status();
            if (rank->has_value() != ranks->has_value() && isStrict(source.launcher)) {
                const char* there = rank->has_value() ? source.rank : ranksName;
                const char* missing = rank->has_value() ? ranksName : source.rank;
                return Status::configuration(std::string(there) + " is set, " + missing +
                                             " is not: set both or none");
            }
            if (!rank->has_value() || !ranks->has_value()) continue;
            if (**ranks < 1 || **rank >= **ranks) {
                return Status::configuration(
                    std::string(source.rank) + " " + std::to_string(**rank) + " and " + ranksName +
                    " " + std::to_string(**ranks) + " cannot be: ranks count from 0");
            }
            const auto localRank = number(source.localRank);
            const auto localRanks = number(source.localRanks);
            if (!localRank.ok()) return localRank.status();
            if (!localRanks.ok()) return localRanks.status();
            const int onNode = source.launcher == Launcher::kSlurm ? slurmLocalRanks(**ranks)
                                                                   : localRanks->value_or(0);
            places.push_back({&source, **rank, **ranks, localRank->value_or(-1), onNode});
        }
        return places;
    }

    /// Half a pair is a mistake only in variables that users set themselves; sbatch sets
    /// SLURM_NTASKS alone.
    static bool isStrict(Launcher launcher) {
        return launcher == Launcher::kIsthmus || launcher == Launcher::kTorchrun;
    }

    /// sbatch's script says that it is task 0 of all that the job may start: only a step's are
    /// there.
    bool isBatchScript() const {
        return variable("SLURM_TASK_PID") != nullptr && variable("SLURM_STEP_ID") == nullptr;
    }

    /// What Slurm counts on this node; 0, unknown, where the counts are not those of these ranks.
    int slurmLocalRanks(int ranks) const {
        const auto node = number("SLURM_NODEID");
        for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
            const auto tasks = expandTaskCounts(text(name));
            if (!tasks.ok() || !node.ok() || !node->has_value()) continue;
            const auto total = std::accumulate(tasks->begin(), tasks->end(), std::int64_t{0});
            const auto position = static_cast<std::size_t>(**node);
            if (total == ranks && position < tasks->size()) return (*tasks)[position];
        }
        for (const char* name : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}) {
            if (const auto* nodes = variable(name)) return *nodes == "1" ? ranks : 0;
        }
        return 0;
    }

    Status checkAgreement(const std::vector<Place>& places) const {
        const Place& used = places.front();
        const bool isElastic = variable("TORCHELASTIC_RUN_ID") != nullptr;
        for (const Place& other : places) {
            const Launcher launcher = other.source->launcher;
            if (launcher == Launcher::kSlurm) continue;
            if (isElastic && used.source->launcher == Launcher::kTorchrun &&
                launcher != Launcher::kTorchrun) {
                continue;
            }
            if (other.rank == used.rank && other.ranks == used.ranks) continue;
            return Status::configuration("two launchers disagree: " + describe(used) + " and " +
                                         describe(other) + "; unset one of them");
        }
        return {};
    }

    /// From the source that is used, else from another that gives this process the same rank.
    int localRanks(const std::vector<Place>& places) const {
        if (place_.ranks == 1) return 1;
        if (place_.localRanks > 0) return place_.localRanks;
        // MVAPICH tells the ranks by PMI and the node's share in a variable of its own.
        const auto mvapich = number("MV2_COMM_WORLD_LOCAL_SIZE");
        if (place_.source->launcher == Launcher::kPmi && mvapich.ok() && mvapich->has_value()) {
            return **mvapich;
        }
        for (const Place& other : places) {
            const bool isSame = other.rank == place_.rank && other.ranks == place_.ranks;
            if (isSame && other.localRanks > 0) return other.localRanks;
        }
        return 0;
    }

    std::string jobId(bool isOneNode) const {
        std::string id;
        const auto add = [&](const char* name) {
            if (const auto* value = variable(name)) id += std::string(name) + " " + *value + "; ";
        };
        for (const char* name : kJobNames) add(name);
        if (!isOneNode) return id;
        for (const char* name : kNodeNames) add(name);
        // MPI's launchers name no job, or not on all ranks; on one node their process does.
        // torchrun's and Slurm's variables name it, and ranks may have been started from several
        // shells.
        const Launcher launcher = place_.source->launcher;
        const bool isNamed = launcher == Launcher::kTorchrun || launcher == Launcher::kSlurm;
        if (!isNamed) id += facts_.launcherProcess;
        return id;
    }

    Result<std::string> findStore(const LaunchEnvironment& found) {
        if (const auto* given = variable("ISTHMUS_STORE")) {
            storeFrom_ = " (ISTHMUS_STORE)";
            return checkStore(*given, found);
        }
        if (found.isOneNode() && !found.jobId.empty()) {
            storeFrom_ = " (one node)";
            char name[64];
            std::snprintf(name, sizeof name, "@isthmus-%u-%016llx", facts_.userId,
                          static_cast<unsigned long long>(digestOf(found.jobId)));
            return std::string(name);
        }
        if (variable("MASTER_ADDR") != nullptr) return masterStore(found);
        // srun --mpi=pmi2 tells the ranks by PMI and the nodes in its own variables.
        const bool isFromSrun = found.launcher == Launcher::kPmi && isSlurmTask_;
        if (found.launcher == Launcher::kSlurm || isFromSrun) return slurmStore(found);
        return Status::configuration(
            describe(place_) + " does not say where ranks on several nodes can meet: set " +
            "ISTHMUS_STORE=host:port, where host is that of rank 0, on all of them" +
            (found.launcher == Launcher::kTorchrun ? ", or MASTER_ADDR and MASTER_PORT" : ""));
    }

    Result<std::string> masterStore(const LaunchEnvironment& found) {
        const auto* port = variable("MASTER_PORT");
        if (port == nullptr) {
            return Status::configuration("MASTER_ADDR is set, MASTER_PORT is not");
        }
        const auto number = parsePort(*port);
        if (!number.ok()) return number.status().within("MASTER_PORT");
        // torch's own store listens at MASTER_PORT, whoever starts it.
        const int ours = *number == 65535 ? 65534 : *number + 1;
        storeFrom_ = " (MASTER_ADDR, MASTER_PORT and its neighbour)";
        return checkStore(toText(HostPort{withoutBrackets(text("MASTER_ADDR")),
                                          static_cast<std::uint16_t>(ours)}),
                          found);
    }

    Result<std::string> slurmStore(const LaunchEnvironment& found) {
        for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
            const auto* list = variable(name);
            if (list == nullptr) continue;
            const auto nodes = expandNodeList(*list);
            if (!nodes.ok()) return nodes.status().within(name);
            // srun -m arbitrary deals the ranks out in the order of a file, which only srun has.
            if (found.rank == 0 && variable("SLURM_NODEID") != nullptr &&
                text("SLURM_NODEID") != "0") {
                return Status::configuration(
                    "rank 0 is not on the first node of " + std::string(name) + ", " +
                    nodes->front() + ": set ISTHMUS_STORE=host:port, where host is that of rank 0");
            }
            const auto port = kFirstSlurmPort + digestOf(found.jobId) % kSlurmPorts;
            storeFrom_ = std::string(" (first of ") + name + ")";
            return toText(HostPort{nodes->front(), static_cast<std::uint16_t>(port)});
        }
        return Status::configuration("Slurm names no nodes: set ISTHMUS_STORE=host:port");
    }

    /// Nobody on another node can reach a loopback address: say so instead of waiting for them.
    Result<std::string> checkStore(const std::string& store, const LaunchEnvironment& found) const {
        if (store.starts_with('/')) return store;
        const auto place = parseHostPort(store);
        if (!place.ok()) return place.status().within("store" + storeFrom_);
        const bool isLoopback = place->host == "localhost" || place->host == "::1" ||
                                place->host.starts_with("127.") || place->isLocalName();
        if (isLoopback && found.localRanks > 0 && !found.isOneNode()) {
            return Status::configuration(
                "the store is at " + store + storeFrom_ +
                ", which other nodes cannot reach: " + std::to_string(found.localRanks) + " of " +
                std::to_string(found.ranks) + " ranks are on this node");
        }
        return store;
    }

    const LaunchFacts& facts_;
    Place place_;
    bool isSlurmTask_ = false;  // by the rank that is used
    std::string storeFrom_;
};

}  // namespace

std::string_view nameOf(Launcher launcher) {
    constexpr std::string_view kNames[] = {"nothing",  "isthmus run", "torchrun",
                                           "Open MPI", "PMI",         "Slurm"};
    return kNames[static_cast<int>(launcher)];
}

Result<LaunchEnvironment> readLaunchEnvironment(const LaunchFacts& facts) {
    return Reader(facts).read();
}

}  // namespace isthmus
