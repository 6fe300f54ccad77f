#include "torch_plugin/csrc/store_adapter.hpp"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <random>
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

struct Adapter {
    StorePointer store;
    StorePlace place;
    std::string own;                    ///< the number this rank drew
    std::mutex mutex;                   ///< guards the two below
    std::string round;                  ///< of rank 0, once known: begins every key
    std::vector<std::string> answered;  ///< rank 0: the last number of each rank
};

Adapter& adapterOf(void* context) {
    return *static_cast<Adapter*>(context);
}

std::string drawNumber() {
    std::random_device source;
    const std::uint64_t number = (std::uint64_t{source()} << 32) | source();
    return std::to_string(number);
}

std::string helloKey(int rank) {
    return "hello/" + std::to_string(rank);
}

std::string answerKey(int rank, const std::string& number) {
    return "answer/" + std::to_string(rank) + "/" + number;
}

std::vector<std::uint8_t> bytesOf(const std::string& text) {
    return {text.begin(), text.end()};
}

std::string textOf(const std::vector<std::uint8_t>& bytes) {
    return {bytes.begin(), bytes.end()};
}

/// Rank 0, whenever it looks for something: tells its number to those that asked.
void answerAll(Adapter& adapter) {
    if (adapter.place.rank != 0) return;
    const std::lock_guard lock(adapter.mutex);
    for (int rank = 1; rank < adapter.place.ranks; ++rank) {
        std::string& answered = adapter.answered[static_cast<std::size_t>(rank)];
        if (!adapter.store->check({helloKey(rank)})) continue;
        const std::string number = textOf(adapter.store->get(helloKey(rank)));
        if (number == answered) continue;
        adapter.store->set(answerKey(rank, number), bytesOf(adapter.round));
        answered = number;
    }
}

/// The number that begins the keys; empty when rank 0 did not answer.
std::string roundOf(Adapter& adapter) {
    const std::lock_guard lock(adapter.mutex);
    if (!adapter.round.empty()) return adapter.round;
    const int rank = adapter.place.rank;
    c10d::Store& store = *adapter.store;
    store.set(helloKey(rank), bytesOf(adapter.own));
    const auto until = std::chrono::steady_clock::now() + adapter.place.limit;
    const std::string answer = answerKey(rank, adapter.own);
    if (!waitInStore(store, answer, until, adapter.place.isLeaving.get())) return {};
    adapter.round = textOf(store.get(answer));
    // The question stays: rank 0 asks whether it is there before it reads it, and a read of a key
    // that has gone meanwhile waits, and holds up every other thread of the store.
    store.deleteKey(answer);
    return adapter.round;
}

c10d::Store& storeOf(void* context) {
    return *adapterOf(context).store;
}

/// Why the last call of this thread failed.
std::string& lastFailure() {
    thread_local std::string text;
    return text;
}

/// Whose store it is, where one can tell: what ended when it does not answer.
std::string describe(void* context) {
    StorePointer store = adapterOf(context).store;
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

constexpr const char* kLeft = "this rank left the group before all had met";

/// Runs `action(key)` with the whole name of the key.
template <typename Action>
int withKey(void* context, const char* key, Action action) {
    return guarded(context, [&] {
        Adapter& adapter = adapterOf(context);
        const std::string round = roundOf(adapter);
        if (!round.empty()) return action(round + "/" + key);
        if (adapter.place.isLeaving->load(std::memory_order_relaxed)) {
            remember(kLeft, "it was destroyed or aborted");
        } else {
            remember("waited " + std::to_string(adapter.place.limit.count()) +
                         " ms for rank 0 of " + std::to_string(adapter.place.ranks),
                     "it has not made this group, or has left");
        }
        return kFailed;
    });
}

int setKey(void* context, const char* key, const void* data, size_t bytes) {
    return withKey(context, key, [=](const std::string& name) {
        const auto* first = static_cast<const std::uint8_t*>(data);
        storeOf(context).set(name, std::vector<std::uint8_t>(first, first + bytes));
        return kDone;
    });
}

int getKey(void* context, const char* key, int64_t limit_ms, isthmusBytesSink sink,
           void* sinkContext) {
    return withKey(context, key, [=](const std::string& name) {
        Adapter& adapter = adapterOf(context);
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
        const std::atomic<bool>* const isLeaving = adapter.place.isLeaving.get();
        const auto meanwhile = [&adapter] { answerAll(adapter); };
        if (!waitInStore(*adapter.store, name, until, isLeaving, meanwhile)) {
            if (!isLeaving->load(std::memory_order_relaxed)) return kNotThere;
            remember(kLeft, "it was destroyed or aborted");
            return kFailed;
        }
        const std::vector<std::uint8_t> value = adapter.store->get(name);
        sink(sinkContext, value.data(), value.size());
        return kDone;
    });
}

int hasKey(void* context, const char* key) {
    return withKey(context, key, [=](const std::string& name) {
        return storeOf(context).check({name}) ? kDone : kNotThere;
    });
}

int eraseKey(void* context, const char* key) {
    return withKey(context, key, [=](const std::string& name) {
        storeOf(context).deleteKey(name);  // false: the store cannot, or it was gone
        return kDone;
    });
}

void releaseAdapter(void* context) {
    delete static_cast<Adapter*>(context);
}

const char* whyFailed(void*) {
    return lastFailure().c_str();
}

}  // namespace

bool waitInStore(c10d::Store& store, const std::string& key,
                 std::chrono::steady_clock::time_point until, const std::atomic<bool>* isLeaving,
                 const std::function<void()>& meanwhile) {
    // A start-up waits for processes, not for bytes: 20 ms are not seen, and hundreds of ranks
    // asking that often are nothing to a store.
    constexpr auto kLongestPause = std::chrono::milliseconds(20);
    auto pause = std::chrono::microseconds(200);
    while (!store.check({key})) {
        if (meanwhile) meanwhile();
        if (std::chrono::steady_clock::now() >= until) return false;
        if (isLeaving != nullptr && isLeaving->load(std::memory_order_relaxed)) return false;
        std::this_thread::sleep_for(pause);
        pause = std::min<std::chrono::microseconds>(2 * pause, kLongestPause);
    }
    return true;
}

StoreAdapter adaptStore(c10::intrusive_ptr<c10d::Store> store, StorePlace place) {
    auto* const adapter = new Adapter{std::move(store), std::move(place), drawNumber(), {}, {}, {}};
    if (adapter->place.rank == 0) {
        adapter->round = adapter->own;
        adapter->answered.resize(static_cast<std::size_t>(adapter->place.ranks));
    }
    return {{sizeof(isthmusStoreCallbacks_t), setKey, getKey, hasKey, eraseKey, releaseAdapter,
             whyFailed},
            adapter};
}

}  // namespace isthmus::glue
