#include <atomic>
#include <cstddef>
#include <cstring>

#include "comm/base/log.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/capi/handles.hpp"
#include "comm/capi/store_callbacks.hpp"
#include "comm/communicator/environment_job.hpp"

using namespace isthmus;  // NOLINT: this file is the C side of that namespace

namespace {

isthmusResult_t make(isthmusComm_t* comm, Result<Runtime*> runtime,
                     std::unique_ptr<Exchanger> exchanger, int rank, int ranks,
                     CommunicatorConfig config) {
    if (!runtime.ok()) return resultOf(runtime.status());
    setLogRank(rank);
    auto made = Communicator::make(**runtime, std::move(exchanger), rank, ranks, std::move(config));
    if (!made.ok()) return resultOf(made.status());
    *comm = new isthmusComm{std::move(*made)};
    return isthmusSuccess;
}

Status checkPlace(isthmusComm_t* comm, int ranks, int rank) {
    if (comm == nullptr) return Status::invalidArgument("comm is null");
    *comm = nullptr;
    if (ranks < 1 || rank < 0 || rank >= ranks) {
        return Status::invalidArgument("rank " + std::to_string(rank) + " of " +
                                       std::to_string(ranks) + " ranks does not exist");
    }
    return {};
}

// Keys of successive communicators of one store must differ; all ranks make them in the same order.
std::string nextPrefix(const char* kind) {
    static std::atomic<int> number{0};
    return std::string(kind) + std::to_string(number.fetch_add(1));
}

std::chrono::milliseconds limitOf(const CommunicatorConfig& config, const Options& options) {
    return config.timeout.count() > 0 ? config.timeout : options.milliseconds("ISTHMUS_TIMEOUT");
}

}  // namespace

namespace isthmus {

CommunicatorConfig configOf(const isthmusConfig_t* config, int ranks) {
    CommunicatorConfig result;
    if (config == nullptr) return result;
    const auto has = [&](const void* field, std::size_t bytes) {
        const auto* base = reinterpret_cast<const char*>(config);
        return static_cast<std::size_t>(static_cast<const char*>(field) - base) + bytes <=
               config->size;
    };
    if (has(&config->name, sizeof(config->name)) && config->name != nullptr)
        result.name = config->name;
    if (has(&config->timeout_ms, sizeof(config->timeout_ms))) {
        result.timeout = timeoutOf(config->timeout_ms);
    }
    if (has(&config->lazy, sizeof(config->lazy))) result.isLazy = config->lazy != 0;
    if (has(&config->globalRanks, sizeof(config->globalRanks)) && config->globalRanks != nullptr) {
        result.globalRanks.assign(config->globalRanks, config->globalRanks + std::max(ranks, 0));
    }
    return result;
}

}  // namespace isthmus

isthmusResult_t isthmusGetUniqueId(isthmusUniqueId* id) {
    if (id == nullptr) return resultOf(Status::invalidArgument("id is null"));
    const auto options = environmentOptions();
    if (!options.ok()) return resultOf(options.status());
    const auto ports = parsePortRange(options->text("ISTHMUS_PORT_RANGE"));
    if (!ports.ok()) return resultOf(ports.status());
    const auto made = makeUniqueId(options->text("ISTHMUS_INTERFACE"), *ports);
    if (!made.ok()) return resultOf(made.status());
    const auto bytes = made->bytes();
    static_assert(sizeof(id->internal) == UniqueId::kBytes);
    std::memcpy(id->internal, bytes.data(), bytes.size());
    return isthmusSuccess;
}

