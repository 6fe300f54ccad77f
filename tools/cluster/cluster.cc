#include "tools/cluster/cluster.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "tools/cluster/addresses.hpp"
#include "tools/cluster/keeper.hpp"
#include "tools/cluster/namespaces.hpp"
#include "tools/cluster/report_line.hpp"

namespace isthmus::cluster {
namespace {

constexpr std::chrono::milliseconds kMakeLimit{20'000};  // 2 nodes take 50 ms on two idle cores
constexpr std::chrono::milliseconds kEndLimit{10'000};

constexpr unsigned long kKeeperNamespaces =
    CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC;

Status explainRefusal() {
    const Status plain = systemError("make namespaces");
    const std::string most = readFile("/proc/sys/user/max_user_namespaces");
    const std::string allowed = readFile("/proc/sys/kernel/unprivileged_userns_clone");
    std::string why = "needs root, or a kernel that lets users make user namespaces";
    if (most == "0") why += "; user.max_user_namespaces is 0 here";
    if (allowed == "0") why += "; kernel.unprivileged_userns_clone is 0 here";
    return Status::unsupported(fmt::format(
        "{} ({}); `isthmus run -n N` still starts ranks on this node", plain.what(), why));
}

struct Lifeline {
    UniqueFd keeper;
    UniqueFd maker;
};

Result<Lifeline> makeLifeline() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return systemError("socketpair");
    return Lifeline{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// As root in plain namespaces; else, or when that is refused, root inside a user namespace only.
Result<pid_t> startKeeper(KeeperPlan plan, const Lifeline& lifeline) {
    plan.userId = ::geteuid();
    plan.groupId = ::getegid();
    pid_t keeper = -1;
    for (const bool isInUserNamespace : {false, true}) {
        if (!isInUserNamespace && plan.userId != 0) continue;
        plan.isInUserNamespace = isInUserNamespace;
        keeper = forkInto(kKeeperNamespaces | (isInUserNamespace ? CLONE_NEWUSER : 0UL));
        if (keeper >= 0 || errno != EPERM) break;
    }
    if (keeper < 0) return explainRefusal();
    if (keeper == 0) {
        ::close(lifeline.maker.get());
        liveAsKeeper(plan);
    }
    return keeper;
}

Status collectReports(int reader, ClusterState& state) {
    std::size_t ready = 0;
    while (ready < state.nodes.size() + 1) {
        const Result<Report> report = receiveReport(reader, kMakeLimit);
        if (!report.ok()) return report.status();
        const std::string who = report->node < 0 ? "bridge" : hostNameOfNode(report->node);
        if (report->kind == Report::Kind::kFailed)
            return Status::unsupported(who + ": " + report->text);
        if (report->kind == Report::Kind::kLimit) state.limits.push_back(who + ": " + report->text);
        if (report->kind != Report::Kind::kReady) continue;
        ++ready;
        if (report->node < 0) continue;
        state.nodes[static_cast<std::size_t>(report->node)].init =
            ProcessIdentity::of(report->sender);
    }
    return {};
}

/// Runs `tc` and `ip` in the network of `process`.
Status runInNetwork(const ProcessIdentity& process, const std::string& queues,
                    const std::string& links = "") {
    const Result<Namespaces> network = Namespaces::of(process, Namespaces::Which::kNetworkOnly);
    if (!network.ok()) return network.status();
    Result<ReportPair> pair = makeReportPair();
    if (!pair.ok()) return pair.status();
    const pid_t child = ::fork();  // setns(2) of a user namespace wants one thread
    if (child < 0) return systemError("fork");
    if (child == 0) {
        Status done = network->enter();
        if (done.ok()) done = runProgram({"tc", "-batch", "-"}, queues);
        if (done.ok() && !links.empty()) done = runProgram({"ip", "-batch", "-"}, links);
        sendReport(pair->writer.get(),
                   {done.ok() ? Report::Kind::kReady : Report::Kind::kFailed, 0, done.what()});
        ::_exit(0);
    }
    pair->writer.reset();
    const Result<Report> report = receiveReport(pair->reader.get(), kEndLimit);
    ::waitpid(child, nullptr, 0);
    if (!report.ok()) return report.status();
    return report->kind == Report::Kind::kReady ? Status() : Status::unsupported(report->text);
}

std::string queueLine(const std::string& device, Rate rate) {
    if (rate.isLimited())
        return fmt::format("qdisc replace dev {} root {}\n", device, rate.queueText());
    return fmt::format("qdisc replace dev {} root noqueue\n", device);
}

}  // namespace

Result<MadeCluster> makeCluster(StateStore& store, const ClusterPlan& plan) {
    if (!isClusterName(plan.name)) {
        return Status::invalidArgument(
            fmt::format("\"{}\" is no name for a cluster: letters, digits, - _ .", plan.name));
    }
    if (plan.nodes < 1 || plan.nodes > kMaxNodes) {
        return Status::invalidArgument(
            fmt::format("{} nodes: 1 to {} can be emulated", plan.nodes, kMaxNodes));
    }
    if (plan.mtu < 1280 || plan.mtu > 65535) {  // 1280: the least IPv6 allows, RFC 8200 section 5
        return Status::invalidArgument(fmt::format("mtu {}: 1280 to 65535 are possible", plan.mtu));
    }
    if (plan.rates.isCut()) {
        return Status::invalidArgument(fmt::format(
            "rate \"{}\": nodes are made with whole cables; `isthmus cluster rate` cuts "
            "those of a cluster that is up",
            plan.rates.text()));
    }
    MadeCluster made;
    ClusterState& state = made.state;
    state.name = plan.name;
    state.shape = plan.shape;
    state.mtu = plan.mtu;
    state.keeper = ProcessIdentity::of(::getpid());
    ISTHMUS_TRY(store.claim(state));

    const auto attempt = [&]() -> Status {
        Result<ReportPair> reports = makeReportPair();
        if (!reports.ok()) return reports.status();
        Result<Lifeline> lifeline = makeLifeline();
        if (!lifeline.ok()) return lifeline.status();
        const Result<pid_t> keeper =
            startKeeper({plan.nodes, plan.mtu, plan.rates, plan.sharedMemoryBytes, false, 0, 0,
                         reports->writer.get(), lifeline->keeper.get()},
                        *lifeline);
        if (!keeper.ok()) return keeper.status();
        reports->writer.reset();
        made.lifeline = std::move(lifeline->maker);
        state.keeper = ProcessIdentity::of(*keeper);
        state.nodes.assign(static_cast<std::size_t>(plan.nodes), {ProcessIdentity{}, plan.rates});
        ISTHMUS_TRY(collectReports(reports->reader.get(), state));
        state.isReady = true;
        return store.save(state);
    };
    const Status done = attempt();
    if (done.ok()) return made;
    if (state.keeper.pid != ::getpid()) (void)killAndWait(state.keeper, kEndLimit);
    store.remove(state.name);
    return done;
}

Status cutLoose(MadeCluster& made) {
    // The answer says that our death is no longer the keeper's.
    char byte = 'k';
    if (::send(made.lifeline.get(), &byte, 1, MSG_NOSIGNAL) != 1 ||
        ::recv(made.lifeline.get(), &byte, 1, 0) != 1) {
        return Status::peerLost("the cluster's keeper ended");
    }
    made.lifeline.reset();
    return {};
}

Status destroyCluster(StateStore& store, const ClusterState& state) {
    ISTHMUS_TRY(killAndWait(state.keeper, kEndLimit));
    for (const NodeState& node : state.nodes) ISTHMUS_TRY(killAndWait(node.init, kEndLimit));
    store.remove(state.name);
    return {};
}

Status changeRates(StateStore& store, ClusterState& state, const CardRates& rates,
                   std::optional<int> node) {
    if (node && (*node < 0 || *node >= static_cast<int>(state.nodes.size()))) {
        return Status::invalidArgument(
            fmt::format("no node {} in a cluster of {}", *node, state.nodes.size()));
    }
    std::string ports;
    std::string cables;
    for (int each = 0; each < static_cast<int>(state.nodes.size()); ++each) {
        if (node && *node != each) continue;
        NodeState& changed = state.nodes[static_cast<std::size_t>(each)];
        const std::size_t cards = changed.rates.cards.size();
        if (rates.cards.size() != 1 && rates.cards.size() != cards) {
            return Status::invalidArgument(fmt::format("{} has {} cards, \"{}\" is of {}",
                                                       hostNameOfNode(each), cards, rates.text(),
                                                       rates.cards.size()));
        }
        std::string queues;
        for (std::size_t at = 0; at < cards; ++at) {
            const int card = static_cast<int>(at);
            const Rate rate = rates.cards[rates.cards.size() == 1 ? 0 : at];
            const std::string port = portOfNode(each, card);
            cables += fmt::format("link set {} {}\n", port, rate.isCut ? "down" : "up");
            changed.rates.cards[at] = rate;
            if (rate.isCut) continue;  // it may come back as it was
            queues += queueLine(deviceOfCard(card), rate);
            ports += queueLine(port, rate);
        }
        ISTHMUS_TRY(runInNetwork(changed.init, queues).within(hostNameOfNode(each)));
    }
    ISTHMUS_TRY(runInNetwork(state.keeper, ports, cables).within("bridge"));
    return store.save(state);
}

std::optional<CardCounters> readCounters(const NodeState& node) {
    if (!node.init.isAlive()) return std::nullopt;
    std::istringstream lines(readFile(fmt::format("/proc/{}/net/dev", node.init.pid)));
    CardCounters counters;
    bool isThere = false;
    for (std::string word; lines >> word;) {
        if (!word.starts_with("eth") || !word.ends_with(":")) continue;
        isThere = true;
        std::uint64_t received = 0;
        std::uint64_t sent = 0;
        std::string skipped;
        lines >> received;
        for (int field = 0; field < 7; ++field) lines >> skipped;
        lines >> sent;
        counters.receivedBytes += received;
        counters.sentBytes += sent;
    }
    return isThere ? std::optional(counters) : std::nullopt;
}

}  // namespace isthmus::cluster
