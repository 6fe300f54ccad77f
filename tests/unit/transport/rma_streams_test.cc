#include "comm/transport/rma/rma_streams.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace isthmus {
namespace {

Bytes bytesOf(const char* text) {
    const auto raw = std::as_bytes(std::span(text, std::strlen(text)));
    return {raw.begin(), raw.end()};
}

std::string readAll(RmaIn& in) {
    std::string text(64, ' ');
    const iovec pieces[] = {{text.data(), 3}, {text.data() + 3, 61}};
    text.resize(in.readSome(pieces).bytes);
    return text;
}

TEST(RmaIn, PutsMessagesInOrder) {
    RmaIn in;
    for (const auto& [sequence, text] :
         {std::pair{2, "two "}, {1, "one "}, {4, "four "}, {0, "zero "}, {3, "three "}}) {
        const Bytes message = bytesOf(text);
        ASSERT_TRUE(in.lend(static_cast<std::uint64_t>(sequence), message).ok());
        in.keep();
    }
    EXPECT_EQ(readAll(in), "zero one two three four ");
    EXPECT_FALSE(in.hasBytes());
}

TEST(RmaIn, ReadsWhatIsLentBehindWhatIsKept) {
    RmaIn in;
    const Bytes first = bytesOf("abcd");
    const Bytes second = bytesOf("efgh");
    ASSERT_TRUE(in.lend(0, first).ok());
    std::string text(2, ' ');
    const iovec piece{text.data(), 2};
    EXPECT_EQ(in.readSome(std::span(&piece, 1)).bytes, 2U);
    in.keep();
    ASSERT_TRUE(in.lend(1, second).ok());
    EXPECT_EQ(text, "ab");
    EXPECT_EQ(readAll(in), "cdefgh");
    in.keep();
    EXPECT_FALSE(in.hasBytes());
}

TEST(RmaIn, RefusesWhatWasThereAlready) {
    RmaIn in;
    const Bytes message = bytesOf("x");
    ASSERT_TRUE(in.lend(0, message).ok());
    in.keep();
    EXPECT_EQ(in.lend(0, message).code(), Status::Code::kMismatch);
    ASSERT_TRUE(in.lend(2, message).ok());
    EXPECT_EQ(in.lend(2, message).code(), Status::Code::kMismatch);
}

TEST(RmaIn, GivesUpOnAMessageThatDoesNotCome) {
    RmaIn in;
    const Bytes message(1 << 20);
    std::uint64_t sequence = 1;
    while (sequence <= 64) ASSERT_TRUE(in.lend(sequence++, message).ok());
    EXPECT_EQ(in.lend(sequence, message).code(), Status::Code::kMismatch);
}

}  // namespace
}  // namespace isthmus
