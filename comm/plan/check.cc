#include <algorithm>

#include "comm/plan/builder.hpp"
#include "comm/plan/print.hpp"

namespace isthmus {
namespace {

class Checker {
public:
    Checker(const Plan& plan, std::span<const int> nodeOfRank)
        : plan_(plan), nodeOfRank_(nodeOfRank), operand_(Operand::of(plan)) {}

    Status check() const {
        ISTHMUS_TRY(checkHead());
        for (std::size_t index = 0; index < plan_.steps.size(); ++index) {
            if (Status status = checkStep(plan_.steps[index]); !status.ok()) {
                return status.within(std::string(nameOf(plan_.collective)) + " " + plan_.algorithm +
                                     " rank " + std::to_string(plan_.me) + " step " +
                                     std::to_string(index));
            }
        }
        return {};
    }

private:
    bool isRank(Rank rank) const { return rank >= 0 && rank < plan_.ranks; }

    Status checkHead() const {
        if (plan_.ranks < 1 || !isRank(plan_.me) || !isRank(plan_.root)) {
            return Status::invalidArgument("rank " + std::to_string(plan_.me) + " or root " +
                                           std::to_string(plan_.root) + " of " +
                                           std::to_string(plan_.ranks));
        }
        if (nodeOfRank_.size() != static_cast<std::size_t>(plan_.ranks)) {
            return Status::invalidArgument("nodes of " + std::to_string(nodeOfRank_.size()) +
                                           " ranks for " + std::to_string(plan_.ranks));
        }
        ISTHMUS_TRY(checkSumming());
        const auto& cuts = plan_.chunking.cuts;
        const bool isSpan = cuts.size() >= 2 && cuts.front().numerator == 0 &&
                            cuts.back().numerator == cuts.back().denominator;
        if (!isSpan) return Status::invalidArgument("chunking must go from 0 to 1");
        return {};
    }

    Status checkSumming() const {
        const std::vector<Rank>& summing = plan_.summing;
        if (summing.empty()) return {};
        const bool isAscending = std::adjacent_find(summing.begin(), summing.end(),
                                                    std::greater_equal<>()) == summing.end();
        const bool isPart =
            plan_.contributors() > 0 && isRank(summing.front()) && isRank(summing.back());
        if (isAscending && isPart && plan_.collective == Collective::kAllReduce) return {};
        return Status::invalidArgument("ranks that only add are some of an all-reduce, ascending");
    }

    Status checkStep(const Step& step) const {
        ISTHMUS_TRY(checkPeers(step));
        ISTHMUS_TRY(checkLengths(step));
        for (const Location& location : step.target) {
            if (location.buffer == Buffer::kInput) {
                return Status::invalidArgument("writes to " + textOf(location));
            }
            ISTHMUS_TRY(checkLocation(location));
        }
        for (const Slice& source : step.sources) {
            for (const Location& location : source) ISTHMUS_TRY(checkLocation(location));
        }
        return {};
    }

    Status checkPeers(const Step& step) const {
        for (const Rank peer : step.peers) {
            if (!isRank(peer) || peer == plan_.me) {
                return Status::invalidArgument("names peer " + std::to_string(peer));
            }
        }
        std::vector<Rank> peers = step.peers;
        std::sort(peers.begin(), peers.end());
        if (std::adjacent_find(peers.begin(), peers.end()) != peers.end()) {
            return Status::invalidArgument("names a peer twice");
        }
        return {};
    }

    Status checkLengths(const Step& step) const {
        if (step.verb == Verb::kReduce && step.sources.empty()) {
            return Status::invalidArgument("reduces nothing");
        }
        if (step.verb != Verb::kCopy && step.verb != Verb::kReduce) return {};
        for (const Slice& source : step.sources) {
            if (step.verb == Verb::kReduce) ISTHMUS_TRY(checkAdded(source));
            if (source.size() != step.target.size()) {
                return Status::invalidArgument("slices of " + std::to_string(step.target.size()) +
                                               " and " + std::to_string(source.size()) + " chunks");
            }
        }
        return {};
    }

