#include "comm/bootstrap/store_memory.hpp"

#include "comm/bootstrap/store_wire.hpp"

namespace isthmus {

Status MemoryStore::set(std::string_view key, const Bytes& value) {
    ISTHMUS_TRY(checkStoreKey(key));
    ISTHMUS_TRY(checkStoreValue(value));
    {
        const std::lock_guard lock(mutex_);
        const auto [place, isNew] = values_.emplace(key, value);
        if (!isNew) return place->second == value ? Status() : heldByOthers(key);
    }
    changed_.notify_all();
    return {};
}

Result<Bytes> MemoryStore::get(std::string_view key, std::chrono::milliseconds limit) {
    ISTHMUS_TRY(checkStoreKey(key));
    std::unique_lock lock(mutex_);
    auto found = values_.end();
    const auto isThere = [&] { return (found = values_.find(key)) != values_.end(); };
    if (!changed_.wait_for(lock, limit, isThere)) return nobodyWrote(key, limit);
    return found->second;
}

Result<bool> MemoryStore::has(std::string_view key) {
    ISTHMUS_TRY(checkStoreKey(key));
    const std::lock_guard lock(mutex_);
    return values_.find(key) != values_.end();
}

Status MemoryStore::erase(std::string_view key) {
    ISTHMUS_TRY(checkStoreKey(key));
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found != values_.end()) values_.erase(found);
    return {};
}

Status heldByOthers(std::string_view key) {
    return Status::mismatch("the store already holds other bytes under " + std::string(key));
}

Status nobodyWrote(std::string_view key, std::chrono::milliseconds limit) {
    return Status::timeout("waited " + std::to_string(limit.count()) + " ms for " +
                           std::string(key) + " in the store");
}

}  // namespace isthmus
