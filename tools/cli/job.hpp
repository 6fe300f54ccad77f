#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/base/unique_fd.hpp"
#include "tools/cli/launch_plan.hpp"
#include "tools/cli/output_lines.hpp"
#include "tools/cluster/namespaces.hpp"

namespace isthmus::cli {

/// The running ranks of one launch: passes their output and our signals on, and sees to it that all
/// end when one fails. One thread, one loop.
class Job {
public:
    Job(const LaunchPlan& plan, const MeetingPlace& meeting);
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// `inside`: one a node, or empty when the ranks run on this node itself.
    Status start(const std::vector<cluster::Namespaces>& inside);

    /// Returns the job's exit code after the last rank has ended and its output is out.
    int supervise();

private:
    struct Stream {
        UniqueFd fd;
        int target;
        OutputLines lines;
    };
    struct RankProcess {
        RankPlace place;
        pid_t pid = -1;
        bool isRunning = false;
        std::vector<Stream> streams;
    };
    /// Why the job ends before all ranks ended well.
    struct Cause {
        std::string text;
        int exitCode = 0;
    };
    using Instant = std::chrono::steady_clock::time_point;

    Result<RankProcess> startRank(const RankPlace& place, const cluster::Namespaces* inside);
    int running() const;
    void signalAll(int signal) const;
    void endAll(Cause cause);
    void onSignal(int signal);
    void reap();
    void onEnd(RankProcess& rank, int waitStatus);
    void onTime(Instant now);
    int millisecondsToWait(Instant now) const;
    void pollOnce(int waitMilliseconds);
    void pump(Stream& stream);
    void emit(const Stream& stream, const std::string& lines);
    void drain();

    const LaunchPlan& plan_;
    const MeetingPlace& meeting_;
    std::vector<RankProcess> ranks_;
    UniqueFd signals_;
    Instant started_;
    std::optional<Cause> cause_;
    std::optional<Instant> killAt_;
    int interruptions_ = 0;
    int forwarded_ = 0;  ///< the last signal that was passed on
};

}  // namespace isthmus::cli
