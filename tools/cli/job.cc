#include "tools/cli/job.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/cli/attendants.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/standard_streams.hpp"
#include "tools/cluster/process.hpp"
#include "tools/cluster/spawn.hpp"

namespace isthmus::cli {
namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kOtherSignals[] = {SIGUSR1, SIGUSR2, SIGWINCH};
constexpr std::chrono::milliseconds kDrainLimit{500};

bool isEnding(int signal) {
    return std::find(std::begin(kEndingSignals), std::end(kEndingSignals), signal) !=
           std::end(kEndingSignals);
}

struct Pipe {
    UniqueFd read;
    UniqueFd write;
};

Result<Pipe> makePipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return cluster::systemError("pipe");
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string describeEnd(int waitStatus, int forwarded) {
    if (!WIFSIGNALED(waitStatus))
        return fmt::format("exited with status {}", WEXITSTATUS(waitStatus));
    const int signal = WTERMSIG(waitStatus);
    return fmt::format("was killed by signal {} ({}){}", signal, ::strsignal(signal),
                       signal == forwarded ? ", which was passed on to it" : "");
}

}  // namespace

Job::Job(const LaunchPlan& plan, const MeetingPlace& meeting) : plan_(plan), meeting_(meeting) {
    sigset_t watched;
    ::sigemptyset(&watched);
    ::sigaddset(&watched, SIGCHLD);
    for (const int signal : kEndingSignals) ::sigaddset(&watched, signal);
    for (const int signal : kOtherSignals) ::sigaddset(&watched, signal);
    ::sigprocmask(SIG_BLOCK, &watched, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    started_ = std::chrono::steady_clock::now();
}

Job::~Job() {
    signalAll(SIGKILL);
    for (const RankProcess& rank : ranks_) {
        if (rank.isRunning) ::waitpid(rank.pid, nullptr, 0);
    }
}

Status Job::start(const std::vector<cluster::Namespaces>& inside) {
    for (const RankPlace& place : placeRanks(plan_.nodes, plan_.order)) {
        const cluster::Namespaces* where =
            inside.empty() ? nullptr : &inside[static_cast<std::size_t>(place.node)];
        Result<RankProcess> rank = startRank(place, where);
        if (!rank.ok()) return rank.status();
        ranks_.push_back(std::move(*rank));
    }
    return {};
}

Result<Job::RankProcess> Job::startRank(const RankPlace& place, const cluster::Namespaces* inside) {
    Result<Pipe> output = makePipe();
    if (!output.ok()) return output.status();
    Result<Pipe> error = makePipe();
    if (!error.ok()) return error.status();
    const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    cluster::Command command;
    command.arguments = plan_.command;
    command.environment = variablesOf(place, meeting_);
    command.hiddenVariables = foreignVariables();
    // Only rank 0 reads what is piped in; a terminal would stop a group that is not its own.
    const bool readsInput = place.rank == 0 && ::isatty(STDIN_FILENO) == 0;
    command.input = readsInput ? STDIN_FILENO : nothing.get();
    command.output = output->write.get();
    command.error = error->write.get();
    command.inheritedFds = {meeting_.jobKeyFd};
    command.hasOwnProcessGroup = true;
    const Result<pid_t> pid = cluster::spawn(command, inside);
    if (!pid.ok()) return pid.status();
    const std::string prefix = plan_.hasPrefix ? fmt::format("[{}] ", place.rank) : std::string();
    RankProcess rank{place, *pid, true, {}};
    rank.streams.push_back({std::move(output->read), STDOUT_FILENO, OutputLines(prefix)});
    rank.streams.push_back({std::move(error->read), STDERR_FILENO, OutputLines(prefix)});
    return rank;
}

int Job::running() const {
    return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(),
                                          [](const auto& each) { return each.isRunning; }));
}

void Job::signalAll(int signal) const {
    for (const RankProcess& rank : ranks_) {
        if (rank.isRunning) ::kill(-rank.pid, signal);
    }
}

/// The first cause stays.
void Job::endAll(Cause cause) {
    if (cause_) return;
    cause_ = std::move(cause);
    signalAll(SIGTERM);
    killAt_ = std::chrono::steady_clock::now() + plan_.grace;
}

void Job::onSignal(int signal) {
    if (!isEnding(signal)) return signalAll(signal);
    forwarded_ = signal;
    // A person who presses Ctrl-C again does not want to wait.
    if (++interruptions_ > 1) {
        if (!cause_) cause_ = Cause{"stopped by a second signal", 128 + signal};
        return signalAll(SIGKILL);
    }
    signalAll(signal);
}

