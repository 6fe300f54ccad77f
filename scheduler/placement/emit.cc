#include "scheduler/placement/emit.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace isthmus::scheduler {
namespace {

constexpr std::pair<Target, std::string_view> kNames[] = {
    {Target::kTorchrun, "torchrun"},     {Target::kOpenMpi, "openmpi"},
    {Target::kSlurm, "slurm"},           {Target::kKubernetes, "kubernetes"},
    {Target::kMegatron, "megatron"},     {Target::kDeepSpeed, "deepspeed"},
    {Target::kTorchtitan, "torchtitan"}, {Target::kNccl, "nccl"}};

const std::string& hostOf(const Placement& placement, const Seat& seat) {
    return placement.cluster.nodes[static_cast<std::size_t>(seat.node)].name;
}

/// A word that a shell leaves alone.
std::string quoted(const std::string& text) {
    std::string word = "'";
    for (const char letter : text) {
        if (letter == '\'') {
            word += "'\\''";
        } else {
            word += letter;
        }
    }
    return word + "'";
}

/// Ranks of a node by device.
std::vector<std::pair<int, int>> devicesAndRanks(const Placement& placement, std::size_t node) {
    std::vector<std::pair<int, int>> found;
    for (std::size_t rank = 0; rank < placement.seats.size(); ++rank) {
        const Seat& seat = placement.seats[rank];
        if (seat.node != static_cast<int>(node)) continue;
        found.emplace_back(seat.device, static_cast<int>(rank));
    }
    std::sort(found.begin(), found.end());
    return found;
}

/// The agent of a host numbers its workers by its place; each worker then takes the rank that is
/// planned for its device. c10d's rendezvous would sort hosts as text and ignore --node_rank
/// (pytorch/pytorch#191190, #182223), a static one does not.
std::string torchrunScript(const Placement& placement) {
    const std::vector<Node>& nodes = placement.cluster.nodes;
    std::string hosts;
    int used = 0;
    std::string master;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        const auto ranks = devicesAndRanks(placement, node);
        if (ranks.empty()) continue;
        if (master.empty()) master = nodes[node].name;
        std::string list;
        std::string devices;
        for (const auto& [device, rank] : ranks) {
            list += (list.empty() ? "" : " ") + std::to_string(rank);
            devices += (devices.empty() ? "" : ",") + std::to_string(device);
        }
        hosts += "    " + quoted(nodes[node].name) + ") node_rank=" + std::to_string(used++) +
                 " workers=" + std::to_string(ranks.size()) + " devices=" + devices + " ranks='" +
                 list + "' ;;\n";
    }
    return "#!/bin/sh\n"
           "# On every host: sh THIS_FILE PROGRAM [ARGUMENTS...]\n"
           "# host=NAME says which host this is when `hostname -s` does not.\n"
           "set -eu\n"
           "case \"${host:-$(hostname -s)}\" in\n" +
           hosts +
           "    *) echo \"this host has no place in the placement\" >&2; exit 1 ;;\n"
           "esac\n"
           "export PLACED_RANKS=\"$ranks\"\n"
           "export CUDA_VISIBLE_DEVICES=\"${CUDA_VISIBLE_DEVICES-$devices}\"\n"
           "exec torchrun --nnodes=" +
           std::to_string(used) +
           " --node_rank=\"$node_rank\" --nproc_per_node=\"$workers\" \\\n"
           "    --rdzv_backend=static --master_addr=\"${MASTER_ADDR:-" +
           master +
           "}\" --master_port=\"${MASTER_PORT:-29500}\" \\\n"
           "    --no_python sh -c 'i=$LOCAL_RANK; for rank in $PLACED_RANKS; do\n"
           "        [ $i -eq 0 ] && break; i=$((i - 1)); done\n"
           "        export RANK=$rank; exec \"${PYTHON:-python3}\" \"$@\"' sh \"$@\"\n";
}

/// Open MPI 4 numbers slots of a host from 0; a hostfile would not keep an order
/// (open-mpi/ompi#13199).
std::string rankfile(const Placement& placement) {
    std::string text;
    for (std::size_t rank = 0; rank < placement.seats.size(); ++rank) {
        const Seat& seat = placement.seats[rank];
        text += "rank " + std::to_string(rank) + "=" + hostOf(placement, seat) +
                " slot=" + std::to_string(seat.device) + "\n";
    }
    return text;
}

std::string slurmHosts(const Placement& placement) {
    std::string text;
    for (const Seat& seat : placement.seats) text += hostOf(placement, seat) + "\n";
    return text;
}

std::string indexMap(const Placement& placement) {
    nlohmann::ordered_json map = nlohmann::ordered_json::object();
    for (std::size_t rank = 0; rank < placement.seats.size(); ++rank) {
        const Seat& seat = placement.seats[rank];
        map[std::to_string(rank)] = {{"node", hostOf(placement, seat)}, {"device", seat.device}};
    }
    return map.dump(1) + "\n";
}

std::string flag(const char* name, int value) {
    return std::string(name) + " " + std::to_string(value) + "\n";
}

