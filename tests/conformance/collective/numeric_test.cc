// Numbers that have gone wrong elsewhere: emptiness, worlds of one, averages, NaN, rounding,
// aliasing, repetition. Each test names its case.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "comm/reduce/reducer.hpp"
#include "tests/conformance/collective/data.hpp"
#include "tests/conformance/collective/layouts.hpp"
#include "tests/conformance/collective/trial.hpp"
#include "tests/support/local_job.hpp"

namespace isthmus::conformance {
namespace {

constexpr auto kReal = LocalJob::Wires::kReal;

class Numeric : public testing::TestWithParam<std::string> {
protected:
    const std::vector<int>& nodes() const { return nodesOf(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Over, Numeric, testing::Values("S4", "N2x2", "RR4", "U321"),
                         [](const auto& test) { return test.param; });

/// An all-reduce in place of values that are not those of a Trial.
Status allReduce(Communicator& communicator, DataType type, ReduceOp op, Buffer& values,
                 const std::string& algorithm = "", bool roundsOnce = false) {
    CallRequest request;
    request.collective = Collective::kAllReduce;
    request.type = type;
    request.op = op;
    request.input = request.output = values.data();
    request.counts.uniform = values.size() / bytesOf(type);
    CallOptions options;
    options.isBlocking = true;
    options.algorithm = algorithm;
    options.roundsOnce = roundsOnce;
    return communicator.call(std::move(request), options)->status();
}

// https://github.com/pytorch/pytorch/issues/85234: between two others, so that a call that was left
// out shows as wrong data.
TEST_P(Numeric, NothingIsACallLikeAnyOther) {  // NUM-03
    LocalJob job(nodes(), {}, kReal);
    job.run([&](Rank, Communicator& communicator) {
        std::uint64_t seed = 0;
        for (int collective = 0; collective < kCollectives; ++collective) {
            for (const DataType type : {DataType::kFloat32, DataType::kInt64, DataType::kBool}) {
                ASSERT_TRUE(runTrial({.count = 100, .seed = ++seed}, communicator));
                ASSERT_TRUE(
                    runTrial({.collective = Collective(collective), .type = type, .count = 0},
                             communicator));
                ASSERT_TRUE(runTrial({.count = 100, .seed = ++seed}, communicator));
            }
        }
    });
}

// https://github.com/pytorch/gloo/issues/209
TEST(NumericAlone, AWorldOfOneServesEveryTypeAndOperator) {  // NUM-05
    LocalJob job({0});
    job.run([&](Rank, Communicator& communicator) {
        std::uint64_t seed = 0;
        for (int collective = 0; collective < kCollectives; ++collective) {
            for (int type = 0; type < kDataTypes; ++type) {
                for (int op = 0; op < kReduceOps; ++op) {
                    const bool isServed = reduces(Collective(collective))
                                              ? isReducible(DataType(type), ReduceOp(op))
                                              : op == 0;
                    if (!isServed) continue;
                    for (const bool isInPlace : {false, true}) {
                        ASSERT_TRUE(runTrial({.collective = Collective(collective),
                                              .type = DataType(type),
                                              .op = ReduceOp(op),
                                              .count = 1000,
                                              .isInPlace = isInPlace,
                                              .seed = ++seed},
                                             communicator));
                    }
                }
            }
        }
        EXPECT_EQ(communicator.wireCounters().sentTotal, 0u);
    });
}

/// Every collective that reduces refuses it at once, in these words, and the next call is served.
void expectRefusal(Communicator& communicator, DataType type, ReduceOp op,
                   const std::string& words) {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kReduce, Collective::kReduceScatter}) {
        std::vector<std::byte> buffer(1024);
        CallRequest request;
        request.collective = collective;
        request.type = type;
        request.op = op;
        request.input = request.output = buffer.data();
        request.counts.uniform = 4;
        const auto work = communicator.call(std::move(request), {});
        ASSERT_TRUE(work->isDone());  // nothing was started
        EXPECT_EQ(work->status().code(), Status::Code::kInvalidArgument);
        EXPECT_EQ(work->status().what(),
                  "\"" + communicator.name() + "\": " + std::string(nameOf(collective)) + words);
    }
    ASSERT_TRUE(runTrial({.op = ReduceOp::kAvg, .count = 3, .seed = 1}, communicator));
}

// https://github.com/InfiniTensor/InfiniCCL/pull/37: elsewhere the average of integers is zero.
TEST_P(Numeric, IntegersHaveNoAverageAndSaySo) {  // NUM-08
    LocalJob job(nodes());
    job.run([&](Rank, Communicator& communicator) {
        for (const DataType type : {DataType::kInt8, DataType::kUint8, DataType::kInt16,
                                    DataType::kUint16, DataType::kInt32, DataType::kUint32,
                                    DataType::kInt64, DataType::kUint64, DataType::kBool}) {
            expectRefusal(communicator, type, ReduceOp::kAvg,
                          ": avg is not defined on " + std::string(nameOf(type)));
        }
    });
}

// https://github.com/pytorch/pytorch/pull/179633: elsewhere they give garbage.
TEST_P(Numeric, ComplexNumbersHaveSumsAndAveragesOnly) {  // NUM-14
    LocalJob job(nodes());
    job.run([&](Rank, Communicator& communicator) {
        for (const DataType type : {DataType::kComplex64, DataType::kComplex128}) {
            for (const ReduceOp op : {ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                                      ReduceOp::kBand, ReduceOp::kBor, ReduceOp::kBxor}) {
                expectRefusal(communicator, type, op,
                              ": " + std::string(nameOf(op)) + " is not defined on " +
                                  std::string(nameOf(type)) + "; sum and avg are");
            }
        }
        using Number = std::complex<float>;
        const auto mine = static_cast<float>(communicator.rank() + 1);
        const auto all = static_cast<float>(communicator.ranks());
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
            std::vector<Number> values(1001, Number(mine, -2 * mine));
            Buffer bytes(values.size() * sizeof(Number));
            std::memcpy(bytes.data(), values.data(), bytes.size());
            ASSERT_TRUE(allReduce(communicator, DataType::kComplex64, op, bytes).ok());
            std::memcpy(values.data(), bytes.data(), bytes.size());
            const float sum = all * (all + 1) / 2 / (op == ReduceOp::kAvg ? all : 1.0f);
            EXPECT_EQ(values, std::vector<Number>(1001, Number(sum, -2 * sum)));
        }
    });
}

TEST_P(Numeric, EightBitFloatsAreMovedOnly) {
    LocalJob job(nodes());
    job.run([&](Rank, Communicator& communicator) {
        for (const DataType type : {DataType::kFloat8e4m3, DataType::kFloat8e5m2}) {
            for (int op = 0; op < kReduceOps; ++op) {
                expectRefusal(communicator, type, ReduceOp(op),
                              ": " + std::string(nameOf(ReduceOp(op))) + " is not defined on " +
                                  std::string(nameOf(type)) + "; it can be moved but not reduced");
            }
        }
    });
}

Buffer repeated(DataType type, double number, std::size_t elements) {
    Buffer buffer(elements * bytesOf(type));
    for (std::size_t i = 0; i < elements; ++i)
        encode(type, number, buffer.data() + i * bytesOf(type));
    return buffer;
}

constexpr DataType kFloating[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32,
                                  DataType::kFloat64};

/// A quiet NaN, one with a sign, or a signalling one: least fraction, all bits of the exponent.
void putNan(DataType type, int kind, std::byte* to) {
    const auto signalling = [to](auto bits) { std::memcpy(to, &bits, sizeof bits); };
    if (kind < 2) return encode(type, kind == 0 ? std::nan("") : -std::nan(""), to);
    if (type == DataType::kFloat64) signalling(std::uint64_t{0x7ff0000000000001});
    if (type == DataType::kFloat32) signalling(std::uint32_t{0x7f800001});
    if (type == DataType::kFloat16) signalling(std::uint16_t{0x7c01});
    if (type == DataType::kBfloat16) signalling(std::uint16_t{0x7f81});
}

// https://github.com/ml-explore/mlx/issues/4072
TEST_P(Numeric, NanComesThroughFromEveryRankAndPlace) {  // NUM-10
    LocalJob job(nodes());
    job.run([&](Rank rank, Communicator& communicator) {
        for (const DataType type : kFloating) {
            for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
                for (const std::size_t elements : {1, 9, 65, 4097}) {
                    for (int from = 0; from < job.ranks(); ++from) {
                        const std::size_t where =
                            std::array{std::size_t(0), elements / 2, elements - 1}[from % 3];
                        Buffer values = repeated(type, rank + 1.0, elements);
                        if (rank == from) {
                            putNan(type, (from + int(elements)) % 3,
                                   values.data() + where * bytesOf(type));
                        }
                        ASSERT_TRUE(allReduce(communicator, type, op, values).ok());
                        const double usual = op == ReduceOp::kMin ? 1.0 : job.ranks();
                        for (std::size_t i = 0; i < elements; ++i) {
                            const double got = decode(type, values.data() + i * bytesOf(type));
                            ASSERT_TRUE(i == where ? std::isnan(got) : got == usual)
                                << nameOf(type) << " " << nameOf(op) << " x " << elements
                                << " nan at " << where << " of " << from << ": [" << i << "] "
                                << got;
                        }
                    }
                }
            }
        }
    });
}