void Job::reap() {
    for (RankProcess& rank : ranks_) {
        int waitStatus = 0;
        if (rank.isRunning && ::waitpid(rank.pid, &waitStatus, WNOHANG) == rank.pid)
            onEnd(rank, waitStatus);
    }
}

void Job::onEnd(RankProcess& rank, int waitStatus) {
    rank.isRunning = false;
    const int code = cluster::shellCode(waitStatus);
    if (code == 0 || cause_) return;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    const std::string node =
        rank.place.nodes > 1 ? fmt::format("node {}, ", rank.place.node) : std::string();
    const char* others = running() > 0 ? "; the other ranks were stopped" : "";
    endAll({fmt::format("rank {} ({}pid {}) {} after {:.1f} s{}", rank.place.rank, node, rank.pid,
                        describeEnd(waitStatus, forwarded_), seconds, others),
            code});
}

void Job::onTime(Instant now) {
    if (killAt_ && now >= *killAt_) {
        signalAll(SIGKILL);
        killAt_.reset();
    }
    if (!plan_.limit || cause_ || now < started_ + *plan_.limit) return;
    std::string late;
    for (const RankProcess& rank : ranks_) {
        if (rank.isRunning) late += (late.empty() ? "" : ", ") + std::to_string(rank.place.rank);
    }
    endAll({fmt::format("gave up after {} ms; ranks {} of {} were still running",
                        plan_.limit->count(), late, ranks_.size()),
            asInt(ExitCode::kTimeout)});
}

int Job::millisecondsToWait(Instant now) const {
    std::optional<Instant> next = killAt_;
    if (plan_.limit && !cause_)
        next = std::min(next.value_or(Instant::max()), started_ + *plan_.limit);
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Job::pollOnce(int waitMilliseconds) {
    std::vector<pollfd> waiting{{signals_.get(), POLLIN, 0}};
    std::vector<Stream*> streams;
    for (RankProcess& rank : ranks_) {
        for (Stream& stream : rank.streams) {
            if (!stream.fd.isOpen()) continue;
            waiting.push_back({stream.fd.get(), POLLIN, 0});
            streams.push_back(&stream);
        }
    }
    if (::poll(waiting.data(), waiting.size(), waitMilliseconds) <= 0) return;
    for (std::size_t each = 0; each < streams.size(); ++each) {
        if (waiting[each + 1].revents != 0) pump(*streams[each]);
    }
    signalfd_siginfo information{};
    while (::read(signals_.get(), &information, sizeof information) == sizeof information) {
        const int signal = static_cast<int>(information.ssi_signo);
        if (signal != SIGCHLD) onSignal(signal);
    }
}

/// Takes what is there, at most one buffer: no rank may keep us from the others.
void Job::pump(Stream& stream) {
    char piece[65536];
    const ssize_t got = ::read(stream.fd.get(), piece, sizeof piece);
    if (got > 0) return emit(stream, stream.lines.add({piece, static_cast<std::size_t>(got)}));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    emit(stream, stream.lines.finish());
    stream.fd.reset();
}

void Job::emit(const Stream& stream, const std::string& lines) {
    if (writeWhole(stream.target, lines)) return;
    if (errno != EPIPE) {
        const Status why = outputFailed(errno);
        return endAll({why.what(), asInt(exitCodeOf(why))});
    }
    endAll({"nobody reads the output any more", 128 + SIGPIPE});
}

/// After the ranks: what is in the pipes still comes out. Nobody can be left who writes more.
void Job::drain() {
    const Instant end = std::chrono::steady_clock::now() + kDrainLimit;
    const auto isOpen = [this] {
        return std::any_of(ranks_.begin(), ranks_.end(), [](const RankProcess& rank) {
            return std::any_of(rank.streams.begin(), rank.streams.end(),
                               [](const Stream& stream) { return stream.fd.isOpen(); });
        });
    };
    while (isOpen() && std::chrono::steady_clock::now() < end) pollOnce(10);
    for (RankProcess& rank : ranks_) {
        for (Stream& stream : rank.streams) emit(stream, stream.lines.finish());
    }
}

int Job::supervise() {
    for (;;) {
        reap();
        if (running() == 0) break;
        const Instant now = std::chrono::steady_clock::now();
        onTime(now);
        pollOnce(millisecondsToWait(now));
    }
    killRun(meeting_.runId);
    drain();
    if (!cause_) return asInt(ExitCode::kOk);
    fmt::print(stderr, "isthmus run: {}\n", cause_->text);
    return cause_->exitCode;
}

}  // namespace isthmus::cli
