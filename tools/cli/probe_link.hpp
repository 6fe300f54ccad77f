#pragma once

#include <isthmus/isthmus.h>

#include <cstdint>
#include <utility>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus::cli {

/// Times messages between ranks. Every method is collective over the communicator; `pairs` are the
/// same on every rank, and each rank sends in one of them at most and receives in one at most.
class ProbeLink {
public:
    using Pair = std::pair<Rank, Rank>;  ///< from, to

    explicit ProbeLink(isthmusComm_t comm, Rank me, int ranks)
        : comm_(comm), me_(me), ranks_(ranks) {}
    ProbeLink(const ProbeLink&) = delete;
    ProbeLink& operator=(const ProbeLink&) = delete;
    ~ProbeLink();

    Status start();

    /// What a receiver was brought between its first message and its last, by its node's clock.
    struct Arrival {
        double firstSeconds = 0;
        double lastSeconds = 0;
        double bytes = 0;
    };

    /// Messages of each pair for some time, all pairs at once.
    Result<std::vector<Arrival>> stream(const std::vector<Pair>& pairs);

    /// Seconds of one small message, half of the median round trip, of each pair.
    Result<std::vector<double>> latencySeconds(const std::vector<Pair>& pairs);

private:
    /// So many messages of so many bytes: what a receiver wants to be sent.
    struct Dose {
        std::uint64_t bytes = 0;
        std::uint64_t messages = 0;
    };

    Result<Arrival> exchange(Rank to, Rank from, const Dose& out, const Dose& in);
    static Dose doseAfter(const Arrival& look);
    Result<Dose> agree(Rank to, Rank from, const Dose& in);
    Result<double> pingPong(Rank peer, bool isFirst);
    Result<std::vector<double>> shared(std::vector<double> mine);

    isthmusComm_t comm_;
    Rank me_;
    int ranks_;
    std::byte* memory_ = nullptr;
};

}  // namespace isthmus::cli