    /// What is read through the system can be copied and nothing else.
    Status checkAdded(const Slice& source) const {
        if (plan_.mapping != Mapping::kRead) return {};
        for (const Location& location : source) {
            if (location.rank != plan_.me && location.buffer == Buffer::kInput)
                return Status::invalidArgument("not mapped here: " + textOf(location));
        }
        return {};
    }

    /// Peers' outputs are not open to kRead; their inputs are, to be read.
    bool isOpen(Buffer buffer) const {
        if (buffer == Buffer::kScratch) return false;
        if (buffer == Buffer::kShared) return plan_.mapping != Mapping::kNone;
        return plan_.mapping == Mapping::kAll ||
               (plan_.mapping == Mapping::kRead && buffer == Buffer::kInput);
    }

    Status checkLocation(const Location& location) const {
        if (!exists(location)) return Status::invalidArgument("no such " + textOf(location));
        if (location.rank == plan_.me) return {};
        const auto node = [&](Rank rank) { return nodeOfRank_[static_cast<std::size_t>(rank)]; };
        if (!isOpen(location.buffer) || node(location.rank) != node(plan_.me)) {
            return Status::invalidArgument("not mapped here: " + textOf(location));
        }
        return {};
    }

    /// Scratch of peers is not known here; shared slots are the same on all ranks of a node.
    bool exists(const Location& location) const {
        if (!isRank(location.rank) || location.chunk < 0) return false;
        const auto slot = static_cast<std::size_t>(location.chunk);
        if (location.buffer == Buffer::kScratch) return slot < plan_.scratch.size();
        if (location.buffer == Buffer::kShared) return slot < plan_.shared.size();
        return operand_.has(location);
    }

    const Plan& plan_;
    const std::span<const int> nodeOfRank_;
    const Operand operand_;
};

/// Of one all-to-all plan that checkPlan() has passed.
class BlockChecker {
public:
    BlockChecker(const Plan& plan, std::span<const int> nodeOfRank)
        : plan_(plan), nodeOfRank_(nodeOfRank), operand_(Operand::of(plan)) {}

    Status checkStep(const Step& step) const {
        const bool isOrder = step.verb == Verb::kSignal || step.verb == Verb::kWait;
        for (const Rank peer : step.peers) {
            if (isOrder && nodeOfRank_[peer] != nodeOfRank_[plan_.me])
                return Status::invalidArgument("meets rank " + std::to_string(peer) +
                                               " of another node");
        }
        ISTHMUS_TRY(checkSlice(step.target));
        for (const Slice& source : step.sources) ISTHMUS_TRY(checkSlice(source));
        return {};
    }

private:
    Status checkSlice(const Slice& slice) const {
        for (const Location& location : slice) {
            if (!isKnown(location))
                return Status::invalidArgument("touches a block whose size it does not know: " +
                                               textOf(location));
        }
        return {};
    }

    bool isKnown(const Location& location) const {
        const ChunkName name = nameOf(location);
        const Rank source = name.block / plan_.ranks;
        const Rank destination = name.block % plan_.ranks;
        if (location.rank == plan_.me) return source == plan_.me || destination == plan_.me;
        // Shared slots are alike: which of them are for me shows in mine.
        return destination == plan_.me && location.buffer != Buffer::kOutput;
    }

    ChunkName nameOf(const Location& location) const {
        if (location.buffer == Buffer::kShared) return plan_.shared[location.chunk];
        if (location.buffer == Buffer::kScratch) return plan_.scratch[location.chunk];
        return operand_.meaning(location);
    }

    const Plan& plan_;
    const std::span<const int> nodeOfRank_;
    const Operand operand_;
};

}  // namespace

Status checkUnequalBlocks(const Plan& plan, std::span<const int> nodeOfRank) {
    const BlockChecker checker(plan, nodeOfRank);
    for (std::size_t index = 0; index < plan.steps.size(); ++index) {
        if (Status status = checker.checkStep(plan.steps[index]); !status.ok())
            return status.within(plan.algorithm + " rank " + std::to_string(plan.me) + " step " +
                                 std::to_string(index));
    }
    return {};
}

Status checkPlan(const Plan& plan, std::span<const int> nodeOfRank) {
    return Checker(plan, nodeOfRank).check();
}

}  // namespace isthmus
