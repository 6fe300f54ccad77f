// Many calls, many communicators, strangers at the doors: nothing may grow, mix up or stop.
#include <arpa/inet.h>
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include <isthmus/isthmus.h>

#include "tests/faults/job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;

class LongRun : public testing::TestWithParam<bool> {
protected:
    Variables variables() const { return {{"ISTHMUS_SHM", GetParam() ? "1" : "0"}}; }

    void expectAllEndWell(Job& job, milliseconds limit) {
        for (int rank = 0; rank < job.ranks(); ++rank) {
            ASSERT_EQ(job.rank(rank).wait(limit), 0)
                << "rank " << rank << ": " << job.rank(rank).output() << job.rank(rank).error();
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, LongRun, testing::Bool(),
                         [](const auto& test) { return test.param ? "Shared" : "Tcp"; });

// https://github.com/openucx/ucc/issues/541
TEST_P(LongRun, MixedCallsWithChangingRootsAreNeverConfused) {  // NUM-23
    Job job(4, {"mixed", GetParam() ? "20000" : "4000"}, variables());
    job.start();
    expectAllEndWell(job, milliseconds(55000));
}

TEST_P(LongRun, CommunicatorsLeaveNothingBehind) {
    Job job(4, {"many", "300"}, variables());
    job.start();
    expectAllEndWell(job, milliseconds(30000));
    for (int rank = 0; rank < 4; ++rank) {
        int fds = 1;
        int threads = 1;
        const std::string grown = lineOf(job.rank(rank), "grew ");
        ASSERT_EQ(std::sscanf(grown.c_str(), "fds %d threads %d", &fds, &threads), 2);
        EXPECT_LE(fds, 0);
        EXPECT_LE(threads, 0);
        EXPECT_LT(std::stol("0" + lineOf(job.rank(rank), "kilobytes ")), 1024);
    }
}

/// TCP ports of 0.0.0.0, 127.0.0.1 or any other address on which `pid` listens (proc(5)).
std::set<std::pair<std::string, int>> doorsOf(pid_t pid) {
    std::set<std::string> sockets;
    const std::string folder = "/proc/" + std::to_string(pid);
    if (DIR* open = ::opendir((folder + "/fd").c_str())) {
        while (const dirent* entry = ::readdir(open)) {
            char target[64] = {};
            const std::string link = folder + "/fd/" + entry->d_name;
            if (::readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
            const std::string text = target;
            if (text.rfind("socket:[", 0) == 0) sockets.insert(text.substr(8, text.size() - 9));
        }
        ::closedir(open);
    }
    std::set<std::pair<std::string, int>> doors;
    std::ifstream table(folder + "/net/tcp");
    std::string line;
    std::getline(table, line);
    while (std::getline(table, line)) {
        std::istringstream words(line);
        std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
        words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
            timeout >> inode;
        if (state != "0A" || sockets.count(inode) == 0) continue;
        in_addr address{static_cast<in_addr_t>(std::stoul(local.substr(0, 8), nullptr, 16))};
        char text[INET_ADDRSTRLEN] = {};
        ::inet_ntop(AF_INET, &address, text, sizeof text);
        doors.emplace(text, std::stoi(local.substr(9), nullptr, 16));
    }
    return doors;
}

int knock(const std::string& host, int port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, host.c_str(), &place.sin_addr);
    const timeval limit{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0) return fd;
    ::close(fd);
    return -1;
}

// https://github.com/PrimeIntellect-ai/prime-diloco/issues/68
TEST_P(LongRun, StrangersAtEveryDoorDisturbNobody) {  // HANG-16
    Variables settings = variables();
    settings["ISTHMUS_STORE"] = "127.0.0.1:" + std::to_string(freePort());
    Job job(3, {"loop", "2500"}, settings);
    job.start();
    ASSERT_TRUE(job.allSay("ready"));
    std::mt19937 random(7);
    std::set<std::pair<std::string, int>> doors;
    for (int rank = 0; rank < 3; ++rank) doors.merge(doorsOf(job.rank(rank).pid()));
    ASSERT_GE(doors.size(), 4u);  // the store's, and one per rank
    std::vector<int> held;
    for (int round = 0; round < 5; ++round) {
        for (const auto& [host, port] : doors) {
            std::string garbage(std::size_t{1} << (4 * round), '\0');
            for (char& letter : garbage) letter = static_cast<char>(random());
            if (round == 1) garbage = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
            const int fd = knock(host, port);
            ASSERT_GE(fd, 0) << host << ":" << port;
            (void)::send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
            round % 2 == 0 ? held.push_back(fd) : static_cast<void>(::close(fd));
        }
    }
    expectAllEndWell(job, milliseconds(15000));
    for (const int fd : held) ::close(fd);
}

}  // namespace
}  // namespace isthmus::test
