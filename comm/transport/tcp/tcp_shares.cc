#include "comm/transport/tcp/tcp_shares.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus {

namespace {

/// Of a card that alone is waited for. The peer tells after every MiB: a card of a quarter of the
/// others' rate is known as that after some 30 of them.
constexpr double kStep = 0.05;
/// Fewer chunks that waited say less.
constexpr double kWhole = 16;
constexpr double kLeast = 1.0 / 128;

}  // namespace

void TcpShares::correct(const TcpLateness& late) {
    const double all = std::accumulate(
        late.begin(), late.begin() + static_cast<std::ptrdiff_t>(shares_.size()), 0.0);
    if (all == 0) return;
    const double step = kStep * std::min(1.0, all / kWhole) / all;
    for (std::size_t card = 0; card < shares_.size(); ++card)
        shares_[card] *= 1 - step * static_cast<double>(late[card]);
    const double most = *std::max_element(shares_.begin(), shares_.end());
    for (double& share : shares_) share = std::max(share / most, kLeast);
}

}  // namespace isthmus