TEST_P(Numeric, InfinitiesAndSignedZerosDoNotDependOnWhoHasThem) {  // NUM-10
    LocalJob job(nodes());
    job.run([&](Rank rank, Communicator& communicator) {
        const double infinity = std::numeric_limits<double>::infinity();
        for (const DataType type : kFloating) {
            for (int from = 0; from < job.ranks(); ++from) {
                const double odd = rank == from ? 1 : 0;
                // One rank has -inf, +inf, -0 among +0, +0 among -0, and +inf to be added.
                const double mine[] = {odd != 0 ? -infinity : 1.0, odd != 0 ? infinity : 1.0,
                                       odd != 0 ? -0.0 : 0.0, odd != 0 ? 0.0 : -0.0};
                const double least[] = {-infinity, 1.0, -0.0, -0.0};
                const double most[] = {1.0, infinity, 0.0, 0.0};
                for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
                    Buffer values(4 * bytesOf(type));
                    Buffer expected(values.size());
                    for (std::size_t i = 0; i < 4; ++i) {
                        encode(type, mine[i], values.data() + i * bytesOf(type));
                        encode(type, op == ReduceOp::kMin ? least[i] : most[i],
                               expected.data() + i * bytesOf(type));
                    }
                    ASSERT_TRUE(allReduce(communicator, type, op, values).ok());
                    ASSERT_EQ(values, expected) << nameOf(type) << " " << nameOf(op) << from;
                }
            }
        }
    });
}

