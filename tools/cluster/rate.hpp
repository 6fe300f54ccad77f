#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus::cluster {

/// How fast a card is, each way. Zero means as fast as the kernel can.
struct Rate {
    std::uint64_t bitsPerSecond = 0;
    bool isCut = false;  ///< its cable is

    /// "1gbit", "500mbit", "2.5gbit", "800kbit" (decimal, as tc(8) reads them), "none" or "cut".
    static Result<Rate> parse(std::string_view text);

    bool isLimited() const { return bitsPerSecond != 0; }
    std::string text() const;

    /// Bytes of credit of the tbf queue: 0.42 ms of the line, from 96 KB to 512 KB. Less than one
    /// 64 KB super-packet on the wire (68.6 KB) makes tbf split it in software; more lets whole
    /// messages through at memory speed. Measured from 0.2 to 10 Gbit/s.
    std::uint64_t burstBytes() const;

    /// What `tc qdisc replace dev X root` wants.
    std::string queueText() const;

    bool operator==(const Rate&) const = default;
};

inline constexpr std::size_t kMaxCards = 8;

/// The cards of a node.
struct CardRates {
    std::vector<Rate> cards{Rate{}};

    /// Rates with '+' between them: "4gbit+1gbit".
    static Result<CardRates> parse(std::string_view text);

    std::string text() const;
    /// One of the cables is.
    bool isCut() const;
    /// Of all cards together; 0: one of them is not limited.
    std::uint64_t bitsPerSecond() const;
    bool operator==(const CardRates&) const = default;
};

}  // namespace isthmus::cluster
