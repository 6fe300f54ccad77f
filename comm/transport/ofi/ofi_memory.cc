#include "comm/transport/ofi/ofi_memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/base/bytes.hpp"
#include "comm/bootstrap/authenticate.hpp"

namespace isthmus {

namespace {

constexpr std::uint64_t kAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr int kKeyTries = 16;  // with random keys of 64 bits the first one is free

/// Nobody guesses it. The bit that providers keep for themselves stays clear.
std::uint64_t randomKey(std::size_t keyBytes) {
    const Nonce nonce = makeNonce();
    std::uint64_t key = 0;
    std::memcpy(&key, nonce.data(), std::min(keyBytes, sizeof(key)));
    return key & ~std::uint64_t{FI_PROV_SPECIFIC};
}

bool liesIn(std::uint64_t address, std::uint64_t bytes, std::uint64_t begin, std::uint64_t length) {
    return address >= begin && bytes <= length && address - begin <= length - bytes;
}

std::uint64_t numberOf(const std::byte* address) {
    return reinterpret_cast<std::uint64_t>(address);
}

}  // namespace

Result<OfiObject<fid_mr>> OfiMemory::registered(std::byte* address, std::size_t bytes) const {
    fid_mr* made = nullptr;
    int result = -FI_ENOKEY;
    const int tries = fabric_.needs(FI_MR_PROV_KEY) ? 1 : kKeyTries;
    for (int at = 0; at < tries && result == -FI_ENOKEY; ++at) {
        const std::uint64_t wish = randomKey(fabric_.info().domain_attr->mr_key_size);
        result =
            ::fi_mr_reg(&fabric_.domain(), address, bytes, kAccess, 0, wish, 0, &made, nullptr);
    }
    OfiObject<fid_mr> registration(made);
    if (result == 0 && fabric_.needs(FI_MR_ENDPOINT)) {
        result = ::fi_mr_bind(made, &fabric_.endpoint().fid, 0);
        if (result == 0) result = ::fi_mr_enable(made);
    }
    if (result != 0) {
        return Status::resource("registering " + std::to_string(bytes) +
                                " bytes: " + fabric_.library().causeOf(result));
    }
    return registration;
}

Result<Bytes> OfiMemory::keyOf(fid_mr& registration, const std::byte* address,
                               std::size_t bytes) const {
    ByteWriter writer;
    writer.put(numberOf(address)).put(static_cast<std::uint64_t>(bytes));
    writer.put(static_cast<std::uint8_t>(fabric_.needs(FI_MR_VIRT_ADDR)));
    std::uint64_t base = 0;
    std::array<std::uint8_t, 256> raw{};
    std::size_t rawBytes = raw.size();
    if (fabric_.needs(FI_MR_RAW)) {
        const int result = ::fi_mr_raw_attr(&registration, &base, raw.data(), &rawBytes, 0);
        if (result != 0) {
            return Status::resource("fi_mr_raw_attr: " + fabric_.library().causeOf(result));
        }
    } else {
        const std::uint64_t key = ::fi_mr_key(&registration);
        rawBytes = sizeof(key);
        std::memcpy(raw.data(), &key, sizeof(key));
    }
    writer.put(base).put(std::as_bytes(std::span(raw).first(rawBytes)));
    return writer.take();
}

Result<RmaRegion> OfiMemory::add(std::byte* address, std::size_t bytes) {
    auto registration = registered(address, bytes);
    if (!registration.ok()) return registration.status();
    auto key = keyOf(**registration, address, bytes);
    if (!key.ok()) return key.status();
    const std::lock_guard lock(mutex_);
    const RmaRegion region{++lastId_};
    regions_[region] = {std::move(*registration), address, bytes, std::move(*key)};
    return region;
}

Bytes OfiMemory::key(RmaRegion region) const {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(region);
    return found == regions_.end() ? Bytes() : found->second.key;
}

void OfiMemory::remove(RmaRegion region) {
    Region removed;  // closed without the mutex: a card may take its time
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(region);
    if (found == regions_.end()) return;
    removed = std::move(found->second);
    regions_.erase(found);
}

OfiMemory::Local OfiMemory::local(RmaRegion region, const std::byte* address,
                                  std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(region);
    if (found == regions_.end() ||
        !liesIn(numberOf(address), bytes, numberOf(found->second.address), found->second.bytes)) {
        return {};
    }
    return {true, ::fi_mr_desc(found->second.registration.get())};
}

Result<RmaKey> OfiMemory::import(std::span<const std::byte> key) {
    ByteReader reader(key);
    Import imported;
    imported.begin = reader.get<std::uint64_t>();
    imported.bytes = reader.get<std::uint64_t>();
    imported.isByAddress = reader.get<std::uint8_t>() != 0;
    const auto base = reader.get<std::uint64_t>();
    const auto raw = reader.getBytes();
    if (!reader.ok() || !reader.atEnd() || raw.empty()) return Status::mismatch("no key");
    if (fabric_.needs(FI_MR_RAW)) {
        Bytes copy(raw.begin(), raw.end());
        const int result =
            ::fi_mr_map_raw(&fabric_.domain(), base, reinterpret_cast<std::uint8_t*>(copy.data()),
                            copy.size(), &imported.key, 0);
        if (result != 0) {
            return Status::mismatch("fi_mr_map_raw: " + fabric_.library().causeOf(result));
        }
        imported.isMapped = true;
    } else {
        if (raw.size() != sizeof(imported.key)) return Status::mismatch("no key");
        std::memcpy(&imported.key, raw.data(), sizeof(imported.key));
    }
    const std::lock_guard lock(mutex_);
    const RmaKey id{++lastId_};
    imports_[id] = imported;
    return id;
}

void OfiMemory::drop(RmaKey key) {
    const std::lock_guard lock(mutex_);
    const auto found = imports_.find(key);
    if (found == imports_.end()) return;
    if (found->second.isMapped) ::fi_mr_unmap_key(&fabric_.domain(), found->second.key);
    imports_.erase(found);
}

OfiMemory::Remote OfiMemory::remote(RmaKey key, std::uint64_t address, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto found = imports_.find(key);
    if (found == imports_.end()) return {};
    const Import& imported = found->second;
    if (!liesIn(address, bytes, imported.begin, imported.bytes)) return {};
    return {true, imported.isByAddress ? address : address - imported.begin, imported.key};
}

}  // namespace isthmus