// 256 + 7 ones in bf16: how far the worst element is from 263.
double worstErrorOfOnes(const std::vector<int>& nodes, const std::string& algorithm,
                        bool roundsOnce = false) {
    LocalJob job(nodes);
    std::vector<Buffer> got(nodes.size());
    job.run([&](Rank rank, Communicator& communicator) {
        got[rank] = repeated(DataType::kBfloat16, rank == 0 ? 256.0 : 1.0, 4097);
        ASSERT_TRUE(allReduce(communicator, DataType::kBfloat16, ReduceOp::kSum, got[rank],
                              algorithm, roundsOnce)
                        .ok());
    });
    for (const Buffer& other : got) EXPECT_EQ(other, got.front()) << algorithm;
    double worst = 0;
    for (std::size_t at = 0; at < got.front().size(); at += 2) {
        const double sum = decode(DataType::kBfloat16, got.front().data() + at);
        worst = std::max(worst, std::fabs(sum - 263));
    }
    return worst;
}

// https://github.com/NVIDIA/nccl/issues/1026: 263 itself rounds to 264, since the unit in the last
// place is 2 there; with a rounding at each addition the sum would stay 256.
TEST(NumericRounding, HappensOnceInsideANodeAndOncePerHopBetweenNodes) {  // NUM-12
    const std::vector<int> one(8, 0);
    const std::vector<int> two = {0, 0, 0, 0, 1, 1, 1, 1};
    for (const std::string name : {"direct", ""}) EXPECT_EQ(worstErrorOfOnes(one, name), 1) << name;
    for (const Algorithm& entry : catalogue()) {
        if (entry.collective != Collective::kAllReduce || !entry.fits(Layout::of(two))) continue;
        const std::string name(entry.name);
        // A node's sum is rounded before it travels: the last place may be wrong. By messages alone
        // every rank is a hop and may lose half a unit.
        EXPECT_LE(worstErrorOfOnes(two, name), entry.usesLevels ? 2 : 7) << name;
        EXPECT_EQ(worstErrorOfOnes(two, name, true), 1) << name;  // 264, as exact sums round
    }
}

