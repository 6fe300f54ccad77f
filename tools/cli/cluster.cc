#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "comm/base/knobs.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/node_spec.hpp"
#include "tools/cli/raw_command.hpp"
#include "tools/cli/subcommands.hpp"
#include "tools/cluster/addresses.hpp"
#include "tools/cluster/cluster.hpp"
#include "tools/cluster/spawn.hpp"

namespace isthmus::cli {
namespace {

using cluster::ClusterState;
using cluster::StateStore;

struct ClusterOptions {
    std::string name = "default";
    std::string nodes;
    std::string rate = "none";
    std::string node;
    std::string sharedMemory;
    int mtu = 1500;
    bool isJson = false;
    bool isAll = false;
    std::vector<std::string> command;
};

nlohmann::json describe(const ClusterState& state) {
    nlohmann::json nodes = nlohmann::json::array();
    for (int each = 0; each < static_cast<int>(state.nodes.size()); ++each) {
        const cluster::NodeState& node = state.nodes[static_cast<std::size_t>(each)];
        nlohmann::json row{{"node", each},
                           {"host", cluster::hostNameOfNode(each)},
                           {"address", cluster::addressOfNode(each)},
                           {"address6", cluster::address6OfNode(each)},
                           {"pid", node.init.pid},
                           {"rate", node.rates.text()},
                           {"alive", node.init.isAlive()}};
        if (const auto counters = cluster::readCounters(node)) {
            row["sent_bytes"] = counters->sentBytes;
            row["received_bytes"] = counters->receivedBytes;
        }
        nodes.push_back(std::move(row));
    }
    return {{"keeper", state.keeper.pid},
            {"name", state.name},
            {"shape", state.shape},
            {"alive", state.isAlive()},
            {"ready", state.isReady},
            {"mtu", state.mtu},
            {"nodes", nodes},
            {"limits", state.limits}};
}

void print(const ClusterState& state) {
    fmt::print("cluster {}: {} nodes ({}), mtu {}{}\n", state.name, state.nodes.size(), state.shape,
               state.mtu, state.isAlive() ? "" : ", dead: `isthmus cluster down` forgets it");
    fmt::print("{:<8} {:<12} {:<10} {:>8} {:>10} {:>16} {:>16}\n", "host", "address", "address6",
               "pid", "rate", "sent bytes", "received bytes");
    for (int each = 0; each < static_cast<int>(state.nodes.size()); ++each) {
        const cluster::NodeState& node = state.nodes[static_cast<std::size_t>(each)];
        const auto counters = cluster::readCounters(node);
        fmt::print("{:<8} {:<12} {:<10} {:>8} {:>10} {:>16} {:>16}\n",
                   cluster::hostNameOfNode(each), cluster::addressOfNode(each),
                   cluster::address6OfNode(each), node.init.pid, node.rates.text(),
                   counters ? std::to_string(counters->sentBytes) : "gone",
                   counters ? std::to_string(counters->receivedBytes) : "gone");
    }
    for (const std::string& limit : state.limits) fmt::print("limited here: {}\n", limit);
}

/// "2" alone is a number of nodes here, where ranks do not matter yet.
Result<NodeSpec> readNodes(const std::string& text) {
    const bool isNumber = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    return NodeSpec::parse(isNumber ? text + "x1" : text);
}

Result<int> readNode(const std::string& text, std::size_t nodes) {
    const std::string digits = text.starts_with("node") ? text.substr(4) : text;
    int node = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), node);
    if (error == std::errc() && *end == '\0' && node >= 0 && node < static_cast<int>(nodes))
        return node;
    return Status::invalidArgument(
        fmt::format("\"{}\" is no node of this cluster: 0 to {}", text, nodes - 1));
}

Result<ClusterState> loadAlive(const StateStore& store, const std::string& name) {
    Result<ClusterState> state = store.load(name);
    if (!state.ok()) return state;
    if (!state->isAlive() || !state->isReady) {
        return Status::resource(fmt::format(
            "cluster {} is {}", name,
            state->isAlive() ? "still starting" : "dead; `isthmus cluster down` forgets it"));
    }
    return state;
}

Status up(const ClusterOptions& asked, StateStore& store) {
    const Result<NodeSpec> spec = readNodes(asked.nodes);
    if (!spec.ok()) return spec.status();
    const auto rates = cluster::CardRates::parse(asked.rate);
    if (!rates.ok()) return rates.status();
    cluster::ClusterPlan plan{asked.name, spec->text(), spec->nodes(), asked.mtu, *rates, 0};
    if (!asked.sharedMemory.empty()) {
        const Result<std::int64_t> bytes = parseBytes(asked.sharedMemory);
        if (!bytes.ok()) return bytes.status();
        plan.sharedMemoryBytes = static_cast<std::uint64_t>(*bytes);
    }
    Result<cluster::MadeCluster> made = cluster::makeCluster(store, plan);
    if (!made.ok()) return made.status();
    ISTHMUS_TRY(cluster::cutLoose(*made));
    if (asked.isJson) {
        fmt::print("{}\n", describe(made->state).dump(2));
    } else {
        print(made->state);
    }
    return {};
}

Status rate(const ClusterOptions& asked, StateStore& store) {
    const auto wanted = cluster::CardRates::parse(asked.rate);
    if (!wanted.ok()) return wanted.status();
    Result<ClusterState> state = loadAlive(store, asked.name);
    if (!state.ok()) return state.status();
    std::optional<int> only;
    if (!asked.node.empty()) {
        const Result<int> node = readNode(asked.node, state->nodes.size());
        if (!node.ok()) return node.status();
        only = *node;
    }
    return cluster::changeRates(store, *state, *wanted, only);
}

