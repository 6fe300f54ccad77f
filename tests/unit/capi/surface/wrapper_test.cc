// The C++ headers, by a program that sees nothing else.
#include <gmock/gmock.h>
#include <isthmus/communicator.hpp>

#include <array>
#include <chrono>
#include <numeric>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

static_assert(DataTypeOf<char>::value == DataType::kInt8);
static_assert(DataTypeOf<unsigned char>::value == DataType::kUint8);
static_assert(DataTypeOf<short>::value == DataType::kInt16);
static_assert(DataTypeOf<unsigned>::value == DataType::kUint32);
static_assert(DataTypeOf<long>::value == DataType::kInt64);
static_assert(DataTypeOf<long long>::value == DataType::kInt64);
static_assert(DataTypeOf<unsigned long>::value == DataType::kUint64);
static_assert(DataTypeOf<bool>::value == DataType::kBool);
static_assert(Buffer<std::vector<float>> && Buffer<std::span<const int>> && Buffer<double[3]>);
// A call that is only started must find its buffers when it gets to them.
static_assert(GivenBuffer<std::vector<int>&, true> && GivenBuffer<std::span<int>, true>);
static_assert(!GivenBuffer<std::vector<int>, true> && GivenBuffer<std::vector<int>, false>);
static_assert(GivenBufferList<std::vector<std::span<int>>, true>);
static_assert(!GivenBufferList<std::vector<std::vector<int>>, true>);
static_assert(GivenBufferList<std::vector<std::vector<int>>&, true>);
static_assert(!Buffer<std::vector<std::string>> && !Buffer<float> && !Buffer<ReduceOp>);
static_assert(WritableBuffer<std::array<int, 2>> && !WritableBuffer<std::span<const int>>);
static_assert(!std::is_copy_constructible_v<Communicator> && !std::is_copy_constructible_v<Work>);
static_assert(std::is_nothrow_move_constructible_v<Communicator>);

// The C and the C++ names mean the same numbers.
static_assert(static_cast<int>(DataType::kBfloat16) == isthmusBfloat16);
static_assert(static_cast<int>(DataType::kBool) == isthmusBool);
static_assert(static_cast<int>(ReduceOp::kAvg) == isthmusAvg);
static_assert(static_cast<int>(ReduceOp::kBxor) == isthmusBxor);
static_assert(static_cast<int>(Status::Code::kUnsupported) == isthmusUnsupported);
static_assert(static_cast<int>(Status::Code::kInternal) == isthmusInternalError);

class Wrapper : public ::testing::Test {
protected:
    void SetUp() override {
        auto made =
            Communicator::fromEnvironment({.name = "wrapped", .timeout = std::chrono::seconds(10)});
        ASSERT_TRUE(made.ok()) << made.status().what();
        communicator_.emplace(std::move(*made));
    }
    Communicator& communicator() { return *communicator_; }
    Collectives<Status> blocking() { return communicator_->blocking(); }

    std::vector<int> in{1, 2, 3};
    std::vector<int> out{0, 0, 0};

private:
    std::optional<Communicator> communicator_;
};

TEST_F(Wrapper, SaysWhoItIs) {
    EXPECT_EQ(communicator().rank(), 0);
    EXPECT_EQ(communicator().ranks(), 1);
    const auto nodes = communicator().nodes();
    ASSERT_TRUE(nodes.ok()) << nodes.status().what();
    EXPECT_THAT(*nodes, ElementsAre(0));
    EXPECT_TRUE(communicator().failure().ok());
    const auto counters = communicator().wireCounters();
    ASSERT_TRUE(counters.ok());
    EXPECT_EQ(counters->sentTotal, 0U);
}

TEST_F(Wrapper, BlockingCallsAreDoneWhenTheyReturn) {
    const auto expectCopied = [&](const Status& status, const char* what) {
        EXPECT_TRUE(status.ok()) << what << ": " << status.what();
        EXPECT_THAT(out, ElementsAre(1, 2, 3)) << what;
        out.assign(3, 0);
    };
    expectCopied(blocking().allReduce(in, out), "all-reduce");
    expectCopied(blocking().allReduce(std::span<const int>(in), std::span(out), ReduceOp::kMax),
                 "all-reduce of spans");
    expectCopied(blocking().reduce(in, out, ReduceOp::kSum, 0), "reduce");
    expectCopied(blocking().allGather(in, out), "all-gather");
    expectCopied(blocking().reduceScatter(in, out), "reduce-scatter");
    expectCopied(blocking().allToAll(in, out), "all-to-all");
    expectCopied(blocking().gather(in, out, 0), "gather");
    expectCopied(blocking().scatter(in, out, 0), "scatter");
    expectCopied(blocking().allGather(in, out, Blocks{{3}, {}}), "all-gather v");
    expectCopied(blocking().reduceScatter(in, out, std::vector<std::size_t>{3}),
                 "reduce-scatter v");
    expectCopied(blocking().allToAll(in, Blocks{{3}, {}}, out, Blocks{{3}, {0}}), "all-to-all v");
    EXPECT_TRUE(blocking().broadcast(in, 0).ok());
    EXPECT_TRUE(blocking().barrier().ok());
    EXPECT_THAT(in, ElementsAre(1, 2, 3));
}

