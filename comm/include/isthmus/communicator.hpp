#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <isthmus/isthmus.h>
#include <isthmus/collective.hpp>
#include <isthmus/memory.hpp>
#include <isthmus/options.hpp>
#include <isthmus/premul_sum.hpp>
#include <isthmus/reduction.hpp>
#include <isthmus/status.hpp>
#include <isthmus/store.hpp>
#include <isthmus/types.hpp>
#include <isthmus/work.hpp>

namespace isthmus {
inline namespace v1 {

/// What one rank makes and all get by any means; holds the job's secret key.
using UniqueId = isthmusUniqueId;

/// Moves `bytes` bytes of each rank into receive[ranks * bytes], in rank order; true when it did.
using AllGather = std::function<bool(const void* send, void* receive, std::size_t bytes)>;

/// Bytes between nodes since this process started; payload, and with frame headers.
struct WireCounters {
    std::uint64_t sentPayload = 0;
    std::uint64_t receivedPayload = 0;
    std::uint64_t sentTotal = 0;
    std::uint64_t receivedTotal = 0;
};

/// What one card carried between nodes since this process started: bytes of its TCP connections.
struct CardCounters {
    std::string name;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
};

/// An agreed set of ranks: `communicator->allReduce(gradient)` starts a call and gives its Work,
/// `communicator->blocking().allReduce(gradient)` ends it and gives its Status.
///
/// Made collectively, fails as a whole, replaced, never repaired. Its Works must not outlive it.
/// Errors of the making: kInvalidArgument, kConfiguration (variables, options, keys), kTimeout and
/// kPeerLost (who is missing is named), kMismatch, kResource.
class Communicator : public Collectives<Work> {
public:
    /// Joins the job of the launcher's variables: isthmus run, torchrun, Open MPI, MPICH/PMI or
    /// Slurm. Alone: one rank.
    static Result<Communicator> fromEnvironment(const CommunicatorOptions& options = {}) {
        if (!options.globalRanks.empty()) {
            return Status::invalidArgument(
                "a communicator from the environment is the whole job: it takes no global ranks");
        }
        return make(options, 0, [](isthmusComm_t* made, const isthmusConfig_t* config) {
            return isthmusCommInitEnv(made, config);
        });
    }

    /// Makes the id for withUniqueId(). This process must live until all ranks have joined.
    static Result<UniqueId> makeUniqueId() {
        UniqueId id{};
        ISTHMUS_TRY(detail::statusOf(isthmusGetUniqueId(&id)));
        return id;
    }

    /// Joins the ranks that hold the same id.
    static Result<Communicator> withUniqueId(const UniqueId& id, int ranks, Rank rank,
                                             const CommunicatorOptions& options = {}) {
        return make(options, ranks, [&](isthmusComm_t* made, const isthmusConfig_t* config) {
            return isthmusCommInitRankConfig(made, ranks, id, rank, config);
        });
    }

    /// Joins the ranks that `allGather` reaches, which is called a few times in here, on this
    /// thread.
    static Result<Communicator> withAllGather(int ranks, Rank rank, const AllGather& allGather,
                                              const CommunicatorOptions& options = {}) {
        if (!allGather) return Status::invalidArgument("the all-gather function is empty");
        const auto gather = [](const void* send, void* receive, std::size_t bytes,
                               void* context) noexcept {
            return (*static_cast<const AllGather*>(context))(send, receive, bytes) ? 0 : -1;
        };
        return make(options, ranks, [&](isthmusComm_t* made, const isthmusConfig_t* config) {
            return isthmusCommInitAllGather(made, ranks, rank, gather,
                                            const_cast<AllGather*>(&allGather), config);
        });
    }

    /// Joins the ranks that reach the same `store`; it is the caller's, and stays until the
    /// Communicator is gone.
    static Result<Communicator> withStore(Store& store, int ranks, Rank rank,
                                          const CommunicatorOptions& options = {}) {
        const isthmusStoreCallbacks_t callbacks = storeCallbacks();
        return make(options, ranks, [&](isthmusComm_t* made, const isthmusConfig_t* config) {
            return isthmusCommInitStore(made, ranks, rank, &callbacks, &store, config);
        });
    }

    /// Waits for this rank's calls in flight, up to the timeout. Says nothing of how it went:
    /// close() does.
    ~Communicator() = default;
    Communicator(Communicator&&) noexcept = default;
    Communicator& operator=(Communicator&&) noexcept = default;

    /// Does what the destructor does; nothing may be called afterwards.
    Status close() { return detail::statusOf(isthmusCommDestroy(handle_.release())); }

    Rank rank() const { return rank_; }
    int ranks() const { return ranks_; }

    /// The same calls, ended when they return.
    Collectives<Status> blocking() const { return {handle_.get(), rank_, ranks_}; }

    /// An operation for calls here; see PremulSum.
    template <Element T>
    Result<PremulSum> premulSum(T factor) const {
        return PremulSum::make(handle_.get(), factor);
    }
    /// The same for a function of the program; see Reduction.
    template <Element T, typename Function>
    Result<Reduction<T>> reduction(const std::string& name, Function function,
                                   typename Reduction<T>::Commutes commutes) const {
        return Reduction<T>::make(handle_.get(), name, std::move(function), commutes);
    }

    /// Splits: ranks of one `color` >= 0 form a Communicator ordered by (key, rank). Collective
    /// here. Empty for a color below 0.
    Result<std::optional<Communicator>> split(int color, int key,
                                              const CommunicatorOptions& options = {}) const {
        // Nobody knows yet how many ranks share the color.
        if (!options.globalRanks.empty()) {
            return Status::invalidArgument("split: global ranks follow from the parent");
        }
        const auto config = detail::toC(options, 0);
        if (!config.ok()) return config.status();
        isthmusComm_t made = nullptr;
        ISTHMUS_TRY(detail::statusOf(isthmusCommSplit(handle_.get(), color, key, &made, &*config)));
        if (made == nullptr) return std::optional<Communicator>();
        Result<Communicator> owner = adopt(made);
        if (!owner.ok()) return owner.status();
        return std::optional<Communicator>(std::move(*owner));
    }

    /// The node of each rank, numbered from 0 by first rank. Finds the peers of a lazy
    /// Communicator.
    Result<std::vector<int>> nodes() const {
        std::vector<int> nodes(static_cast<std::size_t>(ranks_));
        ISTHMUS_TRY(detail::statusOf(isthmusCommNodes(handle_.get(), nodes.data())));
        return nodes;
    }

    /// Fails every call in flight, here and on the other ranks, whose errors end with `reason`.
    /// Immediate, any thread.
    Status abort(const std::string& reason = {}) const {
        return detail::statusOf(isthmusCommAbortWithReason(handle_.get(), reason.c_str()));
    }

    /// Success while healthy, else the first cause.
    Status failure() const {
        isthmusResult_t cause = isthmusSuccess;
        ISTHMUS_TRY(detail::statusOf(isthmusCommGetAsyncError(handle_.get(), &cause)));
        return detail::statusOf(cause);
    }

    Result<WireCounters> wireCounters() const {
        isthmusWireCounters_t counters{};
        counters.size = sizeof(counters);
        ISTHMUS_TRY(detail::statusOf(isthmusWireCounters(handle_.get(), &counters)));
        return WireCounters{counters.sent_payload, counters.received_payload, counters.sent_total,
                            counters.received_total};
    }

    /// One for each card that this process uses; empty where the transport does not tell.
    Result<std::vector<CardCounters>> cardCounters() const {
        int count = 0;
        ISTHMUS_TRY(detail::statusOf(isthmusCardCounters(handle_.get(), nullptr, &count)));
        std::vector<isthmusCardCounters_t> counted(static_cast<std::size_t>(count));
        ISTHMUS_TRY(detail::statusOf(isthmusCardCounters(handle_.get(), counted.data(), &count)));
        std::vector<CardCounters> cards;
        for (const isthmusCardCounters_t& card : counted)
            cards.push_back({card.name, card.sent, card.received});
        return cards;
    }

    /// For event loops of the caller: poll eventFd() for reading, then progress().
    Status progress() const { return detail::statusOf(isthmusProgress(handle_.get())); }
    /// Readable when a call may have finished. The library's: never close it.
    Result<int> eventFd() const {
        int fd = -1;
        ISTHMUS_TRY(detail::statusOf(isthmusEventFd(handle_.get(), &fd)));
        return fd;
    }

    /// For the C API; still owned here.
    isthmusComm_t handle() const { return handle_.get(); }

private:
    struct Destroy {
        void operator()(isthmusComm_t communicator) const noexcept {
            (void)isthmusCommDestroy(communicator);
        }
    };

    Communicator(isthmusComm_t handle, Rank rank, int ranks)
        : Collectives<Work>(handle, rank, ranks), handle_(handle), rank_(rank), ranks_(ranks) {}

    template <typename Init>
    static Result<Communicator> make(const CommunicatorOptions& options, int ranks,
                                     const Init& init) {
        const auto config = detail::toC(options, ranks);
        if (!config.ok()) return config.status();
        isthmusComm_t made = nullptr;
        ISTHMUS_TRY(detail::statusOf(init(&made, &*config)));
        return adopt(made);
    }

    static Result<Communicator> adopt(isthmusComm_t made) {
        std::unique_ptr<isthmusComm, Destroy> owner(made);
        Rank rank = 0;
        int ranks = 0;
        ISTHMUS_TRY(detail::statusOf(isthmusCommUserRank(made, &rank)));
        ISTHMUS_TRY(detail::statusOf(isthmusCommCount(made, &ranks)));
        return Communicator(owner.release(), rank, ranks);
    }

    static std::string& lastStoreFailure() {
        thread_local std::string text;
        return text;
    }

    static int answerOf(const Status& status) {
        if (status.ok()) return 0;
        lastStoreFailure() = status.what();
        return status.code() == Status::Code::kTimeout ? 1 : -1;
    }

    static isthmusStoreCallbacks_t storeCallbacks() {
        isthmusStoreCallbacks_t callbacks{};
        callbacks.size = sizeof(callbacks);
        callbacks.set = [](void* context, const char* key, const void* data,
                           std::size_t bytes) noexcept {
            const auto* first = static_cast<const std::byte*>(data);
            return answerOf(static_cast<Store*>(context)->set(key, Bytes(first, first + bytes)));
        };
        callbacks.get = [](void* context, const char* key, std::int64_t limit,
                           isthmusBytesSink sink, void* sinkContext) noexcept {
            const auto value =
                static_cast<Store*>(context)->get(key, std::chrono::milliseconds(limit));
            if (value.ok()) sink(sinkContext, value->data(), value->size());
            return answerOf(value.status());
        };
        callbacks.has = [](void* context, const char* key) noexcept {
            const auto there = static_cast<Store*>(context)->has(key);
            if (!there.ok()) {
                (void)answerOf(there.status());
                return -1;
            }
            return *there ? 0 : 1;
        };
        callbacks.why = [](void*) noexcept { return lastStoreFailure().c_str(); };
        callbacks.erase = [](void* context, const char* key) noexcept {
            return answerOf(static_cast<Store*>(context)->erase(key));
        };
        return callbacks;
    }

    std::unique_ptr<isthmusComm, Destroy> handle_;
    Rank rank_;
    int ranks_;
};

}  // namespace v1
}  // namespace isthmus
