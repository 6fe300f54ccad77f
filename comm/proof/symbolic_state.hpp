#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "comm/plan/operand.hpp"
#include "comm/plan/plan.hpp"

namespace isthmus {

/// What a location holds: which chunk of the logical operand, made how, scaled (avg) or not.
struct Value {
    int identity = -1;    ///< block * chunksPerBlock + chunk; -1: nothing
    int expression = -1;  ///< of Expressions
    bool isScaled = false;

    bool isThere() const { return identity >= 0; }
    bool operator==(const Value&) const = default;
};

/// Interned trees of additions. Equal ids give equal bits in floating point: the first two
/// operands of a node are sorted (a + b = b + a), more is not assumed.
class Expressions {
public:
    /// `contributors`: how many of the ranks have an input where collectives reduce.
    Expressions(int ranks, int contributors);

    int leaf(Rank rank) const { return rank; }
    int sum(std::vector<int> operands);

    /// True when the contributors are exactly `ranks`, each once.
    bool isExactly(int expression, std::span<const Rank> ranks) const;
    bool isEverybodyOnce(int expression) const;

private:
    struct Hash {
        std::size_t operator()(const std::vector<int>& operands) const;
    };
    /// A multiset of ranks: which, and whether any is there twice (nothing removes that).
    struct Contributors {
        std::vector<std::uint64_t> bits;
        bool isAnyTwice = false;
    };

    int contributing_;
    std::unordered_map<std::vector<int>, int, Hash> known_;
    std::vector<Contributors> contributors_;  // by expression
};

/// Numbers every location of all ranks from 0 on; the two names of one memory get one number on
/// ranks that run in place.
class LocationNames {
public:
    LocationNames(const std::vector<Plan>& plans, const std::vector<bool>& isInPlace);

    std::size_t of(const Location& location) const {
        const auto rank = static_cast<std::size_t>(location.rank);
        const Location name = isInPlace_[rank] ? operand_.inPlace(location) : location;
        return begins_[rank * 4 + static_cast<std::size_t>(name.buffer)] +
               static_cast<std::size_t>(name.chunk);
    }
    std::size_t count() const { return begins_.back(); }

private:
    Operand operand_;
    const std::vector<bool>& isInPlace_;
    std::vector<std::size_t> begins_;  // of each (rank, buffer)
};

}  // namespace isthmus
