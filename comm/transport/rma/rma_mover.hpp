#pragma once

#include <unordered_map>
#include <vector>

#include "comm/transport/direct.hpp"
#include "comm/transport/rma/rma_device.hpp"

namespace isthmus {

class RmaLink;

/// A put under way, by the context that the device knows it by.
struct RmaPut {
    RmaLink* link = nullptr;
    Operation* operation = nullptr;
    std::uint64_t bytes = 0;
};
struct RmaPuts {
    std::uint64_t lastContext = 0;
    std::unordered_map<std::uint64_t, RmaPut> underWay;
};

/// Writes large messages to one peer into the memory that it opened for them, and opens memory to
/// it. Memory is registered for as long as its operation lasts: whoever frees it afterwards cannot
/// leave a registration of other pages behind.
class RmaMover final : public DirectMover {
public:
    RmaMover(RmaDevice& device, RmaPuts& puts, RmaLink& link, std::uint64_t leastBytes)
        : device_(device), puts_(puts), link_(link), leastBytes_(leastBytes) {}
    ~RmaMover() override;

    void open(RmaPeer peer) { peer_ = peer; }
    /// After the device has moved: there may be room again.
    void refill() { isFull_ = false; }
    bool hasRoom() const;
    /// One of this mover's puts has ended.
    void ended(const RmaPut& put) { inFlight_ -= put.bytes; }

    Bytes invite(const Operation& receive) override;
    void close(const Operation& receive) override;
    bool accept(const Operation& send, std::span<const std::byte> invitation) override;
    std::uint64_t put(Operation& send) override;
    void release(const Operation& send) override;

private:
    struct Piece {
        MemoryPiece memory;
        RmaRegion region{};
    };
    struct Target {
        std::uint64_t address = 0;
        std::uint64_t bytes = 0;
        RmaKey key{};
    };
    struct Way {
        std::vector<Piece> from;
        std::vector<Target> to;
    };

    bool isWorthIt(const Operation& operation) const;
    /// Empty: it cannot be registered now.
    std::vector<Piece> registerAll(const Operation& operation);
    void deregisterAll(const std::vector<Piece>& pieces);
    bool readTargets(std::span<const std::byte> invitation, std::uint64_t bytes,
                     std::vector<Target>& to);
    void drop(const Way& way);

    RmaDevice& device_;
    RmaPuts& puts_;
    RmaLink& link_;
    const std::uint64_t leastBytes_;
    RmaPeer peer_{};
    bool isFull_ = false;
    std::uint64_t inFlight_ = 0;
    std::unordered_map<const Operation*, std::vector<Piece>> open_;
    std::unordered_map<const Operation*, Way> ways_;
};

}  // namespace isthmus
