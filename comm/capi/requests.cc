#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "comm/capi/handles.hpp"

using namespace isthmus;  // NOLINT: this file is the C side of that namespace

namespace {

struct Grouped {
    std::shared_ptr<Communicator> communicator;
    std::shared_ptr<Work> work;
    int* source;
};

thread_local int groupDepth = 0;
thread_local std::vector<Grouped> grouped;
thread_local Status groupFailure;  ///< the first of what could not be started

bool isActive(isthmusRequest_t request) {
    return request != nullptr && request->work != nullptr;
}

/// Gives the result of a call that is done; of a request that has served its turn nothing is left.
isthmusResult_t take(isthmusRequest_t* request) {
    isthmusRequest* const mine = *request;
    const auto work = std::exchange(mine->work, nullptr);
    if (mine->source != nullptr && work->status().ok()) *mine->source = work->source();
    if (!mine->start) {
        delete mine;
        *request = nullptr;
    }
    return resultOf(work->status());
}

}  // namespace

namespace isthmus {

bool isGrouping() {
    return groupDepth > 0;
}

void joinGroup(isthmusComm_t comm, std::shared_ptr<Work> work, int* source) {
    grouped.push_back({comm->communicator, std::move(work), source});
}

void noteInGroup(const Status& failure) {
    if (isGrouping() && groupFailure.ok()) groupFailure = failure;
}

isthmusResult_t deliver(isthmusComm_t comm, std::shared_ptr<Work> work, const CallOptions& how,
                        isthmusRequest_t* request, int* source) {
    if (request == nullptr && isGrouping()) {
        if (work->isDone() && !work->status().ok()) {
            noteInGroup(work->status());
            return resultOf(work->status());
        }
        joinGroup(comm, std::move(work), source);
        return isthmusSuccess;
    }
    if (request != nullptr) *request = nullptr;
    if (how.isBlocking && work->isDone()) {
        if (source != nullptr && work->status().ok()) *source = work->source();
        return resultOf(work->status());
    }
    if (request == nullptr)
        return resultOf(Status::internal("a blocking call ran past its own deadline"));
    // Arguments that are wrong start nothing, so there is nothing to wait for.
    if (work->isDone() && work->status().code() == Status::Code::kInvalidArgument) {
        noteInGroup(work->status());
        return resultOf(work->status());
    }
    *request = new isthmusRequest{comm->communicator, std::move(work), source};
    return isthmusSuccess;
}

isthmusResult_t deliverInactive(isthmusComm_t comm, StartCall start, isthmusRequest_t* request,
                                int* source) {
    if (request == nullptr)
        return resultOf(Status::invalidArgument("a persistent call needs a request"));
    *request = new isthmusRequest{comm->communicator, nullptr, source, std::move(start)};
    return isthmusSuccess;
}

bool isPersistent(const isthmusCallOptions_t* options) {
    constexpr std::size_t kEnd =
        offsetof(isthmusCallOptions_t, persistent) + sizeof(isthmusCallOptions_t::persistent);
    return options != nullptr && options->size >= kEnd && options->persistent != 0;
}

Result<DataType> typeOf(isthmusDataType_t type) {
    const auto number = static_cast<int>(type);
    if (number < 0 || number >= kDataTypes)
        return Status::invalidArgument("unknown data type " + std::to_string(number));
    return static_cast<DataType>(number);
}

std::chrono::milliseconds timeoutOf(std::int64_t milliseconds) {
    // Far beyond any call, and still addable to any point in time.
    constexpr std::int64_t kTenYears = std::int64_t{10} * 365 * 24 * 3600 * 1000;
    return std::chrono::milliseconds(std::clamp<std::int64_t>(milliseconds, 0, kTenYears));
}

Status checkSize(std::size_t bytes, const char* structure, std::size_t least) {
    if (bytes >= least) return {};
    return Status::invalidArgument(std::string(structure) + ": its size is " +
                                   std::to_string(bytes) + ", must be sizeof(" + structure + ")");
}

std::optional<std::chrono::milliseconds> onlyTimeoutOf(const isthmusCallOptions_t* options) {
    if (options == nullptr) return std::chrono::milliseconds(0);
    if (options->size != sizeof(isthmusCallOptions_t)) return std::nullopt;
    const auto isGiven = [](const char* text) { return text != nullptr && *text != '\0'; };
    const int flags = options->persistent | options->deterministic | options->oneRounding;
    if (flags != 0 || isGiven(options->name) || isGiven(options->algorithm)) return std::nullopt;
    return timeoutOf(options->timeout_ms);
}

std::chrono::milliseconds patienceOf(const isthmusCallOptions_t* options) {
    constexpr std::size_t kEnd =
        offsetof(isthmusCallOptions_t, wait_ms) + sizeof(isthmusCallOptions_t::wait_ms);
    if (options == nullptr || options->size < kEnd) return std::chrono::milliseconds(0);
    return timeoutOf(options->wait_ms);
}

CallOptions optionsOf(const isthmusCallOptions_t* options, bool mustEnd) {
    CallOptions result;
    if (!mustEnd && !isPersistent(options)) result.patience = patienceOf(options);
    result.isBlocking = (mustEnd || result.patience.count() > 0) && !isGrouping();
    if (options == nullptr) return result;
    const auto has = [&](const void* field, std::size_t bytes) {
        const auto* base = reinterpret_cast<const char*>(options);
        return static_cast<std::size_t>(static_cast<const char*>(field) - base) + bytes <=
               options->size;
    };
    if (has(&options->timeout_ms, sizeof(options->timeout_ms))) {
        result.timeout = timeoutOf(options->timeout_ms);
    }
    if (has(&options->priority, sizeof(options->priority))) result.priority = options->priority;
    if (has(&options->name, sizeof(options->name)) && options->name != nullptr)
        result.name = options->name;
    if (has(&options->algorithm, sizeof(options->algorithm)) && options->algorithm != nullptr) {
        result.algorithm = options->algorithm;
    }
    if (has(&options->deterministic, sizeof(options->deterministic)))
        result.isDeterministic = options->deterministic != 0;
    if (has(&options->oneRounding, sizeof(options->oneRounding)))
        result.roundsOnce = options->oneRounding != 0;
    return result;
}

}  // namespace isthmus

