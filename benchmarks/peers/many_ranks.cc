// What many ranks cost that are threads of one process; one JSON line.
//
// usage: many_ranks start RANKS OF_NODE    seconds until all have added up once, in nodes of as
// many
//        many_ranks memory RANKS           bytes for each pair, once all have sent to all
//        many_ranks plans RANKS            seconds to choose and make a plan, at first and again
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/many_ranks.hpp"

namespace {

using isthmus::LocalJob;

int start(int ranks, int ranksOfNode) {
    const double seconds = isthmus::secondsToStart(ranks, ranksOfNode);
    std::printf("{\"seconds\": %.3f}\n", seconds);
    return seconds > 0 ? 0 : 1;
}

int memory(int ranks) {
    const double calls = isthmus::bytesOfPair(ranks, LocalJob::Wires::kInproc);
    const double shm = isthmus::bytesOfPair(ranks, LocalJob::Wires::kShm);
    const double tcp = isthmus::bytesOfPair(ranks, LocalJob::Wires::kTcp);
    std::printf("{\"inproc_bytes\": %.0f, \"shm_bytes\": %.0f, \"tcp_bytes\": %.0f}\n", calls, shm,
                tcp);
    return calls > 0 && shm > 0 && tcp > 0 ? 0 : 1;
}

int plans(int ranks) {
    const isthmus::PlanSeconds together = isthmus::secondsToPlan(ranks, 8);
    const isthmus::PlanSeconds apart = isthmus::secondsToPlan(ranks, 1);
    std::printf("{\"first_us\": %.1f, \"cached_us\": %.3f}\n",
                1e6 * std::max(together.first, apart.first),
                1e6 * std::max(together.cached, apart.cached));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc >= 3 ? argv[1] : "";
    const int ranks = argc >= 3 ? std::atoi(argv[2]) : 0;
    const int ranksOfNode = argc == 4 ? std::atoi(argv[3]) : 0;
    const bool isRight = ranks >= 8 && ranks <= 1024 && ranks % 8 == 0;
    if (what == "start" && isRight && ranksOfNode > 0) return start(ranks, ranksOfNode);
    if (what == "memory" && isRight && argc == 3) return memory(ranks);
    if (what == "plans" && isRight && argc == 3) return plans(ranks);
    std::fprintf(stderr,
                 "usage: many_ranks start RANKS OF_NODE | memory RANKS | plans RANKS; RANKS: 8, 16 "
                 "... 1024\n");
    return 2;
}
