// What this machine can do at the moment, without a library: a meeting of processes that yield, the
// sum of buffers that all processes map, in every buffer, and the same sum of buffers that nobody
// else maps, through windows that all map. One JSON line.
//
//   bounds RANKS BYTES
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr int kMeetings = 20000;
constexpr int kSums = 9;
constexpr int kMostRanks = 64;
constexpr std::size_t kWindow = (std::size_t{256} << 10) / sizeof(float);
constexpr std::size_t kSumWindows = 3;  ///< the sums of a pass are read during the next one

std::size_t windows(int ranks) {
    return 2 * static_cast<std::size_t>(ranks) + kSumWindows;
}

struct alignas(128) Flag {
    std::atomic<long> meetings{0};
};

double microsecondsNow() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(time).count();
}

class Rank {
public:
    Rank(Flag* flags, float* memory, float* windows, int me, int ranks, std::size_t elements)
        : flags_(flags),
          memory_(memory),
          windows_(windows),
          me_(me),
          ranks_(ranks),
          elements_(elements) {}

    void meet() {
        flags_[me_].meetings.store(++met_, std::memory_order_release);
        for (int other = 0; other < ranks_; ++other) {
            while (flags_[other].meetings.load(std::memory_order_acquire) < met_) ::sched_yield();
        }
    }

    double meetingTime() {
        for (int i = 0; i < kMeetings / 10; ++i) meet();
        const double start = microsecondsNow();
        for (int i = 0; i < kMeetings; ++i) meet();
        return (microsecondsNow() - start) / kMeetings;
    }

    double sumTime() {
        fill(input(me_), elements_);
        return median([this] {
            sumMyPart();
            meet();
        });
    }

    /// Of my own buffer, in place. A pass moves a window: mine goes in, what all sent in before is
    /// summed, what was summed before that comes out; one meeting a pass.
    double windowedSumTime() {
        const std::size_t passes = std::max<std::size_t>(elements_ / kWindow, 1);
        std::vector<float> mine(passes * kWindow);
        fill(mine.data(), mine.size());
        return median([&] {
            for (std::size_t pass = 0; pass < passes + 2; ++pass) {
                if (pass < passes) showWindow(&mine[pass * kWindow], pass);
                if (pass >= 1 && pass <= passes) sumWindow(&mine[(pass - 1) * kWindow], pass - 1);
                if (pass >= 2) takeWindow(&mine[(pass - 2) * kWindow], pass - 2);
                meet();
            }
        });
    }

private:
    template <typename Act>
    double median(const Act& act) {
        std::vector<double> times;
        for (int i = 0; i < kSums; ++i) {
            meet();
            const double start = microsecondsNow();
            act();
            times.push_back(microsecondsNow() - start);
        }
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    }

    float* input(int rank) const { return memory_ + elements_ * static_cast<std::size_t>(rank); }
    float* shown(int rank, std::size_t pass) const {
        return windows_ + kWindow * (2 * static_cast<std::size_t>(rank) + pass % 2);
    }
    float* summed(std::size_t pass) const {
        return windows_ + kWindow * (2 * static_cast<std::size_t>(ranks_) + pass % kSumWindows);
    }
    std::size_t part() const { return kWindow / static_cast<std::size_t>(ranks_); }
    std::size_t myPart() const { return part() * static_cast<std::size_t>(me_); }

    void fill(float* to, std::size_t count) const {
        std::minstd_rand random(static_cast<unsigned>(me_) + 1);
        for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(random()) * 1e-9F;
    }

    /// All of a window but the part that is mine to sum.
    void copyOthers(const float* from, float* to) const {
        const std::size_t end = myPart() + part();
        std::copy_n(from, myPart(), to);
        std::copy_n(from + end, kWindow - end, to + end);
    }

    void showWindow(const float* mine, std::size_t pass) const {
        copyOthers(mine, shown(me_, pass));
    }
    void takeWindow(float* mine, std::size_t pass) const { copyOthers(summed(pass), mine); }

    void sumWindow(float* mine, std::size_t pass) const {
        float* const sums = summed(pass);
        const std::size_t begin = myPart();
        std::copy_n(mine + begin, part(), sums + begin);
        for (int rank = 0; rank < ranks_; ++rank) {
            if (rank == me_) continue;
            const float* const from = shown(rank, pass);
            for (std::size_t i = begin; i < begin + part(); ++i) sums[i] += from[i];
        }
        std::copy_n(sums + begin, part(), mine + begin);
    }

    // In place, so that no store reads a line from memory first: the least traffic there is.
    void sumMyPart() const {
        const std::size_t part = elements_ / static_cast<std::size_t>(ranks_);
        constexpr std::size_t kBlock = 1024;
        float sums[kBlock];
        const std::size_t begin = part * static_cast<std::size_t>(me_);
        for (std::size_t at = begin; at < begin + part; at += kBlock) {
            const std::size_t count = std::min(kBlock, begin + part - at);
            std::copy_n(input(0) + at, count, sums);
            for (int rank = 1; rank < ranks_; ++rank) {
                const float* const from = input(rank) + at;
                for (std::size_t i = 0; i < count; ++i) sums[i] += from[i];
            }
            for (int rank = 0; rank < ranks_; ++rank) std::copy_n(sums, count, input(rank) + at);
        }
    }

    Flag* flags_;
    float* memory_;
    float* windows_;
    int me_;
    int ranks_;
    std::size_t elements_;
    long met_ = 0;
};

void* shared(std::size_t bytes) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("bounds: mmap");
        std::exit(1);
    }
    return memory;
}

}  // namespace

int main(int argc, char** argv) {
    const int ranks = argc == 3 ? std::atoi(argv[1]) : 0;
    const std::size_t elements =
        argc == 3 ? std::strtoull(argv[2], nullptr, 10) / sizeof(float) : 0;
    if (ranks < 1 || ranks > kMostRanks || elements < static_cast<std::size_t>(ranks)) {
        std::fprintf(stderr, "usage: bounds RANKS BYTES\n");
        return 2;
    }
    auto* const flags = static_cast<Flag*>(shared(sizeof(Flag) * kMostRanks));
    auto* const memory =
        static_cast<float*>(shared(elements * sizeof(float) * static_cast<std::size_t>(ranks)));
    auto* const ring = static_cast<float*>(shared(sizeof(float) * kWindow * windows(ranks)));
    int me = 0;
    for (int rank = 1; rank < ranks && me == 0; ++rank) {
        if (::fork() == 0) me = rank;
    }
    Rank rank(flags, memory, ring, me, ranks, elements);
    const double meeting = rank.meetingTime();
    const double sum = rank.sumTime();
    const double windowed = rank.windowedSumTime();
    if (me != 0) ::_exit(0);
    while (::wait(nullptr) > 0) {
    }
    std::printf(
        "{\"meeting_us\": %.3f, \"all_reduce_us\": %.1f, \"windowed_all_reduce_us\": %.1f}\n",
        meeting, sum, windowed);
    return 0;
}
