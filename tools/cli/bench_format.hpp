#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus::cli {

/// How far a result is from the least that must cross between nodes.
struct WireResult {
    std::uint64_t bytes = 0;             ///< of one call, on the card that carried most
    std::uint64_t boundBytes = 0;        ///< no algorithm can do with less on that card
    std::optional<double> boundSeconds;  ///< nothing: the line's rate is not known
    std::optional<double> share;         ///< boundSeconds / time
};

/// One half of a row: out of place or in place.
struct HalfResult {
    double seconds = 0;
    double leastSeconds = 0;  ///< of the ranks' means
    double mostSeconds = 0;
    double algorithmBytesPerSecond = 0;
    double busBytesPerSecond = 0;
    std::optional<std::uint64_t> wrong;  ///< nothing: not checked
    std::optional<WireResult> wire;
    std::vector<double> iterationSeconds;  ///< of the slowest rank, when asked for
};

struct BenchRow {
    std::uint64_t sizeBytes = 0;
    std::uint64_t blockBytes = 0;  ///< OSU's size: of one rank's block
    std::uint64_t elements = 0;
    std::string type;
    std::string op;  ///< "none" where nothing is reduced
    int root = -1;
    int iterations = 0;
    HalfResult outOfPlace;
    HalfResult inPlace;
};

struct BenchRankInfo {
    int rank = 0;
    int pid = 0;
    int node = 0;
    int localRank = 0;
    std::string host;
};

/// What was asked for and who takes part: the heads of all formats.
struct BenchHead {
    std::string version;
    std::string collective;  ///< our name: all_reduce
    std::uint64_t minBytes = 0;
    std::uint64_t maxBytes = 0;
    std::uint64_t stepBytes = 0;
    std::uint64_t stepFactor = 0;  ///< > 1: used instead of stepBytes
    int warmups = 0;
    int iterations = 0;
    int aggregated = 1;
    int checks = 0;
    bool hasWire = false;
    bool hasIterations = false;
    std::vector<std::string> arguments;
    std::string startTime;  ///< "2025-01-31 12:00:00"
    std::vector<BenchRankInfo> ranks;
};

enum class BenchFormat : std::uint8_t { kNccl, kOsu, kJson, kCsv };

Result<BenchFormat> benchFormatNamed(std::string_view name);

/// What is printed before the rows, for one row, and after them; "" where a format has nothing.
/// JSON is one document, printed at the end.
std::string headText(BenchFormat format, const BenchHead& head);
std::string rowText(BenchFormat format, const BenchHead& head, const BenchRow& row);
std::string footText(BenchFormat format, const BenchHead& head, const std::vector<BenchRow>& rows,
                     const std::string& endTime);

/// Values that were not what they should be, over all rows.
std::uint64_t wrongOf(const std::vector<BenchRow>& rows);

/// A number in `width` columns with as many decimals (2, 1, 0) as fit, then as an exponent:
/// nccl-tests' rule.
std::string fitted(double value, int width);

}  // namespace isthmus::cli
