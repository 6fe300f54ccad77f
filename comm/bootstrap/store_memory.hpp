#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include <isthmus/store.hpp>

namespace isthmus {

/// A Store inside one process: for tests, for ranks that are threads, and behind bootstraps that
/// bring all values at once.
class MemoryStore final : public Store {
public:
    Status set(std::string_view key, const Bytes& value) override;
    Result<Bytes> get(std::string_view key, std::chrono::milliseconds limit) override;
    Result<bool> has(std::string_view key) override;
    Status erase(std::string_view key) override;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, Bytes, std::less<>> values_;
};

/// What every Store says when a key is already there with other bytes.
Status heldByOthers(std::string_view key);

/// What every Store says when nobody wrote a key in time.
Status nobodyWrote(std::string_view key, std::chrono::milliseconds limit);

}  // namespace isthmus