// Partial sums inside a node may pass the type's limit; the result may not.
TEST(NumericRounding, SumsInsideANodePassTheLimitOfTheirType) {  // NUM-12
    LocalJob job({0, 0, 0, 0});
    job.run([&](Rank rank, Communicator& communicator) {
        for (const std::size_t elements : {8, 4097}) {
            Buffer values = repeated(DataType::kFloat16, rank < 2 ? 60000.0 : -60000.0, elements);
            ASSERT_TRUE(allReduce(communicator, DataType::kFloat16, ReduceOp::kSum, values).ok());
            EXPECT_EQ(values, repeated(DataType::kFloat16, 0.0, elements));
        }
    });
}

// https://github.com/open-mpi/ompi/issues/11473
void expectInPlace(LocalJob& job) {
    job.run([&](Rank, Communicator& communicator) {
        std::uint64_t seed = 0;
        for (int collective = 0; collective < kCollectives; ++collective) {
            const int roots = hasRoot(Collective(collective)) ? job.ranks() : 1;
            for (Rank root = 0; root < roots; ++root) {
                for (const bool isLarge : {false, true}) {
                    // 100 bytes and a segment or more, over all ranks.
                    ASSERT_TRUE(runTrial({.collective = Collective(collective),
                                          .type = isLarge ? DataType::kFloat32 : DataType::kInt8,
                                          .root = root,
                                          .count = isLarge ? 40000u / unsigned(job.ranks()) : 100u,
                                          .isMapped = (root + collective) % 2 == 0,
                                          .isInPlace = true,
                                          .seed = ++seed},
                                         communicator));
                }
            }
        }
    });
}

TEST(NumericInPlace, OverTwoNodesRoundRobinWithEveryRoot) {  // NUM-19
    for (const auto wires : {LocalJob::Wires::kInproc, kReal}) {
        LocalJob job(nodesOf("RR4"), {{"ISTHMUS_SEGMENT", "16K"}}, wires);
        expectInPlace(job);
    }
}

TEST(NumericInPlace, Of16RanksOverTwoNodesWithEveryRoot) {  // NUM-19
    LocalJob job({0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1},
                 {{"ISTHMUS_SEGMENT", "16K"}, {"ISTHMUS_ARENA", "64M"}});
    expectInPlace(job);
}

// https://github.com/intel/torch-xpu-ops/issues/3020
TEST_P(Numeric, OneToNineElementsOfAnyType) {  // NUM-22
    LocalJob job(nodes());
    job.run([&](Rank, Communicator& communicator) {
        std::uint64_t seed = 0;
        for (std::size_t count = 1; count <= 9; ++count) {
            for (int collective = 0; collective < kCollectives; ++collective) {
                for (const DataType type :
                     {DataType::kFloat32, DataType::kBfloat16, DataType::kInt64, DataType::kBool}) {
                    ASSERT_TRUE(runTrial({.collective = Collective(collective),
                                          .type = type,
                                          .op = isFloating(type) ? ReduceOp::kAvg : ReduceOp::kSum,
                                          .count = count,
                                          .seed = ++seed},
                                         communicator));
                }
            }
        }
    });
}

}  // namespace
}  // namespace isthmus::conformance
