// A rank that adds for a while and looks at every number: card_rank BYTES SECONDS. Prints, rank 0,
// "round SECONDS" for each, and what every card carried in between, as the library counts it
// ("card NODE NAME SENT RECEIVED", every rank) and the kernel ("kernel ...", one rank a node).
#include <isthmus/isthmus.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "comm/base/knobs.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostCards = 8;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, isthmusGetLastError(nullptr));
    std::exit(1);
}

std::vector<isthmusCardCounters_t> counted(isthmusComm_t comm) {
    std::vector<isthmusCardCounters_t> cards(kMostCards);
    int count = kMostCards;
    if (isthmusCardCounters(comm, cards.data(), &count) != isthmusSuccess) fail("counters");
    cards.resize(static_cast<std::size_t>(count));
    return cards;
}

std::uint64_t kernels(const std::string& card, const char* what) {
    std::ifstream file("/sys/class/net/" + card + "/statistics/" + what);
    std::uint64_t bytes = 0;
    file >> bytes;
    return bytes;
}

std::vector<isthmusCardCounters_t> countedByKernel(isthmusComm_t comm) {
    std::vector<isthmusCardCounters_t> cards = counted(comm);
    for (isthmusCardCounters_t& card : cards) {
        card.sent = kernels(card.name, "tx_bytes");
        card.received = kernels(card.name, "rx_bytes");
    }
    return cards;
}

void print(const char* what, const std::vector<isthmusCardCounters_t>& before,
           const std::vector<isthmusCardCounters_t>& after) {
    const std::string node = isthmus::environmentVariable("ISTHMUS_NODE").value_or("?");
    for (std::size_t at = 0; at < after.size(); ++at) {
        std::printf("%s %s %s %llu %llu\n", what, node.c_str(), after[at].name,
                    static_cast<unsigned long long>(after[at].sent - before[at].sent),
                    static_cast<unsigned long long>(after[at].received - before[at].received));
    }
}

/// Rounds of sums, until rank 0 has had enough: the first number counts who has.
class Rounds {
public:
    Rounds(isthmusComm_t comm, std::size_t bytes) : comm_(comm), numbers_(bytes / 4) {
        isthmusCommUserRank(comm, &rank_);
        isthmusCommCount(comm, &ranks_);
    }

    void run(double seconds) {
        const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                         std::chrono::duration<double>(seconds));
        for (int round = 0; !isOver_; ++round) one(round, Clock::now() >= end);
    }

private:
    static int number(std::size_t at, int round) { return static_cast<int>(at % 977) + round; }

    void one(int round, bool isEnough) {
        for (std::size_t at = 1; at < numbers_.size(); ++at)
            numbers_[at] = (rank_ + 1) * number(at, round);
        numbers_[0] = rank_ == 0 && isEnough ? 1 : 0;
        const Clock::time_point start = Clock::now();
        if (isthmusAllReduce(numbers_.data(), numbers_.data(), numbers_.size(), isthmusInt32,
                             isthmusSum, comm_, nullptr, nullptr) != isthmusSuccess)
            fail("all_reduce");
        const double took = std::chrono::duration<double>(Clock::now() - start).count();
        if (rank_ == 0) std::printf("round %.6f\n", took);
        isOver_ = numbers_[0] != 0;
        const int all = ranks_ * (ranks_ + 1) / 2;
        for (std::size_t at = 1; at < numbers_.size(); ++at) {
            if (numbers_[at] == all * number(at, round)) continue;
            std::printf("wrong: number %zu of round %d is %d\n", at, round, numbers_[at]);
            std::exit(2);
        }
    }

    isthmusComm_t comm_;
    std::vector<int> numbers_;
    int rank_ = 0;
    int ranks_ = 0;
    bool isOver_ = false;
};

void barrier(isthmusComm_t comm) {
    if (isthmusBarrier(comm, nullptr, nullptr) != isthmusSuccess) fail("barrier");
}

}  // namespace

int main(int, char** arguments) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // who cuts cables waits for the first round
    isthmusComm_t comm = nullptr;
    if (isthmusCommInitEnv(&comm, nullptr) != isthmusSuccess) fail("init");
    const bool isFirstOfNode = isthmus::environmentVariable("LOCAL_RANK") == "0";
    Rounds rounds(comm, std::strtoull(arguments[1], nullptr, 10));
    barrier(comm);
    const auto before = counted(comm);
    const auto kernelBefore = countedByKernel(comm);
    barrier(comm);
    rounds.run(std::atof(arguments[2]));
    barrier(comm);
    print("card", before, counted(comm));
    if (isFirstOfNode) print("kernel", kernelBefore, countedByKernel(comm));
    std::fflush(stdout);
    barrier(comm);
    return isthmusCommDestroy(comm) == isthmusSuccess ? 0 : 1;
}
