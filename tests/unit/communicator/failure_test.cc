// Ranks that disagree, stay away, give up or leave: who is named where, and how soon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/communicator/calls.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using SteadyTime = std::chrono::steady_clock::time_point;

CommunicatorConfig named(const char* name, milliseconds timeout = milliseconds(0)) {
    CommunicatorConfig config;
    config.name = name;
    config.timeout = timeout;
    return config;
}

milliseconds since(SteadyTime start) {
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

class Disagreement : public testing::TestWithParam<std::vector<int>> {
protected:
    /// A rank that only sends to other nodes may be through before they can object: it hears of
    /// it at its next call.
    static Status afterwards(Communicator& communicator) {
        return communicator.call(CallRequest(), blocking())->status();
    }

    /// Rank 2 does as `odd` says, the others as `usual` says; every rank must hear of both.
    void expectNamed(const std::function<CallRequest(std::vector<float>&)>& usual,
                     const std::function<CallRequest(std::vector<float>&)>& odd,
                     const std::string& usualText, const std::string& oddText) {
        LocalJob job(GetParam());
        job.run(
            [&](Rank rank, Communicator& communicator) {
                std::vector<float> buffer(4096, 1);
                const auto start = std::chrono::steady_clock::now();
                const auto work =
                    communicator.call(rank == 2 ? odd(buffer) : usual(buffer), blocking());
                Status status = work->status();
                if (status.ok()) status = afterwards(communicator);
                EXPECT_LT(since(start), milliseconds(1000)) << "rank " << rank;
                EXPECT_EQ(status.code(), Status::Code::kMismatch) << status.what();
                EXPECT_THAT(status.what(),
                            AllOf(HasSubstr(usualText), HasSubstr(oddText), HasSubstr("rank 2 ("),
                                  HasSubstr(" #0 on "), HasSubstr("\"dp\"")));
                // Failed as a whole, at once, with the first cause.
                std::vector<float> more(5, 1);
                const auto later = communicator.call(allReduceOf(more), blocking());
                EXPECT_EQ(later->status().what(), status.what());
                const auto transfer = communicator.transfer(sendOf(more, 0), blocking());
                EXPECT_EQ(transfer->status().what(), status.what());
                EXPECT_EQ(communicator.failure().what(), status.what());
            },
            named("dp"));
    }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Disagreement,
                         testing::Values(std::vector<int>{0, 0, 0, 0}, std::vector<int>{0, 0, 1, 1},
                                         std::vector<int>{0, 1, 2, 3}),
                         [](const auto& test) {
                             return "Over" + std::to_string(test.param.back() + 1) + "Nodes";
                         });

CallRequest broadcastOf(std::vector<float>& buffer, Rank root) {
    return callOf(Collective::kBroadcast, buffer, buffer, buffer.size(), root);
}

// https://github.com/pytorch/pytorch/pull/79901
TEST_P(Disagreement, OnTheCollectiveNamesBoth) {  // NUM-26
    expectNamed(
        [](auto& buffer) { return allReduceOf(buffer); },
        [](auto& buffer) { return callOf(Collective::kReduce, buffer, buffer, buffer.size(), 1); },
        "all_reduce f32 x 4096 sum", "reduce f32 x 4096 sum root 1");
}

TEST_P(Disagreement, OnTheCountNamesBoth) {  // NUM-26, NUM-27
    expectNamed([](auto& buffer) { return allReduceOf(buffer); },
                [](auto& buffer) {
                    CallRequest request = allReduceOf(buffer);
                    request.counts.uniform = 1000;
                    return request;
                },
                "all_reduce f32 x 4096 sum", "all_reduce f32 x 1000 sum");
}

TEST_P(Disagreement, OnTheTypeNamesBothThoughSizesAreEqual) {  // NUM-18
    expectNamed([](auto& buffer) { return allReduceOf(buffer); },
                [](auto& buffer) {
                    CallRequest request = allReduceOf(buffer);
                    request.type = DataType::kInt32;
                    return request;
                },
                "all_reduce f32 x 4096 sum", "all_reduce i32 x 4096 sum");
}

TEST_P(Disagreement, OnTheOperatorNamesBoth) {
    expectNamed([](auto& buffer) { return allReduceOf(buffer); },
                [](auto& buffer) { return allReduceOf(buffer, ReduceOp::kMax); },
                "all_reduce f32 x 4096 sum", "all_reduce f32 x 4096 max");
}

TEST_P(Disagreement, OnTheRootNamesBoth) {  // NUM-26
    expectNamed([](auto& buffer) { return broadcastOf(buffer, 0); },
                [](auto& buffer) { return broadcastOf(buffer, 1); }, "broadcast f32 x 4096 root 0",
                "broadcast f32 x 4096 root 1");
}

// Rank 2 has nothing to send to a barrier's peers but must still see that they are elsewhere.
TEST_P(Disagreement, OfABarrierAndAnEmptyCallNamesBoth) {
    expectNamed([](auto&) { return CallRequest(); },
                [](auto& buffer) {
                    CallRequest request = allReduceOf(buffer);
                    request.counts.uniform = 0;
                    return request;
                },
                "barrier", "all_reduce f32 x 0 sum");
}

// Rank 2 leaves one of two equal calls out: its next one meets the others' second.
TEST_P(Disagreement, OfARankThatSkipsACallIsFoundAtItsNextOne) {  // NUM-26
    LocalJob job(GetParam());
    job.run(
        [](Rank rank, Communicator& communicator) {
            std::vector<float> buffer(4096, 1);
            Status status;
            for (int call = rank == 2 ? 1 : 0; call < 2 && status.ok(); ++call)
                status = communicator.call(allReduceOf(buffer), blocking())->status();
            const auto start = std::chrono::steady_clock::now();
            if (status.ok()) status = communicator.call(CallRequest(), blocking())->status();
            if (status.ok()) status = afterwards(communicator);
            EXPECT_LT(since(start), milliseconds(1000)) << "rank " << rank;
            EXPECT_EQ(status.code(), Status::Code::kMismatch) << status.what();
            EXPECT_THAT(status.what(),
                        AllOf(HasSubstr(" #1 on \"dp\""), HasSubstr("rank 2 ("),
                              HasSubstr("all_reduce f32 x 4096 sum"), HasSubstr("barrier")));
        },
        named("dp"));
}

class Absence : public testing::TestWithParam<std::vector<int>> {};

INSTANTIATE_TEST_SUITE_P(
    Layouts, Absence, testing::Values(std::vector<int>{0, 0, 0, 0}, std::vector<int>{0, 0, 1, 1}),
    [](const auto& test) { return "Over" + std::to_string(test.param.back() + 1) + "Nodes"; });

TEST_P(Absence, IsNamedByTheOthersAtTheirDeadline) {
    LocalJob job(GetParam());
    // Whoever enters first is the first to give up, and tells the others.
    std::atomic<SteadyTime> first{SteadyTime::max()};
    job.run(
        [&](Rank rank, Communicator& communicator) {
            EXPECT_TRUE(sums(communicator));
            if (rank == 1) {
                std::this_thread::sleep_for(milliseconds(600));
                // The late rank hears the verdict, and corrupts nothing.
                std::vector<float> buffer(100, 1);
                const auto work = communicator.call(allReduceOf(buffer), blocking());
                EXPECT_EQ(work->status().code(), Status::Code::kTimeout);
                EXPECT_THAT(work->status().what(), HasSubstr("rank 1 ("));
                return;
            }
            std::vector<float> buffer(100, 1);
            const SteadyTime start = std::chrono::steady_clock::now();
            SteadyTime earliest = first;
            while (start < earliest && !first.compare_exchange_weak(earliest, start)) {
            }
            const auto work = communicator.call(allReduceOf(buffer), blocking(milliseconds(250)));
            EXPECT_GE(since(first), milliseconds(249));
            EXPECT_LT(since(start), milliseconds(1000));
            EXPECT_EQ(work->status().code(), Status::Code::kTimeout) << work->status().what();
            EXPECT_THAT(work->status().what(),
                        AllOf(HasSubstr("all_reduce #1 on \"dp\""), HasSubstr("rank 1 ("),
                              HasSubstr("250 ms"), HasSubstr("not entered")));
            EXPECT_THAT(work->status().what(), testing::Not(HasSubstr("rank 3 (nobody")));
        },
        named("dp"));
}

TEST_P(Absence, ShorterThanTheLimitDoesNoHarm) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        if (rank == 1) std::this_thread::sleep_for(milliseconds(300));
        EXPECT_TRUE(sums(communicator));
        EXPECT_TRUE(communicator.failure().ok());
    });
}

