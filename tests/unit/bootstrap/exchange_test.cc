#include "comm/bootstrap/exchange.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/bootstrap/store_memory.hpp"

namespace isthmus {
namespace {

using std::chrono::milliseconds;
using Outcome = std::optional<Result<std::vector<Bytes>>>;

/// A rank that takes part: its number and how large it thinks the world is.
struct Part {
    int rank;
    int ranks;
    std::string blob;
};

std::vector<Outcome> runAll(Store& store, const std::vector<Part>& parts, milliseconds limit) {
    std::vector<Outcome> outcomes(parts.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        threads.emplace_back([&, i] {
            outcomes[i] = exchange(store, "world", parts[i].rank, parts[i].ranks,
                                   toBytes(parts[i].blob), deadlineIn(limit));
        });
    }
    for (auto& thread : threads) thread.join();
    return outcomes;
}

TEST(Exchange, EveryRankGetsAllBlobsInRankOrder) {
    MemoryStore store;
    const std::vector<Part> parts = {{3, 4, "d"}, {0, 4, "a"}, {2, 4, ""}, {1, 4, "b"}};
    for (const auto& outcome : runAll(store, parts, milliseconds(5000))) {
        ASSERT_TRUE((*outcome).ok()) << (*outcome).status().what();
        EXPECT_EQ(**outcome, (std::vector<Bytes>{toBytes("a"), toBytes("b"), {}, toBytes("d")}));
    }
    ASSERT_TRUE(eraseExchange(store, "world", 4).ok());
    EXPECT_FALSE(*store.has("world/rank/0"));
    EXPECT_FALSE(*store.has("world/verdict"));
}

TEST(Exchange, AWorldOfOne) {
    MemoryStore store;
    const auto outcomes = runAll(store, {{0, 1, "only"}}, milliseconds(5000));
    ASSERT_TRUE((*outcomes[0]).ok());
    EXPECT_EQ(**outcomes[0], std::vector<Bytes>{toBytes("only")});
}

TEST(Exchange, TheMissingAreNamedOnEveryRank) {
    MemoryStore store;
    std::vector<Part> parts;
    for (const int rank : {0, 1, 3, 4, 6, 7}) parts.push_back({rank, 8, "x"});
    for (const auto& outcome : runAll(store, parts, milliseconds(200))) {
        ASSERT_FALSE((*outcome).ok());
        EXPECT_EQ((*outcome).status().code(), Status::Code::kTimeout);
        EXPECT_EQ((*outcome).status().what(), "world: waited 200 ms for ranks 2, 5 of 8");
    }
}

TEST(Exchange, AMissingRankZeroIsNamed) {
    MemoryStore store;
    for (const auto& outcome : runAll(store, {{1, 3, "x"}, {2, 3, "x"}}, milliseconds(150))) {
        ASSERT_FALSE((*outcome).ok());
        EXPECT_EQ((*outcome).status().code(), Status::Code::kTimeout);
        EXPECT_NE((*outcome).status().what().find("for rank 0 of 3"), std::string::npos);
    }
}

TEST(Exchange, TwoOfOneRankAreRefusedAndBothAreNamed) {
    MemoryStore store;
    const auto outcomes =
        runAll(store, {{1, 3, "x"}, {1, 3, "y"}, {0, 3, "z"}}, milliseconds(3000));
    for (const auto& outcome : outcomes) {
        ASSERT_FALSE((*outcome).ok());
        EXPECT_EQ((*outcome).status().code(), Status::Code::kMismatch);
        const std::string& what = (*outcome).status().what();
        EXPECT_NE(what.find("two processes claim rank 1: process "), std::string::npos) << what;
        EXPECT_NE(what.find(" and process "), std::string::npos) << what;
    }
}

TEST(Exchange, DifferentWorldSizesAreFound) {
    MemoryStore store;
    const auto outcomes = runAll(store, {{0, 2, "x"}, {1, 3, "y"}}, milliseconds(3000));
    for (const auto& outcome : outcomes) {
        ASSERT_FALSE((*outcome).ok());
        EXPECT_EQ((*outcome).status().code(), Status::Code::kMismatch);
        EXPECT_NE((*outcome).status().what().find("was given 3 ranks, rank 0"), std::string::npos);
    }
}

TEST(Exchange, ImpossibleRanksAreWrongArguments) {
    MemoryStore store;
    for (const auto& [rank, ranks] : {std::pair(-1, 2), std::pair(2, 2), std::pair(0, 0)}) {
        EXPECT_EQ(
            exchange(store, "world", rank, ranks, {}, deadlineIn(milliseconds(10))).status().code(),
            Status::Code::kInvalidArgument);
    }
}

TEST(Exchange, GarbageInTheStoreIsAnError) {
    MemoryStore store;
    ASSERT_TRUE(store.set("world/rank/1", toBytes("garbage")).ok());
    const auto outcomes = runAll(store, {{0, 2, "x"}}, milliseconds(1000));
    EXPECT_EQ((*outcomes[0]).status().code(), Status::Code::kMismatch);
    MemoryStore other;
    ASSERT_TRUE(other.set("world/verdict", toBytes("garbage")).ok());
    const auto others = runAll(other, {{1, 2, "x"}}, milliseconds(1000));
    EXPECT_EQ((*others[0]).status().code(), Status::Code::kMismatch);
}

TEST(JobKeyAgreement, AllGetRankZerosKey) {
    MemoryStore store;
    Result<JobKey> other = JobKey{};
    std::thread late(
        [&] { other = agreeOnJobKey(store, "job", 1, deadlineIn(milliseconds(2000))); });
    const auto key = agreeOnJobKey(store, "job", 0, deadlineIn(milliseconds(2000)));
    late.join();
    ASSERT_TRUE(key.ok() && other.ok());
    EXPECT_EQ(*key, *other);
    EXPECT_FALSE(*key == JobKey{});
}

TEST(JobKeyAgreement, HasOneRankZero) {
    MemoryStore store;
    EXPECT_TRUE(agreeOnJobKey(store, "job", 0, deadlineIn(milliseconds(2000))).ok());
    const auto second = agreeOnJobKey(store, "job", 0, deadlineIn(milliseconds(2000)));
    EXPECT_EQ(second.status().code(), Status::Code::kMismatch);
    EXPECT_EQ(second.status().what().rfind("two processes claim rank 0: process ", 0), 0U);
}

TEST(RankList, IsShort) {
    EXPECT_EQ(rankList({}), "");
    EXPECT_EQ(rankList({2, 5}), "2, 5");
    EXPECT_EQ(rankList({0, 1}), "0, 1");
    EXPECT_EQ(rankList({0, 1, 2, 3, 7, 9, 10}), "0-3, 7, 9, 10");
}

}  // namespace
}  // namespace isthmus
