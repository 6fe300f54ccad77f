// Jobs whose start goes wrong: every rank ends in time and says what is the matter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <isthmus/isthmus.h>

#include "tests/faults/job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;

const char* const kLimit = "1500";  // ms

Variables limited(const std::string& store = "") {
    Variables variables = {{"ISTHMUS_TIMEOUT", kLimit}};
    if (!store.empty()) variables["ISTHMUS_STORE"] = store;
    return variables;
}

std::string onPort(int port) {
    return "127.0.0.1:" + std::to_string(port);
}

/// All started ranks end within the limit and some more; none of them well.
void expectEnds(Job& job, isthmusResult_t result, const std::string& text) {
    for (int rank = 0; rank < job.ranks(); ++rank) {
        if (!job.has(rank)) continue;
        EXPECT_EQ(job.rank(rank).wait(milliseconds(4000)), result) << "rank " << rank;
        EXPECT_THAT(lineOf(job.rank(rank), "failed "), HasSubstr(text)) << "rank " << rank;
    }
}

class Start : public testing::TestWithParam<bool> {
protected:
    /// By a name of this machine, or by TCP.
    std::string store() const { return GetParam() ? onPort(freePort()) : ""; }
};

INSTANTIATE_TEST_SUITE_P(Stores, Start, testing::Bool(),
                         [](const auto& test) { return test.param ? "Tcp" : "Local"; });

TEST_P(Start, NamesTheRankThatIsMissingAtTheDeadline) {
    Job job(4, {"once"}, limited(store()));
    job.leaveOut(2);
    const auto start = steady_clock::now();
    job.start();
    expectEnds(job, isthmusTimeout, "rank 2");
    EXPECT_GE(steady_clock::now() - start, milliseconds(1400));
    EXPECT_LT(steady_clock::now() - start, milliseconds(3500));
}

TEST_P(Start, SaysWhereRankZeroWasExpected) {
    const std::string place = store();
    Job job(3, {"once"}, limited(place));
    job.leaveOut(0);
    job.start();
    for (int rank = 1; rank < 3; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(4000)), isthmusTimeout);
        EXPECT_THAT(lineOf(job.rank(rank), "failed "),
                    AllOf(HasSubstr("rank 0"), HasSubstr(place)));
    }
}

// https://github.com/pytorch/pytorch/issues/107177, https://github.com/pytorch/pytorch/pull/129261
TEST_P(Start, WaitsForARankZeroThatIsLate) {  // BOOT-16
    Variables variables = limited(store());
    variables["ISTHMUS_TIMEOUT"] = "20000";
    Job job(3, {"once"}, variables);
    job.leaveOut(0);
    job.start();
    EXPECT_EQ(job.rank(1).wait(milliseconds(2000)), -1) << job.rank(1).output();
    job.startLate(0);
    for (int rank = 0; rank < 3; ++rank)
        EXPECT_EQ(job.rank(rank).wait(milliseconds(8000)), 0) << job.rank(rank).output();
}

TEST_P(Start, RefusesTwoProcessesOfOneRank) {
    Job job(3, {"once"}, limited(store()));
    job.set(2, "RANK", "1");
    job.set(2, "LOCAL_RANK", "1");
    const auto start = steady_clock::now();
    job.start();
    int named = 0;
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_GT(job.rank(rank).wait(milliseconds(4000)), 0) << "rank " << rank;
        named += lineOf(job.rank(rank), "failed ").find("rank 1") != std::string::npos ? 1 : 0;
    }
    EXPECT_GE(named, 1);
    EXPECT_LT(steady_clock::now() - start, milliseconds(3500));
}

TEST_P(Start, RefusesRanksThatThinkOfAnotherWorldSize) {
    Job job(3, {"once"}, limited(store()));
    job.set(2, "WORLD_SIZE", "4");
    job.set(2, "LOCAL_WORLD_SIZE", "4");
    job.start();
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_GT(job.rank(rank).wait(milliseconds(4000)), 0) << "rank " << rank;
    }
}

TEST(StartVariables, AreCheckedBeforeAnythingElse) {
    Job job(2, {"once"}, limited());
    job.set(0, "RANK", "7");
    job.set(1, "WORLD_SIZE", "two");
    job.start();
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(2000)), isthmusConfiguration);
    }
    EXPECT_THAT(lineOf(job.rank(0), "failed "), HasSubstr("7"));
    EXPECT_THAT(lineOf(job.rank(1), "failed "), HasSubstr("two"));
}

