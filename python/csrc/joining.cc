#include "python/csrc/joining.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "python/csrc/errors.hpp"

namespace isthmus::python {

namespace {

// As for calls: the longest that Ctrl-C goes unanswered.
constexpr std::chrono::milliseconds kBetweenSignals{50};

struct Joining {
    std::mutex mutex;
    std::condition_variable changed;
    // Guarded by mutex.
    bool isDone = false;
    bool isGivenUp = false;
    isthmusResult_t result = isthmusSuccess;
    std::string text;
    isthmusComm_t comm = nullptr;
};

void work(const std::shared_ptr<Joining>& joining,
          const std::function<isthmusResult_t(isthmusComm_t*)>& make) {
    isthmusComm_t comm = nullptr;
    const isthmusResult_t result = make(&comm);
    const std::lock_guard lock(joining->mutex);
    joining->result = result;
    if (result != isthmusSuccess) joining->text = isthmusGetLastError(nullptr);
    joining->comm = comm;
    joining->isDone = true;
    joining->changed.notify_all();
    if (joining->isGivenUp) isthmusCommDestroy(comm);
}

}  // namespace

isthmusComm_t join(std::function<isthmusResult_t(isthmusComm_t*)> make) {
    const auto joining = std::make_shared<Joining>();
    std::thread([joining, make = std::move(make)] { work(joining, make); }).detach();
    for (;;) {
        {
            const nb::gil_scoped_release released;
            std::unique_lock lock(joining->mutex);
            joining->changed.wait_for(lock, kBetweenSignals, [&] { return joining->isDone; });
            if (joining->isDone) break;
        }
        if (PyErr_CheckSignals() == 0) continue;
        const std::lock_guard lock(joining->mutex);
        joining->isGivenUp = true;
        if (joining->isDone) isthmusCommDestroy(joining->comm);
        throw nb::python_error();
    }
    if (joining->result != isthmusSuccess) raise(joining->result, joining->text);
    return joining->comm;
}

}  // namespace isthmus::python
