// Memory of other processes, read where it lies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "comm/memory/peer_read.hpp"

namespace isthmus::test {
namespace {

/// A child that has written `text` into a page of its own and sleeps; ended with the object.
class Child {
public:
    Child() {
        page_ = static_cast<char*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        std::array<int, 2> ready{};
        EXPECT_EQ(::pipe(ready.data()), 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            std::strcpy(page_, "written by the child");
            (void)!::write(ready[1], "1", 1);
            ::alarm(20);
            ::pause();
            ::_exit(0);
        }
        char byte = 0;
        EXPECT_EQ(::read(ready[0], &byte, 1), 1);
        for (const int end : ready) ::close(end);
    }
    ~Child() {
        end();
        ::munmap(page_, kBytes);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    void end() {
        if (pid_ <= 0 || hasEnded_) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        hasEnded_ = true;
    }
    pid_t pid() const { return pid_; }
    const std::byte* page() const { return reinterpret_cast<const std::byte*>(page_); }
    static constexpr std::size_t kBytes = 1 << 16;

private:
    pid_t pid_ = -1;
    bool hasEnded_ = false;
    char* page_ = nullptr;
};

TEST(PeerRead, GetsWhatTheOtherProcessWrote) {
    const Child child;
    std::string text(21, '?');
    const Status status =
        readPeer(child.pid(), reinterpret_cast<std::byte*>(text.data()), child.page(), text.size());
    if (status.code() == Status::Code::kConfiguration) GTEST_SKIP() << status.what();
    ASSERT_TRUE(status.ok()) << status.what();
    EXPECT_STREQ(text.c_str(), "written by the child");
    EXPECT_EQ(*reinterpret_cast<const char*>(child.page()), 0);  // ours is another page
}

TEST(PeerRead, SaysWhyItCannot) {
    Child child;
    std::vector<std::byte> here(2 * Child::kBytes);
    const Status beyond =
        readPeer(child.pid(), here.data(), reinterpret_cast<const std::byte*>(16), 8);
    if (beyond.code() == Status::Code::kConfiguration) GTEST_SKIP() << beyond.what();
    EXPECT_EQ(beyond.code(), Status::Code::kInvalidArgument);
    EXPECT_THAT(beyond.what(), testing::HasSubstr("memory of process " +
                                                  std::to_string(child.pid()) + " cannot be read"));
    child.end();
    EXPECT_EQ(readPeer(child.pid(), here.data(), child.page(), 8).code(), Status::Code::kPeerLost);
}

TEST(ReadMark, ShowsWhoseMemoryIsMeant) {
    const ReadMark mine = ReadMark::ofProcess();
    EXPECT_EQ(mine.pid, ::getpid());
    EXPECT_EQ(mine.value, ReadMark::ofProcess().value);
    const Child child;
    ReadMark childs = mine;  // it was forked after the value was made
    childs.pid = child.pid();
    if (!childs.isReadable()) GTEST_SKIP() << "not permitted here";
    ReadMark wrong = childs;
    wrong.value ^= 1;
    EXPECT_FALSE(wrong.isReadable());
    EXPECT_FALSE(ReadMark{}.isReadable());
}

}  // namespace
}  // namespace isthmus::test
