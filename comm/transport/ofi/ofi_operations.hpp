#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/transport/ofi/ofi_fabric.hpp"

namespace isthmus {

/// One thing that the provider was asked to do, or will be when it has room. The provider hands
/// the address back with the completion.
struct OfiOperation {
    enum class Kind : std::uint8_t { kReceive, kSend, kPut, kGet, kConfirm, kFlush };

    fi_context2 context{};  ///< the provider's, and first
    Kind kind = Kind::kReceive;
    bool isBusy = false;
    RmaPeer peer{};  ///< none: nobody waits for it any more
    std::byte* local = nullptr;
    std::size_t bytes = 0;
    void* descriptor = nullptr;
    std::uint64_t remote = 0;
    std::uint64_t remoteKey = 0;
    std::uint64_t userContext = 0;
};

/// A fixed number of operations; those with buffers have one each, side by side in one piece of
/// memory. An operation that the provider has stays where it is until the pool dies.
class OfiPool {
public:
    explicit OfiPool(std::size_t operations, std::size_t bufferBytes = 0);

    /// Null: all are under way.
    OfiOperation* take();
    void giveBack(OfiOperation& operation);

    std::vector<OfiOperation>& all() { return operations_; }
    std::byte* memory() { return memory_.get(); }
    std::size_t memoryBytes() const { return operations_.size() * bufferBytes_; }

private:
    std::vector<OfiOperation> operations_;
    std::vector<OfiOperation*> free_;
    std::size_t bufferBytes_;
    std::unique_ptr<std::byte[]> memory_;
};

}  // namespace isthmus
