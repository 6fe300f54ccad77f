// The C++ forms of what the C header has, over a world of one.
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <vector>

#include <isthmus/communicator.hpp>

namespace isthmus {
namespace {

Communicator alone() {
    auto made =
        Communicator::withAllGather(1, 0, [](const void* send, void* receive, std::size_t bytes) {
            std::memcpy(receive, send, bytes);
            return true;
        });
    EXPECT_TRUE(made.ok()) << made.status().what();
    return std::move(*made);
}

TEST(Wrapper, GathersAndScattersBlocksThatLieAnywhere) {
    const Communicator communicator = alone();
    const std::vector<std::complex<float>> input = {{1, 2}, {3, 4}};
    std::vector<std::complex<float>> output(4);
    const Blocks blocks{{2}, {1}};
    EXPECT_TRUE(communicator.blocking().gather(input, output, blocks, 0).ok());
    EXPECT_EQ(output, (std::vector<std::complex<float>>{{}, {1, 2}, {3, 4}, {}}));
    std::vector<std::complex<float>> back(2);
    EXPECT_TRUE(communicator.blocking().scatter(output, blocks, back, 0).ok());
    EXPECT_EQ(back, input);
    const Blocks outside{{2}, {3}};
    EXPECT_EQ(communicator.blocking().gather(input, output, outside, 0).what(),
              "gather: output has 4 elements, the block of rank 0 is 2 from 3");
    const Blocks nobody{{}, {}};
    EXPECT_EQ(communicator.blocking().scatter(output, nobody, back, 0).what(),
              "scatter: input needs one count for each of 1 ranks");
}

TEST(Wrapper, StartsPersistentCallsAgain) {
    const Communicator communicator = alone();
    std::vector<float> input(2);
    std::vector<float> output(2);
    const Result<PremulSum> half = communicator.premulSum(0.5f);
    ASSERT_TRUE(half.ok());
    Work work = communicator.allReduce(input, output, half->op(), {.isPersistent = true});
    for (const float value : {2.0f, 6.0f}) {
        input.assign(2, value);
        ASSERT_TRUE(work.start().ok());
        ASSERT_TRUE(work.wait().ok());
        EXPECT_EQ(output, std::vector<float>(2, value / 2));
    }
    Work once = communicator.allReduce(input, output);
    EXPECT_EQ(once.start().code(), Status::Code::kInvalidArgument);
    EXPECT_TRUE(once.wait().ok());
    EXPECT_FALSE(communicator.premulSum(2).ok());
}

TEST(Wrapper, TakesFunctionsOfTheProgramAsReductions) {
    const Communicator communicator = alone();
    int calls = 0;
    const auto larger = [&calls](float a, float b) {
        ++calls;
        return a > b ? a : b;
    };
    using Largest = Reduction<float>;
    Result<Largest> largest =
        communicator.reduction<float>("larger", larger, Largest::Commutes::kYes);
    ASSERT_TRUE(largest.ok());
    const std::vector<float> input = {1, 2};
    std::vector<float> output(2);
    EXPECT_TRUE(communicator.blocking().allReduce(input, output, largest->op()).ok());
    EXPECT_EQ(output, input);
    EXPECT_EQ(calls, 0);  // a rank alone combines nothing
    {
        const Largest moved = std::move(*largest);
        EXPECT_TRUE(communicator.blocking().allReduce(input, output, moved.op()).ok());
    }
    EXPECT_FALSE(communicator.blocking().allReduce(input, output, largest->op()).ok());
}

TEST(Wrapper, KnowsHowAPersistentCallEndedInsideAWaitWithALimit) {
    const Communicator communicator = alone();
    std::vector<int> into(1);
    Work receive = communicator.recv(
        into, 0, 0, {.timeout = std::chrono::milliseconds(80), .isPersistent = true});
    ASSERT_TRUE(receive.start().ok());
    EXPECT_EQ(receive.wait(std::chrono::milliseconds(5)).code(), Status::Code::kTimeout);
    EXPECT_TRUE(receive.status().ok()) << "it goes on: " << receive.status().what();
    const Status failed = receive.wait(std::chrono::milliseconds(5000));
    EXPECT_EQ(failed.code(), Status::Code::kTimeout);
    EXPECT_NE(failed.what().find("80 ms"), std::string::npos) << failed.what();
    EXPECT_EQ(receive.status().what(), failed.what());
}

TEST(Wrapper, TakesReceivesBack) {
    const Communicator communicator = alone();
    std::vector<int> into(1, -1);
    Work receive = communicator.recv(into, 0);
    EXPECT_TRUE(receive.cancel().ok());
    EXPECT_EQ(receive.wait().code(), Status::Code::kAborted);
    EXPECT_EQ(into, std::vector<int>{-1});
}

}  // namespace
}  // namespace isthmus
