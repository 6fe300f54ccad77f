#include "torch_plugin/csrc/store_adapter.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace isthmus::glue {
namespace {

constexpr int kDone = 0;
constexpr int kNotThere = 1;
constexpr int kFailed = 2;

using StorePointer = c10::intrusive_ptr<c10d::Store>;

c10d::Store& storeOf(void* context) {
    return **static_cast<StorePointer*>(context);
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
        storeOf(context).set(key, std::vector<std::uint8_t>(first, first + bytes));
        return kDone;
    });
}

int getKey(void* context, const char* key, int64_t limit_ms, isthmusBytesSink sink,
           void* sinkContext) {
    return guarded([=] {
        c10d::Store& store = storeOf(context);
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
        if (!waitInStore(store, key, until)) return kNotThere;
        const std::vector<std::uint8_t> value = store.get(key);
        sink(sinkContext, value.data(), value.size());
        return kDone;
    });
}

int hasKey(void* context, const char* key) {
    return guarded([=] { return storeOf(context).check({key}) ? kDone : kNotThere; });
}

int eraseKey(void* context, const char* key) {
    return guarded([=] {
        storeOf(context).deleteKey(key);  // false: the store cannot, or it was gone
        return kDone;
    });
}

void releaseAdapter(void* context) {
    guarded([=] {
        delete static_cast<StorePointer*>(context);
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
            new StorePointer(std::move(store))};
}

}  // namespace isthmus::glue
