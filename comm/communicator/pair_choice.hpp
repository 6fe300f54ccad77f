#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator/calling_card.hpp"
#include "comm/communicator/wire_up.hpp"

namespace isthmus {

/// What one end found out about a transport towards the other.
struct TransportVerdict {
    std::string transport;
    std::string why;  ///< empty: it is proved
};

/// What carries the messages of two processes on different nodes, and why.
struct PairChoice {
    std::string transport;  ///< empty: they have none in common
    /// What stands before it in the order of the lower rank, or in the other's list only, or was
    /// asked for and is missing: and what is wrong with it.
    std::vector<TransportVerdict> rejected;

    bool operator==(const PairChoice& other) const;
};

/// Names of the transports that both offer, in the order of the rank with the lower number.
std::vector<std::string> commonTransports(const std::vector<CallingCard>& cards, Rank one,
                                          Rank other);

/// The first transport that both have and both have proved; where they proved none, the last that
/// both have, so that a call says what is wrong with it. A pure function of what both know: the two
/// ends choose alike. `byOne`, `byOther`: verdicts of trials; empty: not tried.
PairChoice choosePair(const std::vector<CallingCard>& cards, Rank one, Rank other,
                      const std::vector<TransportVerdict>& byOne,
                      const std::vector<TransportVerdict>& byOther);

/// kConfiguration, alike on all ranks: the first two ranks of different nodes that have no
/// transport in common, and what each has.
Status checkTransports(const std::vector<CallingCard>& cards,
                       const std::vector<std::vector<Rank>>& nodes);

/// Choices of this process, for as long as it lives: pairs try their transports once. Any thread.
class PairChoices {
public:
    std::optional<PairChoice> find(const ProcessId& peer) const;
    void keep(const ProcessId& peer, PairChoice choice);

private:
    mutable std::mutex mutex_;
    std::map<ProcessId, PairChoice> choices_;  // guarded by mutex_
};

/// Lines for the log, ranks of one kind together: "tcp with ranks 2, 5, not ucx: ...". Only where
/// something was rejected or measured.
struct ChoiceLine {
    bool isWarning = false;  ///< something that was asked for is not used
    std::string text;
};
std::vector<ChoiceLine> describeChoices(const std::map<Rank, PairChoice>& choices,
                                        const std::vector<WireUpTrial>& trials);

/// "12.3 us, 1.25 GB/s", or from the least to the most of several.
std::string describeFigures(const std::vector<const WireUpTrial*>& trials);

}  // namespace isthmus
