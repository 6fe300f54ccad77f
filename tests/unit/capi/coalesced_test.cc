// Calls over lists of tensors, against what they must be, element by element.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "comm/communicator/coalesced.hpp"
#include "tests/support/local_job.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::test {
namespace {

using testing::HasSubstr;

using Ints = std::vector<std::int32_t>;

/// What rank `from` has for element `at` of block `block` of a tensor.
std::int32_t value(Rank from, std::size_t tensor, int block, std::size_t at) {
    return static_cast<std::int32_t>(1000 * tensor + 100 * static_cast<std::size_t>(from) +
                                     10 * static_cast<std::size_t>(block) + at % 7);
}

Ints blocksOf(Rank from, std::size_t tensor, int blocks, std::size_t count) {
    Ints values;
    for (int block = 0; block < blocks; ++block) {
        for (std::size_t at = 0; at < count; ++at) values.push_back(value(from, tensor, block, at));
    }
    return values;
}

/// Small, none, large (beyond what is packed) and uneven.
const std::vector<std::size_t> kCounts = {3, 0, 1, 40000, 17, 5};

/// The buffers of one call.
struct Lists {
    std::vector<Ints> inputs;
    std::vector<Ints> outputs;
    std::vector<const void*> sends;
    std::vector<void*> receives;

