#pragma once

#include <mutex>
#include <unordered_map>

#include "comm/transport/ofi/ofi_fabric.hpp"

namespace isthmus {

/// Registered memory and the keys of peers' memory, as the provider's mr_mode wants them
/// (fi_mr(3)): with local descriptors or without, addressed from its beginning or by address, keys
/// chosen here or there, bound to the domain or to the endpoint. Any thread.
class OfiMemory {
public:
    explicit OfiMemory(const OfiFabric& fabric) : fabric_(fabric) {}

    Result<RmaRegion> add(std::byte* address, std::size_t bytes);
    Bytes key(RmaRegion region) const;
    void remove(RmaRegion region);

    /// What goes with local memory of a region into an operation.
    struct Local {
        bool isRegistered = false;
        void* descriptor = nullptr;
    };
    Local local(RmaRegion region, const std::byte* address, std::size_t bytes) const;

    Result<RmaKey> import(std::span<const std::byte> key);
    void drop(RmaKey key);
    /// Where an address of the peer lies for the provider.
    struct Remote {
        bool isRegistered = false;
        std::uint64_t address = 0;
        std::uint64_t key = 0;
    };
    Remote remote(RmaKey key, std::uint64_t address, std::size_t bytes) const;

private:
    struct Region {
        OfiObject<fid_mr> registration;
        std::byte* address = nullptr;
        std::size_t bytes = 0;
        Bytes key;
    };
    struct Import {
        std::uint64_t begin = 0;
        std::uint64_t bytes = 0;
        std::uint64_t key = 0;
        bool isByAddress = false;
        bool isMapped = false;  ///< libfabric made the key from a longer one
    };

    Result<OfiObject<fid_mr>> registered(std::byte* address, std::size_t bytes) const;
    Result<Bytes> keyOf(fid_mr& registration, const std::byte* address, std::size_t bytes) const;

    const OfiFabric& fabric_;
    mutable std::mutex mutex_;
    std::uint64_t lastId_ = 0;
    std::unordered_map<RmaRegion, Region> regions_;
    std::unordered_map<RmaKey, Import> imports_;
};

}  // namespace isthmus
