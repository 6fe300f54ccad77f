#pragma once

#include <chrono>
#include <cstdint>

namespace isthmus::glue {

/// How long a wait may last before it looks for signals: an interrupt from the keyboard is answered
/// well within what a person calls at once.
inline constexpr std::chrono::milliseconds kBetweenSignals{100};
/// The same in a wait that has lasted some of these: each look costs the engine a turn, 1 to 2 ms
/// of processor time where ranks outnumber cores.
inline constexpr std::chrono::milliseconds kBetweenSignalsLater{400};

/// True on the thread that runs Python's signal handlers, where there is a Python.
bool handlesSignals();

/// Lets Python's handlers run for signals that came; on such a thread. True when one raised:
/// KeyboardInterrupt, mostly. Python raises it as soon as the caller is back there, so go there.
bool isInterrupted();

/// How long somebody waits, in slices between which Python's main thread looks for signals.
class Patience {
public:
    /// Zero or less: without end.
    explicit Patience(std::chrono::milliseconds timeout);

    /// Milliseconds of the next slice; below zero: without end.
    std::int64_t slice() const;
    bool isOver() const;
    /// Lets handlers run. Nothing may be locked.
    bool isInterrupted();

    /// Whether the last wait of this thread was.
    static bool wasInterrupted();

private:
    using Clock = std::chrono::steady_clock;

    const bool isWatchful_;
    const bool isBounded_;
    const Clock::time_point until_;
    int looks_ = 0;  ///< for signals
};

}  // namespace isthmus::glue
