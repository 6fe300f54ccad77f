#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/transport/tcp/tcp_transport.hpp"

namespace isthmus {

/// How long chunks of each card kept later ones of other cards waiting: for each chunk, how many
/// waited when it came.
using TcpLateness = std::array<std::uint8_t, kMostTcpCards>;

/// What each of several cards gets of a stream, so that nobody waits for one of them. No rate is
/// measured: a card that keeps the others' chunks waiting gets less, until all do so alike,
/// whatever else uses it.
class TcpShares {
public:
    explicit TcpShares(std::size_t cards);

    /// What the peer saw since it last said so.
    void correct(const TcpLateness& late);

    /// Of the card that gets most; above 0, at most 1.
    double of(std::size_t card) const { return shares_[card]; }

private:
    std::vector<double> shares_;
    double step_;
};

}  // namespace isthmus