TEST_P(Absence, OfARankThatLeftInOrderIsNamedAtOnce) {
    LocalJob job(GetParam());
    CommunicatorConfig config = named("dp");
    job.run(
        [](Rank rank, Communicator& communicator) {
            auto part = communicator.split(0, 0, named("part"));
            ASSERT_TRUE(part.ok());
            EXPECT_TRUE(sums(**part));
            if (rank == 1) {
                part->reset();
                EXPECT_TRUE(sums(communicator));
                return;
            }
            EXPECT_TRUE(sums(communicator));
            std::vector<float> buffer(100, 1);
            const auto start = std::chrono::steady_clock::now();
            const auto work = (*part)->call(allReduceOf(buffer), blocking());
            EXPECT_LT(since(start), milliseconds(1000));
            EXPECT_EQ(work->status().code(), Status::Code::kPeerLost) << work->status().what();
            EXPECT_THAT(work->status().what(), HasSubstr("rank 1 ("));
        },
        config);
}

// The others wait in a call already when it leaves.
TEST_P(Absence, OfARankThatLeavesDuringACallIsNamedAtOnce) {
    LocalJob job(GetParam());
    job.run(
        [](Rank rank, Communicator& communicator) {
            EXPECT_TRUE(sums(communicator));
            if (rank == 1) {
                std::this_thread::sleep_for(milliseconds(120));
                return;
            }
            std::vector<float> buffer(100, 1);
            const auto start = std::chrono::steady_clock::now();
            const auto work = communicator.call(allReduceOf(buffer), blocking());
            EXPECT_GE(since(start), milliseconds(80));
            EXPECT_LT(since(start), milliseconds(1500));
            EXPECT_EQ(work->status().code(), Status::Code::kPeerLost) << work->status().what();
            EXPECT_THAT(work->status().what(),
                        AllOf(HasSubstr("all_reduce #1 on \"dp\""), HasSubstr("rank 1 ("),
                              HasSubstr("has left the communicator")));
        },
        named("dp"));
}

