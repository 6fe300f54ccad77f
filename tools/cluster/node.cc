#include "tools/cluster/node.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "comm/base/unique_fd.hpp"
#include "tools/cluster/addresses.hpp"
#include "tools/cluster/process.hpp"
#include "tools/cluster/report_line.hpp"

namespace isthmus::cluster {
namespace {

class NodeSetup {
public:
    explicit NodeSetup(const NodePlan& plan) : plan_(plan) {}

    Status run() {
        const std::string name = hostNameOfNode(plan_.node);
        if (::sethostname(name.data(), name.size()) != 0) return systemError("sethostname");
        ISTHMUS_TRY(mountOwnFilesystems());
        ISTHMUS_TRY(giveIdentity());
        char end = 0;
        while (::read(plan_.goFd, &end, 1) < 0 && errno == EINTR) {
        }
        return bringUpCards();
    }

private:
    void limit(const Status& why) const {
        sendReport(plan_.reportFd, {Report::Kind::kLimit, plan_.node, why.what()});
    }

    Status mountOwnFilesystems() const {
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
            return systemError("make mounts private");
        }
        constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV;
        if (::mount("proc", "/proc", "proc", kPlain | MS_NOEXEC, nullptr) != 0) {
            limit(systemError("mount /proc (programs see the process numbers of outside)"));
        }
        mountOwnSysfs();
        const std::string options = plan_.sharedMemoryBytes == 0
                                        ? std::string("mode=1777")
                                        : fmt::format("mode=1777,size={}", plan_.sharedMemoryBytes);
        if (::mount("tmpfs", "/dev/shm", "tmpfs", kPlain, options.c_str()) != 0) {
            return systemError("mount /dev/shm");
        }
        return {};
    }

    /// /sys shows the cards of the process that mounted it. The control groups below it stay.
    void mountOwnSysfs() const {
        const UniqueFd groups(::open_tree(AT_FDCWD, "/sys/fs/cgroup",
                                          OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
        if (::mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
                    nullptr) != 0) {
            limit(systemError("mount /sys (programs see the cards of outside there)"));
            return;
        }
        if (groups.isOpen() && ::move_mount(groups.get(), "", AT_FDCWD, "/sys/fs/cgroup",
                                            MOVE_MOUNT_F_EMPTY_PATH) != 0) {
            limit(systemError("keep /sys/fs/cgroup"));
        }
    }

    /// Makes a file that the system lacks, for this node only: in a layer of its own over the
    /// folder.
    Status makeHere(const std::string& folder, const std::string& path) const {
        const std::string layer = "/dev/shm/.layer";
        ::mkdir(layer.c_str(), 0700);
        if (::mount("tmpfs", layer.c_str(), "tmpfs", 0, "mode=755") != 0) {
            return systemError("mount a layer for " + path);
        }
        for (const char* each : {"/upper", "/work"}) ::mkdir((layer + each).c_str(), 0755);
        const std::string options =
            fmt::format("lowerdir={0},upperdir={1}/upper,workdir={1}/work", folder, layer);
        const bool isLaid = ::mount("overlay", folder.c_str(), "overlay", 0, options.c_str()) == 0;
        const Status why = isLaid ? writeFile(path, "") : systemError("make " + path);
        ::umount2(layer.c_str(), MNT_DETACH);  // the overlay keeps it
        ::rmdir(layer.c_str());
        return why;
    }

    /// Lays our own text over a file of the system. The source is a name in /dev/shm for a moment.
    Status cover(const std::string& path, const std::string& text) const {
        if (::access(path.c_str(), F_OK) != 0) return {};  // this system has no such file
        const std::string source = "/dev/shm/.cover";
        ISTHMUS_TRY(writeFile(source, text));
        const bool isCovered =
            ::mount(source.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) == 0;
        const Status why = isCovered ? Status() : systemError("cover " + path);
        ::unlink(source.c_str());
        return why;
    }

    Status giveIdentity() const {
        std::string hosts = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n";
        for (int each = 0; each < plan_.nodes; ++each) {
            const std::string name = hostNameOfNode(each);
            hosts +=
                fmt::format("{0} {1}\n{2} {1}\n", addressOfNode(each), name, address6OfNode(each));
            // torch looks up IPv4 peers as mapped addresses; its own name, or node0 would have
            // three.
            hosts += fmt::format("::ffff:{0} {1}-mapped\n", addressOfNode(each), name);
        }
        std::array<std::uint8_t, 16> random{};
        if (::getrandom(random.data(), random.size(), 0) != 16) return systemError("getrandom");
        std::string plain;
        for (const unsigned byte : random) plain += fmt::format("{:02x}", byte);
        std::string dashed = plain;
        for (const std::size_t at : {8U, 13U, 18U, 23U}) dashed.insert(at, "-");
        const std::array<std::pair<const char*, std::string>, 5> covers{{
            {"/etc/hosts", hosts},
            {"/etc/hostname", hostNameOfNode(plan_.node) + "\n"},
            {"/etc/resolv.conf", ""},
            {"/etc/machine-id", plain + "\n"},
            {"/proc/sys/kernel/random/boot_id", dashed + "\n"},
        }};
        // Without it the nodes would not find each other by name.
        if (::access("/etc/hosts", F_OK) != 0) {
            if (const Status why = makeHere("/etc", "/etc/hosts"); !why.ok()) limit(why);
        }
        for (const auto& [path, text] : covers) {
            if (const Status why = cover(path, text); !why.ok()) limit(why);
        }
        return {};
    }

    Status bringUpCards() const {
        std::string links = "link set lo up\n";
        std::string queues;
        for (int card = 0; card < static_cast<int>(plan_.rates.cards.size()); ++card) {
            const Rate& rate = plan_.rates.cards[static_cast<std::size_t>(card)];
            const std::string device = deviceOfCard(card);
            links += fmt::format(
                "link set {0} mtu {1} up\naddr add {2}/{3} dev {0}\naddr add {4}/{5} dev {0} "
                "nodad\n",
                device, plan_.mtu, addressOfNode(plan_.node, card), kPrefixBits,
                address6OfNode(plan_.node, card), kPrefixBits6);
            if (rate.isLimited())
                queues += fmt::format("qdisc replace dev {} root {}\n", device, rate.queueText());
        }
        ISTHMUS_TRY(runProgram({"ip", "-batch", "-"}, links));
        if (!queues.empty()) ISTHMUS_TRY(runProgram({"tc", "-batch", "-"}, queues));
        // Every kernel has reno and its rate is that of the line on a short shaped link.
        const Status reno = writeFile("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
        if (!reno.ok()) limit(reno);
        return {};
    }

    const NodePlan& plan_;
};

}  // namespace

void liveAsNode(const NodePlan& plan) {
    ::prctl(PR_SET_NAME, fmt::format("isthmus-{}", hostNameOfNode(plan.node)).c_str());
    const Status done = NodeSetup(plan).run();
    sendReport(plan.reportFd,
               {done.ok() ? Report::Kind::kReady : Report::Kind::kFailed, plan.node, done.what()});
    ::close(plan.goFd);
    ::close(plan.reportFd);
    reapUntil(-1);
    ::_exit(0);
}

void reapUntil(int lifelineFd) {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child, nullptr);
    const UniqueFd signals(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    std::array<pollfd, 2> waiting{{{signals.get(), POLLIN, 0}, {lifelineFd, POLLIN, 0}}};
    for (;;) {
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
        signalfd_siginfo information{};
        while (::read(signals.get(), &information, sizeof information) > 0) {
        }
        if (waiting[1].revents != 0) return;
    }
}

}  // namespace isthmus::cluster
