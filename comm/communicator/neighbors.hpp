#pragma once

#include <memory>
#include <vector>

#include "comm/communicator/communicator.hpp"

namespace isthmus {

/// An exchange along the edges of a graph, of which each rank knows its own: a message for every
/// edge. Edges of one pair of ranks meet in the order of the lists; a rank may be its own
/// neighbour.
class NeighborExchange {
public:
    struct Edge {
        Rank peer = 0;
        std::byte* buffer = nullptr;  ///< only read when it leaves
        std::size_t bytes = 0;
    };

    NeighborExchange(std::vector<Edge> arriving, std::vector<Edge> leaving)
        : arriving_(std::move(arriving)), leaving_(std::move(leaving)) {}

    /// What is wrong with any edge, before any message starts.
    Status prepare(Communicator& communicator, const CallOptions& options) const;
    std::shared_ptr<Work> start(Communicator& communicator, const CallOptions& options) const;

private:
    std::vector<PointToPointRequest> messages() const;

    std::vector<Edge> arriving_;
    std::vector<Edge> leaving_;
};

}  // namespace isthmus
