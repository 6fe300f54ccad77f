#include "comm/bootstrap/job_key.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/base/unique_fd.hpp"
#include "comm/bootstrap/authenticate.hpp"

namespace isthmus {
namespace {

constexpr const char* kHex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

std::string hexOf(std::span<const std::byte> data) {
    std::string text;
    for (const std::byte value : data) {
        constexpr const char* kDigits = "0123456789abcdef";
        text += kDigits[std::to_integer<int>(value) >> 4];
        text += kDigits[std::to_integer<int>(value) & 15];
    }
    return text;
}

class KeyFile : public ::testing::Test {
protected:
    void SetUp() override {
        char pattern[] = "/tmp/isthmus-key-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string write(const std::string& text, mode_t mode) {
        const std::string path = folder_ + "/key";
        std::ofstream(path) << text;
        ::chmod(path.c_str(), mode);
        return path;
    }
    std::string folder_;
};

TEST(JobKey, HexGoesBothWays) {
    const auto key = JobKey::fromHex(std::string(" ") + kHex + "\n");
    ASSERT_TRUE(key.ok());
    EXPECT_EQ(key->bytes[31], std::byte{31});
    EXPECT_EQ(key->hex(), kHex);
    EXPECT_FALSE(JobKey::fromHex("00").ok());
    EXPECT_FALSE(JobKey::fromHex(std::string(63, '0') + "g").ok());
}

TEST(JobKey, RandomKeysDiffer) {
    std::set<std::string> keys;
    for (int i = 0; i < 16; ++i) keys.insert((*JobKey::random()).hex());
    EXPECT_EQ(keys.size(), 16u);
}

TEST(JobKey, DescriptorIsReadTwiceAndStaysOpen) {
    const auto key = *JobKey::random();
    const auto fd = key.toInheritableDescriptor();
    ASSERT_TRUE(fd.ok());
    const UniqueFd owner(*fd);
    EXPECT_EQ(::fcntl(*fd, F_GETFD) & FD_CLOEXEC, 0);
    for (int i = 0; i < 2; ++i) {
        const auto read = readJobKey(std::to_string(*fd), "");
        ASSERT_TRUE(read.ok()) << read.status().what();
        ASSERT_TRUE(read->has_value());
        EXPECT_EQ(**read, key);
    }
    EXPECT_LT(::pwrite(*fd, "x", 1, 0), 0) << "sealed";
}

TEST(JobKey, DescriptorMayBeAPipe) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], kHex, 64), 64);
    ::close(ends[1]);
    const UniqueFd owner(ends[0]);
    const auto key = JobKey::fromDescriptor(ends[0]);
    ASSERT_TRUE(key.ok()) << key.status().what();
    EXPECT_EQ(key->hex(), kHex);
}

TEST(JobKey, WrongDescriptorsAreConfigurationErrors) {
    for (const char* text : {"999", "-1", "x", "3x"}) {
        const auto read = readJobKey(text, "");
        ASSERT_FALSE(read.ok()) << text;
        EXPECT_EQ(read.status().code(), Status::Code::kConfiguration) << text;
        EXPECT_NE(read.status().what().find("ISTHMUS_JOB_KEY_FD"), std::string::npos);
    }
    const auto none = readJobKey("", "");
    ASSERT_TRUE(none.ok());
    EXPECT_FALSE(none->has_value());
}

TEST_F(KeyFile, IsReadWhenItIsOursAlone) {
    const auto key = JobKey::fromFile(write(std::string(kHex) + "\n", 0600));
    ASSERT_TRUE(key.ok()) << key.status().what();
    EXPECT_EQ(key->hex(), kHex);
}

TEST_F(KeyFile, IsRefusedWhenOthersCanReadIt) {
    for (const mode_t mode : {0640, 0604, 0660, 0610}) {
        const auto key = JobKey::fromFile(write(kHex, mode));
        ASSERT_FALSE(key.ok()) << mode;
        EXPECT_EQ(key.status().code(), Status::Code::kConfiguration);
        EXPECT_NE(key.status().what().find("expected mode 0600"), std::string::npos);
    }
}

TEST_F(KeyFile, IsRefusedWhenItIsALinkOrOfAWrongLength) {
    const std::string path = write(std::string(200, 'a'), 0600);
    EXPECT_FALSE(JobKey::fromFile(path).ok());
    const std::string link = folder_ + "/link";
    ASSERT_EQ(::symlink(write(kHex, 0600).c_str(), link.c_str()), 0);
    EXPECT_FALSE(JobKey::fromFile(link).ok());
    EXPECT_FALSE(JobKey::fromFile(folder_).ok());
    EXPECT_FALSE(JobKey::fromFile(folder_ + "/none").ok());
}

// Computed with Python: hmac.new(bytes(range(32)), b"what do ya want for nothing?", "sha256").
TEST(Authenticate, HmacAgreesWithAnotherImplementation) {
    const auto key = *JobKey::fromHex(kHex);
    const Bytes whole = toBytes("what do ya want for nothing?");
    const Bytes first = toBytes("what do ya ");
    const Bytes second = toBytes("want for nothing?");
    const char* expected = "099805f4ac310786968565c098db515cc50862b420ae31e20238312344bed36a";
    EXPECT_EQ(hexOf(hmacSha256(key, {whole})), expected);
    EXPECT_EQ(hexOf(hmacSha256(key, {first, second})), expected);
}

TEST(Authenticate, ProofsDependOnKeyLabelAndTranscript) {
    const auto key = *JobKey::fromHex(kHex);
    const auto other = JobKey::derivedFrom("other");
    const Bytes said = toBytes("nonces");
    std::set<std::string> proofs = {
        hexOf(proofOf(key, "server", said)), hexOf(proofOf(key, "client", said)),
        hexOf(proofOf(other, "server", said)), hexOf(proofOf(key, "server", toBytes("nonce"))),
        hexOf(proofOf(key, "serverno", toBytes("nces")))};
    EXPECT_EQ(proofs.size(), 5u);
    EXPECT_EQ(proofOf(key, "server", said), proofOf(key, "server", said));
}

TEST(Authenticate, ComparesLengthsToo) {
    EXPECT_TRUE(isEqualInConstantTime(toBytes("abc"), toBytes("abc")));
    EXPECT_FALSE(isEqualInConstantTime(toBytes("abc"), toBytes("abd")));
    EXPECT_FALSE(isEqualInConstantTime(toBytes("abc"), toBytes("ab")));
}

/// exit() while other threads make proofs, as a store's thread does when its rank fails.
[[noreturn]] void exitWhileOthersMakeProofs() {
    if (!prepareAuthentication().ok()) std::_Exit(1);
    std::atomic<int> busy{0};
    for (int i = 0; i < 3; ++i) {
        std::thread([&busy] {
            for (int round = 0;; ++round) {
                (void)hmacSha256(JobKey{}, {});
                (void)makeNonce();
                if (round == 0) ++busy;
            }
        }).detach();
    }
    while (busy < 3) std::this_thread::yield();
    std::exit(7);
}

TEST(AuthenticationDeathTest, ThreadsThatOutliveMainDoNotCrashTheEnd) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "ThreadSanitizer of clang 14 does not see pthread_rwlock_clockwrlock(3), by "
                    "which the end waits for these threads, and reports each of them";
#endif
#endif
    for (int i = 0; i < 5; ++i) {
        EXPECT_EXIT(exitWhileOthersMakeProofs(), testing::ExitedWithCode(7), "");
    }
}

}  // namespace
}  // namespace isthmus
