#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "comm/base/knobs.hpp"
#include "comm/bootstrap/launch_environment.hpp"
#include "comm/communicator/runtime.hpp"
#include "tools/cli/bench_options.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/info_facts.hpp"
#include "tools/cli/own_ranks.hpp"
#include "tools/cli/reach_session.hpp"
#include "tools/cli/subcommands.hpp"
#include "topology/discover/net_device.hpp"
#include "topology/model/snapshot.hpp"

namespace isthmus::cli {
namespace {

using nlohmann::json;

struct InfoOptions {
    bool isJson = false;
    bool showsOptions = false;
    bool isOfCluster = false;
    BenchOptions ranks;  ///< only where they are started
};

json optionsAsJson(const Options& options) {
    json rows = json::array();
    for (const Options::Row& row : options.rows()) {
        rows.push_back({{"name", row.knob.name},
                        {"unit", nameOf(row.knob.unit)},
                        {"value", row.value},
                        {"default", row.knob.value},
                        {"set_by", row.setBy},
                        {"meaning", row.knob.meaning}});
    }
    return rows;
}

void printOptions(const Options& options) {
    fmt::print("{:<28} {:<13} {:<12} {:<12} {:<12} {}\n", "option", "unit", "value", "default",
               "set by", "meaning");
    for (const Options::Row& row : options.rows()) {
        fmt::print("{:<28} {:<13} {:<12} {:<12} {:<12} {}\n", row.knob.name, nameOf(row.knob.unit),
                   row.value.empty() ? "-" : row.value,
                   row.knob.value.empty() ? "-" : row.knob.value, row.setBy, row.knob.meaning);
    }
}

/// On standard error: it is no part of what was asked.
void warnOfUnknown(const Options& options) {
    for (const Options::Unknown& each : options.unknown()) {
        fmt::print(stderr, "isthmus info: unknown option {} in the environment{}\n", each.name,
                   each.nearest.empty() ? "" : "; did you mean " + each.nearest + "?");
    }
}

std::string gibibytes(const Fact<std::int64_t>& fact) {
    if (!fact.isKnown()) return "unknown";
    return fmt::format("{:.1f} GiB", static_cast<double>(fact.value) / (1 << 30));
}

std::string describeCaches(const Machine& machine) {
    std::string text;
    for (const Cache& each : machine.caches) {
        text += fmt::format("{}L{} {} x {} KiB", text.empty() ? "" : ", ", each.level, each.copies,
                            each.bytes >> 10);
    }
    return text.empty() ? "unknown" : text;
}

void printMachine(const NodeSnapshot& node) {
    const Machine& machine = node.machine;
    fmt::print("node        {}\n", node.hostName);
    fmt::print("processor   {}: {} packages, {} cores, {} threads; this process may use {}\n",
               machine.processorModel, machine.packages, machine.cores, machine.processors,
               machine.allowed);
    fmt::print("caches      {}\n", describeCaches(machine));
    fmt::print("memory      {}, {} NUMA nodes; /dev/shm {}\n", gibibytes(machine.memoryBytes),
               machine.numaNodes.size(), gibibytes(node.limits.sharedBytes));
    if (node.limits.processors.isKnown() || node.limits.memoryBytes.isKnown()) {
        fmt::print(
            "container   {} processors, {}\n",
            node.limits.processors.isKnown() ? fmt::format("{:.2f}", node.limits.processors.value)
                                             : "all",
            node.limits.memoryBytes.isKnown() ? gibibytes(node.limits.memoryBytes) : "all memory");
    }
}

std::string describeRate(const Fact<std::int64_t>& rate) {
    return rate.isKnown() ? fmt::format("{:g} Gbit/s", static_cast<double>(rate.value) / 1e9)
                          : "rate unknown";
}

void printCards(const NodeSnapshot& node) {
    for (const NetDevice& card : node.netDevices) {
        std::string addresses;
        for (const NetAddress& each : card.addresses) addresses += " " + each.text;
        fmt::print("card        {}: {}, {}, mtu {}{}{}{}\n", card.name, card.isUp ? "up" : "down",
                   describeRate(card.bitsPerSecond), card.largestUnitBytes.value,
                   card.isVirtual ? ", virtual" : "", addresses.empty() ? ", no address" : ",",
                   addresses);
    }
    for (const RdmaPort& port : node.rdmaPorts) {
        fmt::print("RDMA        {} port {}: {}, {}, {}\n", port.device, port.port,
                   port.isActive ? "active" : "inactive", port.linkLayer,
                   describeRate(port.bitsPerSecond));
    }
    if (node.rdmaPorts.empty()) fmt::print("RDMA        no device\n");
}

json everything(const NodeSnapshot& node, const Options& options,
                const Result<LaunchEnvironment>& launch) {
    json facts;
    facts["version"] = ISTHMUS_VERSION;
    facts["node"] = json::parse(toJson(node));
    for (const TransportFact& each : transportFacts(node, options)) {
        facts["transports"].push_back(
            {{"name", each.name}, {"usable", each.isUsable}, {"why", each.why}});
    }
    facts["launch"] = launch.ok() ? json{{"launcher", nameOf(launch->launcher)},
                                         {"rank", launch->rank},
                                         {"ranks", launch->ranks},
                                         {"store", launch->store},
                                         {"explanation", launch->explanation}}
                                  : json{{"error", launch.status().what()}};
    for (const auto& [name, version] : versionFacts()) facts["versions"][name] = version;
    facts["options"] = optionsAsJson(options);
    return facts;
}

void printEverything(const NodeSnapshot& node, const Options& options,
                     const Result<LaunchEnvironment>& launch) {
    printMachine(node);
    printCards(node);
    for (const TransportFact& each : transportFacts(node, options)) {
        fmt::print("transport   {}: {}{}\n", each.name,
                   each.isUsable ? "" : "not usable: ", each.why);
    }
    fmt::print("launched    {}\n", launch.ok() ? launch->explanation : launch.status().what());
    std::string versions;
    for (const auto& [name, version] : versionFacts()) {
        versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", name, version);
    }
    fmt::print("versions    {}\n", versions);
    int changed = 0;
    for (const Options::Row& row : options.rows()) {
        if (row.setBy == "default") continue;
        fmt::print("option      {} is {} (set by {})\n", row.knob.name, row.value, row.setBy);
        ++changed;
    }
    fmt::print("options     {} of {} changed; `isthmus info --options` lists all\n", changed,
               options.rows().size());
}

int info(const InfoOptions& asked) {
    const Result<Options> options = Options::fromEnvironment(allKnobs());
    if (!options.ok()) return report("info", options.status());
    warnOfUnknown(*options);
    if (asked.showsOptions) {
        if (asked.isJson) {
            fmt::print("{}\n", optionsAsJson(*options).dump(2));
        } else {
            printOptions(*options);
        }
        return asInt(ExitCode::kOk);
    }
    const Result<NodeSnapshot> node = discoverNodeWith(options->text("ISTHMUS_TOPOLOGY"));
    if (!node.ok()) return report("info", node.status());
    const Result<LaunchEnvironment> launch = readLaunchEnvironment(launchFacts());
    if (asked.isJson) {
        fmt::print("{}\n", everything(*node, *options, launch).dump(2));
    } else {
        printEverything(*node, *options, launch);
    }
    return asInt(ExitCode::kOk);
}

int reachAsRank(bool isJson) {
    const auto reach = surveyReach();
    if (!reach.ok()) return report("info", reach.status());
    if (!reach->has_value()) return asInt(ExitCode::kOk);
    fmt::print("{}", isJson ? reachJson(**reach) : reachText(**reach));
    return asInt((*reach)->isHealthy() ? ExitCode::kOk : ExitCode::kUnhealthy);
}

int infoOf(const CLI::App& sub, const InfoOptions& asked) {
    const bool startsRanks = asked.ranks.ranks > 0 || !asked.ranks.nodes.empty();
    if (!asked.isOfCluster && startsRanks) {
        return report("info", Status::invalidArgument("--ranks and --nodes go with --cluster"));
    }
    if (!asked.isOfCluster) return info(asked);
    return startsRanks ? startOwnRanks(sub, {"info"}, asked.ranks) : reachAsRank(asked.isJson);
}

}  // namespace

void addInfo(CLI::App& app, Action& chosen) {
    CLI::App* sub = app.add_subcommand("info", "what this machine and this build can do");
    auto asked = std::make_shared<InfoOptions>();
    sub->add_flag("--json", asked->isJson, "print JSON");
    sub->add_flag("--options", asked->showsOptions,
                  "list every ISTHMUS_ option: unit, value, default, who set it");
    sub->add_flag(
        "--cluster", asked->isOfCluster,
        "what leads from rank to rank: tries every transport of ISTHMUS_TRANSPORTS at "
        "every pair, and says what is used, how fast it is and what is wrong with others");
    addRankOptions(*sub, asked->ranks);
    sub->footer(
        "--cluster runs under isthmus run, torchrun, mpirun and srun; alone it starts its own "
        "ranks with --ranks or --nodes. 2: some pair has no way that works.");
    sub->callback(
        [sub, asked, &chosen] { chosen = [sub, asked] { return infoOf(*sub, *asked); }; });
}

}  // namespace isthmus::cli