isthmusResult_t isthmusCommInitRank(isthmusComm_t* comm, int nranks, isthmusUniqueId id, int rank) {
    return isthmusCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

isthmusResult_t isthmusCommInitRankConfig(isthmusComm_t* comm, int nranks, isthmusUniqueId id,
                                          int rank, const isthmusConfig_t* config) {
    if (Status status = checkPlace(comm, nranks, rank); !status.ok()) return resultOf(status);
    if (Status status = checkSize(config); !status.ok()) return resultOf(status);
    const auto parsed = UniqueId::from(
        std::as_bytes(std::span<const char, UniqueId::kBytes>(id.internal, UniqueId::kBytes)));
    if (!parsed.ok()) return resultOf(parsed.status());
    const auto options = environmentOptions();
    if (!options.ok()) return resultOf(options.status());
    CommunicatorConfig settings = configOf(config, nranks);
    auto met = connectTo(*parsed, limitOf(settings, *options));
    if (!met.ok()) return resultOf(met.status());
    auto exchanger = std::make_unique<StoreExchanger>(std::move(met->store), "id", rank, nranks);
    return make(comm, Runtime::ofProcess(met->localAddress), std::move(exchanger), rank, nranks,
                std::move(settings));
}

isthmusResult_t isthmusCommInitEnv(isthmusComm_t* comm, const isthmusConfig_t* config) {
    if (comm == nullptr) return resultOf(Status::invalidArgument("comm is null"));
    *comm = nullptr;
    if (Status status = checkSize(config); !status.ok()) return resultOf(status);
    const auto options = environmentOptions();
    if (!options.ok()) return resultOf(options.status());
    const auto job = meetByEnvironment(limitOf(configOf(config, 0), *options));
    if (!job.ok()) return resultOf(job.status());
    const LaunchEnvironment& environment = (*job)->environment;
    auto exchanger = std::make_unique<StoreExchanger>((*job)->store, nextPrefix("env"),
                                                      environment.rank, environment.ranks);
    return make(comm, Runtime::ofProcess((*job)->towards()), std::move(exchanger), environment.rank,
                environment.ranks, configOf(config, environment.ranks));
}

isthmusResult_t isthmusCommInitAllGather(isthmusComm_t* comm, int nranks, int rank,
                                         isthmusAllGatherFn allgather, void* context,
                                         const isthmusConfig_t* config) {
    if (Status status = checkPlace(comm, nranks, rank); !status.ok()) return resultOf(status);
    if (Status status = checkSize(config); !status.ok()) return resultOf(status);
    if (allgather == nullptr)
        return resultOf(Status::invalidArgument("the all-gather function is null"));
    CommunicatorConfig settings = configOf(config, nranks);
    settings.isLazy = false;  // the function may be called from inside this one only
    auto exchanger = std::make_unique<FixedSizeExchanger>(
        nranks, [allgather, context](const std::byte* send, std::byte* receive, std::size_t bytes) {
            const int failed = allgather(send, receive, bytes, context);
            if (failed == 0) return Status();
            return Status::peerLost("the all-gather that was given for start-up failed with " +
                                    std::to_string(failed));
        });
    return make(comm, Runtime::ofProcess(""), std::move(exchanger), rank, nranks,
                std::move(settings));
}

isthmusResult_t isthmusCommInitStore(isthmusComm_t* comm, int nranks, int rank,
                                     const isthmusStoreCallbacks_t* store, void* context,
                                     const isthmusConfig_t* config) {
    if (store == nullptr) {
        return resultOf(Status::invalidArgument("the store has no set or get function"));
    }
    const std::size_t least = offsetof(isthmusStoreCallbacks_t, has);  // set and get are there
    Status known = checkSize(store->size, "isthmusStoreCallbacks_t", least);
    if (!known.ok()) return resultOf(known);
    // From here on whatever is refused releases the store.
    auto given = std::make_shared<CallbackStore>(*store, context);
    if (Status status = checkPlace(comm, nranks, rank); !status.ok()) return resultOf(status);
    if (Status status = checkSize(config); !status.ok()) return resultOf(status);
    if (store->set == nullptr || store->get == nullptr) {
        return resultOf(Status::invalidArgument("the store has no set or get function"));
    }
    auto exchanger = std::make_unique<StoreExchanger>(std::move(given), "isthmus", rank, nranks);
    return make(comm, Runtime::ofProcess(towardsMaster()), std::move(exchanger), rank, nranks,
                configOf(config, nranks));
}
