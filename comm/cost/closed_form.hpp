#pragma once

#include <optional>
#include <string_view>

#include <isthmus/types.hpp>

namespace isthmus {

/// alpha, beta, gamma of the usual model: time = rounds * alpha + sent * beta + reduced * gamma +
/// messages * overhead. Seconds, and seconds per byte.
struct FlatLink {
    double alphaSeconds = 0;
    double betaSecondsPerByte = 0;
    double gammaSecondsPerByte = 0;
    double overheadSeconds = 0;
};

/// What one rank of a flat algorithm does, in the units of FlatLink.
struct FlatCost {
    double rounds = 0;
    double sentBytes = 0;
    double reducedBytes = 0;
    double messages = 0;

    double seconds(const FlatLink& link) const {
        return rounds * link.alphaSeconds + sentBytes * link.betaSecondsPerByte +
               reducedBytes * link.gammaSecondsPerByte + messages * link.overheadSeconds;
    }
};

/// Cost of a one-level algorithm over `ranks` equal ranks without pipelining, but for the double
/// tree, which is nothing without: many segments are taken to flow. `bytes` is the whole operand
/// (CallShape::bytes). Nothing for a name without a formula.
/// Source: collectives.md 2.3; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005.
std::optional<FlatCost> flatCost(Collective collective, std::string_view algorithm, int ranks,
                                 double bytes);

}  // namespace isthmus
