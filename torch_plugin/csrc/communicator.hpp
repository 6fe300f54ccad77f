#pragma once

#include <isthmus/isthmus.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "torch_plugin/csrc/errors.hpp"
#include "torch_plugin/csrc/meeting.hpp"
#include "torch_plugin/csrc/torch_compat.hpp"
#include "torch_plugin/csrc/work_thread.hpp"

namespace isthmus::glue {

struct GroupSettings {
    std::string name;
    std::chrono::milliseconds timeout{0};
    std::vector<int> globalRanks;  ///< rank -> rank of the job, for messages; empty: the same
    bool isDeterministic = false;  ///< of every call: the same bits on any layout
    bool roundsOnce = false;       ///< of every call: 16-bit sums go as f32
};

/// The library's communicator of one process group, shared by the backend and its works.
/// Any thread may use it; it ends once, by close() or by the last owner.
class Communicator {
public:
    /// Waits for nobody: the ranks meet on another thread, see meeting().
    static std::shared_ptr<Communicator> make(c10::intrusive_ptr<c10d::Store> store, int rank,
                                              int ranks, const GroupSettings& settings);
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    /// Calls `start(handle)` unless the group is gone; a closing thread waits for it to return.
    template <typename Start>
    Outcome with(Start start) {
        const std::shared_lock lock(handleMutex_);
        if (const Outcome gone = whyGone(); !gone.ok()) return gone;
        return Outcome::of(start(handle_));
    }

    /// Where the ranks meet; calls go there first.
    Meeting& meeting() { return meeting_; }
    /// Where calls wait whose tensors a device has not given yet.
    Line& line() { return line_; }

    void beganCall() { inFlight_.fetch_add(1); }
    void endedCall() { inFlight_.fetch_sub(1); }

    /// Waits until no work is unfinished, at most the group's timeout.
    void drain() const;
    /// Lets calls in flight end (within the group's timeout), then frees the communicator. Bad when
    /// some of them failed meanwhile. Nothing happens the second time.
    Outcome close();
    /// Fails what is in flight, here and at the peers, who hear `reason`. Returns at once.
    void abort(const std::string& reason = {});
    /// Waits until `deadline` for calls in flight, gives up those that remain, and frees.
    void closeBy(std::chrono::steady_clock::time_point deadline);

    /// Why the group no longer works; good while it does.
    Outcome health();

    /// Closes what is left at the end of the program, all within `grace`.
    static void closeAll(std::chrono::milliseconds grace);

private:
    explicit Communicator(std::chrono::milliseconds timeout) : timeout_(timeout) {}
    Outcome whyGone() const;
    /// Gives the ranks until `deadline` to have met, then ends this rank's search.
    void endMeeting(std::chrono::steady_clock::time_point deadline);
    /// Until no work is unfinished, or `deadline`.
    void waitForWorks(std::chrono::steady_clock::time_point deadline) const;

    const std::chrono::milliseconds timeout_;
    mutable std::shared_timed_mutex handleMutex_;
    isthmusComm_t handle_ = nullptr;
    std::atomic<int> inFlight_{0};
    std::shared_ptr<std::atomic<bool>> isLeaving_ = std::make_shared<std::atomic<bool>>(false);
    Meeting meeting_;
    Line line_;
};

}  // namespace isthmus::glue
