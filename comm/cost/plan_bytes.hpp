#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <isthmus/types.hpp>

#include "comm/algorithm/catalogue.hpp"
#include "comm/cost/bounds.hpp"
#include "comm/plan/plan.hpp"

namespace isthmus {

/// The size that a set of plans is costed at. Blocks are equal (no v-form).
struct PlanCall {
    DataType type = DataType::kFloat32;
    std::int64_t blockElements = 0;  ///< elements of one block of the operand (Chunking)
    int segments = 1;
    int window = 1;

    /// From CallShape::bytes: elements per block, rounded down.
    static PlanCall of(Collective collective, DataType type, std::uint64_t bytes, int ranks);
};

/// Element counts of the two kinds of segment: n split into k parts of floor(n / k) or one more.
struct SegmentSizes {
    std::int64_t small = 0;
    std::int64_t large = 0;
    int largeOnes = 0;
};
SegmentSizes segmentSizes(const PlanCall& call);

/// Bytes of what a slice of `plan` names, in a segment whose blocks have `elements`.
std::uint64_t bytesOf(const Plan& plan, const Slice& slice, std::int64_t elements, DataType type);

/// What part of a block a step moves, or reads where it reduces: 1 is a block, 3 are three. Exact
/// shares, where counts that do not divide leave some chunks an element more.
double shareOfBlock(const Plan& plan, const Step& step);

/// Payload between nodes by rank: counted from the sends, exactly, over all segments.
std::vector<WireBytes> wireBytesOfRanks(std::span<const Plan> plans, const Layout& layout,
                                        const PlanCall& call);

/// The same, summed by node.
std::vector<WireBytes> wireBytesOfNodes(std::span<const Plan> plans, const Layout& layout,
                                        const PlanCall& call);

}  // namespace isthmus
