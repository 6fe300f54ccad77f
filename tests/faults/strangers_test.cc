// Strangers at every door of a job that is at work: nobody notices. All 10,000 of them:
// TESTS_WHOLE=1 in the environment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/faults/doors.hpp"
#include "tests/faults/job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Connections of all kinds that are no rank's: bytes of chance, words of another protocol,
/// silence, a byte now and then. So many are kept open, the oldest goes.
class Strangers {
public:
    explicit Strangers(std::vector<std::pair<std::string, int>> doors) : doors_(std::move(doors)) {
        for (char& letter : babble_) letter = static_cast<char>(random_());
    }
    ~Strangers() { leave(); }

    void comeOnce() {
        const auto& [host, port] = doors_[random_() % doors_.size()];
        const int fd = knock(host, port);
        ++came_;
        if (fd < 0) return;  // turned away: that is an answer, too
        const std::size_t length = std::size_t{1} << (random_() % 15);
        auto words = std::string_view(babble_).substr(random_() % (babble_.size() / 2), length);
        const unsigned kind = random_() % 4;
        if (kind == 1) words = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
        if (kind != 2) say(fd, words);
        if (kind == 0 || kind == 1) {
            ::close(fd);
            return;
        }
        if (!held_.empty()) say(held_[random_() % held_.size()], "x");  // the slow ones
        held_.push_back(fd);
        if (held_.size() <= kHeld) return;
        ::close(held_.front());
        held_.pop_front();
    }

    void leave() {
        for (const int fd : held_) ::close(fd);
        held_.clear();
    }
    int came() const { return came_; }

private:
    static constexpr std::size_t kHeld = 100;

    static void say(int fd, std::string_view words) {
        (void)::send(fd, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }

    const std::vector<std::pair<std::string, int>> doors_;
    std::mt19937 random_{7};
    // Made before anybody knocks: the processor time of strangers is not to be the library's.
    std::string babble_ = std::string(1 << 16, '\0');
    std::deque<int> held_;
    int came_ = 0;
};

/// How far a job was at a moment, from what its rank 0 said.
class Pace {
public:
    explicit Pace(const std::string& output) {
        for (const std::string& line : linesOf(output)) {
            long long at = 0;
            long long turn = 0;
            if (std::sscanf(line.c_str(), "at %lld %lld", &at, &turn) == 2)
                marks_.emplace_back(static_cast<double>(at), static_cast<double>(turn));
        }
    }
    double between(microseconds from, microseconds to) const {
        return turnAt(static_cast<double>(to.count())) - turnAt(static_cast<double>(from.count()));
    }

private:
    double turnAt(double moment) const {
        for (std::size_t i = 1; i < marks_.size(); ++i) {
            const auto& [at, turn] = marks_[i - 1];
            const auto& [later, more] = marks_[i];
            if (moment >= at && moment <= later)
                return turn + (more - turn) * (moment - at) / (later - at);
        }
        return 0;
    }

    std::vector<std::pair<double, double>> marks_;
};

class AtEveryDoor : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Ways, AtEveryDoor, testing::Bool(),
                         [](const auto& test) { return test.param ? "Shared" : "Tcp"; });

microseconds now() {
    return std::chrono::duration_cast<microseconds>(steady_clock::now().time_since_epoch());
}

// https://github.com/PrimeIntellect-ai/prime-diloco/issues/68,
// https://github.com/NVIDIA/nccl/issues/1996
TEST_P(AtEveryDoor, StrangersDisturbNobody) {  // HANG-16
    const int pairs = countOf(5, 100);
    const int each = countOf(60, 100);  // 150 and 250 a second
    constexpr milliseconds kWindow(400);
    const auto length = 2 * pairs * kWindow + milliseconds(4000);
    Job job(2, {"turns", std::to_string(length.count())},
            {{"ISTHMUS_SHM", GetParam() ? "1" : "0"},
             {"ISTHMUS_STORE", "127.0.0.1:" + std::to_string(freePort())}},
            STRESS_PROGRAM);
    job.start();
    ASSERT_TRUE(job.allSay("ready"));
    std::set<std::pair<std::string, int>> doors;
    for (int rank = 0; rank < 2; ++rank) doors.merge(doorsOf(job.rank(rank).pid()));
    ASSERT_GE(doors.size(), 3u);  // the store's, and one per rank
    std::this_thread::sleep_for(milliseconds(300));
    std::vector<int> descriptors;
    std::vector<long> kilobytes;
    for (int rank = 0; rank < 2; ++rank) {
        descriptors.push_back(descriptorsOf(job.rank(rank).pid()));
        kilobytes.push_back(kilobytesOf(job.rank(rank).pid()));
    }
    Strangers strangers({doors.begin(), doors.end()});
    std::vector<std::array<microseconds, 3>> windows;  // begin, middle, end; strangers in the first
    for (int pair = 0; pair < pairs; ++pair) {
        const microseconds begin = now();
        for (int i = 0; i < each; ++i) {
            strangers.comeOnce();
            const auto next = begin + microseconds(kWindow) * (i + 1) / each;
            if (next > now()) std::this_thread::sleep_for(next - now());
        }
        const microseconds middle = now();
        std::this_thread::sleep_for(middle - begin);
        windows.push_back({begin, middle, now()});
    }
    EXPECT_EQ(strangers.came(), pairs * each);
    strangers.leave();
    for (int rank = 0; rank < 2; ++rank) {
        const pid_t pid = job.rank(rank).pid();
        EXPECT_TRUE(
            becomes([&] { return descriptorsOf(pid) <= descriptors[rank]; }, milliseconds(2000)))
            << descriptorsOf(pid) << " descriptors, " << descriptors[rank] << " before";
        EXPECT_LT(kilobytesOf(pid) - kilobytes[rank], 512);
    }
    for (int rank = 0; rank < 2; ++rank) {
        ASSERT_EQ(job.rank(rank).wait(length + milliseconds(10000)), 0)
            << job.rank(rank).output() << job.rank(rank).error();
    }
    const Pace pace(job.rank(0).output());
    std::vector<double> ratios;
    for (const auto& [begin, middle, end] : windows) {
        ratios.push_back(pace.between(begin, middle) / std::max(1.0, pace.between(middle, end)));
    }
    std::sort(ratios.begin(), ratios.end());
    const double ratio = ratios[ratios.size() / 2];
    std::printf("%d strangers: %.1f %% of the turns without them (median of %zu pairs)\n",
                strangers.came(), ratio * 100, ratios.size());
    // Few windows on a machine with other work say little.
    EXPECT_GT(ratio, countOf(30, 95) / 100.0);
}

}  // namespace
}  // namespace isthmus::test
