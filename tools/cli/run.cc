#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/exit_code.hpp"
#include "tools/cli/launch.hpp"
#include "tools/cli/raw_command.hpp"
#include "tools/cli/subcommands.hpp"
#include "tools/cluster/state.hpp"

namespace isthmus::cli {
namespace {

struct RunOptions {
    int ranks = 0;
    std::string nodes;
    std::string order = "block";
    std::string rate = "none";
    std::string clusterName;
    int mtu = 1500;
    double graceSeconds = 5;
    double limitSeconds = 0;
    bool hasNoPrefix = false;
};

std::chrono::milliseconds fromSeconds(double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

/// The shape that was asked for: --nodes, -n, or that of the cluster named by --on.
Result<NodeSpec> readShape(const RunOptions& asked) {
    if (!asked.nodes.empty()) return NodeSpec::parse(asked.nodes);
    if (asked.clusterName.empty()) return NodeSpec::parse(fmt::format("1x{}", asked.ranks));
    const auto store = cluster::StateStore::open();
    if (!store.ok()) return store.status();
    const auto state = store->load(asked.clusterName);
    if (!state.ok()) return state.status();
    return NodeSpec::parse(state->shape);
}

Result<LaunchPlan> makePlan(const RunOptions& asked) {
    if (asked.ranks == 0 && asked.nodes.empty() && asked.clusterName.empty()) {
        return Status::invalidArgument("how many ranks? -n 4, --nodes 2x2, or --on a cluster");
    }
    Result<NodeSpec> nodes = readShape(asked);
    if (!nodes.ok()) return nodes.status();
    const auto order = NodeSpec::parseOrder(asked.order);
    if (!order.ok()) return order.status();
    const auto rates = cluster::CardRates::parse(asked.rate);
    if (!rates.ok()) return rates.status();
    LaunchPlan plan;
    plan.nodes = std::move(*nodes);
    plan.order = *order;
    plan.isEmulated = !asked.nodes.empty() || !asked.clusterName.empty();
    plan.clusterName = asked.clusterName;
    plan.rates = *rates;
    plan.mtu = asked.mtu;
    plan.hasPrefix = !asked.hasNoPrefix;
    plan.grace = fromSeconds(asked.graceSeconds);
    if (asked.limitSeconds > 0) plan.limit = fromSeconds(asked.limitSeconds);
    return plan;
}

int run(const RunOptions& asked, const Result<std::vector<std::string>>& command) {
    if (!command.ok()) return report("run", command.status());
    Result<LaunchPlan> plan = makePlan(asked);
    if (!plan.ok()) return report("run", plan.status());
    plan->command = *command;
    return launch(std::move(*plan));
}

}  // namespace

void addRun(CLI::App& app, Action& chosen, const CommandLine& line) {
    CLI::App* sub =
        app.add_subcommand("run", "start the ranks of a job: run -n 4 PROGRAM ARGUMENTS");
    auto asked = std::make_shared<RunOptions>();
    CLI::Option* ranks = sub->add_option("-n,--ranks", asked->ranks, "ranks on this node")
                             ->check(CLI::Range(1, 4096));
    CLI::Option* nodes =
        sub->add_option("--nodes", asked->nodes, "ranks in emulated nodes: 2x2, 3+2+1");
    ranks->excludes(nodes);
    sub->add_option("--order", asked->order, "which node a rank is on: block, round-robin")
        ->capture_default_str();
    CLI::Option* rate = sub->add_option("--rate", asked->rate,
                                        "of each node's card, both ways: 1gbit, 500mbit, none; "
                                        "4gbit+1gbit: of two cards")
                            ->capture_default_str()
                            ->needs(nodes);
    sub->add_option("--mtu", asked->mtu, "bytes a packet between nodes carries")
        ->capture_default_str()
        ->needs(nodes);
    sub->add_option("--on", asked->clusterName,
                    "use the nodes of this cluster, made by `isthmus cluster up`")
        ->excludes(ranks)
        ->excludes(rate);
    sub->add_option("--grace", asked->graceSeconds,
                    "seconds between SIGTERM and SIGKILL when the job ends early")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    sub->add_option("--limit", asked->limitSeconds, "seconds the job may take (exit code 4)")
        ->check(CLI::PositiveNumber);
    sub->add_flag("--no-prefix", asked->hasNoPrefix, "leave output lines as they are");
    sub->prefix_command();
    sub->callback([asked, &chosen, &line, sub] {
        chosen = [asked, command = rawCommand(*sub, line)] { return run(*asked, command); };
    });
}

}  // namespace isthmus::cli
