// Calls of more than 4 GiB and of more than 2^31 elements, every byte of their results compared.
// NUM-16: https://github.com/open-mpi/ompi/pull/9616, https://github.com/open-mpi/ompi/issues/1174
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/large/pattern.hpp"
#include "tests/support/local_job.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::test {
namespace {

// A bit more than 4 GiB and 2^32 elements; in two blocks, each of more than 2^31.
constexpr std::size_t kWhole = (std::size_t{1} << 32) + 9;
constexpr std::size_t kBlock = (std::size_t{1} << 31) + 7;
// A bit more than 4 GiB in elements whose number is far from any limit.
constexpr std::size_t kWide = (std::size_t{1} << 29) + 3;
constexpr std::size_t kMostBytes = 8 * kWide;  // the largest of them by some bytes
constexpr std::size_t kNeeded = 2 * kMostBytes + (std::size_t{768} << 20);
constexpr Rank kRoot = 1;

/// What the ranks share: 4 GiB of input, and an output of 4 GiB for each.
struct Memory {
    Pattern pattern{kMostBytes + 3 * Pattern::kPeriod};
    LargeBuffer outputs[2] = {LargeBuffer(kMostBytes), LargeBuffer(kMostBytes)};
};

/// One rank in one call. Input of a rank: the pattern from a place of its own in each test.
struct Side {
    Rank me;
    isthmusComm_t comm;
    Memory& memory;
    std::size_t shift;

    std::size_t placeOf(Rank rank) const { return shift + 8 * (1000 + 77777 * std::size_t(rank)); }
    const std::byte* input() const { return memory.pattern.at(placeOf(me)); }
    std::byte* output() const { return memory.outputs[me].data(); }

    /// `bytes` of the output from `at` are those of `rank`'s input from `from`.
    void expectCopy(std::size_t at, std::size_t bytes, Rank rank, std::size_t from) const {
        const auto differs =
            memory.pattern.firstDifference({output() + at, bytes}, placeOf(rank) + from);
        EXPECT_FALSE(differs) << "rank " << me << " byte " << at + *differs;
    }
    template <typename W>
    void expectSum(std::size_t bytes, std::size_t from = 0) const {
        const auto differs = memory.pattern.firstDifferenceFromSum<W>(
            {output(), bytes}, placeOf(0) + from, placeOf(1) + from);
        EXPECT_FALSE(differs) << "rank " << me << " byte " << *differs;
    }
    void expectDone(isthmusResult_t result) const {
        EXPECT_EQ(result, isthmusSuccess) << isthmusGetLastError(nullptr);
    }
};

enum class Wire : std::uint8_t { kShm, kTcp };

class Large : public testing::Test {
protected:
    // One for all: pages that are used for the first time are most of the time of a call.
    void SetUp() override {
        if (memory_ != nullptr) return;
        if (const auto missing = missingMemory(kNeeded)) GTEST_SKIP() << *missing;
        memory_ = std::make_unique<Memory>();
    }

    /// `outputBytes(rank)`: how much of the output the call may write.
    void run(const std::function<std::size_t(Rank)>& outputBytes,
             const std::function<void(const Side&)>& body) {
        LocalJob job(wire() == Wire::kShm ? std::vector{0, 0} : std::vector{0, 1},
                     {{"ISTHMUS_TIMEOUT", "300000"}}, LocalJob::Wires::kReal);
        for (Rank rank = 0; rank < 2; ++rank) memory_->outputs[rank].guardAt(outputBytes(rank));
        turn_ += 8 * 12345;
        job.run([&](Rank rank, Communicator& communicator) {
            CommOf comm(communicator);
            body(Side{rank, comm, *memory_, turn_});
            EXPECT_TRUE(memory_->outputs[rank].isIntact()) << "rank " << rank;
        });
    }
    void run(std::size_t outputBytes, const std::function<void(const Side&)>& body) {
        run([&](Rank) { return outputBytes; }, body);
    }

    virtual Wire wire() const { return Wire::kShm; }

