// Random arguments, mostly wrong ones, from a fixed seed: every call answers, none harms the
// communicator or the memory around its buffers.
#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <random>

#include "tests/unit/capi/surface/alone.hpp"

namespace isthmus::test {
namespace {

constexpr int kCalls = 20000;
constexpr std::size_t kRoom = 128;  // bytes of a buffer; counts up to 8 of the widest type fit

class Dice {
public:
    template <typename T>
    T one(std::initializer_list<T> values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
    }
    /// Small counts often, absurd ones sometimes.
    size_t count() {
        return one<size_t>({0, 1, 2, 3, 7, 8, SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX - 7});
    }
    int rank() { return one({0, 0, 0, 0, -1, 1, -2, INT_MAX, INT_MIN}); }
    int tag() { return one({0, 0, 1, -1, INT_MIN, INT_MAX}); }
    isthmusDataType_t type() { return static_cast<isthmusDataType_t>(random_() % 19); }  // 17 types
    isthmusRedOp_t op() { return static_cast<isthmusRedOp_t>(random_() % 8); }
    unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

private:
    std::mt19937 random_{20240501};
};

struct Guarded {
    std::array<unsigned char, 64> before;
    alignas(64) std::array<unsigned char, kRoom> bytes;
    std::array<unsigned char, 64> after;

    Guarded() {
        before.fill(0xab);
        bytes.fill(1);
        after.fill(0xab);
    }
    bool isWhole() const {
        const auto intact = [](unsigned char byte) { return byte == 0xab; };
        return std::all_of(before.begin(), before.end(), intact) &&
               std::all_of(after.begin(), after.end(), intact);
    }
};

class RandomArguments : public Alone {
protected:
    isthmusResult_t call(unsigned which, isthmusRequest_t* request) {
        const void* send = dice.below(8) == 0 ? nullptr : in.bytes.data();
        void* receive = dice.below(8) == 0 ? nullptr : out.bytes.data();
        const size_t count = dice.count();
        const size_t other = dice.count();
        const size_t* counts = dice.below(8) == 0 ? nullptr : &count;
        const size_t* others = dice.below(2) == 0 ? &count : &other;
        // With 8 elements of the widest type there is no room behind a displacement: it comes with
        // nothing to move, or with what must be refused.
        const size_t place = count == 0 || count > kRoom ? dice.count() : 0;
        const size_t* places = dice.below(2) == 0 ? nullptr : &place;
        const auto type = dice.type();
        const auto op = dice.op();
        const int rank = dice.rank();
        isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
        options.size = dice.one<size_t>({0, 8, sizeof(options), sizeof(options)});
        options.timeout_ms = dice.one<int64_t>({0, 5, 1000, INT64_MAX, -1});
        options.priority = dice.one({0, 7, 8, -1, INT_MAX});
        options.name = "random";
        const auto* how = dice.below(2) == 0 ? nullptr : &options;
        isthmusComm_t to = dice.below(16) == 0 ? nullptr : comm();
        switch (which) {
        case 0:
            return isthmusAllReduce(send, receive, count, type, op, to, how, request);
        case 1:
            return isthmusBroadcast(send, receive, count, type, rank, to, how, request);
        case 2:
            return isthmusReduce(send, receive, count, type, op, rank, to, how, request);
        case 3:
            return isthmusAllGather(send, receive, count, type, to, how, request);
        case 4:
            return isthmusReduceScatter(send, receive, count, type, op, to, how, request);
        case 5:
            return isthmusAlltoAll(send, receive, count, type, to, how, request);
        case 6:
            return isthmusGather(send, receive, count, type, rank, to, how, request);
        case 7:
            return isthmusScatter(send, receive, count, type, rank, to, how, request);
        case 8:
            return isthmusAllGatherV(send, other, receive, counts, places, type, to, how, request);
        case 9:
            return isthmusReduceScatterV(send, receive, counts, type, op, to, how, request);
        case 10:
            return isthmusAlltoAllV(send, counts, places, receive, others, places, type, to, how,
                                    request);
        case 11:  // never a right one, which would wait for its other half
            return isthmusSend(send, count, type, dice.one({-1, 1, INT_MAX}), dice.tag(), to, how,
                               request);
        case 12:
            return isthmusRecv(receive, count, type, dice.one({-2, 1, INT_MAX}), dice.tag(),
                               nullptr, to, how, request);
        default:
            return isthmusBarrier(to, how, request);
        }
    }

    Dice dice;
    Guarded in;
    Guarded out;
};

TEST_F(RandomArguments, AreAnsweredAndHarmNothing) {
    int succeeded = 0;
    int refused = 0;
    for (int i = 0; i < kCalls; ++i) {
        const unsigned which = dice.below(14);
        isthmusRequest_t request = nullptr;
        const bool isBlocking = dice.below(2) == 0;
        isthmusResult_t result = call(which, isBlocking ? nullptr : &request);
        if (request != nullptr) result = isthmusWait(&request, -1);
        ASSERT_EQ(request, nullptr);
        ASSERT_TRUE(result == isthmusSuccess || result == isthmusInvalidArgument)
            << "call " << i << " of kind " << which << ": " << result << " " << lastError();
        ++(result == isthmusSuccess ? succeeded : refused);
        ASSERT_TRUE(result == isthmusSuccess || !lastError().empty());
        ASSERT_TRUE(in.isWhole() && out.isWhole()) << "call " << i << " of kind " << which;
    }
    // Both kinds must have been tried in earnest.
    EXPECT_GT(succeeded, kCalls / 20);
    EXPECT_GT(refused, kCalls / 4);
}

}  // namespace
}  // namespace isthmus::test
