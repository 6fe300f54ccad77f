// Prints the half round trip of a flag between two threads, in nanoseconds: 25-65 when the two
// processors share a cache, 250-330 when they do not. A virtual machine's processors move, within
// seconds; figures taken under different placements must not be compared.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace {

constexpr int kRounds = 20000;  // 5 to 15 ms
constexpr int kLine = 128;      // two cache lines: processors fetch pairs

struct Flags {
    alignas(kLine) std::atomic<int> there{0};
    alignas(kLine) std::atomic<int> back{0};
};

// A spin that gives way on a loaded machine instead of using up its slice.
void await(const std::atomic<int>& flag, int value) {
    for (int tries = 1; flag.load(std::memory_order_acquire) != value; ++tries) {
        if (tries % 4096 == 0) std::this_thread::yield();
    }
}

}  // namespace

int main() {
    Flags flags;
    std::thread answerer([&flags] {
        for (int round = 1; round <= kRounds; ++round) {
            await(flags.there, round);
            flags.back.store(round, std::memory_order_release);
        }
    });
    const auto start = std::chrono::steady_clock::now();
    for (int round = 1; round <= kRounds; ++round) {
        flags.there.store(round, std::memory_order_release);
        await(flags.back, round);
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    answerer.join();
    std::printf("%.1f\n", taken.count() * 1e9 / kRounds / 2);
    return 0;
}
