#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/engine/engine.hpp"

namespace isthmus {

/// A transport towards one rank that is to be tried. The rank tries the same at the same time.
struct WireUp {
    Rank peer = 0;
    ProcessId process;
    Transport* transport = nullptr;
    Bytes address;  ///< what the rank's transport of that name said
};

/// How much goes to and fro.
struct WireUpDose {
    int pings = 6;  ///< of 8 bytes; the first opens the connection and is not timed
    int transfers = 2;
    /// Long enough for a card to write it (RmaOptions::directBytes), and twice as much of memory
    /// for each trial; a multiple of 8.
    std::size_t transferBytes = std::size_t{64} << 10;
};

/// What became of it.
struct WireUpTrial {
    Rank peer = 0;
    std::string transport;
    Status outcome;             ///< ok: everything came back as it was sent
    double latencySeconds = 0;  ///< of the quickest ping, one way
    double bytesPerSecond = 0;  ///< of the quickest transfer, one way
};

/// Sends messages to and fro over each of `all` at the same time, and checks and times what comes
/// back. One trial for each, in that order. `id`: the same at both ends, and new for each trial of
/// one endpoint. What is silent is given up when every rank has answered over something and 2 s
/// brought nothing more; before that, a warning says who is waited for. Returns at `until` at the
/// latest, or up to 3 s later where memory is in the hands of a card. Any thread but the engine's.
std::vector<WireUpTrial> wireUp(Engine& engine, std::uint64_t id, Rank me,
                                const std::vector<WireUp>& all, const WireUpDose& dose, Time until);

}  // namespace isthmus
