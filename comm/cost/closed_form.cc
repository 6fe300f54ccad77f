#include "comm/cost/closed_form.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "comm/algorithm/butterfly.hpp"

namespace isthmus {
namespace {

// Rounds of anything that doubles what is known in each.
double roundsOfDoubling(int ranks) {
    return static_cast<double>(std::bit_width(static_cast<unsigned>(ranks - 1)));
}

/// Recursive halving of `bytes` over the largest power of two of ranks, as Rabenseifner's
/// reduce-scatter does; others fold into a neighbour before.
struct Halving {
    double rounds;
    double sent;
    double folded;  ///< 1: somebody folds

    Halving(double ranks, double bytes) {
        const auto workers = std::bit_floor(static_cast<unsigned>(ranks));
        rounds = roundsOfDoubling(static_cast<int>(workers));
        sent = bytes * (workers - 1) / workers;
        folded = workers < ranks ? 1 : 0;
    }
};

/// Phases of an exchange by digits: in each, all with all of those that differ in one.
struct Butterfly {
    double phases = 0;
    double messages = 0;
    double hops = 0;  ///< of all blocks of an all-to-all from one rank, in blocks

    explicit Butterfly(int ranks) {
        for (const int radix : radicesOf(ranks)) {
            phases += 1;
            messages += radix - 1;
            hops += static_cast<double>(ranks) * (radix - 1) / radix;
        }
    }
};

std::optional<FlatCost> allReduceCost(std::string_view algorithm, double ranks, double rounds,
                                      double bytes) {
    const double peers = ranks - 1;
    const double part = peers / ranks;
    if (algorithm == "ring") return FlatCost{2 * peers, 2 * bytes * part, bytes * part, 2 * peers};
    if (algorithm == "exchange") return FlatCost{2, 2 * bytes * part, bytes * part, 2 * peers};
    if (algorithm == "doubling") return FlatCost{rounds, bytes * rounds, bytes * rounds, rounds};
    if (algorithm == "butterfly") {
        const Butterfly digits(static_cast<int>(ranks));
        return FlatCost{2 * digits.phases, 2 * bytes * part, bytes * part, 2 * digits.messages};
    }
    if (algorithm == "bidirectional_ring") {
        return FlatCost{2 * std::floor(ranks / 2), 2 * bytes * part, bytes * part, 2 * peers};
    }
    if (algorithm == "double_tree") {
        const double levels = std::floor(std::log2(ranks));
        return FlatCost{2 * levels, 2 * bytes, bytes, 4};
    }
    if (algorithm == "halving") {
        const Halving halving(ranks, bytes);
        const double more = 2 * halving.folded;
        return FlatCost{2 * halving.rounds + more, 2 * halving.sent + more * bytes,
                        halving.sent + halving.folded * bytes, 2 * halving.rounds + more};
    }
    return std::nullopt;
}

/// Bruck's rounds to base `radix`: in each, one message for every digit.
struct Digits {
    double rounds = 0;
    double messages = 0;
    double hops = 0;  ///< digits other than 0 of 1 to ranks - 1 together

    Digits(int ranks, int radix) {
        for (int unit = 1; unit < ranks; unit *= radix) {
            rounds += 1;
            messages += std::min(radix - 1, (ranks - 1) / unit);
            for (int distance = unit; distance < ranks; ++distance) {
                hops += distance / unit % radix != 0 ? 1 : 0;
            }
        }
    }
};

std::optional<FlatCost> allToAllCost(std::string_view algorithm, int ranks, double bytes) {
    const double part = bytes / ranks;
    if (algorithm == "pairwise") return FlatCost{ranks - 1.0, part * (ranks - 1), 0, ranks - 1.0};
    if (algorithm == "exchange") return FlatCost{1, part * (ranks - 1), 0, ranks - 1.0};
    if (algorithm == "butterfly") {
        const Butterfly digits(ranks);
        return FlatCost{digits.phases, part * digits.hops, 0, digits.messages};
    }
    if (algorithm != "bruck" && algorithm != "bruck4") return std::nullopt;
    const Digits digits(ranks, algorithm == "bruck" ? 2 : 4);
    return FlatCost{digits.rounds, part * digits.hops, 0, digits.messages};
}

std::optional<FlatCost> allGatherCost(std::string_view algorithm, double ranks, double rounds,
                                      double bytes) {
    const double peers = ranks - 1;
    const double part = peers / ranks;
    if (algorithm == "ring") return FlatCost{peers, bytes * part, 0, peers};
    if (algorithm == "exchange") return FlatCost{1, bytes * part, 0, peers};
    if (algorithm == "bidirectional_ring") {
        return FlatCost{std::floor(ranks / 2), bytes * part, 0, peers};
    }
    if (algorithm == "butterfly") {
        const Butterfly digits(static_cast<int>(ranks));
        return FlatCost{digits.phases, bytes * part, 0, digits.messages};
    }
    if (algorithm == "bruck4") {
        const Digits digits(static_cast<int>(ranks), 4);
        return FlatCost{digits.rounds, bytes * part, 0, digits.messages};
    }
    if (algorithm == "bruck" || algorithm == "doubling") {
        return FlatCost{rounds, bytes * part, 0, rounds};
    }
    return std::nullopt;
}

std::optional<FlatCost> rootedCost(std::string_view algorithm, double ranks, double rounds,
                                   double bytes, bool addsUp) {
    const double reduced = addsUp ? bytes : 0;
    const double peers = ranks - 1;
    if (algorithm == "binomial") {
        return FlatCost{rounds, bytes * rounds, reduced * rounds, rounds};
    }
    if (algorithm == "double_tree") {
        return FlatCost{1 + std::floor(std::log2(peers)), bytes, reduced, 2};
    }
    if (algorithm == "chain") return FlatCost{peers, bytes * peers, reduced * peers, peers};
    return std::nullopt;
}

}  // namespace

std::optional<FlatCost> flatCost(Collective collective, std::string_view algorithm, int ranks,
                                 double bytes) {
    if (ranks < 2) return FlatCost{};
    const double rounds = roundsOfDoubling(ranks);
    const double all = ranks;
    const double part = (all - 1) / all;
    switch (collective) {
    case Collective::kAllReduce:
        return allReduceCost(algorithm, all, rounds, bytes);
    case Collective::kAllGather:
        return allGatherCost(algorithm, all, rounds, bytes);
    case Collective::kReduceScatter: {
        // Fold and tell: the whole operand to the neighbour, a block back.
        const Halving halving(all, bytes);
        const double told = halving.folded * bytes / all;
        if (algorithm == "halving") {
            return FlatCost{
                halving.rounds + 2 * halving.folded, halving.sent + halving.folded * bytes + told,
                halving.sent + halving.folded * bytes, halving.rounds + 2 * halving.folded};
        }
        std::optional<FlatCost> cost = allGatherCost(algorithm, all, rounds, bytes);
        if (cost) cost->reducedBytes = bytes * part;
        return cost;
    }
    case Collective::kAllToAll:
        return allToAllCost(algorithm, ranks, bytes);
    case Collective::kBroadcast:
        return rootedCost(algorithm, all, rounds, bytes, false);
    case Collective::kReduce:
        return rootedCost(algorithm, all, rounds, bytes, true);
    case Collective::kGather:
    case Collective::kScatter:
        if (algorithm != "linear") return std::nullopt;
        return FlatCost{1, bytes * part, 0, all - 1};
    case Collective::kBarrier:
        if (algorithm != "dissemination") return std::nullopt;
        return FlatCost{rounds, 0, 0, rounds};
    }
    return std::nullopt;
}

}  // namespace isthmus
