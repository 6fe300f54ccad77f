#include "comm/communicator/call_check.hpp"

#include <limits>
#include <string>

#include "comm/reduce/reducer.hpp"

namespace isthmus {

namespace {

Status wrong(const CallRequest& call, const std::string& what) {
    return Status::invalidArgument(std::string(nameOf(call.collective)) + ": " + what);
}

Status checkCounts(const CallRequest& call, int ranks) {
    const std::size_t elementBytes = bytesOf(call.type);
    // Offsets inside one buffer must fit a pointer difference.
    const std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / elementBytes / ranks;
    if (call.counts.uniform > most) {
        return wrong(call, "count " + std::to_string(call.counts.uniform) + " is too large for " +
                               std::to_string(ranks) + " ranks");
    }
    for (const auto* counts : {&call.counts.each, &call.counts.sent, &call.counts.received}) {
        if (counts->empty()) continue;
        if (counts->size() != static_cast<std::size_t>(ranks)) {
            return wrong(call, std::to_string(counts->size()) + " counts for " +
                                   std::to_string(ranks) + " ranks");
        }
        for (const std::size_t count : *counts) {
            if (count > most)
                return wrong(call, "count " + std::to_string(count) + " is too large");
        }
    }
    return {};
}

const char* whatIsDefinedOn(DataType type) {
    if (isComplex(type)) return "; sum and avg are";
    const bool isSmall = type == DataType::kFloat8e4m3 || type == DataType::kFloat8e5m2;
    return isSmall ? "; it can be moved but not reduced" : "";
}

struct Use {
    bool reads = true;
    bool writes = true;
};

Use useOf(const CallRequest& call, Rank me, int ranks) {
    const auto sum = [](const std::vector<std::size_t>& counts) {
        std::size_t total = 0;
        for (const std::size_t count : counts) total += count;
        return total;
    };
    const BlockCounts& counts = call.counts;
    const bool isRoot = call.root == me;
    const bool hasCounts = !counts.each.empty();
    const std::size_t mine = hasCounts ? counts.each[me] : counts.uniform;
    const std::size_t all =
        hasCounts ? sum(counts.each) : counts.uniform * static_cast<std::size_t>(ranks);
    switch (call.collective) {
    case Collective::kBarrier:
        return {false, false};
    case Collective::kBroadcast:
        return {isRoot && mine > 0, mine > 0};
    case Collective::kReduce:
        return {mine > 0, isRoot && mine > 0};
    case Collective::kGather:
        return {mine > 0, isRoot && all > 0};
    case Collective::kScatter:
        return {isRoot && all > 0, mine > 0};
    case Collective::kAllReduce:
        return {mine > 0, mine > 0};
    case Collective::kAllGather:
        return {mine > 0, all > 0};
    case Collective::kReduceScatter:
        return {all > 0, mine > 0};
    case Collective::kAllToAll:
        if (counts.sent.empty()) return {all > 0, all > 0};
        return {sum(counts.sent) > 0, sum(counts.received) > 0};
    }
    return {};
}

}  // namespace

Status checkCall(const CallRequest& call, Rank me, int ranks, Buffers buffers) {
    if (static_cast<int>(call.collective) >= kCollectives)
        return Status::invalidArgument("unknown collective");
    if (static_cast<int>(call.type) >= kDataTypes) {
        return wrong(call, "unknown data type " + std::to_string(static_cast<int>(call.type)));
    }
    if (static_cast<int>(call.op) >= kReduceOps) {
        return wrong(call, "unknown reduction " + std::to_string(static_cast<int>(call.op)));
    }
    if (reduces(call.collective) && !call.reduction && !isReducible(call.type, call.op)) {
        return wrong(call, std::string(nameOf(call.op)) + " is not defined on " +
                               std::string(nameOf(call.type)) + whatIsDefinedOn(call.type));
    }
    if (hasRoot(call.collective) && (call.root < 0 || call.root >= ranks)) {
        return wrong(call, "root " + std::to_string(call.root) +
                               " is not a rank of this communicator (0 to " +
                               std::to_string(ranks - 1) + ")");
    }
    ISTHMUS_TRY(checkCounts(call, ranks));
    if (!call.counts.sent.empty() && call.counts.sent[me] != call.counts.received[me]) {
        return wrong(call, "rank " + std::to_string(me) + " sends itself " +
                               std::to_string(call.counts.sent[me]) + " elements but expects " +
                               std::to_string(call.counts.received[me]));
    }
    if (buffers == Buffers::kIgnored) return {};
    const Use use = useOf(call, me, ranks);
    if (use.reads && call.input == nullptr) return wrong(call, "the send buffer is null");
    if (use.writes && call.output == nullptr) return wrong(call, "the receive buffer is null");
    return {};
}

Status checkTransfer(const PointToPointRequest& transfer, Rank me, int ranks) {
    const std::string what = transfer.isSend ? "send" : "recv";
    const bool isAny = transfer.peer == -1 && !transfer.isSend;
    if (!isAny && (transfer.peer < 0 || transfer.peer >= ranks)) {
        return Status::invalidArgument(what + ": peer " + std::to_string(transfer.peer) +
                                       " is not a rank of this communicator (0 to " +
                                       std::to_string(ranks - 1) + ")");
    }
    if (transfer.bytes > 0 && transfer.buffer == nullptr) {
        return Status::invalidArgument(what + " at rank " + std::to_string(me) +
                                       ": the buffer is null");
    }
    return {};
}

}  // namespace isthmus
