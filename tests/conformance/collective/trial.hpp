#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator/communicator.hpp"

namespace isthmus::conformance {

/// An operator instead of a plain one: a sum of inputs that are multiplied first (floating types),
/// or a function: "exclusive or" of all bytes, or the operand of the lowest rank, which does not
/// commute.
enum class Brought : std::uint8_t { kNothing, kFactor, kXor, kLeft };

/// One call of every rank of a communicator.
struct Trial {
    Collective collective = Collective::kAllReduce;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Brought brought = Brought::kNothing;
    Rank root = 0;
    std::size_t count = 0;                                ///< elements of each block
    std::vector<std::size_t> each = {};                   ///< instead: of the block of each rank
    std::vector<std::vector<std::size_t>> exchange = {};  ///< instead, all-to-all: [from][to]
    /// Elements before, between and after the blocks of an all-gather's output, of the root's in
    /// gather and scatter, and of an all-to-all; the blocks then lie in falling order. 0: packed.
    std::size_t gap = 0;
    bool isMapped = false;
    bool isInPlace = false;
    bool isPrepared = false;  ///< checked and planned before it starts, as persistent calls are
    bool isDeterministic = false;
    bool roundsOnce = false;
    std::string algorithm = {};
    std::uint64_t seed = 0;  ///< of the values
};

std::string describe(const Trial& trial);

/// A call under way, with the memory it uses and what must be there afterwards: the results, and
/// everything else as it was, gaps and 64 bytes around every buffer included.
class RunningTrial {
public:
    RunningTrial(const Trial& trial, Communicator& communicator);
    ~RunningTrial();

    void start(bool isBlocking);
    /// All of one collective, type, operator and root, in one call.
    static void startCoalesced(std::vector<std::unique_ptr<RunningTrial>>& trials);
    /// Ends the call and compares.
    testing::AssertionResult finish();
    /// Of the bytes of the results.
    std::uint64_t digest() const;

private:
    struct Memory;
    void place();
    testing::AssertionResult compare() const;
    CallRequest request() const;
    std::shared_ptr<Work> startOne(CallRequest request, const CallOptions& options);

    const Trial trial_;
    Communicator& communicator_;
    std::unique_ptr<Memory> memory_;
    std::shared_ptr<Work> work_;
};

/// Runs one call to its end.
testing::AssertionResult runTrial(const Trial& trial, Communicator& communicator);

}  // namespace isthmus::conformance
