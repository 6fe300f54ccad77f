#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

#include "tools/cli/bench_format.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace isthmus::cli {

/// The command line as it was given; short options mean what they mean in nccl-tests.
struct BenchOptions {
    std::string collective;
    std::string minBytes = "32M";
    std::string maxBytes;  ///< "": see checkBench
    std::string stepBytes = "1M";
    std::uint64_t stepFactor = 0;
    int iterations = 20;
    int warmups = 1;
    int aggregated = 1;
    int checks = 1;
    int average = 1;
    std::string op = "sum";
    std::string type = "float";
    int root = 0;
    int timeoutSeconds = 0;
    std::string jsonFile;
    bool hasIterations = false;
    /// Ranks meet before each iteration, untimed: of calls with a root, where one rank may be calls
    /// ahead of others, a time is then how long until all have their part.
    bool meetsFirst = false;

    std::string format = "nccl";
    bool hasWire = false;
    bool isUneven = false;
    bool usesMalloc = false;
    bool usesArena = false;
    std::string algorithm;
    int ranks = 0;
    std::string nodes;
    std::string order;
    std::string rate;
};

/// What it means.
struct BenchTask {
    Collective collective = Collective::kBarrier;
    std::vector<std::uint64_t> sizes;
    std::vector<DataType> types;
    std::vector<ReduceOp> ops;
    BenchFormat format = BenchFormat::kNccl;
    double lineBitsPerSecond = 0;  ///< 0: not known
    BenchHead head;                ///< all but the ranks
};

void addBenchOptions(CLI::App& sub, BenchOptions& options);

/// Those that say where ranks are started: --ranks, --nodes, --order, --rate.
void addRankOptions(CLI::App& sub, BenchOptions& options);

/// Checks and works out everything that needs no other rank. Without -e the sizes end at 32M when
/// -f is given, else at -b. kInvalidArgument says what is wrong.
Result<BenchTask> benchTask(const BenchOptions& options);

}  // namespace isthmus::cli
