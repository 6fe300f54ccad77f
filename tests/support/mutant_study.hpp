#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/proof/mutate.hpp"

namespace isthmus::test {

/// What became of mutants. Equal: the edge is implied, or the graph is the same up to the order of
/// the text. Harmless: it holds, all conflicts are still ordered by another count, and the
/// interpreter cannot break it.
struct Tally {
    int total = 0;
    int caught = 0;
    int equal = 0;
    int harmless = 0;

    Tally& operator+=(const Tally& other);
};

struct MutantStudy {
    std::array<Tally, kDamages> byDamage{};
    std::vector<std::string> holes;  ///< accepted, and broken or not shown harmless

    MutantStudy& operator+=(const MutantStudy& other);
    Tally sum() const;
    /// "mutants caught 812/812 (840 made, 20 equal, 8 order nothing that conflicts; ...)": a mutant
    /// that is neither caught nor shown to change nothing makes the second number larger.
    std::string text() const;
};

/// Damages the plans at up to `cap` places of each kind and asks prover and interpreter. The plans
/// themselves must hold.
MutantStudy studyMutants(const std::vector<Plan>& plans, std::span<const int> nodeOfRank,
                         std::uint64_t seed, int cap);

/// Seeds 0 to runs - 1, nobody, everybody and some ranks in place (whose plans allow), sends
/// that wait and do not: what went wrong first, or empty.
std::string interpretOften(const std::vector<Plan>& plans, std::uint64_t seed, int runs);

}  // namespace isthmus::test
