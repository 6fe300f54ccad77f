#include "tests/support/many_ranks.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>

#include "comm/selector/plan_cache.hpp"
#include "tests/unit/communicator/calls.hpp"

namespace isthmus {
namespace {

using std::chrono::steady_clock;

double secondsSince(steady_clock::time_point start) {
    return std::chrono::duration<double>(steady_clock::now() - start).count();
}

std::vector<int> nodesOf(int ranks, int ranksOfNode) {
    std::vector<int> nodes;
    for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / ranksOfNode);
    return nodes;
}

double residentBytes() {
    ::malloc_trim(0);  // what an earlier job left would be used again
    double kilobytes = -1;
    std::FILE* const file = std::fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    while (file != nullptr && std::fgets(line, sizeof(line), file) != nullptr) {
        if (std::sscanf(line, "Pss: %lf kB", &kilobytes) == 1) break;
    }
    if (file != nullptr) std::fclose(file);
    return kilobytes * 1024;
}

bool sendsToAll(Rank me, Communicator& communicator) {
    const int ranks = communicator.ranks();
    for (int shift = 1; shift < ranks; ++shift) {
        const Rank from = (me + ranks - shift) % ranks;
        const std::vector<int> mine(256, me);
        std::vector<int> theirs(256, -1);
        const auto receive = communicator.transfer(test::recvOf(theirs, from), {});
        const auto send =
            communicator.transfer(test::sendOf(mine, (me + shift) % ranks), test::blocking());
        const bool went = test::endOf(communicator, receive).ok() && send->status().ok();
        if (!went || theirs != std::vector<int>(256, from)) return false;
    }
    return true;
}

CallRequest callOf(Collective collective, std::uint64_t bytes, int ranks) {
    const bool isWhole = collective == Collective::kAllReduce ||
                         collective == Collective::kBroadcast || collective == Collective::kReduce;
    CallRequest call;
    call.collective = collective;
    call.type = DataType::kFloat32;
    call.counts.uniform = bytes / sizeof(float) / static_cast<std::uint64_t>(isWhole ? 1 : ranks);
    return call;
}

double medianOf(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

PlanSeconds secondsToPlan(const Layout& layout, const CallRequest& call) {
    constexpr int kAgain = 1000;
    std::vector<double> first;
    std::vector<double> cached;
    for (int trial = 0; trial < 5; ++trial) {
        PlanCache plans(layout, layout.ranks() / 2, SelectorOptions{});
        auto start = steady_clock::now();
        EXPECT_TRUE(plans.prepare(call, "").ok());
        first.push_back(secondsSince(start));
        start = steady_clock::now();
        for (int again = 0; again < kAgain; ++again) (void)plans.prepare(call, "").ok();
        cached.push_back(secondsSince(start) / kAgain);
    }
    return {medianOf(first), medianOf(cached)};
}

}  // namespace

double secondsToStart(int ranks, int ranksOfNode) {
    const auto start = steady_clock::now();
    std::atomic<int> right = 0;
    std::atomic<double> last = 0;
    LocalJob job(nodesOf(ranks, ranksOfNode), {{"ISTHMUS_ARENA", "16M"}});
    std::barrier all(ranks);
    job.run([&](Rank rank, Communicator& communicator) {
        right += test::sums(communicator) ? 1 : 0;
        all.arrive_and_wait();
        if (rank == 0) last = secondsSince(start);
    });
    return right == ranks ? last.load() : -1;
}

double bytesOfPair(int ranks, LocalJob::Wires wires) {
    const double before = residentBytes();
    std::atomic<int> right = 0;
    std::atomic<double> after = 0;
    const int ranksOfNode = wires == LocalJob::Wires::kShm ? ranks : 1;
    LocalJob job(nodesOf(ranks, ranksOfNode), {{"ISTHMUS_ARENA", "256M"}}, wires);
    std::barrier all(ranks);
    job.run([&](Rank rank, Communicator& communicator) {
        right += sendsToAll(rank, communicator) ? 1 : 0;
        all.arrive_and_wait();
        if (rank == 0) after = residentBytes();
        all.arrive_and_wait();
    });
    const int pairs = ranks * (ranks - 1) / 2;
    return right == ranks ? (after - before) / pairs : -1;
}

PlanSeconds secondsToPlan(int ranks, int ranksOfNode) {
    const Layout layout = Layout::of(nodesOf(ranks, ranksOfNode));
    PlanSeconds worst;
    for (int number = 0; number < kCollectives; ++number) {
        for (const std::uint64_t bytes : {1ULL << 10, 1ULL << 16, 1ULL << 20, 1ULL << 26}) {
            const PlanSeconds one =
                secondsToPlan(layout, callOf(static_cast<Collective>(number), bytes, ranks));
            worst.first = std::max(worst.first, one.first);
            worst.cached = std::max(worst.cached, one.cached);
        }
    }
    return worst;
}

}  // namespace isthmus
