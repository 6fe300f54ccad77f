#include "comm/transport/rma/rma_streams.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

std::span<const std::byte> bytesOf(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

class RmaInTest : public testing::Test {
protected:
    Status arrive(std::uint64_t sequence, std::string_view text) {
        return in.arrived(sequence, bytesOf(text), [this](std::span<const std::byte> bytes) {
            taken.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            return taken.find('!') == std::string::npos ? Status() : Status::peerLost("enough");
        });
    }

    RmaIn in;
    std::string taken;
};

TEST_F(RmaInTest, PutsMessagesInOrder) {
    ASSERT_TRUE(arrive(2, "two ").ok());
    ASSERT_TRUE(arrive(1, "one ").ok());
    ASSERT_TRUE(arrive(4, "four ").ok());
    EXPECT_EQ(taken, "");
    ASSERT_TRUE(arrive(0, "zero ").ok());
    EXPECT_EQ(taken, "zero one two ");
    ASSERT_TRUE(arrive(3, "three ").ok());
    ASSERT_TRUE(arrive(5, "five").ok());
    EXPECT_EQ(taken, "zero one two three four five");
}

TEST_F(RmaInTest, StopsAtAPayloadThatIsRefused) {
    ASSERT_TRUE(arrive(1, "one!").ok());
    ASSERT_TRUE(arrive(2, "two").ok());
    EXPECT_EQ(arrive(0, "zero ").code(), Status::Code::kPeerLost);
    EXPECT_EQ(taken, "zero one!");
}

TEST_F(RmaInTest, RefusesWhatWasThereAlready) {
    ASSERT_TRUE(arrive(0, "x").ok());
    EXPECT_EQ(arrive(0, "x").code(), Status::Code::kMismatch);
    ASSERT_TRUE(arrive(2, "x").ok());
    EXPECT_EQ(arrive(2, "x").code(), Status::Code::kMismatch);
    EXPECT_EQ(taken, "x");
}

TEST_F(RmaInTest, GivesUpOnAMessageThatDoesNotCome) {
    const std::string message(1 << 20, 'x');
    std::uint64_t sequence = 1;
    while (sequence <= 64) ASSERT_TRUE(arrive(sequence++, message).ok());
    EXPECT_EQ(arrive(sequence, message).code(), Status::Code::kMismatch);
}

}  // namespace
}  // namespace isthmus