    void point() {
        for (Ints& input : inputs) sends.push_back(input.data());
        for (Ints& output : outputs) receives.push_back(output.data());
    }
};

Lists listsOf(Rank rank, int inputBlocks, int outputBlocks) {
    Lists lists;
    for (std::size_t tensor = 0; tensor < kCounts.size(); ++tensor) {
        lists.inputs.push_back(blocksOf(rank, tensor, inputBlocks, kCounts[tensor]));
        lists.outputs.emplace_back(kCounts[tensor] * static_cast<std::size_t>(outputBlocks), -1);
    }
    lists.point();
    return lists;
}

struct World {
    isthmusComm_t comm;
    Rank rank;
    int ranks;
};

void sums(const World& world, const isthmusCallOptions_t* options = nullptr) {
    Lists lists = listsOf(world.rank, 1, 1);
    std::copy(lists.receives.begin() + 3, lists.receives.end(), lists.sends.begin() + 3);
    for (std::size_t tensor = 3; tensor < kCounts.size(); ++tensor)  // in place
        lists.outputs[tensor] = lists.inputs[tensor];
    lists.receives.clear();
    for (Ints& output : lists.outputs) lists.receives.push_back(output.data());
    for (std::size_t tensor = 3; tensor < kCounts.size(); ++tensor)
        lists.sends[tensor] = lists.receives[tensor];
    ASSERT_EQ(isthmusAllReduceCoalesced(kCounts.size(), lists.sends.data(), lists.receives.data(),
                                        kCounts.data(), isthmusInt, isthmusSum, world.comm, options,
                                        nullptr),
              isthmusSuccess)
        << lastError();
    for (std::size_t tensor = 0; tensor < kCounts.size(); ++tensor) {
        for (std::size_t at = 0; at < kCounts[tensor]; ++at) {
            std::int32_t wanted = 0;
            for (Rank from = 0; from < world.ranks; ++from) wanted += value(from, tensor, 0, at);
            ASSERT_EQ(lists.outputs[tensor][at], wanted) << tensor << " " << at;
        }
    }
}

void broadcasts(const World& world, Rank root) {
    Lists lists = listsOf(world.rank, 1, 1);
    if (world.rank != root) std::fill(lists.sends.begin(), lists.sends.end(), nullptr);
    ASSERT_EQ(
        isthmusBroadcastCoalesced(kCounts.size(), lists.sends.data(), lists.receives.data(),
                                  kCounts.data(), isthmusInt, root, world.comm, nullptr, nullptr),
        isthmusSuccess)
        << lastError();
    for (std::size_t tensor = 0; tensor < kCounts.size(); ++tensor)
        ASSERT_EQ(lists.outputs[tensor], blocksOf(root, tensor, 1, kCounts[tensor]));
}

void gathers(const World& world) {
    Lists lists = listsOf(world.rank, 1, world.ranks);
    ASSERT_EQ(isthmusAllGatherCoalesced(kCounts.size(), lists.sends.data(), lists.receives.data(),
                                        kCounts.data(), isthmusInt, world.comm, nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    for (std::size_t tensor = 0; tensor < kCounts.size(); ++tensor) {
        Ints wanted;
        for (Rank from = 0; from < world.ranks; ++from) {
            const Ints block = blocksOf(from, tensor, 1, kCounts[tensor]);
            wanted.insert(wanted.end(), block.begin(), block.end());
        }
        ASSERT_EQ(lists.outputs[tensor], wanted) << tensor;
    }
}

void scatters(const World& world) {
    Lists lists = listsOf(world.rank, world.ranks, 1);
    ASSERT_EQ(isthmusReduceScatterCoalesced(kCounts.size(), lists.sends.data(),
                                            lists.receives.data(), kCounts.data(), isthmusInt,
                                            isthmusMax, world.comm, nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    for (std::size_t tensor = 0; tensor < kCounts.size(); ++tensor) {
        for (std::size_t at = 0; at < kCounts[tensor]; ++at) {
            ASSERT_EQ(lists.outputs[tensor][at], value(world.ranks - 1, tensor, world.rank, at));
        }
    }
}

void exchanges(const World& world) {
    Lists lists = listsOf(world.rank, world.ranks, world.ranks);
    lists.receives[4] = lists.inputs[4].data();  // in place
    ASSERT_EQ(isthmusAlltoAllCoalesced(kCounts.size(), lists.sends.data(), lists.receives.data(),
                                       kCounts.data(), isthmusInt, world.comm, nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    lists.outputs[4] = lists.inputs[4];
    for (std::size_t tensor = 0; tensor < kCounts.size(); ++tensor) {
        for (std::size_t i = 0; i < lists.outputs[tensor].size(); ++i) {
            const auto from = static_cast<Rank>(i / kCounts[tensor]);
            ASSERT_EQ(lists.outputs[tensor][i],
                      value(from, tensor, world.rank, i % kCounts[tensor]));
        }
    }
}

TEST(Coalesced, GivesWhatThePlainCallsGive) {
    for (const std::vector<int>& nodes :
         {std::vector<int>{0}, {0, 0, 0}, {0, 0, 1, 1}, {0, 1, 0}, {0, 0, 0, 1, 1, 2}}) {
        LocalJob job(nodes, {}, LocalJob::Wires::kReal);
        job.run([&](Rank rank, Communicator& communicator) {
            CommOf comm(communicator);
            const World world{comm, rank, communicator.ranks()};
            sums(world);
            for (Rank root = 0; root < world.ranks; ++root) broadcasts(world, root);
            gathers(world);
            scatters(world);
            exchanges(world);
        });
    }
}

TEST(Coalesced, PacksSmallTensorsTogetherAndLeavesLargeOnesAlone) {
    CallRequest like;
    like.collective = Collective::kAllReduce;
    like.type = DataType::kFloat32;
    const auto parcels = [&](const std::vector<std::size_t>& counts, int ranks) {
        std::vector<Tensor> tensors;
        for (const std::size_t count : counts) tensors.push_back({nullptr, nullptr, count});
        return CoalescedCall(like, tensors).parcels(ranks);
    };
    using Parcels = std::vector<std::vector<std::size_t>>;
    EXPECT_EQ(parcels({}, 4), Parcels{});
    EXPECT_EQ(parcels({3, 0, 16384, 16385, 5}, 4), (Parcels{{0, 1, 2, 4}, {3}}));
    // 64 of 64 KiB fill a parcel.
    const auto many = parcels(std::vector<std::size_t>(130, 16384), 4);
    ASSERT_EQ(many.size(), 3u);
    EXPECT_EQ(many[0].size(), 64u);
    EXPECT_EQ(many[2], (std::vector<std::size_t>{128, 129}));
    like.collective = Collective::kAllGather;  // the operand is every rank's
    EXPECT_EQ(parcels({4096, 4097}, 4), (Parcels{{0}, {1}}));
}

TEST(Coalesced, SendsOneMessageForManySmallTensors) {
    LocalJob job({0, 1}, {}, LocalJob::Wires::kReal);
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        constexpr std::size_t kTensors = 200;
        std::vector<float> values(2 * kTensors, static_cast<float>(rank + 1));  // not neighbours
        std::vector<void*> buffers;
        for (std::size_t i = 0; i < kTensors; ++i) buffers.push_back(&values[2 * i]);
        const std::vector<std::size_t> counts(kTensors, 1);
        const auto call = [&] {
            return isthmusAllReduceCoalesced(kTensors, buffers.data(), buffers.data(),
                                             counts.data(), isthmusFloat, isthmusSum, comm, nullptr,
                                             nullptr);
        };
        ASSERT_EQ(isthmusBarrier(comm, nullptr, nullptr), isthmusSuccess);
        const WireCounters before = communicator.wireCounters();
        ASSERT_EQ(call(), isthmusSuccess) << lastError();
        const WireCounters after = communicator.wireCounters();
        EXPECT_EQ(after.sentPayload - before.sentPayload, kTensors * sizeof(float));
        // Plain calls would send a header (of some dozen bytes) for each.
        EXPECT_LT(after.sentTotal - before.sentTotal, 2 * kTensors * sizeof(float));
        for (std::size_t i = 0; i < values.size(); ++i)
            ASSERT_EQ(values[i], i % 2 == 0 ? 3.0f : static_cast<float>(rank + 1));
    });
}

TEST(Coalesced, CanBeStartedAgainAndTakesOperationsOfTheProgram) {
    LocalJob job({0, 0, 1});
    job.run([](Rank, Communicator& communicator) {
        CommOf comm(communicator);
        float factor = 0.5f;
        isthmusRedOp_t half = isthmusSum;
        ASSERT_EQ(isthmusRedOpCreatePreMulSum(&half, &factor, isthmusFloat,
                                              isthmusScalarHostImmediate, comm),
                  isthmusSuccess);
        std::vector<float> first(3, 2);
        std::vector<float> second(20000, 4);
        const void* sends[] = {first.data(), second.data()};
        void* receives[] = {first.data(), second.data()};
        const std::size_t counts[] = {3, 20000};
        const isthmusCallOptions_t options = persistent();
        isthmusRequest_t request = nullptr;
        ASSERT_EQ(isthmusAllReduceCoalesced(2, sends, receives, counts, isthmusFloat, half, comm,
                                            &options, &request),
                  isthmusSuccess)
            << lastError();
        for (const float scale : {1.5f, 2.25f}) {
            ASSERT_EQ(isthmusStart(request), isthmusSuccess) << lastError();
            ASSERT_EQ(isthmusWait(&request, -1), isthmusSuccess) << lastError();
            EXPECT_EQ(first, std::vector<float>(3, 2 * scale));
            EXPECT_EQ(second, std::vector<float>(20000, 4 * scale));
        }
        EXPECT_EQ(isthmusRequestFree(&request), isthmusSuccess);
    });
}

TEST(Coalesced, RefusesAWrongTensorBeforeAnyStarts) {
    LocalJob job({0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        int one = rank;
        const void* sends[] = {&one, nullptr};
        void* receives[] = {&one, &one};
        const std::size_t counts[] = {1, 1};
        EXPECT_EQ(isthmusAllReduceCoalesced(2, sends, receives, counts, isthmusInt, isthmusSum,
                                            comm, nullptr, nullptr),
                  isthmusInvalidArgument);
        EXPECT_THAT(lastError(), HasSubstr("tensor 1"));
        EXPECT_THAT(lastError(), HasSubstr("the send buffer is null"));
        EXPECT_EQ(one, rank);
        EXPECT_EQ(isthmusAllReduceCoalesced(2, sends, receives, nullptr, isthmusInt, isthmusSum,
                                            comm, nullptr, nullptr),
                  isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "all_reduce: an array of the tensors is null");
        EXPECT_EQ(isthmusAllReduceCoalesced(0, nullptr, nullptr, nullptr, isthmusInt, isthmusSum,
                                            comm, nullptr, nullptr),
                  isthmusSuccess);
        // Other tensors of the same total are another call.
        const std::size_t theirs[] = {rank == 0 ? 1u : 0u, rank == 0 ? 0u : 1u};
        sends[1] = &one;
        EXPECT_EQ(isthmusAllReduceCoalesced(2, sends, receives, theirs, isthmusInt, isthmusSum,
                                            comm, nullptr, nullptr),
                  isthmusMismatch);
    });
}

}  // namespace
}  // namespace isthmus::test