TEST_F(Wrapper, StartedCallsAreDoneWhenTheirWorkIs) {
    Work reduced = communicator().allReduce(in, out);
    ASSERT_TRUE(reduced.wait().ok()) << reduced.status().what();
    EXPECT_TRUE(reduced.test());
    EXPECT_EQ(reduced.source(), -1);
    EXPECT_THAT(out, ElementsAre(1, 2, 3));
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) works.push_back(communicator().allReduce(in));
    works.push_back(communicator().barrier({.priority = 3, .name = "last"}));
    for (Work& work : works) EXPECT_TRUE(work.wait().ok()) << work.status().what();
    EXPECT_THAT(in, ElementsAre(1, 2, 3));
}

TEST_F(Wrapper, WrongSizesStartNothing) {
    std::vector<int> four(4);
    std::vector<int> none;
    const auto expectRefused = [](const Status& status, const char* text) {
        EXPECT_EQ(status.code(), Status::Code::kInvalidArgument);
        EXPECT_THAT(status.what(), HasSubstr(text));
    };
    expectRefused(blocking().allReduce(in, four), "all_reduce: output has 4 elements, needed 3");
    expectRefused(communicator().allReduce(in, four).wait(), "all_reduce: output has 4");
    expectRefused(blocking().allGather(in, four), "all_gather: output has 4 elements, needed 3");
    expectRefused(blocking().reduceScatter(in, four), "reduce_scatter: input has 3");
    expectRefused(blocking().allToAll(in, four), "all_to_all: output has 4");
    expectRefused(blocking().gather(in, none, 0), "gather: output has 0");
    expectRefused(blocking().scatter(none, out, 0), "scatter: input has 0");
    expectRefused(blocking().reduce(in, none, ReduceOp::kSum, 0), "reduce: output has 0");
    expectRefused(blocking().allGather(in, out, Blocks{{3, 3}, {}}), "one count for each of 1");
    expectRefused(blocking().allGather(in, out, Blocks{{3}, {1}}), "block of rank 0 is 3 from 1");
    expectRefused(blocking().allToAll(in, Blocks{{4}, {}}, out, Blocks{{4}, {}}), "input has 3");
    expectRefused(blocking().allReduce(in, out, ReduceOp::kAvg), "avg is not defined on i32");
}

TEST_F(Wrapper, WrongListsStartNothing) {
    const auto expectRefused = [](const Status& status, const char* text) {
        EXPECT_EQ(status.code(), Status::Code::kInvalidArgument);
        EXPECT_THAT(status.what(), HasSubstr(text));
    };
    std::vector<std::vector<int>> two = {{1}, {2, 3}};
    std::vector<std::vector<int>> one = {{1}};
    std::vector<std::vector<int>> other = {{1}, {2}};
    expectRefused(blocking().allReduceCoalesced(two, one), "all_reduce: 2 inputs, 1 outputs");
    expectRefused(communicator().allGatherCoalesced(two, other).wait(),
                  "all_gather: tensor 1: output has 1 elements, needed 2");
    expectRefused(blocking().allReduceCoalesced(two, ReduceOp::kAvg), "avg is not defined on i32");
    expectRefused(blocking().broadcastCoalesced(two, 1), "root");
    const Neighbors self{{0}, {0, 0}};
    expectRefused(blocking().neighborAllToAll(in, out, self), "input has 3 elements, needed 2");
    expectRefused(blocking().neighborAllToAll(in, Blocks{{3}, {}}, out, Blocks{{3}, {}}, self),
                  "input needs one count for each of 2 destinations");
    expectRefused(blocking().neighborAllToAll(in, Blocks{{1, 2}, {}}, out, Blocks{{2}, {2}}, self),
                  "output has 3 elements, the block of source 0 is 2 from 2");
    expectRefused(blocking().neighborAllToAll(in, out, Neighbors{{1}, {0}}), "1");
}

