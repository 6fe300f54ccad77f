// Reductions that the program brings along.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::test {
namespace {

using testing::HasSubstr;

const std::vector<std::vector<int>> kLayouts = {{0},          {0, 0, 0, 0},       {0, 0, 1, 1},
                                                {0, 1, 0, 1}, {0, 0, 0, 1, 1, 2}, {0, 1, 1, 0, 2}};
const std::vector<std::size_t> kCounts = {0, 1, 17, 1000, 100003};

/// x -> factor * x + term, modulo 2^32: their composition is associative and does not commute.
struct Affine {
    std::uint32_t factor = 1;
    std::uint32_t term = 0;

    bool operator==(const Affine&) const = default;
};

Affine then(const Affine& first, const Affine& second) {
    return {second.factor * first.factor, second.factor * first.term + second.term};
}

void compose(const void* in, void* inOut, std::size_t count, isthmusDataType_t type,
             void* context) {
    const auto* first = static_cast<const Affine*>(in);
    auto* second = static_cast<Affine*>(inOut);
    for (std::size_t i = 0; i < count; ++i) second[i] = then(first[i], second[i]);
    if (type == isthmusUint64) *static_cast<bool*>(context) = true;
}

std::vector<Affine> mapsOf(Rank rank, std::size_t count) {
    std::vector<Affine> maps(count);
    for (std::size_t i = 0; i < count; ++i) {
        maps[i] = {static_cast<std::uint32_t>(2 * rank + 3 + 2 * static_cast<int>(i % 5)),
                   static_cast<std::uint32_t>(i * 7 + static_cast<std::size_t>(rank))};
    }
    return maps;
}

std::vector<Affine> composed(int ranks, std::size_t count) {
    std::vector<Affine> all = mapsOf(0, count);
    for (Rank rank = 1; rank < ranks; ++rank) {
        const std::vector<Affine> next = mapsOf(rank, count);
        for (std::size_t i = 0; i < count; ++i) all[i] = then(all[i], next[i]);
    }
    return all;
}

void expectComposed(isthmusComm_t comm, isthmusRedOp_t op, Rank rank, int ranks,
                    std::size_t count) {
    const std::vector<Affine> mine = mapsOf(rank, count);
    const std::vector<Affine> wanted = composed(ranks, count);
    std::vector<Affine> result = mine;
    ASSERT_EQ(isthmusAllReduce(result.data(), result.data(), count, isthmusUint64, op, comm,
                               nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    EXPECT_EQ(result, wanted);
    const Rank root = ranks / 2;
    result.assign(count, {});
    ASSERT_EQ(isthmusReduce(mine.data(), result.data(), count, isthmusUint64, op, root, comm,
                            nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    EXPECT_EQ(result, rank == root ? wanted : std::vector<Affine>(count));
    const std::size_t each = count / static_cast<std::size_t>(ranks);
    const std::size_t begin = each * static_cast<std::size_t>(rank);
    result.assign(each, {});
    ASSERT_EQ(isthmusReduceScatter(mine.data(), result.data(), each, isthmusUint64, op, comm,
                                   nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    EXPECT_TRUE(std::equal(result.begin(), result.end(), wanted.begin() + begin));
}

TEST(UserReduction, CombinesInTheOrderOfRanksOnAnyLayout) {
    for (const auto& nodes : kLayouts) {
        LocalJob job(nodes, {{"ISTHMUS_SEGMENT", "64K"}});
        job.run([&](Rank rank, Communicator& communicator) {
            CommOf comm(communicator);
            bool wasTold = false;
            isthmusRedOp_t op = isthmusSum;
            ASSERT_EQ(isthmusRedOpCreate(&op, "compose", compose, &wasTold, 0, comm),
                      isthmusSuccess);
            for (const std::size_t count : kCounts)
                expectComposed(comm, op, rank, communicator.ranks(), count);
            EXPECT_EQ(isthmusRedOpDestroy(op, comm), isthmusSuccess);
            EXPECT_EQ(wasTold, nodes.size() > 1);  // of the type; a rank alone combines nothing
        });
    }
}

/// The larger value, and where it is; the lower place of equals.
struct Best {
    float value;
    std::int32_t place;

    bool operator==(const Best&) const = default;
};

void better(const void* in, void* inOut, std::size_t count, isthmusDataType_t, void*) {
    const auto* left = static_cast<const Best*>(in);
    auto* right = static_cast<Best*>(inOut);
    for (std::size_t i = 0; i < count; ++i) {
        const bool isLeft = left[i].value > right[i].value ||
                            (left[i].value == right[i].value && left[i].place < right[i].place);
        if (isLeft) right[i] = left[i];
    }
}

TEST(UserReduction, ThatCommutesServesEveryAlgorithmAndAType) {
    for (const auto& nodes : kLayouts) {
        LocalJob job(nodes, {{"ISTHMUS_SEGMENT", "64K"}}, LocalJob::Wires::kReal);
        job.run([&](Rank rank, Communicator& communicator) {
            CommOf comm(communicator);
            isthmusRedOp_t op = isthmusSum;
            ASSERT_EQ(isthmusRedOpCreate(&op, "best", better, nullptr, 1, comm), isthmusSuccess);
            const int ranks = communicator.ranks();
            for (const std::size_t count : kCounts) {
                std::vector<Best> values(count);
                std::vector<Best> wanted(count);
                for (std::size_t i = 0; i < count; ++i) {
                    const int winner = static_cast<int>(i) % ranks;
                    values[i] = {rank == winner ? 2.0f : 1.0f / static_cast<float>(rank + 1), rank};
                    wanted[i] = {2.0f, winner};
                }
                ASSERT_EQ(isthmusAllReduce(values.data(), values.data(), count, isthmusFloat64, op,
                                           comm, nullptr, nullptr),
                          isthmusSuccess)
                    << lastError();
                EXPECT_EQ(values, wanted);
            }
        });
    }
}

TEST(UserReduction, SaturatesSmallFloatsIfTheProgramKnowsHow) {
    LocalJob job({0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        isthmusRedOp_t op = isthmusSum;
        const isthmusReduction larger = [](const void* in, void* inOut, std::size_t count,
                                           isthmusDataType_t, void*) {
            const auto* left = static_cast<const std::uint8_t*>(in);
            auto* right = static_cast<std::uint8_t*>(inOut);
            for (std::size_t i = 0; i < count; ++i) right[i] = std::max(left[i], right[i]);
        };
        ASSERT_EQ(isthmusRedOpCreate(&op, "larger", larger, nullptr, 1, comm), isthmusSuccess);
        std::array<std::uint8_t, 3> values = {static_cast<std::uint8_t>(0x38 + rank), 0x40, 0x08};
        ASSERT_EQ(isthmusAllReduce(values.data(), values.data(), 3, isthmusFloat8e4m3, op, comm,
                                   nullptr, nullptr),
                  isthmusSuccess)
            << lastError();
        EXPECT_EQ(values, (std::array<std::uint8_t, 3>{0x39, 0x40, 0x08}));
    });
}

TEST(UserReduction, OfOtherNamesIsAMismatch) {
    for (const std::vector<int>& nodes : {std::vector<int>{0, 0}, std::vector<int>{0, 1}}) {
        LocalJob job(nodes);
        job.run([](Rank rank, Communicator& communicator) {
            CommOf comm(communicator);
            isthmusRedOp_t op = isthmusSum;
            ASSERT_EQ(
                isthmusRedOpCreate(&op, rank == 0 ? "best" : "worst", better, nullptr, 1, comm),
                isthmusSuccess);
            Best value = {1, rank};
            EXPECT_EQ(
                isthmusAllReduce(&value, &value, 1, isthmusUint64, op, comm, nullptr, nullptr),
                isthmusMismatch);
            EXPECT_THAT(lastError(), HasSubstr("all_reduce u64 x 1 user operation"));
            EXPECT_THAT(lastError(), HasSubstr("the names of the user operations"));
        });
    }
}

TEST(UserReduction, ThatDoesNotCommuteRefusesAlgorithmsOfAnotherOrder) {
    LocalJob job({0, 0, 1, 1}, {{"ISTHMUS_ALGORITHM", "all_reduce=two_level_exchange"}});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        bool wasTold = false;
        isthmusRedOp_t op = isthmusSum;
        ASSERT_EQ(isthmusRedOpCreate(&op, "compose", compose, &wasTold, 0, comm), isthmusSuccess);
        isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
        options.algorithm = "two_level_ring";
        Affine map = {3, static_cast<std::uint32_t>(rank)};
        EXPECT_EQ(isthmusAllReduce(&map, &map, 1, isthmusUint64, op, comm, &options, nullptr),
                  isthmusInvalidArgument);
        EXPECT_THAT(lastError(), HasSubstr("\"two_level_ring\" for all_reduce does not add in the "
                                           "order of ranks"));
        expectComposed(comm, op, rank, 4, 17);  // the wish of the environment gives way
    });
}

TEST(CallOptions, AskForTheOrderOfRanksAndForOneRounding) {
    LocalJob job({0, 0, 1, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
        options.deterministic = 1;
        options.algorithm = "two_level_exchange";
        // (2^24 + 1) + 1 + 1 is 2^24 in f32, from the left; from the right it is more.
        float value = rank == 0 ? 16777216.0f : 1.0f;
        EXPECT_EQ(
            isthmusAllReduce(&value, &value, 1, isthmusFloat, isthmusSum, comm, &options, nullptr),
            isthmusInvalidArgument);
        EXPECT_THAT(lastError(), HasSubstr("does not add in the order of ranks"));
        options.algorithm = nullptr;
        ASSERT_EQ(
            isthmusAllReduce(&value, &value, 1, isthmusFloat, isthmusSum, comm, &options, nullptr),
            isthmusSuccess)
            << lastError();
        EXPECT_EQ(value, 16777216.0f);
        options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
        options.oneRounding = 1;
        // f16: 60000 + 60000 is beyond its limit, less 60000 it is not.
        std::uint16_t half = rank < 2 ? 0x7B53 : rank == 2 ? 0xFB53 : 0;
        ASSERT_EQ(
            isthmusAllReduce(&half, &half, 1, isthmusHalf, isthmusSum, comm, &options, nullptr),
            isthmusSuccess);
        EXPECT_EQ(half, 0x7B53);
    });
}

TEST(CallOptions, OfAProgramThatKnowsFewerFieldsCount) {
    LocalJob job({0});
    job.run([](Rank, Communicator& communicator) {
        CommOf comm(communicator);
        isthmusCallOptions_t options = persistent();
        options.size = offsetof(isthmusCallOptions_t, deterministic);
        options.deterministic = options.oneRounding = 77;  // whatever lies there
        int value = 4;
        isthmusRequest_t request = nullptr;
        ASSERT_EQ(
            isthmusAllReduce(&value, &value, 1, isthmusInt, isthmusSum, comm, &options, &request),
            isthmusSuccess);
        EXPECT_EQ(isthmusStart(request), isthmusSuccess) << lastError();
        EXPECT_EQ(isthmusWait(&request, -1), isthmusSuccess);
        EXPECT_NE(request, nullptr);
        EXPECT_EQ(isthmusRequestFree(&request), isthmusSuccess);
    });
}

TEST(UserReduction, NeedsAFunctionAndANameAndEndsWhenDestroyed) {
    LocalJob job({0});
    job.run([](Rank, Communicator& communicator) {
        CommOf comm(communicator);
        isthmusRedOp_t op = isthmusSum;
        EXPECT_EQ(isthmusRedOpCreate(&op, "best", nullptr, nullptr, 1, comm),
                  isthmusInvalidArgument);
        EXPECT_EQ(isthmusRedOpCreate(&op, nullptr, better, nullptr, 1, comm),
                  isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "the function or its name is null");
        EXPECT_EQ(isthmusRedOpCreate(nullptr, "best", better, nullptr, 1, comm),
                  isthmusInvalidArgument);
        ASSERT_EQ(isthmusRedOpCreate(&op, "best", better, nullptr, 1, comm), isthmusSuccess);
        ASSERT_EQ(isthmusRedOpDestroy(op, comm), isthmusSuccess);
        Best value = {1, 0};
        EXPECT_EQ(isthmusAllReduce(&value, &value, 1, isthmusUint64, op, comm, nullptr, nullptr),
                  isthmusInvalidArgument);
        EXPECT_EQ(lastError(),
                  "all_reduce: unknown reduction " + std::to_string(static_cast<int>(op)));
    });
}

}  // namespace
}  // namespace isthmus::test
