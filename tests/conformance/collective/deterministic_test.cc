// The deterministic option, and sums that are rounded once: every bit against a fold over the ranks
// that is done in fold.cc.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/conformance/collective/fold.hpp"
#include "tests/support/local_job.hpp"

namespace isthmus::conformance {
namespace {

constexpr int kRanks = 4;

struct Case {
    DataType type;
    ReduceOp op;
    std::size_t elements;
};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const DataType type :
         {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16, DataType::kBfloat16}) {
        for (const std::size_t elements : {1, 17, 4097, 30011, 100003})
            all.push_back({type, ReduceOp::kSum, elements});
        for (const ReduceOp op : {ReduceOp::kProd, ReduceOp::kAvg}) all.push_back({type, op, 4097});
    }
    return all;
}

Buffer resultOf(Communicator& communicator, Collective collective, const Case& one,
                const CallOptions& options) {
    const Buffer input = unevenOperand(one.type, one.op, communicator.rank(), one.elements);
    Buffer output(input.size());
    CallRequest request;
    request.collective = collective;
    request.type = one.type;
    request.op = one.op;
    request.root = 1;
    request.input = input.data();
    request.output = output.data();
    request.counts.uniform = one.elements;
    if (collective == Collective::kReduceScatter) request.counts.uniform /= kRanks;
    CallOptions how = options;
    how.isBlocking = true;
    const auto work = communicator.call(std::move(request), how);
    EXPECT_TRUE(work->status().ok()) << work->status().what();
    return output;
}

void expectFold(Communicator& communicator, const Case& one, const Buffer& wanted,
                const CallOptions& options) {
    SCOPED_TRACE(std::string(nameOf(one.type)) + " " + std::string(nameOf(one.op)) + " x " +
                 std::to_string(one.elements));
    EXPECT_TRUE(resultOf(communicator, Collective::kAllReduce, one, options) == wanted);
    if (one.elements > 30000) return;
    const Buffer reduced = resultOf(communicator, Collective::kReduce, one, options);
    if (communicator.rank() == 1) {
        EXPECT_TRUE(reduced == wanted);
    }
    const std::size_t block = one.elements / kRanks * bytesOf(one.type);
    const Buffer mine = resultOf(communicator, Collective::kReduceScatter, one, options);
    EXPECT_EQ(
        std::memcmp(mine.data(),
                    wanted.data() + block * static_cast<std::size_t>(communicator.rank()), block),
        0);
}

struct Setting {
    const char* name;
    std::vector<int> nodes;
    LocalJob::Wires wires;
    const char* segment;
};

