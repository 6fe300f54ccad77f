#include "tools/cluster/keeper.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/base/unique_fd.hpp"
#include "tools/cluster/addresses.hpp"
#include "tools/cluster/namespaces.hpp"
#include "tools/cluster/node.hpp"
#include "tools/cluster/process.hpp"
#include "tools/cluster/report_line.hpp"

namespace isthmus::cluster {
namespace {

constexpr unsigned long kNodeNamespaces =
    CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNS;

/// Keeps only what a keeper needs of what its maker had open.
void closeAllBut(std::vector<int> kept) {
    std::sort(kept.begin(), kept.end());
    unsigned from = 3;
    for (const int fd : kept) {
        const auto keep = static_cast<unsigned>(fd);
        if (keep > from) ::close_range(from, keep - 1, 0);
        from = std::max(from, keep + 1);
    }
    ::close_range(from, ~0U, 0);
}

void leaveTerminal() {
    ::setsid();
    const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing.get(), fd);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) ::signal(signal, SIG_IGN);
    if (::chdir("/") != 0) ::_exit(1);
}

class Keeper {
public:
    explicit Keeper(const KeeperPlan& plan) : plan_(plan) {}

    Status run() {
        if (plan_.isInUserNamespace) ISTHMUS_TRY(becomeRootInside(plan_.userId, plan_.groupId));
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
            return systemError("make mounts private");
        }
        ISTHMUS_TRY(makeBridges());
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return systemError("pipe");
        const UniqueFd goRead(ends[0]);
        const UniqueFd goWrite(ends[1]);  // closed at the end of this function: go
        std::vector<pid_t> inits;
        for (int node = 0; node < plan_.nodes; ++node) {
            const pid_t init = forkInto(kNodeNamespaces);
            if (init < 0) return systemError("make a node's namespaces");
            if (init == 0) {
                ::close(goWrite.get());
                ::close(plan_.lifelineFd);
                liveAsNode({node, plan_.nodes, plan_.mtu, plan_.rates, plan_.sharedMemoryBytes,
                            goRead.get(), plan_.reportFd});
            }
            inits.push_back(init);
        }
        return connect(inits);
    }

private:
    int cards() const { return static_cast<int>(plan_.rates.cards.size()); }

    /// One for each card: they are networks of their own.
    Status makeBridges() const {
        std::string links = "link set lo up\n";
        for (int card = 0; card < cards(); ++card) {
            links += fmt::format(
                "link add name {0} mtu {1} type bridge stp_state 0 forward_delay 0 mcast_snooping "
                "0\nlink set {0} up\n",
                bridgeOfCard(card), plan_.mtu);
        }
        links += fmt::format("addr add {1}/{2} dev {0}\naddr add {3}/{4} dev {0} nodad\n",
                             bridgeOfCard(0), kBridgeAddress, kPrefixBits, kBridgeAddress6,
                             kPrefixBits6);
        return runProgram({"ip", "-batch", "-"}, links);
    }

    /// One cable a card, its far end inside the node at once.
    Status connect(const std::vector<pid_t>& inits) const {
        std::string links;
        std::string queues;
        for (int at = 0; at < plan_.nodes * cards(); ++at) {
            const int node = at / cards();
            const int card = at % cards();
            const Rate& rate = plan_.rates.cards[static_cast<std::size_t>(card)];
            const std::string port = portOfNode(node, card);
            links += fmt::format(
                "link add name {0} mtu {1} type veth peer name {2} mtu {1} netns {3}\n"
                "link set {0} master {4} up\n",
                port, plan_.mtu, deviceOfCard(card), inits[static_cast<std::size_t>(node)],
                bridgeOfCard(card));
            if (rate.isLimited())
                queues += fmt::format("qdisc replace dev {} root {}\n", port, rate.queueText());
        }
        ISTHMUS_TRY(runProgram({"ip", "-batch", "-"}, links));
        return queues.empty() ? Status() : runProgram({"tc", "-batch", "-"}, queues);
    }

    const KeeperPlan& plan_;
};

}  // namespace

void liveAsKeeper(const KeeperPlan& plan) {
    ::prctl(PR_SET_NAME, "isthmus-keeper");
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    closeAllBut({plan.reportFd, plan.lifelineFd});
    leaveTerminal();
    const Status made = Keeper(plan).run();
    sendReport(plan.reportFd,
               {made.ok() ? Report::Kind::kReady : Report::Kind::kFailed, -1, made.what()});
    ::close(plan.reportFd);
    if (!made.ok()) ::_exit(1);
    reapUntil(plan.lifelineFd);
    char released = 0;
    if (::read(plan.lifelineFd, &released, 1) != 1) ::_exit(0);  // the maker died: so do we
    ::prctl(PR_SET_PDEATHSIG, 0);
    ::send(plan.lifelineFd, &released, 1, MSG_NOSIGNAL);
    ::close(plan.lifelineFd);
    reapUntil(-1);
    ::_exit(0);
}

}  // namespace isthmus::cluster
