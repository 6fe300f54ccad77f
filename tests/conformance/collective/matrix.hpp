#pragma once

#include <vector>

#include "tests/conformance/collective/trial.hpp"

namespace isthmus::conformance {

/// Operand sizes of the matrix; "segment" is what one pass of a plan moves.
enum class Size : std::uint8_t {
    kNothing,
    kOne,
    kSeventeen,
    k4097,
    kSegmentLessOne,
    kSegment,
    kSegmentAndOne,
    kThreeSegmentsAndFive,
};
inline constexpr int kSizes = 8;

/// The ways in which a call is made. Blocks of unequal sizes, some of them nothing; several tensors
/// in one call; several calls under way at once; a call that was prepared before; reductions with
/// the option of the same bits everywhere, and of one rounding.
enum class Form : std::uint8_t {
    kPlain,
    kUnequal,
    kCoalesced,
    kTogether,
    kPrepared,
    kDeterministic,
    kRoundedOnce,
};
inline constexpr int kForms = 7;

/// Plain operators, then those that programs bring along.
inline constexpr int kOperators = kReduceOps + 3;

/// One cell of types x operators x collectives x forms x sizes x memory x place x root.
struct Row {
    Collective collective;
    Form form;
    DataType type;
    int op;  ///< below kOperators
    Size size;
    bool isMapped;
    bool isInPlace;
    bool isLastRoot;
};

/// Rows in which every combination of values of any `strength` factors occurs that can occur at all
/// (2: pairwise). An operator counts where the collective reduces, a root where it has one. Chosen
/// greedily from a shuffled list of all cells: first those that bring the most new combinations.
/// Always the same ones.
std::vector<Row> coveringRows(int strength);

/// The values of the factors that count for `row`, each a number of its own below kFactorValues.
std::vector<int> factorsOf(const Row& row);
inline constexpr int kFactorValues = kCollectives + kForms + kDataTypes + kOperators + kSizes + 6;

/// For `ranks` ranks and segments of `segmentBytes`.
Trial trialOf(const Row& row, int ranks, std::size_t segmentBytes, std::uint64_t seed);

/// Makes the call of a row, or its calls, and compares. Adds what an all-reduce gave to `digests`.
testing::AssertionResult runRow(const Row& row, std::size_t segmentBytes, std::uint64_t seed,
                                Communicator& communicator, std::vector<std::uint64_t>& digests);

}  // namespace isthmus::conformance
