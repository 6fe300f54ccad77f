#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "benchmarks/scale/topology.hpp"

namespace isthmus::scale {

/// Seconds of one pass by the closed forms: the rounds' latency, and besides it the card and the
/// processor's work on messages one after the other (most), or as much at once as the algorithm
/// lets be (least).
struct FormSeconds {
    double least = 0;
    double most = 0;
    double messages = 0;  ///< of one rank
};

/// The part between nodes, of a job whose nodes are equal: the flat form over the nodes with each
/// rank's share of the operand. Nothing for algorithms without a form: trees that live on segments,
/// and those by messages alone where some links are inside nodes.
std::optional<FormSeconds> formOf(Collective collective, std::string_view algorithm,
                                  const Topology& topology, std::uint64_t bytes);

}  // namespace isthmus::scale
