#include "torch_plugin/csrc/store_adapter.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace isthmus::glue {
namespace {

constexpr int kDone = 0;
constexpr int kNotThere = 1;
constexpr int kFailed = 2;

class Adapter {
public:
    explicit Adapter(c10::intrusive_ptr<c10d::Store> store) : original_(std::move(store)) {}

    c10d::Store& store() {
        std::call_once(cloned_, [this] { clone_ = original_->clone(); });
        return *clone_;
    }

    bool has(const std::string& key) { return store().check({key}); }

private:
    c10::intrusive_ptr<c10d::Store> original_;
    c10::intrusive_ptr<c10d::Store> clone_;
    std::once_flag cloned_;
};

Adapter& adapterOf(void* context) {
    return *static_cast<Adapter*>(context);
}

/// Torch's stores throw; the library wants a number.
template <typename Action>
int guarded(Action action) {
    try {
        return action();
    } catch (...) {
        return kFailed;
    }
}

int setKey(void* context, const char* key, const void* data, size_t bytes) {
    return guarded([=] {
        const auto* first = static_cast<const std::uint8_t*>(data);
        adapterOf(context).store().set(key, std::vector<std::uint8_t>(first, first + bytes));
        return kDone;
    });
}

/// Asks again and again instead of calling the store's own wait: that one keeps the connection
/// busy, cannot be given up early, and writes two lines of warning whenever its time is over.
int waitForKey(Adapter& adapter, const std::string& key, std::int64_t limit_ms) {
    return waitInStore(adapter.store(), key,
                       std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms))
               ? kDone
               : kNotThere;
}

int getKey(void* context, const char* key, int64_t limit_ms, isthmusBytesSink sink,
           void* sinkContext) {
    return guarded([=] {
        Adapter& adapter = adapterOf(context);
        if (const int found = waitForKey(adapter, key, limit_ms); found != kDone) return found;
        const std::vector<std::uint8_t> value = adapter.store().get(key);
        sink(sinkContext, value.data(), value.size());
        return kDone;
    });
}

int hasKey(void* context, const char* key) {
    return guarded([=] { return adapterOf(context).has(key) ? kDone : kNotThere; });
}

int eraseKey(void* context, const char* key) {
    return guarded([=] {
        adapterOf(context).store().deleteKey(key);  // false: the store cannot, or it was gone
        return kDone;
    });
}

void releaseAdapter(void* context) {
    guarded([=] {
        delete static_cast<Adapter*>(context);
        return kDone;
    });
}

}  // namespace

bool waitInStore(c10d::Store& store, const std::string& key,
                 std::chrono::steady_clock::time_point until) {
    // A start-up waits for processes, not for bytes: 20 ms are not seen, and hundreds of ranks
    // asking that often are nothing to a store.
    constexpr auto kLongestPause = std::chrono::milliseconds(20);
    auto pause = std::chrono::microseconds(200);
    while (!store.check({key})) {
        if (std::chrono::steady_clock::now() >= until) return false;
        std::this_thread::sleep_for(pause);
        pause = std::min<std::chrono::microseconds>(2 * pause, kLongestPause);
    }
    return true;
}

StoreAdapter adaptStore(c10::intrusive_ptr<c10d::Store> store) {
    return {{sizeof(isthmusStoreCallbacks_t), setKey, getKey, hasKey, eraseKey, releaseAdapter},
            new Adapter(std::move(store))};
}

}  // namespace isthmus::glue
