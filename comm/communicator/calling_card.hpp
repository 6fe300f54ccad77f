#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/bootstrap/socket.hpp"
#include "comm/communicator/exchanger.hpp"
#include "comm/communicator/runtime.hpp"
#include "comm/memory/peer_read.hpp"

namespace isthmus {

/// A transport by which a rank can be reached from other nodes.
struct TransportOffer {
    std::string name;
    Bytes address;
};

/// What a rank says of itself before a communicator is made.
struct CallingCard {
    ProcessId process;
    std::uint64_t communicator = 0;
    std::string place;    ///< "node-a pid 812"
    std::string options;  ///< those that must agree
    Bytes inside;         ///< how ranks of its node share memory with it; empty: they cannot
    std::vector<TransportOffer> between;  ///< the best first
    std::vector<MissingTransport> missing;
    std::uint64_t lineBitsPerSecond = 0;  ///< 0: not known
    std::uint8_t cards = 1;
    bool onlySums = false;
    RackWord rack;
    Runtime::Host host;
    Bytes cpuMask;                  ///< that it may run on: bit by number, no zero bytes at the end
    std::int32_t cpusAllowed = 1;   ///< no more than these; fewer where a container says so
    bool sharesProcessors = false;  ///< with other ranks, as an earlier communicator found
    ReadMark mark;                  ///< of nobody where ISTHMUS_READ_PEERS is never

    /// Null: not offered.
    const TransportOffer* offer(std::string_view name) const;
};

/// Everybody's, of `ranks` ranks. Collective: one exchange ("cards").
/// Errors: those of the exchange, kMismatch (versions), kConfiguration (options that must agree,
/// a rank that other hosts cannot reach), kInvalidArgument (one process twice).
Result<std::vector<CallingCard>> exchangeCards(Runtime& runtime, Exchanger& exchanger, Rank me,
                                               int ranks, Deadline deadline);

}  // namespace isthmus
