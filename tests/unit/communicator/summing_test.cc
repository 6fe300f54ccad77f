// Ranks that hold no data and only add.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "comm/communicator/coalesced.hpp"
#include "comm/communicator/packing.hpp"
#include "tests/support/local_job.hpp"
#include "tests/unit/communicator/calls.hpp"

namespace isthmus::test {
namespace {

using ::testing::HasSubstr;

/// A job of which `summing` ranks only add.
LocalJob& madeOf(LocalJob& job, const std::vector<Rank>& summing) {
    for (const Rank rank : summing) job.runtime(rank).setOnlySums(true);
    return job;
}

/// All-reduce of a vector, without buffers on ranks that only add.
template <typename T>
CallRequest sumOf(std::vector<T>& values, bool isBare, ReduceOp op = ReduceOp::kSum) {
    CallRequest request = allReduceOf(values, op);
    if (isBare) request.input = request.output = nullptr;
    return request;
}

// Whatever the layout: two nodes of data and one without, all nodes mixed, one node.
TEST(Summing, AddsUpTheRanksWithDataOnly) {
    const std::pair<std::vector<int>, std::vector<Rank>> jobs[] = {{{0, 0, 1, 1, 2, 2}, {4, 5}},
                                                                   {{0, 1, 0, 1}, {1, 2}},
                                                                   {{0, 0, 0}, {1}},
                                                                   {{0, 1, 2}, {1, 2}}};
    for (const auto& [nodes, summing] : jobs) {
        LocalJob job(nodes);
        madeOf(job, summing).run([&, &summing = summing](Rank rank, Communicator& communicator) {
            EXPECT_EQ(communicator.layout().summing, summing);
            const bool isBare = communicator.layout().onlySums(rank);
            int sum = 0;
            for (Rank each = 0; each < communicator.ranks(); ++each) {
                if (!communicator.layout().onlySums(each)) sum += 1 << each;
            }
            const int holding = communicator.ranks() - static_cast<int>(summing.size());
            for (const std::size_t count : {0, 1, 17, 300'000}) {
                std::vector<std::int32_t> whole(count, 1 << rank);
                auto work = communicator.call(sumOf(whole, isBare), blocking());
                ASSERT_TRUE(work->status().ok()) << work->status().what();
                EXPECT_EQ(whole, std::vector<std::int32_t>(count, isBare ? 1 << rank : sum));
                std::vector<double> mean(count, 1 << rank);
                work = communicator.call(sumOf(mean, isBare, ReduceOp::kAvg), blocking());
                ASSERT_TRUE(work->status().ok()) << work->status().what();
                const double expected = static_cast<double>(sum) / holding;
                for (const double value : mean) {
                    ASSERT_NEAR(value, isBare ? 1 << rank : expected, 1e-12);
                }
            }
        });
    }
}

// They are ranks like any other but for all-reduces.
TEST(Summing, TakesPartInOtherCollectives) {
    LocalJob job({0, 0, 1});
    madeOf(job, {2}).run([](Rank rank, Communicator& communicator) {
        const std::vector<std::int32_t> own(5, rank);
        std::vector<std::int32_t> all(15);
        const auto work =
            communicator.call(callOf(Collective::kAllGather, own, all, 5), blocking());
        EXPECT_TRUE(work->status().ok()) << work->status().what();
        EXPECT_EQ(all.back(), 2);
        EXPECT_EQ(all.front(), 0);
    });
}

// A premultiplied sum, a sum of halves that is rounded once, tensors in one call: none of them
// looks at buffers that are not there.
TEST(Summing, HasNoBuffersInAnyFormOfTheCall) {
    LocalJob job({0, 1, 2});
    madeOf(job, {1}).run([](Rank rank, Communicator& communicator) {
        const bool isBare = rank == 1;
        std::vector<float> values(1000, 1.0F);
        auto work = callPremultiplied(communicator, sumOf(values, isBare), blocking(), 3.0);
        EXPECT_TRUE(work->status().ok()) << work->status().what();
        EXPECT_EQ(values, std::vector<float>(1000, isBare ? 1.0F : 6.0F));

        std::vector<std::uint16_t> halves(1000, 0x3F80);  // 1 as bf16
        CallRequest once = allReduceOf(values);
        once.type = DataType::kBfloat16;
        once.input = isBare ? nullptr : reinterpret_cast<const std::byte*>(halves.data());
        once.output = isBare ? nullptr : reinterpret_cast<std::byte*>(halves.data());
        CallOptions options = blocking();
        options.roundsOnce = true;
        work = communicator.call(once, options);
        EXPECT_TRUE(work->status().ok()) << work->status().what();
        EXPECT_EQ(halves, std::vector<std::uint16_t>(1000, isBare ? 0x3F80 : 0x4000));

        std::vector<float> few(3, 1.0F);
        std::vector<float> more(4, 2.0F);
        std::vector<Tensor> tensors;
        for (std::vector<float>* each : {&few, &more}) {
            const CallRequest one = sumOf(*each, isBare);
            tensors.push_back({one.input, one.output, each->size()});
        }
        CallRequest like;
        like.collective = Collective::kAllReduce;
        like.type = DataType::kFloat32;
        work = CoalescedCall(like, tensors)
                   .start(communicator, blocking(), [&](CallRequest one, const CallOptions& how) {
                       return communicator.call(std::move(one), how);
                   });
        EXPECT_TRUE(work->status().ok()) << work->status().what();
        EXPECT_EQ(few, std::vector<float>(3, isBare ? 1.0F : 2.0F));
        EXPECT_EQ(more, std::vector<float>(4, isBare ? 2.0F : 4.0F));
    });
}

TEST(Summing, IsRefusedByNameOnlyWhereItDoesNotFit) {
    LocalJob job({0, 1, 1});
    madeOf(job, {2}).run([](Rank rank, Communicator& communicator) {
        std::vector<std::int32_t> whole(10, 1);
        CallOptions options = blocking();
        options.algorithm = "two_level_ring";
        const auto refused = communicator.call(sumOf(whole, rank == 2), options);
        EXPECT_THAT(refused->status().what(), HasSubstr("with ranks that only add"));
        options.algorithm = "summing";
        options.isDeterministic = true;
        const auto work = communicator.call(sumOf(whole, rank == 2), options);
        EXPECT_TRUE(work->status().ok()) << work->status().what();
        EXPECT_EQ(whole.front(), rank == 2 ? 1 : 2);
    });
}

// Nobody's data cannot be added up: then all have some, and must show it.
TEST(Summing, MeansNothingWhereAllRanksOnlyAdd) {
    LocalJob job({0, 1});
    madeOf(job, {0, 1}).run([](Rank, Communicator& communicator) {
        EXPECT_TRUE(communicator.layout().summing.empty());
        EXPECT_TRUE(sums(communicator));
        std::vector<float> values(3);
        const auto refused = communicator.call(sumOf(values, true), blocking());
        EXPECT_THAT(refused->status().what(), HasSubstr("buffer is null"));
    });
}

}  // namespace
}  // namespace isthmus::test