/// Megatron's own order is ours; its data-parallel size holds the experts' axis.
std::string megatronFlags(const Placement& placement) {
    const Degrees& degrees = placement.degrees;
    std::string layout;
    if (placement.predicted && degrees[Axis::kPipe] > 1 &&
        !placement.predicted->megatronLayout.empty()) {
        layout =
            "--pipeline-model-parallel-layout \"" + placement.predicted->megatronLayout + "\"\n";
    }
    return flag("--tensor-model-parallel-size", degrees[Axis::kTensor]) +
           flag("--context-parallel-size", degrees[Axis::kContext]) +
           flag("--expert-model-parallel-size", degrees[Axis::kExpert]) +
           flag("--pipeline-model-parallel-size", degrees[Axis::kPipe]) + layout;
}

/// DeepSpeed's axes are row-major: the last changes fastest.
std::string deepSpeedTopology(const Degrees& degrees) {
    const int data = degrees[Axis::kData] * degrees[Axis::kExpert] * degrees[Axis::kContext];
    return "from deepspeed.runtime.pipe.topology import ProcessTopology\n"
           "topology = ProcessTopology(axes=['pipe', 'data', 'model'], dims=[" +
           std::to_string(degrees[Axis::kPipe]) + ", " + std::to_string(data) + ", " +
           std::to_string(degrees[Axis::kTensor]) + "])\n";
}

std::string torchtitanFlags(const Degrees& degrees) {
    const int data = degrees[Axis::kData] * degrees[Axis::kExpert];
    return flag("--parallelism.tensor_parallel_degree", degrees[Axis::kTensor]) +
           flag("--parallelism.context_parallel_degree", degrees[Axis::kContext]) +
           flag("--parallelism.expert_parallel_degree", degrees[Axis::kExpert]) +
           flag("--parallelism.data_parallel_shard_degree", data) +
           flag("--parallelism.pipeline_parallel_degree", degrees[Axis::kPipe]);
}

/// Devices that a group has on each node that it is on.
std::map<int, std::vector<int>> devicesOf(const Placement& placement,
                                          const std::vector<int>& group) {
    std::map<int, std::vector<int>> devices;
    for (const int rank : group) {
        const Seat& seat = placement.seats[static_cast<std::size_t>(rank)];
        devices[seat.node].push_back(seat.device);
    }
    for (auto& [node, list] : devices) std::sort(list.begin(), list.end());
    return devices;
}

/// Whether every group, and every pair of neighbours of a pipe, has the same device numbers on all
/// its nodes: each rail then serves its own (NVIDIA/nccl#836: 8+1 ranks, or GPU 0 with GPU 6, cross
/// rails).
bool keepsRails(const Placement& placement) {
    const auto isAligned = [&](const std::vector<int>& group) {
        const auto devices = devicesOf(placement, group);
        return std::all_of(devices.begin(), devices.end(), [&](const auto& node) {
            return node.second == devices.begin()->second;
        });
    };
    for (const Axis axis : kAxes) {
        if (placement.degrees[axis] == 1) continue;
        for (const std::vector<int>& group : groupsOf(placement, axis)) {
            if (axis != Axis::kPipe && !isAligned(group)) return false;
            for (std::size_t at = 0; axis == Axis::kPipe && at + 1 < group.size(); ++at) {
                const std::vector<int> pair = {group[at], group[at + 1]};
                const auto devices = devicesOf(placement, pair);
                if (devices.size() == 2 && !isAligned(pair)) return false;
            }
        }
    }
    return true;
}

std::string ncclHints(const Placement& placement) {
    if (keepsRails(placement)) {
        return "# neighbours on other nodes have the same device: every rail is on its own\n"
               "NCCL_CROSS_NIC=0\nNCCL_PXN_DISABLE=1\n";
    }
    return "# some neighbours on other nodes have another device: they cross rails\n"
           "NCCL_CROSS_NIC=1\nNCCL_PXN_DISABLE=0\n";
}

}  // namespace

Result<Target> targetNamed(std::string_view name) {
    for (const auto& [target, known] : kNames) {
        if (known == name) return target;
    }
    return Status::invalidArgument("unknown target \"" + std::string(name) +
                                   "\"; known: " + targetNames());
}

std::string targetNames() {
    std::string all;
    for (const auto& [target, name] : kNames) all.append(all.empty() ? "" : ", ").append(name);
    return all;
}

std::string emit(const Placement& placement, Target target) {
    switch (target) {
    case Target::kTorchrun:
        return torchrunScript(placement);
    case Target::kOpenMpi:
        return rankfile(placement);
    case Target::kSlurm:
        return slurmHosts(placement);
    case Target::kKubernetes:
        return indexMap(placement);
    case Target::kMegatron:
        return megatronFlags(placement);
    case Target::kDeepSpeed:
        return deepSpeedTopology(placement.degrees);
    case Target::kTorchtitan:
        return torchtitanFlags(placement.degrees);
    case Target::kNccl:
        return ncclHints(placement);
    }
    return {};
}

}  // namespace isthmus::scheduler
