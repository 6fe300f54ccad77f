#pragma once

#include <chrono>

namespace isthmus {

/// Monotonic time since an arbitrary start. Wall clocks have no place in the protocol.
using Time = std::chrono::nanoseconds;

class Clock {
public:
    virtual ~Clock() = default;
    virtual Time now() const = 0;
};

/// CLOCK_MONOTONIC (clock_gettime(2)).
class SteadyClock final : public Clock {
public:
    Time now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

/// Moves only when told: for the simulator and for tests.
class VirtualClock final : public Clock {
public:
    Time now() const override { return now_; }
    void advance(Time by) { now_ += by; }
    void advanceTo(Time to) { now_ = to > now_ ? to : now_; }

private:
    Time now_{0};
};

}  // namespace isthmus