class Deterministic : public testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(
    On, Deterministic,
    testing::Values(Setting{"OneNodeInproc", {0, 0, 0, 0}, LocalJob::Wires::kInproc, "1M"},
                    Setting{"OneNodeShm", {0, 0, 0, 0}, LocalJob::Wires::kReal, "16K"},
                    Setting{"TwoNodesInproc", {0, 0, 1, 1}, LocalJob::Wires::kInproc, "64K"},
                    Setting{"TwoNodesTcp", {0, 0, 1, 1}, LocalJob::Wires::kReal, "8K"},
                    Setting{"ThreeAndOneTcp", {0, 0, 0, 1}, LocalJob::Wires::kReal, "1M"},
                    Setting{"RoundRobinTcp", {0, 1, 0, 1}, LocalJob::Wires::kReal, "16K"},
                    Setting{"AloneInproc", {0, 1, 2, 3}, LocalJob::Wires::kInproc, "1M"},
                    Setting{"AloneTcp", {0, 1, 2, 3}, LocalJob::Wires::kReal, "64K"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(Deterministic, GivesTheSameBitsEverywhere) {
    const Setting& setting = GetParam();
    std::vector<Buffer> wanted;
    for (const Case& one : cases())
        wanted.push_back(foldOf(one.type, one.op, kRanks, one.elements));
    for (const bool isByEnvironment : {false, true}) {
        LocalJob job(setting.nodes,
                     {{"ISTHMUS_SEGMENT", setting.segment},
                      {"ISTHMUS_DETERMINISTIC", isByEnvironment ? "1" : "0"}},
                     setting.wires);
        job.run([&](Rank, Communicator& communicator) {
            CallOptions options;
            options.isDeterministic = !isByEnvironment;
            std::size_t at = 0;
            for (const Case& one : cases()) expectFold(communicator, one, wanted[at++], options);
        });
    }
}

// The tests above can fail: without the option these sums are formed in another order.
TEST(DeterministicNot, IsWhatTheOptionIsFor) {
    const Case one{DataType::kFloat32, ReduceOp::kSum, 4097};
    const Buffer wanted = foldOf(one.type, one.op, kRanks, one.elements);
    LocalJob job({0, 1, 0, 1});
    job.run([&](Rank, Communicator& communicator) {
        EXPECT_FALSE(resultOf(communicator, Collective::kAllReduce, one, {}) == wanted);
    });
}

TEST(DeterministicCalls, RefuseAlgorithmsOfAnotherOrder) {
    LocalJob job({0, 0, 1, 1});
    job.run([&](Rank, Communicator& communicator) {
        std::vector<float> value(1, 1);
        CallRequest request;
        request.collective = Collective::kAllReduce;
        request.type = DataType::kFloat32;
        request.input = request.output = reinterpret_cast<std::byte*>(value.data());
        request.counts.uniform = 1;
        CallOptions options;
        options.isDeterministic = true;
        options.isBlocking = true;
        options.algorithm = "two_level_doubling";
        const auto work = communicator.call(request, options);
        EXPECT_EQ(work->status().code(), Status::Code::kInvalidArgument);
        EXPECT_NE(work->status().what().find("order of ranks"), std::string::npos);
        // Whole numbers and extremes have no order: any algorithm serves them.
        request.op = ReduceOp::kMax;
        EXPECT_TRUE(communicator.call(request, options)->status().ok());
    });
}

/// 256 and three times 2/3: each alone is less than half a unit of a bf16 of 256, and lost.
TEST(OneRounding, KeepsWhatHopsWouldLose) {
    for (const std::vector<int>& nodes :
         {std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 1, 2, 3},
          std::vector<int>{0, 1, 0, 1}}) {
        LocalJob job(nodes, {}, LocalJob::Wires::kReal);
        job.run([&](Rank rank, Communicator& communicator) {
            for (const std::string name : {"ring", "doubling", ""}) {
                for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
                    Buffer value(2 * 1001);
                    for (std::size_t i = 0; i < 1001; ++i)
                        encode(DataType::kBfloat16, rank == 0 ? 256 : 2.0 / 3, &value[2 * i]);
                    // 256 + 3 * 0.66796875 = 258.00390625
                    const double sum = op == ReduceOp::kAvg ? 64.5 : 258;
                    CallRequest request;
                    request.collective = Collective::kAllReduce;
                    request.type = DataType::kBfloat16;
                    request.op = op;
                    request.input = request.output = value.data();
                    request.counts.uniform = 1001;
                    CallOptions options;
                    options.roundsOnce = options.isBlocking = true;
                    options.algorithm = name;
                    ASSERT_TRUE(communicator.call(request, options)->status().ok());
                    EXPECT_EQ(decode(DataType::kBfloat16, value.data()), sum) << name;
                    EXPECT_EQ(decode(DataType::kBfloat16, &value[2000]), sum) << name;
                }
            }
        });
    }
}

TEST(OneRounding, CarriesSumsBeyondTheLimitOfTheirTypeAtTwiceTheBytes) {
    LocalJob job({0, 1, 2, 3}, {{"ISTHMUS_ONE_ROUNDING", "1"}}, LocalJob::Wires::kReal);
    LocalJob plain({0, 1, 2, 3}, {}, LocalJob::Wires::kReal);
    std::vector<std::uint64_t> bytes(2 * kRanks);
    const auto run = [&](LocalJob& one, std::size_t offset, bool isFinite) {
        one.run([&](Rank rank, Communicator& communicator) {
            Buffer value(2 * 4096);
            for (std::size_t i = 0; i < 4096; ++i)
                encode(DataType::kFloat16, rank < 2 ? 60000.0 : -60000.0, &value[2 * i]);
            CallRequest request;
            request.collective = Collective::kAllReduce;
            request.type = DataType::kFloat16;
            request.input = request.output = value.data();
            request.counts.uniform = 4096;
            CallOptions options;
            options.isBlocking = true;
            options.algorithm = "ring";
            const std::uint64_t before = communicator.wireCounters().sentPayload;
            ASSERT_TRUE(communicator.call(request, options)->status().ok());
            bytes[offset + static_cast<std::size_t>(rank)] =
                communicator.wireCounters().sentPayload - before;
            if (isFinite) {
                EXPECT_EQ(value, Buffer(2 * 4096));
            } else {
                EXPECT_NE(value, Buffer(2 * 4096));
            }
        });
    };
    run(job, 0, true);
    run(plain, kRanks, false);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(bytes[rank], 2u * 3 * 4096 / 4 * 4);
        EXPECT_EQ(bytes[kRanks + rank], 2u * 3 * 4096 / 4 * 2);
    }
}

}  // namespace
}  // namespace isthmus::conformance