isthmusResult_t isthmusGroupStart(void) {
    ++groupDepth;
    return isthmusSuccess;
}

isthmusResult_t isthmusGroupEnd(void) {
    if (groupDepth == 0)
        return resultOf(Status::invalidArgument("isthmusGroupEnd without isthmusGroupStart"));
    if (--groupDepth > 0) return isthmusSuccess;
    Status first = std::exchange(groupFailure, {});
    for (const Grouped& call : std::exchange(grouped, {})) {
        const Status status = call.communicator->wait(*call.work, std::chrono::milliseconds(0));
        if (call.source != nullptr && status.ok()) *call.source = call.work->source();
        if (first.ok()) first = status;
    }
    return resultOf(first);
}

isthmusResult_t isthmusTest(isthmusRequest_t* request, int* done) {
    if (request == nullptr || done == nullptr) {
        return resultOf(Status::invalidArgument("test: request or done is null"));
    }
    *done = 1;
    if (!isActive(*request)) return isthmusSuccess;
    if (!(*request)->work->isDone()) {
        (*request)->communicator->engine().poll();
        *done = (*request)->work->isDone() ? 1 : 0;
    }
    return *done != 0 ? take(request) : isthmusSuccess;
}

isthmusResult_t isthmusWait(isthmusRequest_t* request, int64_t timeout_ms) {
    if (request == nullptr) return resultOf(Status::invalidArgument("wait: request is null"));
    if (!isActive(*request)) return isthmusSuccess;
    const Work& work = *(*request)->work;
    if (timeout_ms == 0 && !work.isDone()) {
        return resultOf(Status::timeout("not done yet"));
    }
    const Status status = (*request)->communicator->wait(work, timeoutOf(timeout_ms));
    return work.isDone() ? take(request) : resultOf(status);
}

