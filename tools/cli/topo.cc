#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli/bench_json.hpp"
#include "tools/cli/bench_options.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/own_ranks.hpp"
#include "tools/cli/probe_session.hpp"
#include "tools/cli/subcommands.hpp"
#include "tools/cluster/rate.hpp"
#include "tools/import/import.hpp"

namespace isthmus::cli {
namespace {

constexpr const char* kProbe = "topo probe";

struct ProbeOptions {
    BenchOptions ranks;  ///< only where they are started
    std::string file;
    bool isJson = false;
};

std::string documentOf(const ProbeReadings& readings, const scheduler::Cluster& cluster) {
    nlohmann::ordered_json document = nlohmann::ordered_json::parse(toJson(cluster));
    document["comment"] = fmt::format(
        "measured by isthmus {} topo probe with {} ranks; memory_bytes is what the system reports",
        ISTHMUS_VERSION, readings.ranks.size());
    return document.dump(2) + "\n";
}

int probeAsRank(const ProbeOptions& options) {
    const Result<Probed> probed = probe();
    if (!probed.ok()) return report(kProbe, probed.status());
    if (probed->rank != 0) return asInt(ExitCode::kOk);
    const scheduler::Cluster cluster = clusterOf(probed->readings);
    const std::string document = documentOf(probed->readings, cluster);
    if (!options.file.empty()) {
        const Status written = writeFile(options.file, document);
        if (!written.ok()) return report(kProbe, written);
    }
    fmt::print("{}", options.isJson ? document : probeText(probed->readings, cluster));
    return asInt(ExitCode::kOk);
}

int probeCluster(const CLI::App& sub, const ProbeOptions& options) {
    if (options.ranks.ranks == 0 && options.ranks.nodes.empty()) return probeAsRank(options);
    return startOwnRanks(sub, {"topo", "probe"}, options.ranks);
}

struct ImportOptions {
    std::vector<std::string> files;
    int devices = 1;
};

int importFiles(const ImportOptions& options) {
    const Result<scheduler::Cluster> cluster =
        foreign::clusterFromFiles(options.files, options.devices);
    if (!cluster.ok()) return report("topo import", cluster.status());
    fmt::print("{}\n", toJson(*cluster));
    return asInt(ExitCode::kOk);
}

void addImport(CLI::App& group, Action& chosen) {
    CLI::App* sub = group.add_subcommand(
        "import", "a topology that others wrote, as the JSON that isthmus place reads");
    auto options = std::make_shared<ImportOptions>();
    sub->add_option("files", options->files,
                    "Slurm's topology.conf or topology.yaml, XML of hwloc or NCCL, or what "
                    "nvidia-smi topo -m printed; files of one node each may be several")
        ->required();
    sub->add_option("--devices", options->devices, "of each node, where only nodes are known")
        ->check(CLI::Range(1, 1024));
    sub->callback([options, &chosen] { chosen = [options] { return importFiles(*options); }; });
}

}  // namespace

void addTopo(CLI::App& app, Action& chosen) {
    CLI::App* group = app.add_subcommand("topo", "topologies that isthmus place reads");
    group->require_subcommand(1);
    addImport(*group, chosen);
    CLI::App* sub =
        group->add_subcommand("probe", "measure nodes, cards and what joins them, with a job");
    auto options = std::make_shared<ProbeOptions>();
    sub->add_option("-o,--output", options->file, "write the topology there");
    sub->add_flag("--json", options->isJson, "print the topology instead of a table");
    addRankOptions(*sub, options->ranks);
    sub->footer(
        "One rank a device: runs under isthmus run, torchrun, mpirun and srun; alone it starts "
        "its own ranks with --ranks or --nodes.\nCards: the payload that TCP brings, as bits of "
        "the line; flops_per_second: what a rank gets done while all compute.");
    sub->callback([sub, options, &chosen] {
        chosen = [sub, options] { return probeCluster(*sub, *options); };
    });
}

}  // namespace isthmus::cli