// Two ranks that leave, one that waits for them: by name, from anybody, and to send.
TEST_P(Absence, OfARankThatLeftEndsTransfersAtOnce) {
    const auto expectFails = [](Communicator& communicator, const std::shared_ptr<Work>& work,
                                const std::string& text) {
        const auto start = std::chrono::steady_clock::now();
        EXPECT_EQ(endOf(communicator, work).code(), Status::Code::kPeerLost);
        EXPECT_LT(since(start), milliseconds(1000));
        EXPECT_THAT(work->status().what(), HasSubstr(text));
    };
    for (const bool isMet : {true, false}) {  // with connections, without
        for (int way = 0; way < 4; ++way) {
            LocalJob job(GetParam(), {}, LocalJob::Wires::kReal);
            job.run(
                [&](Rank rank, Communicator& communicator) {
                    if (isMet) {
                        EXPECT_TRUE(sums(communicator));
                    }
                    if (rank != 0) {
                        std::this_thread::sleep_for(milliseconds(way == 3 ? 0 : 60));
                        return;
                    }
                    if (way == 3) std::this_thread::sleep_for(milliseconds(60));
                    std::vector<float> buffer(way == 2 ? 1 << 20 : 10, 1);
                    if (way == 2) {
                        expectFails(communicator, communicator.transfer(sendOf(buffer, 1, 3), {}),
                                    "rank 1 (");
                    } else if (way == 1) {
                        expectFails(communicator, communicator.transfer(recvOf(buffer, -1, 3), {}),
                                    "all other ranks have left the communicator");
                    } else {
                        expectFails(communicator, communicator.transfer(recvOf(buffer, 1, 3), {}),
                                    "recv tag 3 on \"dp\": rank 1 (");
                    }
                },
                named("dp"));
        }
    }
}

