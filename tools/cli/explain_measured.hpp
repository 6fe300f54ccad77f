#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

#include "tools/cli/explain_report.hpp"

namespace isthmus::cli {

/// What one row of `isthmus bench --format json` says about one size.
struct MeasuredRow {
    std::uint64_t bytes = 0;
    std::string type;  ///< as nccl-tests names it
    Rank root = 0;
    double seconds = 0;                        ///< out of place
    std::optional<std::uint64_t> wireBytes{};  ///< of the busiest card, with --wire
};

/// A file of `isthmus bench --format json`.
struct Measurement {
    std::string collective;
    std::vector<int> nodeOfRank;
    bool isMapped = true;   ///< false: bench ran with --malloc
    std::string algorithm;  ///< "": as chosen
    std::vector<MeasuredRow> rows;
};

/// Errors: kInvalidArgument (says what is not as bench writes it).
Result<Measurement> measurementOf(std::string_view json);

/// One size, predicted and measured.
struct Comparison {
    MeasuredRow measured;
    std::string algorithm;
    double predictedSeconds = 0;
    std::uint64_t predictedWireBytes = 0;

    double ratio() const { return measured.seconds / predictedSeconds; }  ///< above 1: slower
};

/// Predicts every row as `question` would, whose collective, type, size, root, layout, memory and
/// algorithm are the measurement's.
Result<std::vector<Comparison>> compare(const Measurement& measurement, ExplainQuestion question);

std::string comparisonText(const Measurement& measurement, const std::vector<Comparison>& all);
std::string comparisonJson(const Measurement& measurement, const std::vector<Comparison>& all);

}  // namespace isthmus::cli
