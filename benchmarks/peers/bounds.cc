// What this machine can do at the moment, without a library: a meeting of processes that yield, and
// the sum of buffers that all processes map, in every buffer. One JSON line.
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

struct alignas(128) Flag {
    std::atomic<long> meetings{0};
};

double microsecondsNow() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(time).count();
}

class Rank {
public:
    Rank(Flag* flags, float* memory, int me, int ranks, std::size_t elements)
        : flags_(flags), memory_(memory), me_(me), ranks_(ranks), elements_(elements) {}

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
        fill();
        std::vector<double> times;
        for (int i = 0; i < kSums; ++i) {
            meet();
            const double start = microsecondsNow();
            sumMyPart();
            meet();
            times.push_back(microsecondsNow() - start);
        }
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    }

private:
    float* input(int rank) const { return memory_ + elements_ * static_cast<std::size_t>(rank); }

    void fill() {
        std::minstd_rand random(static_cast<unsigned>(me_) + 1);
        for (std::size_t i = 0; i < elements_; ++i)
            input(me_)[i] = static_cast<float>(random()) * 1e-9F;
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
    int me = 0;
    for (int rank = 1; rank < ranks && me == 0; ++rank) {
        if (::fork() == 0) me = rank;
    }
    Rank rank(flags, memory, me, ranks, elements);
    const double meeting = rank.meetingTime();
    const double sum = rank.sumTime();
    if (me != 0) ::_exit(0);
    while (::wait(nullptr) > 0) {
    }
    std::printf("{\"meeting_us\": %.3f, \"all_reduce_us\": %.1f}\n", meeting, sum);
    return 0;
}