Status down(const ClusterOptions& asked, StateStore& store) {
    std::vector<ClusterState> doomed;
    if (asked.isAll) {
        doomed = store.all();
    } else {
        const Result<ClusterState> state = store.load(asked.name);
        if (!state.ok()) return state.status();
        doomed.push_back(*state);
    }
    for (const ClusterState& each : doomed) ISTHMUS_TRY(cluster::destroyCluster(store, each));
    return {};
}

Status status(const ClusterOptions& asked, const StateStore& store) {
    const std::vector<ClusterState> states = store.all();
    if (asked.isJson) {
        nlohmann::json list = nlohmann::json::array();
        for (const ClusterState& each : states) list.push_back(describe(each));
        fmt::print("{}\n", list.dump(2));
        return {};
    }
    if (states.empty()) fmt::print("no cluster is up\n");
    for (const ClusterState& each : states) print(each);
    return {};
}

pid_t running = 0;  // the program that a forwarded signal is for

/// The terminal gives Ctrl-C to the program itself; what reaches us alone is passed on.
int waitFor(pid_t child) {
    running = child;
    for (const int signal : {SIGINT, SIGQUIT}) ::signal(signal, SIG_IGN);
    for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
        ::signal(signal, [](int number) { ::kill(running, number); });
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return cluster::shellCode(status);
}

int exec(const ClusterOptions& asked, const StateStore& store) {
    constexpr const char* kName = "cluster exec";
    const Result<ClusterState> state = loadAlive(store, asked.name);
    if (!state.ok()) return report(kName, state.status());
    const Result<int> node = readNode(asked.node, state->nodes.size());
    if (!node.ok()) return report(kName, node.status());
    const auto inside = cluster::Namespaces::of(state->nodes[static_cast<std::size_t>(*node)].init,
                                                cluster::Namespaces::Which::kAll);
    if (!inside.ok()) return report(kName, inside.status());
    cluster::Command command;
    command.arguments = asked.command;
    command.environment = {{"ISTHMUS_NODE", std::to_string(*node)}};
    const Result<pid_t> child = cluster::spawn(command, &*inside);
    if (child.ok()) return waitFor(*child);
    const int code = report(kName, child.status());
    const bool isTheProgram = child.status().code() == Status::Code::kInvalidArgument;
    return isTheProgram ? cluster::exitCodeOfFailure(asked.command[0]) : code;
}

/// Opens the records, runs `what` over them.
template <typename Function>
Action over(const char* name, const std::shared_ptr<ClusterOptions>& asked, Function what) {
    return [name, asked, what] {
        Result<StateStore> store = StateStore::open();
        if (!store.ok()) return report(name, store.status());
        if constexpr (std::is_same_v<decltype(what(*asked, *store)), int>) {
            return what(*asked, *store);
        } else {
            return report(name, what(*asked, *store));
        }
    };
}

}  // namespace

void addCluster(CLI::App& app, Action& chosen, const CommandLine& line) {
    CLI::App* group = app.add_subcommand("cluster", "emulated nodes on this machine");
    group->require_subcommand(1);
    auto asked = std::make_shared<ClusterOptions>();
    const auto add = [&](const char* name, const char* meaning) {
        CLI::App* sub = group->add_subcommand(name, meaning);
        sub->add_option("--name", asked->name, "which cluster")->capture_default_str();
        return sub;
    };

    CLI::App* sub =
        add("up", "make nodes, each with its own network, host name, processes and memory");
    sub->add_option("nodes,--nodes", asked->nodes, "2, 2x2 or 3+2+1")->required();
    sub->add_option(
           "--rate", asked->rate,
           "of each node's card, both ways: 1gbit, 500mbit, none; 4gbit+1gbit: of two cards")
        ->capture_default_str();
    sub->add_option("--mtu", asked->mtu, "bytes a packet carries")->capture_default_str();
    sub->add_option("--shm", asked->sharedMemory,
                    "size of each /dev/shm, such as 64M (default: half the memory)");
    sub->add_flag("--json", asked->isJson, "print JSON");
    sub->callback([asked, &chosen] { chosen = over("cluster up", asked, up); });

    sub = add("rate", "change the rate of the cards, in use or not");
    sub->add_option("rate", asked->rate, "1gbit, 500mbit, none, cut; 4gbit+cut: of two cards")
        ->required();
    sub->add_option("--node", asked->node, "of one node only");
    sub->callback([asked, &chosen] { chosen = over("cluster rate", asked, rate); });

    sub = add("exec", "run a program in a node: exec NODE -- PROGRAM ARGUMENTS");
    sub->add_option("node", asked->node, "0 or node0")->required();
    sub->prefix_command();
    sub->callback([asked, &chosen, &line, sub] {
        const auto command = rawCommand(*sub, line);
        chosen = [command] { return report("cluster exec", command.status()); };
        if (!command.ok()) return;
        asked->command = *command;
        chosen = over("cluster exec", asked, exec);
    });

    sub = add("down", "end a cluster and all that runs in it");
    sub->add_flag("--all", asked->isAll, "every cluster of this user");
    sub->callback([asked, &chosen] { chosen = over("cluster down", asked, down); });

    sub = group->add_subcommand("status", "what is up, with rates and byte counters");
    sub->add_flag("--json", asked->isJson, "print JSON");
    sub->callback([asked, &chosen] { chosen = over("cluster status", asked, status); });
}

}  // namespace isthmus::cli
