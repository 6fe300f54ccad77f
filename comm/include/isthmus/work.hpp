#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include <isthmus/isthmus.h>
#include <isthmus/options.hpp>
#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus {
inline namespace v1 {

/// One call in flight. Done, well or badly, means that nobody touches its buffers any more.
///
/// A Work that goes before its call is done lets the call go on: the buffers must still outlive it.
/// A Work must not outlive its Communicator.
/// Thread: one at a time.
class [[nodiscard]] Work {
public:
    using Callback = std::function<void(const Status&)>;

    /// A Work that is done: well, or as `status` says.
    Work() = default;
    explicit Work(Status status) : status_(std::move(status)) {}

    Work(Work&& other) noexcept
        : request_(std::exchange(other.request_, nullptr)),
          source_(std::move(other.source_)),
          status_(std::move(other.status_)) {}
    Work& operator=(Work&& other) noexcept {
        if (this == &other) return *this;
        (void)isthmusRequestFree(&request_);
        request_ = std::exchange(other.request_, nullptr);
        source_ = std::move(other.source_);
        status_ = std::move(other.status_);
        return *this;
    }
    ~Work() { (void)isthmusRequestFree(&request_); }

    /// Moves calls forward; true when this one is done. Never waits.
    bool test() {
        if (request_ == nullptr) return true;
        int done = 0;
        const isthmusResult_t result = isthmusTest(&request_, &done);
        if (done != 0) status_ = detail::statusOf(result);
        return done != 0;
    }

    /// Waits until the call is done, which its own deadline ensures, and says how it ended.
    /// kInvalidArgument inside a completion callback.
    Status wait() { return waitFor(-1); }

    /// The same, but kTimeout after `limit` if it is not done by then; it goes on and can be waited
    /// for again.
    Status wait(std::chrono::milliseconds limit) {
        return waitFor(limit.count() < 0 ? 0 : limit.count());
    }

    /// Starts a persistent call once more, with what its buffers hold now. kInvalidArgument when it
    /// is not persistent, or was started and has not been seen to end.
    Status start() { return detail::statusOf(isthmusStart(request_)); }

    /// Takes a receive back that has not begun: it ends with kAborted. kInvalidArgument, and the
    /// call goes on, for any other.
    Status cancel() { return detail::statusOf(isthmusCancel(request_)); }

    /// How the call ended, as far as test() or wait() saw it; success before.
    const Status& status() const { return status_; }

    /// The rank that a receive from any source met, once done well; -1 for anything else.
    Rank source() const { return source_ == nullptr ? -1 : *source_; }

    /// Runs `callback` once when the call is done: on the library's thread, or at once on this one
    /// if it is done already. It may start calls, must not wait for them, and must not throw.
    Status onComplete(Callback callback) {
        if (request_ == nullptr) {
            callback(status_);
            return {};
        }
        auto box = std::make_unique<Box>(Box{std::move(callback), source_});
        const isthmusResult_t result = isthmusOnComplete(request_, &Work::deliver, box.get());
        if (result != isthmusSuccess) return detail::statusOf(result);
        (void)box.release();  // deliver() frees it
        return {};
    }

    /// Starts `call(request, source)`, which gives a result of the C API.
    template <typename Call>
    static Work begin(const Call& call, std::shared_ptr<int> source = nullptr) {
        Work work;
        work.source_ = std::move(source);
        const isthmusResult_t result = call(&work.request_, work.source_.get());
        if (result != isthmusSuccess) work.status_ = detail::statusOf(result);
        return work;
    }

private:
    struct Box {
        Callback callback;
        std::shared_ptr<int> source;  // written as long as the call may be done
    };

    static void deliver(isthmusResult_t result, const char* text, void* context) noexcept {
        const std::unique_ptr<Box> box(static_cast<Box*>(context));
        box->callback(result == isthmusSuccess ? Status()
                                               : Status(static_cast<Status::Code>(result), text));
    }

    Status waitFor(std::int64_t limitMilliseconds) {
        if (request_ == nullptr) return status_;
        const Status status = detail::statusOf(isthmusWait(&request_, limitMilliseconds));
        // A request that stays is a persistent one, or has outlasted the caller's own limit.
        int isActive = 0;
        if (request_ != nullptr) (void)isthmusRequestActive(request_, &isActive);
        if (isActive == 0) status_ = status;
        return status;
    }

    isthmusRequest_t request_ = nullptr;  // null: done, as status_ says
    std::shared_ptr<int> source_;
    Status status_;
};

}  // namespace v1
}  // namespace isthmus
