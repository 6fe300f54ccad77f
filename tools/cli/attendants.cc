#include "tools/cli/attendants.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "comm/base/knobs.hpp"
#include "comm/bootstrap/host_port.hpp"
#include "comm/bootstrap/store_tcp.hpp"
#include "tools/cli/launch_plan.hpp"
#include "tools/cluster/process.hpp"
#include "tools/cluster/report_line.hpp"
#include "tools/cluster/state.hpp"

namespace isthmus::cli {
namespace {

constexpr std::chrono::milliseconds kStartLimit{10'000};

struct Lifeline {
    UniqueFd attendant;
    UniqueFd launcher;
};

Result<Lifeline> makeLifeline() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return cluster::systemError("socketpair");
    return Lifeline{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Out of reach of the terminal's signals, which are the launcher's to answer.
void standAside(const char* name) {
    ::prctl(PR_SET_NAME, name);
    ::setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
    const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) ::dup2(nothing.get(), fd);
}

/// True when the launcher said goodbye, false when it died.
bool waitForGoodbye(int lifeline) {
    char byte = 0;
    ssize_t got = 0;
    do {
        got = ::recv(lifeline, &byte, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == 1;
}

Result<HostPort> serve(const std::string& address, const JobKey& key,
                       const cluster::Namespaces* where, std::unique_ptr<TcpStoreServer>& server) {
    if (where != nullptr) ISTHMUS_TRY(where->enter());
    const auto range = parsePortRange(environmentVariable("ISTHMUS_PORT_RANGE").value_or(""));
    if (!range.ok()) return range.status();
    auto started = TcpStoreServer::start(HostPort{address, 0}, key, *range);
    if (!started.ok()) return started.status();
    server = std::move(*started);
    return server->place();
}

}  // namespace

Attendant& Attendant::operator=(Attendant&& other) noexcept {
    end();
    pid_ = std::exchange(other.pid_, -1);
    lifeline_ = std::move(other.lifeline_);
    return *this;
}

void Attendant::end() {
    if (pid_ <= 0) return;
    const char goodbye = 'g';
    ::send(lifeline_.get(), &goodbye, 1, MSG_NOSIGNAL);
    lifeline_.reset();
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

Result<StoreHost> startStoreHost(const std::string& address, const JobKey& key,
                                 const cluster::Namespaces* where) {
    Result<Lifeline> lifeline = makeLifeline();
    if (!lifeline.ok()) return lifeline.status();
    Result<cluster::ReportPair> reports = cluster::makeReportPair();
    if (!reports.ok()) return reports.status();
    const pid_t child = ::fork();
    if (child < 0) return cluster::systemError("fork");
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        standAside("isthmus-store");
        lifeline->launcher.reset();
        std::unique_ptr<TcpStoreServer> server;
        const Result<HostPort> place = serve(address, key, where, server);
        using Kind = cluster::Report::Kind;
        cluster::sendReport(reports->writer.get(),
                            {place.ok() ? Kind::kReady : Kind::kFailed, 0,
                             place.ok() ? toText(*place) : place.status().what()});
        if (place.ok()) waitForGoodbye(lifeline->attendant.get());
        ::_exit(0);
    }
    reports->writer.reset();
    StoreHost host{Attendant(child, std::move(lifeline->launcher)), {}};
    const Result<cluster::Report> report =
        cluster::receiveReport(reports->reader.get(), kStartLimit);
    if (!report.ok()) return report.status();
    if (report->kind != cluster::Report::Kind::kReady) {
        return Status::configuration("the rendezvous store: " + report->text);
    }
    host.place = report->text;
    return host;
}

Result<Attendant> startWatcher(const std::string& runId, const std::string& clusterName) {
    Result<Lifeline> lifeline = makeLifeline();
    if (!lifeline.ok()) return lifeline.status();
    const pid_t child = ::fork();
    if (child < 0) return cluster::systemError("fork");
    if (child == 0) {
        standAside("isthmus-watcher");
        lifeline->launcher.reset();
        if (!waitForGoodbye(lifeline->attendant.get())) {
            killRun(runId);
            Result<cluster::StateStore> store = cluster::StateStore::open();
            if (!clusterName.empty() && store.ok()) store->remove(clusterName);
        }
        ::_exit(0);
    }
    return Attendant(child, std::move(lifeline->launcher));
}

int killRun(const std::string& runId) {
    const std::string wanted = fmt::format("{}={}", kRunIdVariable, runId);
    int killed = 0;
    // A process may start others while we look; each round sees what the last one missed.
    constexpr int kMaxRounds = 50;
    for (int round = 0; round < kMaxRounds; ++round) {
        int found = 0;
        DIR* listing = ::opendir("/proc");
        if (listing == nullptr) return killed;
        while (const dirent* entry = ::readdir(listing)) {
            const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
            if (pid <= 0) continue;
            const std::string variables = cluster::readFile(fmt::format("/proc/{}/environ", pid));
            if (variables.find(wanted) != variables.npos && ::kill(pid, SIGKILL) == 0) ++found;
        }
        ::closedir(listing);
        if (found == 0) return killed;
        killed += found;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return killed;
}

}  // namespace isthmus::cli
