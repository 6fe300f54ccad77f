#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus::cli {

/// Who is where in a job: the one grammar of nodes of every subcommand.
///
/// `MxR` is M nodes of R ranks, `3+2+1` three nodes of unlike many ranks; both mix: `2x4+1` is
/// `4+4+1`. A plain `N` is one node of N ranks. A slash ends a rack: `2x4/2x4` are two racks of two
/// nodes each.
class NodeSpec {
public:
    /// What one machine can start; a slip of the finger is more.
    static constexpr int kMaxRanks = 4096;

    enum class Order {
        kBlock,       ///< ranks 0..r-1 on the first node, the next on the second, ...
        kRoundRobin,  ///< dealt one a node in turn, full nodes left out
    };

    /// kInvalidArgument says what is wrong and what the grammar is.
    static Result<NodeSpec> parse(std::string_view text);
    static Result<Order> parseOrder(std::string_view text);

    int nodes() const { return static_cast<int>(ranksOfNode_.size()); }
    int ranks() const;
    int ranksOf(int node) const { return ranksOfNode_[static_cast<std::size_t>(node)]; }

    /// One number a rank: its node.
    std::vector<int> nodeOfRank(Order order) const;

    /// By node; empty when no racks are said.
    const std::vector<int>& racks() const { return racks_; }

    /// As short as the grammar allows: "2x4", "3+2+1", "2x4/2x4".
    std::string text() const;

private:
    Status addRack(std::string_view rack, std::string_view whole);
    std::string textOf(std::size_t first, std::size_t nodes) const;

    std::vector<int> ranksOfNode_;
    std::vector<int> racks_;
};

}  // namespace isthmus::cli
