#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/scale/form.hpp"
#include "comm/selector/select.hpp"

namespace isthmus::scale {

/// One call of one algorithm on one topology.
struct Row {
    std::string topology;
    int ranksOfNode = 1;
    int ranks = 1;
    Collective collective = Collective::kBarrier;
    std::uint64_t bytes = 0;
    std::string algorithm;
    bool isChosen = false;  ///< by the selector
    int segments = 1;
    std::string leftOut;           ///< why there are no seconds; empty: there are
    double seconds = 0;            ///< as the library would run it
    double bytesPerCard = 0;       ///< of the busiest, each way
    double boundBytesPerCard = 0;  ///< no algorithm's busiest card carries less
    double boundSeconds = 0;
    std::optional<FormSeconds> form;  ///< of one pass
    double onePassSeconds = 0;
    double insideSeconds = 0;  ///< of one pass with wires that cost nothing
    double departure = 0;      ///< of one pass from its form, as a share of the latter; 0: within
};

/// What is studied.
struct Question {
    std::vector<int> ranks;
    std::vector<int> ranksOfNodes;
    std::vector<std::string> topologies;
    std::vector<Collective> collectives;
    std::vector<std::uint64_t> sizes;
    bool isChosenOnly = false;
    Machines machines;
    /// More steps than this in memory, or in the passes of one call, are left out.
    std::size_t mostSteps = 4'000'000;
    std::size_t mostServed = 24'000'000;
    unsigned threads = 1;
};

/// Simulates all of it; `found` is told each row, `say` what is under way: by one thread at a time,
/// rows of one algorithm and layout in order, others in any. Errors: those of makePlan() and the
/// simulator; the first ends it.
Status study(const Question& question, const std::function<void(const Row&)>& found,
             const std::function<void(const std::string&)>& say);

}  // namespace isthmus::scale
