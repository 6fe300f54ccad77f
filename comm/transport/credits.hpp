#pragma once

#include <cstdint>
#include <utility>

namespace isthmus {

/// A process may have this many bytes of messages at a peer that nobody there has asked for yet.
inline constexpr std::uint64_t kEagerWindowBytes = 1024 * 1024;

/// What keeping one unexpected message costs beside its payload, so that empty ones are bounded
/// too.
inline constexpr std::uint64_t kEagerMessageCost = 128;

constexpr std::uint64_t eagerCost(std::uint64_t payloadBytes) {
    return payloadBytes + kEagerMessageCost;
}

/// The sender's side of the window.
class SendCredit {
public:
    explicit SendCredit(std::uint64_t window) : window_(window), free_(window) {}

    bool take(std::uint64_t cost) {
        if (cost > free_) return false;
        free_ -= cost;
        return true;
    }
    /// False: the peer returned more than it was given.
    bool giveBack(std::uint64_t cost) {
        if (cost > window_ - free_) return false;
        free_ += cost;
        return true;
    }

private:
    std::uint64_t window_;
    std::uint64_t free_;
};

/// The receiver's side: what arrived and was not consumed, and what was consumed and not yet told.
class ReceiveCredit {
public:
    explicit ReceiveCredit(std::uint64_t window) : window_(window) {}

    /// False: the peer sent more than its window.
    bool arrived(std::uint64_t cost) {
        if (cost > window_ - held_ - owed_) return false;
        held_ += cost;
        return true;
    }
    void consumed(std::uint64_t cost) {
        held_ -= cost;
        owed_ += cost;
    }
    /// A quarter of the window is worth a frame of its own; less waits for one to ride on.
    bool isWorthTelling() const { return owed_ >= window_ / 4; }
    std::uint32_t tell() { return static_cast<std::uint32_t>(std::exchange(owed_, 0)); }

private:
    std::uint64_t window_;
    std::uint64_t held_ = 0;
    std::uint64_t owed_ = 0;
};

}  // namespace isthmus
