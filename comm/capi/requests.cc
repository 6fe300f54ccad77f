#include <vector>

#include "comm/capi/handles.hpp"

using namespace isthmus;  // NOLINT: this file is the C side of that namespace

namespace {

struct Grouped {
    isthmusComm_t comm;
    std::shared_ptr<Work> work;
    int* source;
};

thread_local int groupDepth = 0;
thread_local std::vector<Grouped> grouped;

isthmusResult_t take(isthmusRequest_t* request) {
    isthmusRequest* const mine = *request;
    *request = nullptr;
    if (mine->source != nullptr && mine->work->status().ok()) *mine->source = mine->work->source();
    const isthmusResult_t result = resultOf(mine->work->status());
    delete mine;
    return result;
}

}  // namespace

namespace isthmus {

bool isGrouping() {
    return groupDepth > 0;
}

void joinGroup(isthmusComm_t comm, std::shared_ptr<Work> work, int* source) {
    grouped.push_back({comm, std::move(work), source});
}

isthmusResult_t deliver(isthmusComm_t comm, std::shared_ptr<Work> work, isthmusRequest_t* request,
                        int* source) {
    if (request == nullptr && isGrouping()) {
        if (work->isDone() && !work->status().ok()) return resultOf(work->status());
        joinGroup(comm, std::move(work), source);
        return isthmusSuccess;
    }
    if (request == nullptr) {
        if (!work->isDone()) {
            return resultOf(Status::internal("a blocking call ran past its own deadline"));
        }
        if (source != nullptr && work->status().ok()) *source = work->source();
        return resultOf(work->status());
    }
    *request = nullptr;
    // Arguments that are wrong start nothing, so there is nothing to wait for.
    if (work->isDone() && work->status().code() == Status::Code::kInvalidArgument)
        return resultOf(work->status());
    *request = new isthmusRequest{comm, std::move(work), source};
    return isthmusSuccess;
}

CallOptions optionsOf(const isthmusCallOptions_t* options, bool isBlocking) {
    CallOptions result;
    result.isBlocking = isBlocking;
    if (options == nullptr) return result;
    const auto has = [&](const void* field, std::size_t bytes) {
        const auto* base = reinterpret_cast<const char*>(options);
        return static_cast<std::size_t>(static_cast<const char*>(field) - base) + bytes <=
               options->size;
    };
    if (has(&options->timeout_ms, sizeof(options->timeout_ms))) {
        result.timeout = std::chrono::milliseconds(options->timeout_ms);
    }
    if (has(&options->priority, sizeof(options->priority))) result.priority = options->priority;
    if (has(&options->name, sizeof(options->name)) && options->name != nullptr)
        result.name = options->name;
    if (has(&options->algorithm, sizeof(options->algorithm)) && options->algorithm != nullptr) {
        result.algorithm = options->algorithm;
    }
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
    isthmusResult_t first = isthmusSuccess;
    for (const Grouped& call : std::exchange(grouped, {})) {
        const Status status =
            call.comm->communicator->wait(*call.work, std::chrono::milliseconds(0));
        if (call.source != nullptr && status.ok()) *call.source = call.work->source();
        if (first == isthmusSuccess) first = resultOf(status);
    }
    return first;
}

isthmusResult_t isthmusTest(isthmusRequest_t* request, int* done) {
    if (request == nullptr || done == nullptr) {
        return resultOf(Status::invalidArgument("test: request or done is null"));
    }
    *done = 1;
    if (*request == nullptr) return isthmusSuccess;
    if (!(*request)->work->isDone()) {
        (*request)->comm->communicator->engine().poll();
        *done = (*request)->work->isDone() ? 1 : 0;
    }
    return *done != 0 ? take(request) : isthmusSuccess;
}

isthmusResult_t isthmusWait(isthmusRequest_t* request, int64_t timeout_ms) {
    if (request == nullptr) return resultOf(Status::invalidArgument("wait: request is null"));
    if (*request == nullptr) return isthmusSuccess;
    const Work& work = *(*request)->work;
    if (timeout_ms == 0 && !work.isDone()) {
        return resultOf(Status::timeout("not done yet"));
    }
    const Status status = (*request)->comm->communicator->wait(
        work, std::chrono::milliseconds(timeout_ms < 0 ? 0 : timeout_ms));
    return work.isDone() ? take(request) : resultOf(status);
}

isthmusResult_t isthmusWaitAll(size_t requests, isthmusRequest_t* array, int64_t timeout_ms) {
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

isthmusResult_t isthmusOnComplete(isthmusRequest_t request, isthmusCallback callback,
                                  void* context) {
    if (request == nullptr || callback == nullptr) {
        return resultOf(Status::invalidArgument("on complete: request or callback is null"));
    }
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
