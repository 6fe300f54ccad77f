#pragma once

#include <isthmus/isthmus.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "python/csrc/array.hpp"

namespace isthmus::python {

using Milliseconds = std::chrono::milliseconds;

/// How long Ctrl-C may go unanswered: not felt by a person, and no load (20 wakings a second).
inline constexpr Milliseconds kBetweenSignals{50};

/// A call in flight, and the arrays that belong to the library until it is done.
/// Thread: with Python's lock; several threads may wait for one.
class Pending {
public:
    explicit Pending(std::vector<Array> arrays) : arrays_(std::move(arrays)) {}
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    ~Pending();

    /// Where the library puts its request and the source of a receive.
    isthmusRequest_t* request() { return &request_; }
    int* source() { return &source_; }
    /// It is over before anybody else knows of it; then begun().
    void ended(isthmusResult_t result);
    void begun(bool isPersistent);

    bool isDone() const { return isDone_; }
    bool isPersistent() const { return isPersistent_; }
    int sourceRank() const { return source_; }
    /// Raises what the call ended with.
    void checkOutcome() const;

    /// Waits with Python's lock released, and looks for signals in between, whose handlers may
    /// raise. False when `limit` passed first; none: until the call's own deadline.
    bool wait(std::optional<Milliseconds> limit);
    /// The same without a look at signals; never raises.
    bool settle(Milliseconds limit) noexcept;

    void start();
    void cancel();
    /// See isthmusOnComplete; at once, here, when the call is done.
    void onComplete(isthmusCallback callback, void* context);

private:
    enum class Seen { kDone, kNotYet, kRefused };
    Seen look(Milliseconds slice);
    Seen ask(Milliseconds slice);
    std::unique_lock<std::timed_mutex> take(const char* what);

    std::timed_mutex taken_;      // by the one thread that is inside the library with the request
    std::atomic<int> wanted_{0};  // by threads that do something else than wait: they go first
    isthmusRequest_t request_ = nullptr;  // guarded by taken_, as the next three
    bool hasEnded_ = false;
    isthmusResult_t result_ = isthmusSuccess;
    std::string text_;
    // Guarded by Python's lock.
    std::vector<Array> arrays_;
    int source_ = -1;
    bool isDone_ = false;
    bool isPersistent_ = false;
};

}  // namespace isthmus::python
