#include "comm/transport/tcp/tcp_shares.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus {

namespace {

/// What a card loses that alone is waited for. The peer tells after every MiB; large steps first,
/// so that a card of a quarter of the others' rate is known as that after some ten of them.
constexpr double kFirstStep = 0.25;
constexpr double kStep = 0.05;
constexpr double kSlower = 0.9;  // each time
/// Fewer chunks that waited say less.
constexpr double kWhole = 16;
constexpr double kLeast = 1.0 / 128;

}  // namespace

TcpShares::TcpShares(std::size_t cards) : shares_(cards, 1.0), step_(kFirstStep) {}

void TcpShares::correct(const TcpLateness& late) {
    const double all = std::accumulate(
        late.begin(), late.begin() + static_cast<std::ptrdiff_t>(shares_.size()), 0.0);
    if (all == 0) return;
    const double step = step_ * std::min(1.0, all / kWhole) / all;
    step_ = std::max(step_ * kSlower, kStep);
    for (std::size_t card = 0; card < shares_.size(); ++card)
        shares_[card] *= 1 - step * static_cast<double>(late[card]);
    const double most = *std::max_element(shares_.begin(), shares_.end());
    for (double& share : shares_) share = std::max(share / most, kLeast);
}

}  // namespace isthmus
