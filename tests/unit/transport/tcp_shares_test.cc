// Cards that are waited for get less, until none is.
#include "comm/transport/tcp/tcp_shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace isthmus {
namespace {

/// Chunks over cards of given rates, dealt by shares and counted as a receiver counts them.
class Wire {
public:
    explicit Wire(std::vector<double> rates)
        : shares(rates.size()), rates_(std::move(rates)), free_(rates_.size(), 0.0) {}

    void carry(int chunks) {
        std::vector<std::pair<double, int>> arrivals;
        std::vector<std::size_t> by;
        std::vector<double> dealt(rates_.size(), 0.0);
        std::fill(free_.begin(), free_.end(), 0.0);
        for (int chunk = 0; chunk < chunks; ++chunk) {
            std::size_t card = 0;
            for (std::size_t each = 1; each < rates_.size(); ++each) {
                if ((dealt[each] + 1) / shares.of(each) < (dealt[card] + 1) / shares.of(card))
                    card = each;
            }
            ++dealt[card];
            free_[card] += 1 / rates_[card];
            arrivals.emplace_back(free_[card], chunk);
            by.push_back(card);
        }
        std::sort(arrivals.begin(), arrivals.end());
        TcpLateness late{};
        std::set<int> early;
        int next = 0;
        for (const auto& [when, chunk] : arrivals) {
            if (chunk != next) {
                early.insert(chunk);
                continue;
            }
            const std::size_t waited = late[by[static_cast<std::size_t>(chunk)]] + early.size();
            late[by[static_cast<std::size_t>(chunk)]] =
                static_cast<std::uint8_t>(std::min<std::size_t>(waited, 255));
            for (++next; early.erase(next) > 0;) ++next;
        }
        shares.correct(late);
    }

    TcpShares shares;

private:
    std::vector<double> rates_;
    std::vector<double> free_;
};

TEST(TcpShares, BecomeThoseOfTheCardsRates) {
    Wire wire({4, 1});
    for (int word = 0; word < 15; ++word) wire.carry(16);  // as often as a peer says it
    EXPECT_NEAR(wire.shares.of(1) / wire.shares.of(0), 0.25, 0.08) << "soon";
    for (int word = 0; word < 100; ++word) wire.carry(32);
    EXPECT_NEAR(wire.shares.of(1) / wire.shares.of(0), 0.25, 0.05);
}

TEST(TcpShares, OfEqualCardsAreEqual) {
    Wire wire({1, 1, 1, 1});
    for (int word = 0; word < 100; ++word) wire.carry(32);
    for (std::size_t card = 0; card < 4; ++card) EXPECT_NEAR(wire.shares.of(card), 1, 0.15);
}

TEST(TcpShares, StayWhereNobodyWaits) {
    TcpShares shares(2);
    shares.correct({});
    EXPECT_EQ(shares.of(0), 1);
    EXPECT_EQ(shares.of(1), 1);
}

TEST(TcpShares, NeverEnd) {
    TcpShares shares(2);
    TcpLateness late{};
    late[1] = 255;
    for (int word = 0; word < 1000; ++word) shares.correct(late);
    EXPECT_EQ(shares.of(0), 1);
    EXPECT_GT(shares.of(1), 0);
    std::swap(late[0], late[1]);
    for (int word = 0; word < 300; ++word) shares.correct(late);
    EXPECT_EQ(shares.of(1), 1);
}

}  // namespace
}  // namespace isthmus