    static inline std::unique_ptr<Memory> memory_;

private:
    static inline std::size_t turn_ = 0;
};

class LargeEverywhere : public Large, public testing::WithParamInterface<Wire> {
    Wire wire() const override { return GetParam(); }
};
class LargeInANode : public Large {};

TEST_P(LargeEverywhere, AllReduce) {
    run(kWhole, [](const Side& side) {
        side.expectDone(isthmusAllReduce(side.input(), side.output(), kWhole, isthmusUint8,
                                         isthmusSum, side.comm, nullptr, nullptr));
        side.expectSum<std::uint8_t>(kWhole);
    });
}

TEST_P(LargeEverywhere, AllGather) {
    run(2 * kBlock, [](const Side& side) {
        side.expectDone(isthmusAllGather(side.input(), side.output(), kBlock, isthmusInt8,
                                         side.comm, nullptr, nullptr));
        for (Rank rank = 0; rank < 2; ++rank)
            side.expectCopy(std::size_t(rank) * kBlock, kBlock, rank, 0);
    });
}

TEST_P(LargeEverywhere, AllToAll) {
    run(2 * kBlock, [](const Side& side) {
        side.expectDone(isthmusAlltoAll(side.input(), side.output(), kBlock, isthmusInt8, side.comm,
                                        nullptr, nullptr));
        for (Rank rank = 0; rank < 2; ++rank)
            side.expectCopy(std::size_t(rank) * kBlock, kBlock, rank,
                            std::size_t(side.me) * kBlock);
    });
}

TEST_P(LargeEverywhere, Broadcast) {
    run(kWhole, [](const Side& side) {
        side.expectDone(isthmusBroadcast(side.input(), side.output(), kWhole, isthmusInt8, kRoot,
                                         side.comm, nullptr, nullptr));
        side.expectCopy(0, kWhole, kRoot, 0);
    });
}

TEST_P(LargeEverywhere, SendAndReceive) {
    const auto outputBytes = [](Rank rank) { return rank == 1 ? kWhole : 0; };
    run(outputBytes, [](const Side& side) {
        if (side.me == 0) {
            side.expectDone(
                isthmusSend(side.input(), kWhole, isthmusInt8, 1, 5, side.comm, nullptr, nullptr));
            return;
        }
        side.expectDone(isthmusRecv(side.output(), kWhole, isthmusInt8, 0, 5, nullptr, side.comm,
                                    nullptr, nullptr));
        side.expectCopy(0, kWhole, 0, 0);
    });
}

TEST_F(LargeInANode, Reduce) {
    const auto outputBytes = [](Rank rank) { return rank == kRoot ? kWhole : 0; };
    run(outputBytes, [](const Side& side) {
        side.expectDone(isthmusReduce(side.input(), side.output(), kWhole, isthmusUint8, isthmusSum,
                                      kRoot, side.comm, nullptr, nullptr));
        if (side.me == kRoot) side.expectSum<std::uint8_t>(kWhole);
    });
}

TEST_F(LargeInANode, ReduceScatter) {
    run(kBlock, [](const Side& side) {
        side.expectDone(isthmusReduceScatter(side.input(), side.output(), kBlock, isthmusUint8,
                                             isthmusSum, side.comm, nullptr, nullptr));
        side.expectSum<std::uint8_t>(kBlock, std::size_t(side.me) * kBlock);
    });
}

TEST_F(LargeInANode, Gather) {
    const auto outputBytes = [](Rank rank) { return rank == kRoot ? 2 * kBlock : 0; };
    run(outputBytes, [](const Side& side) {
        side.expectDone(isthmusGather(side.input(), side.output(), kBlock, isthmusInt8, kRoot,
                                      side.comm, nullptr, nullptr));
        if (side.me != kRoot) return;
        for (Rank rank = 0; rank < 2; ++rank)
            side.expectCopy(std::size_t(rank) * kBlock, kBlock, rank, 0);
    });
}

TEST_F(LargeInANode, Scatter) {
    run(kBlock, [](const Side& side) {
        side.expectDone(isthmusScatter(side.input(), side.output(), kBlock, isthmusInt8, kRoot,
                                       side.comm, nullptr, nullptr));
        side.expectCopy(0, kBlock, kRoot, std::size_t(side.me) * kBlock);
    });
}

TEST_F(LargeInANode, AllReduceOfFewerWiderElements) {
    run(8 * kWide, [](const Side& side) {
        side.expectDone(isthmusAllReduce(side.input(), side.output(), kWide, isthmusUint64,
                                         isthmusSum, side.comm, nullptr, nullptr));
        side.expectSum<std::uint64_t>(8 * kWide);
    });
}

// Few bytes far apart; in between nothing is touched.
TEST_F(LargeInANode, AllGatherToDistantPlaces) {
    run(kWhole + 17, [](const Side& side) {
        const std::size_t counts[] = {17, 3};
        const std::size_t places[] = {kWhole, kBlock};
        const auto wasBetween = [&] { return side.output()[kWhole - (std::size_t{1} << 32)]; };
        const std::byte before = wasBetween();
        side.expectDone(isthmusAllGatherV(side.input(), counts[side.me], side.output(), counts,
                                          places, isthmusInt8, side.comm, nullptr, nullptr));
        side.expectCopy(kWhole, 17, 0, 0);
        side.expectCopy(kBlock, 3, 1, 0);
        EXPECT_EQ(wasBetween(), before);
    });
}

TEST_F(LargeInANode, AllToAllOfUnequalBlocks) {
    const auto outputBytes = [](Rank rank) { return rank == 1 ? kWhole + 3 : 4; };
    run(outputBytes, [](const Side& side) {
        const std::size_t counts[2][2] = {{3, kWhole}, {1, 3}};  // [from][to]
        const std::size_t received[] = {counts[0][side.me], counts[1][side.me]};
        side.expectDone(isthmusAlltoAllV(side.input(), counts[side.me], nullptr, side.output(),
                                         received, nullptr, isthmusInt8, side.comm, nullptr,
                                         nullptr));
        side.expectCopy(0, received[0], 0, side.me == 0 ? 0 : 3);
        side.expectCopy(received[0], received[1], 1, side.me == 0 ? 0 : 1);
    });
}

TEST_F(LargeInANode, AllReduceOfManyTensors) {
    run(kWhole, [](const Side& side) {
        constexpr std::size_t kCounts[] = {5, kWhole - 5 - 70'000, 70'000};
        const void* inputs[3];
        void* outputs[3];
        std::size_t at = 0;
        for (int i = 0; i < 3; at += kCounts[i++]) {
            inputs[i] = side.input() + at;
            outputs[i] = side.output() + at;
        }
        side.expectDone(isthmusAllReduceCoalesced(3, inputs, outputs, kCounts, isthmusUint8,
                                                  isthmusSum, side.comm, nullptr, nullptr));
        side.expectSum<std::uint8_t>(kWhole);
    });
}

INSTANTIATE_TEST_SUITE_P(Over, LargeEverywhere, testing::Values(Wire::kShm, Wire::kTcp),
                         [](const auto& test) {
                             return std::string(test.param == Wire::kShm ? "Shm" : "Tcp");
                         });
// The cheap one: no other rank, and half the bytes.
class LargeAlone : public Large {
protected:
    void SetUp() override {}
};

TEST_F(LargeAlone, CopiesMoreThan2To31Elements) {
    const auto missing = memory_ == nullptr ? missingMemory(kBlock) : std::nullopt;
    if (missing) GTEST_SKIP() << *missing;
    const Pattern pattern(kBlock + 16);
    LargeBuffer own(memory_ == nullptr ? kBlock : 0);
    LargeBuffer& output = memory_ == nullptr ? own : memory_->outputs[0];
    output.guardAt(kBlock);
    LocalJob job({0});
    job.run([&](Rank, Communicator& communicator) {
        CommOf comm(communicator);
        ASSERT_EQ(isthmusAllReduce(pattern.at(16), output.data(), kBlock, isthmusInt8, isthmusSum,
                                   comm, nullptr, nullptr),
                  isthmusSuccess);
        EXPECT_FALSE(pattern.firstDifference({output.data(), kBlock}, 16));
        EXPECT_TRUE(output.isIntact());
    });
}

}  // namespace
}  // namespace isthmus::test
