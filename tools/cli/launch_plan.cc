#include "tools/cli/launch_plan.hpp"

#include "comm/base/knobs.hpp"
#include "tools/cluster/addresses.hpp"

namespace isthmus::cli {

std::vector<RankPlace> placeRanks(const NodeSpec& nodes, NodeSpec::Order order) {
    std::vector<RankPlace> places;
    std::vector<int> used(static_cast<std::size_t>(nodes.nodes()), 0);
    for (const int node : nodes.nodeOfRank(order)) {
        const int localRank = used[static_cast<std::size_t>(node)]++;
        places.push_back(
            {static_cast<int>(places.size()), nodes.ranks(), node, nodes.nodes(), localRank,
             nodes.ranksOf(node),
             nodes.racks().empty() ? -1 : nodes.racks()[static_cast<std::size_t>(node)]});
    }
    return places;
}

Variables variablesOf(const RankPlace& place, const MeetingPlace& meeting) {
    const auto text = [](int value) { return std::to_string(value); };
    Variables variables{
        {kRunIdVariable, meeting.runId},
        {"ISTHMUS_RANK", text(place.rank)},
        {"ISTHMUS_WORLD_SIZE", text(place.ranks)},
        {"ISTHMUS_LOCAL_RANK", text(place.localRank)},
        {"ISTHMUS_LOCAL_WORLD_SIZE", text(place.localRanks)},
        {"ISTHMUS_NODE", text(place.node)},
        {"ISTHMUS_STORE", meeting.store},
        {"ISTHMUS_JOB_KEY_FD", text(meeting.jobKeyFd)},
        // torchrun's, docs.pytorch.org/docs/stable/elastic/run.html, "Environment Variables".
        {"RANK", text(place.rank)},
        {"WORLD_SIZE", text(place.ranks)},
        {"LOCAL_RANK", text(place.localRank)},
        {"LOCAL_WORLD_SIZE", text(place.localRanks)},
        {"GROUP_RANK", text(place.node)},
        {"GROUP_WORLD_SIZE", text(place.nodes)},
        {"ROLE_NAME", "default"},
        {"ROLE_RANK", text(place.rank)},
        {"ROLE_WORLD_SIZE", text(place.ranks)},
        {"MASTER_ADDR", meeting.masterAddress},
        {"MASTER_PORT", text(meeting.masterPort)},
    };
    if (place.rack >= 0) {
        variables.emplace_back("ISTHMUS_RACK", "rack" + std::to_string(place.rack));
    }
    if (meeting.cards > 0) {
        // Libraries that guess from the host name would need one that resolves.
        for (const char* name : {"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
            variables.emplace_back(name, cluster::deviceOfCard(0));
        }
    }
    if (meeting.cards > 1 && !environmentVariable("ISTHMUS_INTERFACE")) {
        std::string devices = cluster::deviceOfCard(0);
        for (int card = 1; card < meeting.cards; ++card)
            devices += "," + cluster::deviceOfCard(card);
        variables.emplace_back("ISTHMUS_INTERFACE", devices);
    }
    // As torchrun does: several ranks with a thread a core each would fight for the cores.
    if (place.localRanks > 1 && !environmentVariable("OMP_NUM_THREADS")) {
        variables.emplace_back("OMP_NUM_THREADS", "1");
    }
    // Output goes through a pipe; a killed rank's last lines would be lost in Python's buffer.
    if (!environmentVariable("PYTHONUNBUFFERED")) variables.emplace_back("PYTHONUNBUFFERED", "1");
    return variables;
}

const std::vector<std::string>& foreignVariables() {
    static const std::vector<std::string> names{"OMPI_COMM_WORLD_RANK",
                                                "OMPI_COMM_WORLD_SIZE",
                                                "OMPI_COMM_WORLD_LOCAL_RANK",
                                                "OMPI_COMM_WORLD_LOCAL_SIZE",
                                                "OMPI_COMM_WORLD_NODE_RANK",
                                                "PMIX_RANK",
                                                "PMIX_NAMESPACE",
                                                "PMI_RANK",
                                                "PMI_SIZE",
                                                "PMI_FD",
                                                "PMI_ID",
                                                "PMI_PORT",
                                                "MPI_LOCALRANKID",
                                                "MPI_LOCALNRANKS",
                                                "MV2_COMM_WORLD_RANK",
                                                "MV2_COMM_WORLD_SIZE",
                                                "MV2_COMM_WORLD_LOCAL_RANK",
                                                "SLURM_PROCID",
                                                "SLURM_NTASKS",
                                                "SLURM_NPROCS",
                                                "SLURM_LOCALID",
                                                "SLURM_NODEID",
                                                "SLURM_STEP_NODELIST",
                                                "TORCHELASTIC_RUN_ID",
                                                "TORCHELASTIC_RESTART_COUNT",
                                                "TORCHELASTIC_MAX_RESTARTS",
                                                "TORCHELASTIC_USE_AGENT_STORE",
                                                "ISTHMUS_JOB_KEY_FILE"};
    return names;
}

}  // namespace isthmus::cli
