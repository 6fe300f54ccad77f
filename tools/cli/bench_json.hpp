#pragma once

#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "tools/cli/bench_format.hpp"

namespace isthmus::cli {

/// What nccl-tests' -I prints of the times of single iterations. Seconds.
struct IterationStats {
    double least = 0;
    double most = 0;
    double mean = 0;
    double p50 = 0;
    double p95 = 0;
    double p99 = 0;
    double deviation = 0;  ///< of the population
    double variationPercent = 0;
};

/// All zero for no times.
IterationStats statsOf(std::vector<double> seconds);

/// Mean busbw over both halves of all rows, bytes per second.
double averageBus(const std::vector<BenchRow>& rows);

/// The document that nccl-tests' -J writes, with `wire_bytes`, `wire_bound_bytes`, `bound_time`
/// (microseconds, as `time`) and `of_bound` in each half after --wire. Truth values are texts and
/// `root` is padded there, and so here.
std::string jsonText(const BenchHead& head, const std::vector<BenchRow>& rows,
                     const std::string& endTime);

/// Puts `text` into the file, which is made or replaced. kInvalidArgument, kResource: cannot.
Status writeFile(const std::string& path, const std::string& text);

}  // namespace isthmus::cli
