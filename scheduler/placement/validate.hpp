#pragma once

#include <string>
#include <vector>

#include "scheduler/placement/placement.hpp"

namespace isthmus::scheduler {

/// Where a rank of a running job really is; the device is -1 where nobody said.
struct RealSeat {
    std::string host;
    int device = -1;
};

/// Reads a map from ranks to hosts: JSON (a list of hosts, a list of {"rank", "node", "device"}, or
/// an object from ranks to either), or text with a line a rank: "HOST", "RANK HOST" or "RANK HOST
/// DEVICE". kConfiguration says which line or path is wrong.
Result<std::vector<RealSeat>> realSeatsOf(const std::string& text);

/// What a running job has of its placement.
struct Verdict {
    struct Move {
        int rank = 0;
        Seat planned;
        RealSeat real;
    };
    std::vector<Move> moves;          ///< ranks that are not where they were planned
    std::vector<std::string> causes;  ///< what explains them: "hosts are in the order of text"
    NodeCost real;                    ///< of the job as it runs
    bool canBeCounted = false;        ///< all hosts are known

    bool holds() const { return moves.empty() && causes.empty(); }
};

Verdict validate(const Placement& placement, const std::vector<RealSeat>& real);

/// Gives the ranks of whole nodes other nodes of the same size and the same rack, so that as many
/// ranks as possible keep the place that `before` gave to the rank with the same coordinates. Bytes
/// stay. Returns how many keep it.
int keepSeats(const Placement& before, Placement& after);

}  // namespace isthmus::scheduler