/// Holds a port of 127.0.0.1 and never says a word to whoever comes.
class SilentListener {
public:
    SilentListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in place{};
        place.sin_family = AF_INET;
        place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof place;
        EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
        EXPECT_EQ(::listen(fd_, 16), 0);
        EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&place), &bytes), 0);
        port_ = ntohs(place.sin_port);
    }
    ~SilentListener() { ::close(fd_); }
    SilentListener(const SilentListener&) = delete;
    SilentListener& operator=(const SilentListener&) = delete;
    int port() const { return port_; }
    int fd() const { return fd_; }

private:
    int fd_;
    int port_ = 0;
};

// https://github.com/pytorch/pytorch/issues/72816
TEST(StartPort, ThatIsInUseIsNamed) {  // BOOT-12
    const SilentListener other;
    Job job(2, {"once"}, limited(onPort(other.port())));
    const auto start = steady_clock::now();
    job.start();
    EXPECT_EQ(job.rank(0).wait(milliseconds(4000)), isthmusConfiguration);
    EXPECT_THAT(lineOf(job.rank(0), "failed "),
                AllOf(HasSubstr(onPort(other.port())), HasSubstr("in use")));
    EXPECT_GT(job.rank(1).wait(milliseconds(4000)), 0);
    EXPECT_THAT(lineOf(job.rank(1), "failed "), HasSubstr(onPort(other.port())));
    EXPECT_LT(steady_clock::now() - start, milliseconds(4000));
}

/// Answers whoever comes as `answer(what was said)` tells, one at a time, until it ends.
class Talker {
public:
    explicit Talker(std::function<std::string(const std::string&)> answer)
        : answer_(std::move(answer)), thread_([this] { serve(); }) {}
    ~Talker() {
        isOver_ = true;
        thread_.join();
    }
    Talker(const Talker&) = delete;
    Talker& operator=(const Talker&) = delete;
    int port() const { return listener_.port(); }

private:
    void serve() {
        while (!isOver_) {
            pollfd entry{listener_.fd(), POLLIN, 0};
            if (::poll(&entry, 1, 20) <= 0) continue;
            const int taken = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
            char text[256];
            pollfd heard{taken, POLLIN, 0};
            const ssize_t got =
                ::poll(&heard, 1, 500) > 0 ? ::recv(taken, text, sizeof text, 0) : 0;
            const std::string said(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
            const std::string words = answer_(said);
            ::send(taken, words.data(), words.size(), MSG_NOSIGNAL);
            ::close(taken);
        }
    }

    const std::function<std::string(const std::string&)> answer_;
    const SilentListener listener_;
    std::atomic<bool> isOver_{false};
    std::thread thread_;
};

// https://github.com/pytorch/pytorch/issues/129367
TEST(StartPort, ThatAnotherServiceHasIsNamedOnEveryRank) {  // BOOT-12
    const auto asHttp = [](const std::string&) {
        return std::string("HTTP/1.0 400 Bad request version\r\n\r\n<html>");
    };
    const auto asEcho = [](const std::string& said) { return said; };
    const std::pair<std::function<std::string(const std::string&)>, const char*> services[] = {
        {asHttp, "HTTP/1.0 400"}, {asEcho, "sends back what it is sent"}};
    for (const auto& [answer, text] : services) {
        const Talker other(answer);
        Job job(4, {"once"},
                {{"ISTHMUS_TIMEOUT", "20000"}, {"ISTHMUS_STORE", onPort(other.port())}});
        job.start();
        for (int rank = 0; rank < job.ranks(); ++rank) {
            EXPECT_EQ(job.rank(rank).wait(milliseconds(5000)), isthmusConfiguration) << rank;
            EXPECT_THAT(lineOf(job.rank(rank), "failed "),
                        AllOf(HasSubstr(onPort(other.port())), HasSubstr(text)));
        }
    }
}

// https://github.com/pytorch/gloo/issues/54
TEST(StartPort, ThatAreTooFewAreCounted) {  // BOOT-14
    const int first = freePort();
    Variables variables = limited();
    variables["ISTHMUS_PORT_RANGE"] = std::to_string(first) + "-" + std::to_string(first + 1);
    Job job(4, {"once"}, variables);
    job.start();
    expectEnds(job, isthmusConfiguration,
               variables["ISTHMUS_PORT_RANGE"] + " has 2 ports; this job needs 4 on this node");
}

// https://github.com/pytorch/pytorch/issues/67172
TEST(StartPort, OutOfRangeIsRefused) {  // BOOT-12
    Job job(2, {"once"}, limited("127.0.0.1:123456"));
    job.start();
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(2000)), isthmusConfiguration);
        EXPECT_THAT(lineOf(job.rank(rank), "failed "), HasSubstr("123456"));
    }
}

