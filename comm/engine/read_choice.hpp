#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include <isthmus/types.hpp>

#include "comm/base/clock.hpp"

namespace isthmus {

/// Whether reading peers' inputs through the system is quicker here than staging: the machines
/// differ by more than the ways do, so both are tried and the quicker one is kept, by collective
/// and size (powers of two). Only the first rank of a node asks; the others do as its slot says.
/// Results have the same bits either way. One thread at a time.
class ReadChoice {
public:
    enum class Wish : std::uint8_t { kMeasure, kAlways };

    explicit ReadChoice(Wish wish) : wish_(wish) {}

    /// What the next call of this kind should do.
    bool prefersReading(Collective collective, std::uint64_t bytes);
    /// False while the two are still being tried.
    bool isSettled(Collective collective, std::uint64_t bytes) const;
    /// How long a call took from when all could begin, and which way it went.
    void took(Collective collective, std::uint64_t bytes, bool wasRead, Time time);
    /// It should have been read, and somebody's buffer cannot be.
    void couldNotRead(Collective collective, std::uint64_t bytes);

private:
    static constexpr int kTries = 9;
    // The first ones pay for pages, and for the caches that the other way left.
    static constexpr int kNotLookedAt = 2;

    struct Way {
        Way() { times.fill(Time::max()); }

        int tries = 0;
        std::array<Time, kTries - kNotLookedAt> times;
        Time median = Time::max();  ///< once all were tried
    };
    struct Trial {
        std::array<Way, 2> ways;  ///< staged, read
        int calls = 0;            ///< since both were tried
    };
    using Key = std::pair<Collective, int>;

    static Key keyOf(Collective collective, std::uint64_t bytes);

    Wish wish_;
    std::map<Key, Trial> trials_;
};

}  // namespace isthmus
