#include "torch_plugin/csrc/store_adapter.hpp"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
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

/// Why the last call of this thread failed.
std::string& lastFailure() {
    thread_local std::string text;
    return text;
}

/// Whose store it is, where one can tell: what ended when it does not answer.
std::string describe(void* context) {
    auto store = *static_cast<StorePointer*>(context);
    if (const auto prefixed = c10::dynamic_intrusive_pointer_cast<c10d::PrefixStore>(store)) {
        store = prefixed->getUnderlyingNonPrefixStore();
    }
    const auto tcp = c10::dynamic_intrusive_pointer_cast<c10d::TCPStore>(store);
    const std::string at =
        tcp ? " at " + tcp->getHost() + ":" + std::to_string(tcp->getPort()) : "";
    return "torch's store" + at +
           " is gone, so rank 0, or the launcher where that serves it, has left";
}

void remember(const std::string& what, const std::string& why) {
    lastFailure() = what + ": " + why.substr(0, why.find('\n'));
}

/// Torch's stores throw; the library wants a number.
template <typename Action>
int guarded(void* context, Action action) {
    try {
        return action();
    } catch (const abi::__forced_unwind&) {
        throw;  // the end of this thread: nobody may stop it
    } catch (const c10::DistNetworkError& error) {
        remember(describe(context), error.what_without_backtrace());
    } catch (const c10::Error& error) {
        remember("torch's store failed", error.what_without_backtrace());
    } catch (const std::exception& error) {
        remember("torch's store failed", error.what());
    } catch (...) {
        remember("torch's store failed", "it gives no reason");
    }
    return kFailed;
}

int setKey(void* context, const char* key, const void* data, size_t bytes) {
    return guarded(context, [=] {
        const auto* first = static_cast<const std::uint8_t*>(data);
        storeOf(context).set(key, std::vector<std::uint8_t>(first, first + bytes));
        return kDone;
    });
}

int getKey(void* context, const char* key, int64_t limit_ms, isthmusBytesSink sink,
           void* sinkContext) {
    return guarded(context, [=] {
        c10d::Store& store = storeOf(context);
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
        if (!waitInStore(store, key, until)) return kNotThere;
        const std::vector<std::uint8_t> value = store.get(key);
        sink(sinkContext, value.data(), value.size());
        return kDone;
    });
}

int hasKey(void* context, const char* key) {
    return guarded(context, [=] { return storeOf(context).check({key}) ? kDone : kNotThere; });
}

int eraseKey(void* context, const char* key) {
    return guarded(context, [=] {
        storeOf(context).deleteKey(key);  // false: the store cannot, or it was gone
        return kDone;
    });
}

void releaseAdapter(void* context) {
    delete static_cast<StorePointer*>(context);
}

const char* whyFailed(void*) {
    return lastFailure().c_str();
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
    return {{sizeof(isthmusStoreCallbacks_t), setKey, getKey, hasKey, eraseKey, releaseAdapter,
             whyFailed},
            new StorePointer(std::move(store))};
}

}  // namespace isthmus::glue