void writeKey(const std::string& path, char digit) {
    std::ofstream(path) << std::string(64, digit);
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
}

TEST(StartKey, ThatDiffersKeepsARankOut) {
    const Folder folder;
    writeKey(folder.path() + "/ours", 'a');
    writeKey(folder.path() + "/theirs", 'b');
    Variables variables = limited(onPort(freePort()));
    variables["ISTHMUS_JOB_KEY_FILE"] = folder.path() + "/ours";
    Job job(3, {"once"}, variables);
    job.set(2, "ISTHMUS_JOB_KEY_FILE", folder.path() + "/theirs");
    job.start();
    EXPECT_EQ(job.rank(2).wait(milliseconds(4000)), isthmusConfiguration);
    EXPECT_THAT(lineOf(job.rank(2), "failed "), HasSubstr("key"));
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(4000)), isthmusTimeout);
        EXPECT_THAT(lineOf(job.rank(rank), "failed "), HasSubstr("rank 2"));
    }
}

TEST(StartKey, ThatAgreesLetsAllIn) {
    const Folder folder;
    writeKey(folder.path() + "/ours", 'a');
    Variables variables = limited(onPort(freePort()));
    variables["ISTHMUS_JOB_KEY_FILE"] = folder.path() + "/ours";
    Job job(3, {"once"}, variables);
    job.start();
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(job.rank(rank).wait(milliseconds(4000)), 0);
}

TEST(StartInterface, ThatDoesNotExistIsNamedWithThoseThatDo) {
    Variables variables = limited();
    variables["ISTHMUS_INTERFACE"] = "nope9";
    Job job(2, {"once"}, variables);
    job.start();
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(4000)), isthmusConfiguration);
        EXPECT_THAT(lineOf(job.rank(rank), "failed "), AllOf(HasSubstr("nope9"), HasSubstr("lo")));
    }
}

// A network of its own that has no IPv4 address at all; 77 where the kernel gives none.
const char* const kOnlySix =
    "PATH=$PATH:/usr/sbin:/sbin; { echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad && "
    "ip link set lo up && ip addr del 127.0.0.1/8 dev lo && "
    "ip link add six type veth peer name other && ip link set other up && ip link set six up && "
    "ip addr add fd77::1/64 dev six nodad; } || exit 77; "
    "[ -z \"$(ip -4 -o addr)\" ] || exit 78; "
    "near=$(ip -6 -o addr show dev six scope link | sed 's/.*inet6 //;s/[/].*//'); port=5100; "
    "for master in fd77::1 '[fd77::1]' \"$near%six\" \"[$near%six]\"; do port=$((port + 10)); "
    "for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank MASTER_ADDR=$master MASTER_PORT=$port "
    "WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 ISTHMUS_SHM=0 ISTHMUS_TIMEOUT=5000 " RANK_PROGRAM
    " once & done; wait; done";

// https://github.com/open-mpi/ompi/issues/1585, https://github.com/THUDM/slime/pull/2151
TEST(StartAddress, OfTheSixthVersionAloneIsEnough) {  // BOOT-04
    Program job({"unshare", "--map-root-user", "--net", "sh", "-c", kOnlySix});
    const int code = job.wait();
    if (code == 1 || code == 77 || code == 127)
        GTEST_SKIP() << "no network namespaces on this machine: " << job.error();
    EXPECT_EQ(code, 0) << job.error();
    const auto lines = linesOf(job.output());
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "done"), 8) << job.output() << job.error();
}

}  // namespace
}  // namespace isthmus::test
