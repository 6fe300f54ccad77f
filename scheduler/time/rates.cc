#include "scheduler/time/rates.hpp"

#include <algorithm>

namespace isthmus::scheduler {

double cardShare(const Rates& rates, int groups) {
    const double share = rates.cardBytesPerSecond / std::max(groups, 1);
    const double cap = rates.communicatorBytesPerSecond;
    return cap > 0 ? std::min(share, cap) : share;
}

double secondsOf(const Traffic& call, std::int64_t ranks, const SpanPlace& place,
                 const Rates& rates) {
    if (ranks <= 1) return 0;
    const auto members = static_cast<double>(ranks);
    const auto bytes = static_cast<double>(call.bytes);
    const double trips = call.kind == Collective::kAllReduce ? 2 : 1;
    const double inside = rates.insideBytesPerSecond * rates.bytesReached;
    if (place.nodes <= 1) {
        return trips * (members - 1) * (bytes / members / inside + rates.insideLatencySeconds);
    }
    const double across = cardShare(rates, place.groupsOnNode) * rates.cardReached;
    const double nodes = place.nodes;
    const double here = place.ranksOnNode;
    if (call.kind == Collective::kAllToAll) {
        // Nothing is saved: each rank's part for each rank elsewhere leaves the node.
        const double leaving = here * bytes * (members - here) / members;
        const double staying = bytes * (here - 1) / members;
        return std::max(leaving / across, staying / inside) +
               (nodes - 1) * rates.acrossLatencySeconds;
    }
    if (!place.isHierarchical) {
        return trips * (members - 1) * (bytes / members / across) +
               trips * (members - 1) * rates.acrossLatencySeconds;
    }
    const double leaving = trips * (nodes - 1) / nodes * bytes / across;
    const double staying = trips * (here - 1) / here * bytes / inside;
    return std::max(leaving, staying) + trips * (nodes - 1) * rates.acrossLatencySeconds +
           trips * (here - 1) * rates.insideLatencySeconds;
}

}  // namespace isthmus::scheduler