TEST_F(Wrapper, MessagesToItself) {
    Work receive = communicator().recv(out, kAnySource, 5);
    EXPECT_FALSE(receive.test());
    EXPECT_EQ(receive.wait(std::chrono::milliseconds(1)).code(), Status::Code::kTimeout);
    ASSERT_TRUE(blocking().send(in, 0, 5).ok());
    ASSERT_TRUE(receive.wait().ok()) << receive.status().what();
    EXPECT_EQ(receive.source(), 0);
    EXPECT_THAT(out, ElementsAre(1, 2, 3));

    const std::array last{9, 8, 7};
    Work send = communicator().send(last, 0);
    const Result<Rank> source = blocking().recv(out, kAnySource);
    ASSERT_TRUE(source.ok()) << source.status().what();
    EXPECT_EQ(*source, 0);
    EXPECT_TRUE(send.wait().ok());
    EXPECT_THAT(out, ElementsAre(9, 8, 7));
}

TEST_F(Wrapper, GroupsLetBlockingCallsMeet) {
    CallGroup group;
    EXPECT_TRUE(blocking().send(in, 0).ok());
    EXPECT_TRUE(blocking().recv(out.data(), 3, DataType::kInt32, 0).ok());
    ASSERT_TRUE(group.end().ok());
    EXPECT_TRUE(group.end().ok()) << "ends once";
    EXPECT_THAT(out, ElementsAre(1, 2, 3));
}

TEST_F(Wrapper, CallbacksOutliveTheirWork) {
    std::atomic<int> calls{0};
    {
        Work receive = communicator().recv(out, kAnySource, 5);
        ASSERT_TRUE(
            receive.onComplete([&calls](const Status& status) { calls += status.ok() ? 1 : 100; })
                .ok());
    }
    ASSERT_TRUE(blocking().send(in, 0, 5).ok());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (calls == 0 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(calls, 1);
    ASSERT_TRUE(Work().onComplete([&calls](const Status&) { ++calls; }).ok());
    EXPECT_EQ(calls, 2) << "a done Work calls at once";
}

TEST_F(Wrapper, AbortNamesTheCause) {
    Work receive = communicator().recv(out, 0, 5);
    ASSERT_TRUE(communicator().abort("the loss is not a number").ok());
    EXPECT_EQ(receive.wait().code(), Status::Code::kAborted);
    EXPECT_EQ(communicator().failure().code(), Status::Code::kAborted);
    EXPECT_THAT(communicator().failure().what(),
                testing::EndsWith("was aborted by rank 0: the loss is not a number"));
    EXPECT_EQ(blocking().barrier().code(), Status::Code::kAborted);
}

TEST_F(Wrapper, SplitsAndMoves) {
    auto child = communicator().split(0, 0);
    ASSERT_TRUE(child.ok()) << child.status().what();
    ASSERT_TRUE(child->has_value());
    Communicator moved = std::move(**child);
    EXPECT_TRUE(moved.blocking().barrier().ok());
    EXPECT_TRUE(moved.close().ok());
    const auto none = communicator().split(-1, 0);
    ASSERT_TRUE(none.ok()) << none.status().what();
    EXPECT_FALSE(none->has_value());
}

TEST_F(Wrapper, OptionsThatCannotBe) {
    const CommunicatorOptions twoRanks{.globalRanks = {0, 1}};
    EXPECT_EQ(Communicator::fromEnvironment(twoRanks).status().code(),
              Status::Code::kInvalidArgument);
    const auto gather = [](const void*, void*, std::size_t) { return true; };
    EXPECT_THAT(Communicator::withAllGather(1, 0, gather, twoRanks).status().what(),
                HasSubstr("2 global ranks for 1 ranks"));
    EXPECT_EQ(Communicator::withAllGather(1, 0, {}).status().code(),
              Status::Code::kInvalidArgument);
    EXPECT_EQ(Communicator::withAllGather(1, 1, gather).status().code(),
              Status::Code::kInvalidArgument);
}

TEST_F(Wrapper, MemoryHasOneOwner) {
    auto array = Arena::allocate<double>(5);
    ASSERT_TRUE(array.ok()) << array.status().what();
    EXPECT_EQ(std::accumulate(array->get(), array->get() + 5, 0.0), 0.0);
    EXPECT_EQ(Arena::allocate<double>(SIZE_MAX / 4).status().code(),
              Status::Code::kInvalidArgument);
    EXPECT_EQ(Arena::allocate<char>(SIZE_MAX / 4).status().code(), Status::Code::kResource);

    ArenaVector<float> vector(3, 2.0F);
    vector.resize(1000, 2.0F);
    ArenaVector<float> reduced(1000);
    ASSERT_TRUE(blocking().allReduce(vector, reduced).ok());
    EXPECT_EQ(vector, reduced);
    EXPECT_THROW(ArenaAllocator<char>().allocate(SIZE_MAX / 4), std::bad_alloc);
}

}  // namespace
}  // namespace isthmus
