#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus {

/// One wish of ISTHMUS_ALGORITHM: for which calls, and which algorithm.
///
/// Its text is `[collective[@nodes][:least-most]=]algorithm`: `ring`, `all_reduce=ring`,
/// `all_reduce@2+2:64K-1M=two_level_ring`. Nodes are counts of ranks in the order of the nodes;
/// sizes are whole operands, as nccl-tests counts, both ends included; either end may be left out.
struct AlgorithmRule {
    std::optional<Collective> collective;  ///< none: every one that has the algorithm
    std::vector<int> nodes;                ///< ranks of each node of the layout; empty: any layout
    std::uint64_t leastBytes = 0;
    std::uint64_t mostBytes = std::numeric_limits<std::uint64_t>::max();
    std::string algorithm;

    bool operator==(const AlgorithmRule&) const = default;

    bool isFor(Collective called, std::uint64_t bytes, const Layout& layout) const;
    std::string text() const;
};

using AlgorithmRules = std::vector<AlgorithmRule>;

/// The rules of a value of ISTHMUS_ALGORITHM, in their order: a list with commas, or the path of a
/// JSON file (a value with a slash, or that ends in .json), as `isthmus tune` writes it; the
/// installed algorithms.schema.json describes it.
/// Errors: kConfiguration (what is wrong, where, and what is known instead).
Result<AlgorithmRules> readAlgorithmRules(std::string_view value);

/// The rules as one line of the grammar above: what ranks compare, wherever theirs came from.
std::string textOf(const AlgorithmRules& rules);

/// Ranks of each node, in the order of the nodes.
std::vector<int> ranksOfNodes(const Layout& layout);

}  // namespace isthmus