isthmusResult_t isthmusWaitAll(size_t requests, isthmusRequest_t* array, int64_t timeout_ms) {
    if (array == nullptr && requests > 0)
        return resultOf(Status::invalidArgument("wait all: the array is null"));
    const auto start = std::chrono::steady_clock::now();
    isthmusResult_t first = isthmusSuccess;
    for (size_t i = 0; i < requests; ++i) {
        std::int64_t left = timeout_ms;
        if (timeout_ms > 0) {
            const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(
                std::chrono::steady_clock::now() - start);
            left = std::max<std::int64_t>(timeout_ms - spent.count(), 0);
        }
        const isthmusResult_t result = isthmusWait(&array[i], left);
        if (first == isthmusSuccess) first = result;
    }
    return first;
}

isthmusResult_t isthmusWaitAny(size_t requests, isthmusRequest_t* array, size_t* index,
                               int64_t timeout_ms) {
    if (index == nullptr || (requests > 0 && array == nullptr))
        return resultOf(Status::invalidArgument("wait any: array or index is null"));
    *index = ISTHMUS_UNDEFINED;
    const std::span<isthmusRequest_t> all(array, requests);
    const auto first = std::find_if(all.begin(), all.end(), isActive);
    if (first == all.end()) return isthmusSuccess;
    // Any of them: what drives is the process's.
    Communicator& communicator = *(*first)->communicator;
    auto found = all.end();
    const auto look = [&] {
        found = std::find_if(first, all.end(), [](isthmusRequest_t request) {
            return isActive(request) && request->work->isDone();
        });
        return found != all.end();
    };
    if (!look()) {
        if (timeout_ms == 0) communicator.engine().poll();
        const Status waited = timeout_ms == 0 ? Status::timeout("none is done yet")
                                              : communicator.waitUntil(look, timeoutOf(timeout_ms));
        if (!look()) return resultOf(waited);
    }
    *index = static_cast<size_t>(found - all.begin());
    return take(&*found);
}

isthmusResult_t isthmusCancel(isthmusRequest_t request) {
    if (!isActive(request))
        return resultOf(Status::invalidArgument("cancel: there is no call to cancel"));
    return resultOf(request->communicator->cancel(*request->work));
}

isthmusResult_t isthmusStart(isthmusRequest_t request) {
    if (request == nullptr || !request->start)
        return resultOf(Status::invalidArgument("start: the request is not persistent"));
    if (request->work != nullptr) {
        return resultOf(Status::invalidArgument(
            "start: the call was started before and has not been waited for"));
    }
    auto work = request->start();
    // As where calls begin: wrong arguments start nothing.
    if (work->isDone() && work->status().code() == Status::Code::kInvalidArgument)
        return resultOf(work->status());
    request->work = std::move(work);
    return isthmusSuccess;
}

isthmusResult_t isthmusRequestActive(isthmusRequest_t request, int* active) {
    if (active == nullptr) return resultOf(Status::invalidArgument("active is null"));
    *active = isActive(request) ? 1 : 0;
    return isthmusSuccess;
}

isthmusResult_t isthmusStartAll(size_t requests, isthmusRequest_t* array) {
    if (array == nullptr && requests > 0)
        return resultOf(Status::invalidArgument("start all: the array is null"));
    for (size_t i = 0; i < requests; ++i) {
        if (const isthmusResult_t result = isthmusStart(array[i]); result != isthmusSuccess)
            return result;
    }
    return isthmusSuccess;
}

isthmusResult_t isthmusOnComplete(isthmusRequest_t request, isthmusCallback callback,
                                  void* context) {
    if (request == nullptr || callback == nullptr) {
        return resultOf(Status::invalidArgument("on complete: request or callback is null"));
    }
    if (!isActive(request))
        return resultOf(Status::invalidArgument("on complete: the request is not started"));
    Work* const work = request->work.get();
    int* const source = request->source;
    work->onComplete([work, source, callback, context](const Status& status) {
        if (source != nullptr && status.ok()) *source = work->source();
        callback(static_cast<isthmusResult_t>(status.code()), status.what().c_str(), context);
    });
    return isthmusSuccess;
}

isthmusResult_t isthmusRequestFree(isthmusRequest_t* request) {
    if (request == nullptr || *request == nullptr) return isthmusSuccess;
    delete *request;
    *request = nullptr;
    return isthmusSuccess;
}

isthmusResult_t isthmusProgress(isthmusComm_t comm) {
    if (comm == nullptr) return resultOf(Status::invalidArgument("the communicator is null"));
    comm->communicator->engine().poll();
    return isthmusSuccess;
}
