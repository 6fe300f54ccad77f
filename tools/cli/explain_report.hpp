#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

#include "comm/algorithm/catalogue.hpp"
#include "comm/cost/bounds.hpp"
#include "comm/plan/plan.hpp"
#include "comm/selector/select.hpp"

namespace isthmus::cli {

struct ExplainQuestion {
    Collective collective = Collective::kBarrier;
    DataType type = DataType::kFloat32;
    std::uint64_t bytes = 0;
    Rank root = 0;
    Layout layout;
    std::string layoutText;
    bool isMapped = true;  ///< false: nodes stage through shared scratch
    /// By node, or one for all; empty: the model's default.
    std::vector<double> lineBitsPerSecond;
    double rackBitsPerSecond = 0;  ///< of a rack's link; 0: that of a node
    std::string algorithm;         ///< "": choose
    SelectorOptions options;       ///< what the environment says: rules, sizes of passes
};

/// One algorithm that fits the layout.
struct ExplainCandidate {
    Algorithm algorithm;
    Selection selection;
    double seconds = 0;                ///< simulated
    std::vector<WireBytes> wireBytes;  ///< by node, counted from the plans
    std::uint64_t busiest = 0;         ///< the largest of them
    std::uint64_t busiestRack = 0;     ///< over the link of a rack, where there are any
    std::size_t steps = 0;             ///< of rank 0's plan
};

struct ExplainAnswer {
    std::uint64_t operandBytes = 0;  ///< what whole elements and equal blocks leave of the bytes
    LinkModel model;
    WireBound bound;
    WireBound rackBound;  ///< of the links of racks; nothing without
    double boundSeconds = 0;
    std::vector<ExplainCandidate> candidates;  ///< fastest first
    std::string chosen;
    std::string why;
    std::vector<Plan> chosenPlans;
};

/// Builds, counts and times every candidate.
/// Errors: kInvalidArgument (unknown algorithm: the known ones are named).
Result<ExplainAnswer> answerOf(const ExplainQuestion& question);

std::string answerText(const ExplainQuestion& question, const ExplainAnswer& answer);
std::string answerJson(const ExplainQuestion& question, const ExplainAnswer& answer);

}  // namespace isthmus::cli