TEST_P(Absence, OfARankThatLeftDoesNotLoseWhatItSentBefore) {
    LocalJob job(GetParam(), {}, LocalJob::Wires::kReal);
    job.run([](Rank rank, Communicator& communicator) {
        if (rank > 1) return;
        std::vector<float> buffers[2] = {std::vector<float>(10, 5), std::vector<float>(10, 6)};
        if (rank == 1) {
            for (auto& buffer : buffers)
                EXPECT_TRUE(
                    endOf(communicator, communicator.transfer(sendOf(buffer, 0, 3), {})).ok());
            return;
        }
        for (auto& buffer : buffers) {
            std::this_thread::sleep_for(milliseconds(100));
            std::vector<float> arrived(10, 0);
            EXPECT_TRUE(endOf(communicator, communicator.transfer(recvOf(arrived, 1, 3), {})).ok());
            EXPECT_EQ(arrived, buffer);
        }
    });
}

TEST_P(Absence, EndsWhenAnotherThreadAborts) {
    LocalJob job(GetParam());
    job.run(
        [](Rank rank, Communicator& communicator) {
            if (rank == 1) {
                std::this_thread::sleep_for(milliseconds(400));
                return;
            }
            std::thread second;
            if (rank == 0) {
                second = std::thread([&] {
                    std::this_thread::sleep_for(milliseconds(100));
                    communicator.abort(Status::aborted("given up by hand"));
                });
            }
            std::vector<float> buffer(100, 1);
            const auto start = std::chrono::steady_clock::now();
            const auto work = communicator.call(allReduceOf(buffer), blocking());
            EXPECT_LT(since(start), milliseconds(1000));
            EXPECT_EQ(work->status().code(), Status::Code::kAborted);
            EXPECT_THAT(work->status().what(), HasSubstr("given up by hand"));
            if (second.joinable()) second.join();
        },
        named("dp"));
}

// HANG-05, https://github.com/pytorch/pytorch/issues/132696: an end that waits says for whom, ends
// by the timeout, and then with the error.
TEST_P(Absence, IsNamedByAnEndThatWaits) {
    testing::internal::CaptureStderr();
    LocalJob job(GetParam());
    job.run(
        [](Rank rank, Communicator& communicator) {
            if (rank == 2) {
                std::this_thread::sleep_for(milliseconds(1600));
                return;
            }
            std::vector<float> buffer(100, 1);
            const auto work = communicator.call(allReduceOf(buffer), {});
            const auto start = std::chrono::steady_clock::now();
            const Status flushed = communicator.flush();
            EXPECT_LT(since(start), milliseconds(1500));
            EXPECT_EQ(flushed.code(), Status::Code::kTimeout) << flushed.what();
            EXPECT_THAT(flushed.what(), HasSubstr("rank 2 ("));
            EXPECT_EQ(work->status().what(), flushed.what());
            EXPECT_TRUE(communicator.flush().ok()) << "nothing is in flight any more";
        },
        named("dp", milliseconds(800)));
    EXPECT_THAT(
        testing::internal::GetCapturedStderr(),
        AllOf(HasSubstr("the end of \"dp\" waits for all_reduce #0 on \"dp\" and in it for"),
              HasSubstr("rank 2 (")));
}

TEST(Failure, LeavesOtherCommunicatorsAlone) {
    LocalJob job({0, 0, 1});
    job.run([](Rank, Communicator& communicator) {
        auto part = communicator.split(0, 0, {});
        ASSERT_TRUE(part.ok());
        EXPECT_TRUE(sums(**part));
        EXPECT_TRUE(sums(communicator));  // all are through with it
        (*part)->abort(Status::aborted("enough"));
        EXPECT_FALSE(sums(**part));
        part->reset();
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(sums(communicator));
    });
}

TEST(Failure, EndsEveryCallInFlightWithTheFirstCause) {
    LocalJob job({0, 0, 1});
    job.run(
        [](Rank rank, Communicator& communicator) {
            if (rank == 2) return;  // never comes
            std::vector<std::vector<float>> buffers(20, std::vector<float>(5000, 1));
            std::vector<std::shared_ptr<Work>> works;
            for (auto& buffer : buffers)
                works.push_back(communicator.call(allReduceOf(buffer), {}));
            for (const auto& work : works) {
                EXPECT_FALSE(endOf(communicator, work).ok());
                EXPECT_EQ(work->status().what(), communicator.failure().what());
            }
        },
        named("dp", milliseconds(300)));
}

}  // namespace
}  // namespace isthmus::test
