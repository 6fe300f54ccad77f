#pragma once

#include "tests/support/local_job.hpp"

namespace isthmus {

/// Seconds from nothing to the end of one all-reduce of `ranks` ranks, threads of this process in
/// nodes of `ranksOfNode`. Negative: it failed.
double secondsToStart(int ranks, int ranksOfNode);

/// Bytes of memory of this process (proportional: what several mappings show counts once) for each
/// pair of `ranks` ranks, once every rank has sent 1 KiB to every other over `wires`; engines,
/// arenas and threads are shared among the pairs. Negative: it failed.
double bytesOfPair(int ranks, LocalJob::Wires wires);

/// The worst over collectives and sizes from 1 KiB to 64 MiB, each the median of five.
struct PlanSeconds {
    double first = 0;   ///< a call of a new communicator: selection, plan, compilation
    double cached = 0;  ///< the same call again
};
PlanSeconds secondsToPlan(int ranks, int ranksOfNode);

}  // namespace isthmus
