// All-to-all of blocks that differ in size: inside a node each rank takes what is for it from where
// the others say that it lies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>

#include "tests/unit/engine/engine_job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::seconds;
using Counts = std::vector<std::size_t>;

constexpr std::uint32_t kGuard = 0xfeedbeef;
constexpr std::size_t kGuards = 16;  // elements before and after each buffer

/// Element `at` of the block from one rank to another.
std::uint32_t valueOf(Rank from, Rank to, std::size_t at) {
    return static_cast<std::uint32_t>(from) << 28 | static_cast<std::uint32_t>(to) << 24 |
           static_cast<std::uint32_t>(at);
}

enum class Memory { kMapped, kOrdinary, kMixed };

/// One all-to-all; sizes are counts[from][to].
class Exchange {
public:
    /// `spare`: elements that each buffer has room for besides.
    Exchange(EngineJob& job, std::vector<Counts> counts, Memory memory, bool isInPlace,
             std::size_t spare = 0)
        : job_(job), counts_(std::move(counts)), spare_(spare) {
        for (Rank rank = 0; rank < job.ranks(); ++rank) {
            const bool isMapped =
                memory == Memory::kMapped || (memory == Memory::kMixed && rank % 2 == 0);
            inputs_.push_back(place(rank, isMapped, sizeOf(rank)));
            outputs_.push_back(isInPlace ? inputs_.back() : place(rank, isMapped, sizeOf(rank)));
            std::uint32_t* next = inputs_.back();
            for (Rank to = 0; to < job.ranks(); ++to) {
                for (std::size_t at = 0; at < counts_[rank][to]; ++at)
                    *next++ = valueOf(rank, to, at);
            }
        }
    }
    ~Exchange() {
        for (const auto& [rank, block] : blocks_) job_.arena(rank).free(block);
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    CallRequest request(Rank rank) const {
        CallRequest call;
        call.collective = Collective::kAllToAll;
        call.type = DataType::kUint32;
        call.input = reinterpret_cast<const std::byte*>(inputs_[rank]);
        call.output = reinterpret_cast<std::byte*>(outputs_[rank]);
        call.counts.sent = counts_[rank];
        for (const Counts& row : counts_) call.counts.received.push_back(row[rank]);
        return call;
    }

    void run(const Way& way) {
        std::vector<std::shared_ptr<Work>> works;
        for (Rank rank = 0; rank < job_.ranks(); ++rank)
            works.push_back(job_.start(rank, request(rank), way));
        const auto areDone = [&] {
            return std::all_of(works.begin(), works.end(),
                               [](const auto& work) { return work->isDone(); });
        };
        ASSERT_TRUE(job_.runFor(areDone, seconds(5)));
        for (const auto& work : works) ASSERT_TRUE(work->status().ok()) << work->status().what();
    }

    void check() const {
        for (Rank rank = 0; rank < job_.ranks(); ++rank) {
            const std::uint32_t* next = outputs_[rank];
            for (Rank from = 0; from < job_.ranks(); ++from) {
                for (std::size_t at = 0; at < counts_[from][rank]; ++at)
                    ASSERT_EQ(*next++, valueOf(from, rank, at))
                        << "at rank " << rank << " element " << at << " from " << from;
            }
            for (const std::uint32_t* const begin : {inputs_[rank], outputs_[rank]}) {
                for (std::size_t i = 1; i <= kGuards; ++i) {
                    ASSERT_EQ(begin[-static_cast<std::ptrdiff_t>(i)], kGuard);
                    ASSERT_EQ(begin[sizeOf(rank) + i - 1], kGuard);
                }
            }
        }
    }

private:
    /// Of either buffer of a rank: the larger of the two.
    std::size_t sizeOf(Rank rank) const {
        std::size_t received = 0;
        for (const Counts& row : counts_) received += row[rank];
        return std::max(std::accumulate(counts_[rank].begin(), counts_[rank].end(), std::size_t{0}),
                        received) +
               spare_;
    }

    std::uint32_t* place(Rank rank, bool isMapped, std::size_t elements) {
        const std::size_t all = elements + 2 * kGuards;
        std::uint32_t* memory = nullptr;
        if (isMapped) {
            const auto block = job_.arena(rank).allocate(all * sizeof(std::uint32_t));
            EXPECT_TRUE(block.ok()) << block.status().what();
            blocks_.emplace_back(rank, *block);
            memory = static_cast<std::uint32_t*>(*block);
        } else {
            memory = ordinary_.emplace_back(all).data();
        }
        std::fill_n(memory, all, kGuard);
        return memory + kGuards;
    }

    EngineJob& job_;
    std::vector<Counts> counts_;
    std::size_t spare_;
    std::deque<std::vector<std::uint32_t>> ordinary_;
    std::vector<std::pair<Rank, void*>> blocks_;
    std::vector<std::uint32_t*> inputs_;
    std::vector<std::uint32_t*> outputs_;
};

std::vector<Counts> randomCounts(int ranks, std::mt19937& random) {
    const std::size_t sizes[] = {0, 1, 7, 64, 255, 256, 257, 1000, 5000};
    std::vector<Counts> counts(ranks, Counts(ranks));
    for (Counts& row : counts) {
        for (std::size_t& count : row) count = sizes[random() % std::size(sizes)];
    }
    return counts;
}

std::vector<Counts> onlyFrom(Rank sender, int ranks, std::size_t elements) {
    std::vector<Counts> counts(ranks, Counts(ranks, 0));
    std::fill(counts[sender].begin(), counts[sender].end(), elements);
    return counts;
}

std::vector<Counts> onlyTo(Rank receiver, int ranks, std::size_t elements) {
    std::vector<Counts> counts(ranks, Counts(ranks, 0));
    for (Counts& row : counts) row[receiver] = elements;
    return counts;
}

struct Case {
    const char* name;
    std::vector<int> nodeOfRank;
    const char* algorithm;
    Memory memory;
    bool reads;
};

class Uneven : public testing::TestWithParam<Case> {
protected:
    std::unique_ptr<EngineJob> job() const {
        const auto& nodes = GetParam().nodeOfRank;
        if (GetParam().reads)
            return std::make_unique<EngineJob>(nodes, EngineJob::Reads{::getpid()});
        return std::make_unique<EngineJob>(nodes);
    }
    /// Passes of 256 elements where it is staged.
    Way way(int window = 3) const {
        return {.algorithm = GetParam().algorithm, .window = window, .pieceBytes = 1024};
    }
    static void exchange(EngineJob& job, std::vector<Counts> counts, const Way& way,
                         bool isInPlace = false) {
        Exchange exchange(job, std::move(counts), GetParam().memory, isInPlace);
        exchange.run(way);
        if (!HasFatalFailure()) exchange.check();
    }
};

TEST_P(Uneven, BlocksOfAnySizeArriveWhateverTheyWereBefore) {
    const auto jobOfAll = job();
    std::mt19937 random(20261130);
    for (int call = 0; call < 60 && !HasFatalFailure(); ++call)
        exchange(*jobOfAll, randomCounts(jobOfAll->ranks(), random), way(1 + call % 4));
}

TEST_P(Uneven, OneRankMaySendOrGetEverything) {
    const auto jobOfAll = job();
    const int ranks = jobOfAll->ranks();
    for (Rank rank = 0; rank < ranks && !HasFatalFailure(); ++rank) {
        exchange(*jobOfAll, onlyFrom(rank, ranks, 3001), way());
        exchange(*jobOfAll, onlyTo(rank, ranks, 3001), way());
    }
    exchange(*jobOfAll, onlyTo(0, ranks, 0), way());
}

TEST_P(Uneven, BlocksMayBeTinyInSomeRanksOrInAll) {
    const auto jobOfAll = job();
    const int ranks = jobOfAll->ranks();
    std::mt19937 random(11);
    for (int call = 0; call < 40 && !HasFatalFailure(); ++call) {
        std::vector<Counts> counts(ranks, Counts(ranks));
        for (Counts& row : counts) {
            for (std::size_t& count : row) count = random() % 21;
        }
        if (call % 3 == 2) counts[random() % ranks][random() % ranks] = 3001;
        exchange(*jobOfAll, counts, way(), call % 2 == 1);
    }
}

// A rank's blocks begin elsewhere in what it gets than in what it sends.
TEST_P(Uneven, BlocksMayBeExchangedInPlace) {
    const auto jobOfAll = job();
    std::mt19937 random(7);
    for (int call = 0; call < 20 && !HasFatalFailure(); ++call)
        exchange(*jobOfAll, randomCounts(jobOfAll->ranks(), random), way(), true);
}

TEST_P(Uneven, WhoDisagreesIsNamedAndNothingIsWrittenBeyond) {
    const auto& nodes = GetParam().nodeOfRank;
    const int ranks = static_cast<int>(nodes.size());
    for (const std::size_t odd : {0U, 299U, 301U, 5000U}) {
        const auto fresh = job();
        const Exchange calls(*fresh, std::vector<Counts>(ranks, Counts(ranks, 300)),
                             GetParam().memory, false, 5000);
        std::vector<std::shared_ptr<Work>> works;
        for (Rank rank = 0; rank < ranks; ++rank) {
            CallRequest call = calls.request(rank);
            if (rank == 1) call.counts.received[0] = odd;
            works.push_back(fresh->start(rank, std::move(call), way()));
        }
        const auto areDone = [&] {
            return std::all_of(works.begin(), works.end(),
                               [](const auto& work) { return work->isDone(); });
        };
        ASSERT_TRUE(fresh->runFor(areDone, seconds(1)));
        for (const auto& work : works) {
            // Whoever had no part in it may be through already, and so may the sender of a small
            // message to another node.
            const bool mustKnow = work == works[1] || (work == works[0] && nodes[0] == nodes[1]);
            if (!mustKnow && work->status().ok()) continue;
            EXPECT_EQ(work->status().code(), Status::Code::kMismatch) << work->status().what();
            EXPECT_THAT(work->status().what(), testing::HasSubstr("rank 0 (place 0) calls"));
            EXPECT_THAT(work->status().what(),
                        testing::HasSubstr("1200 bytes for rank 1 (place 1)"));
            EXPECT_THAT(work->status().what(),
                        testing::HasSubstr(std::to_string(odd * 4) + " bytes from it"));
        }
    }
}

TEST(UnevenOfFewBytes, MeetsOnce) {
    EngineJob job({0, 0});
    const Exchange calls(job, {{1, 70}, {3, 2}}, Memory::kOrdinary, false);
    const Way way{.algorithm = "direct"};
    const auto first = job.start(0, calls.request(0), way);
    const auto last = job.start(1, calls.request(1), way);
    job.step(0);
    EXPECT_FALSE(first->isDone());
    for (int turn = 0; turn < 3; ++turn) job.step(1);  // the first does nothing meanwhile
    EXPECT_TRUE(last->isDone());
    job.settle();
    EXPECT_TRUE(first->isDone());
    calls.check();
}

const Case kCases[] = {
    {"Mapped", {0, 0, 0, 0}, "direct", Memory::kMapped, false},
    {"Staged", {0, 0, 0, 0}, "direct", Memory::kOrdinary, false},
    {"SomeMapped", {0, 0, 0}, "direct", Memory::kMixed, false},
    {"Read", {0, 0, 0, 0}, "direct", Memory::kOrdinary, true},
    {"SomeRead", {0, 0, 0}, "direct", Memory::kMixed, true},
    {"Two", {0, 0}, "direct", Memory::kOrdinary, false},
    {"Messages", {0, 0, 1}, "pairwise", Memory::kMapped, false},
    {"Copied", {0, 0, 1}, "pairwise_copied", Memory::kOrdinary, false},
    {"NodesMapped", {0, 0, 1, 1}, "two_level_pairwise", Memory::kMapped, false},
    {"NodesStaged", {0, 1, 0, 1, 0}, "two_level_pairwise", Memory::kOrdinary, false},
    {"NodesMixed", {0, 0, 1, 1, 2}, "two_level_pairwise", Memory::kMixed, false},
    {"NodesCopied", {0, 0, 1, 1, 2}, "two_level_pairwise_copied", Memory::kMixed, false},
};

INSTANTIATE_TEST_SUITE_P(Exchange, Uneven, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace isthmus::test
