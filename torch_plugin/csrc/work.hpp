#pragma once

#include <isthmus/isthmus.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "torch_plugin/csrc/call.hpp"
#include "torch_plugin/csrc/communicator.hpp"
#include "torch_plugin/csrc/executor.hpp"
#include "torch_plugin/csrc/lane.hpp"
#include "torch_plugin/csrc/torch_compat.hpp"

namespace isthmus::glue {

/// One call of the library, as torch sees it. Tensors stay alive until the library is done with
/// them, whether or not anybody keeps the Work.
class Work final : public c10d::Work, private Finishable {
public:
    Work(int rank, Call call, std::shared_ptr<Communicator> communicator);
    ~Work() override;

    /// Issues the call; returns done when the call runs in the caller. Throws if it could not start
    /// or, run in the caller, failed.
    static c10::intrusive_ptr<Work> issue(int rank, Call call,
                                          std::shared_ptr<Communicator> communicator);

    /// Begins a work that waited, for the ranks of its group to meet or in line. Blocks until the
    /// device has given its tensors. Throws nothing.
    static void beginLater(c10::intrusive_ptr<Work> work) noexcept;
    /// Issues a call whose `start` blocks and may make several calls of the library; `lane` runs
    /// it.
    static c10::intrusive_ptr<Work> issueOn(Lane& lane, int rank, Call call);
    /// The body of such a call, on the lane's thread; the executor does the rest. Throws nothing.
    static void runOnLane(c10::intrusive_ptr<Work> work) noexcept;

    /// A work on a device is completed once the device has the results.
    bool isCompleted() override;
    /// Blocks until the call has ended and, for a device, makes the caller's current stream wait
    /// for the results.
    bool wait(std::chrono::milliseconds timeout) override;
    /// Blocks until the results are on the device.
    void synchronize() override;
    void blockCurrentStream() override { wait(kNoTimeout); }
    int sourceRank() const override;
    std::vector<at::Tensor> result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
    float getDuration() const override;
    std::uint64_t getSequencenumber() const override;
#if ISTHMUS_TORCH_AT_LEAST(2, 15)
    std::chrono::milliseconds getTimeout() const override;
#endif

private:
    using Clock = std::chrono::steady_clock;

    enum class Begun { kRunning, kDone, kRefused };
    /// Blocks until host memory has the tensors of a device; false when that failed.
    bool load();
    void failLoad(const char* why);
    /// Hands the call to the library; unless it runs, somebody has to complete().
    Begun begin();
    /// With `patience` (milliseconds) it first waits that long: no request is left of a call that
    /// ended.
    Outcome start(isthmusRequest_t* request, std::int64_t patience = 0);
    /// Leaves a call that runs to whoever waits for it, or else to the executor.
    Begun keep(isthmusRequest_t request);
    void startAsync();
    void runInCaller();
    void runBlocking();
    /// The same, but lets signals be handled meanwhile; false when a handler raised: the call then
    /// goes on by itself.
    bool runInSlices();
    static void onLibraryDone(isthmusResult_t result, const char* text, void* context);
    void finishOnExecutor() override {
        complete();
    }
    /// Ends the work with the settled outcome; the first caller does it, for the
    /// others nothing happens.
    void complete();
    /// Brings results where the caller wants them; what went wrong, if anything did.
    std::exception_ptr store();
    void markFutures();
    void markFuture(c10::ivalue::Future& future) const;
    void settle(Outcome outcome);
    /// Takes the request to wait for it here, moving the library forward; true when all the time
    /// went by in vain. Below zero: no limit.
    bool drive(std::int64_t milliseconds);
    /// Waits until the work has ended; false when the time passed before. Below zero: no limit.
    bool waitForEnd(std::int64_t milliseconds);
    enum class Slice { kOpen, kSettled, kEnded };
    Slice waitSlice(std::int64_t milliseconds);
    void rethrow() const;

    Call call_;
    std::shared_ptr<Communicator> communicator_;
    const Clock::time_point began_ = Clock::now();
    Clock::time_point ended_;

    std::mutex callMutex_;  ///< guards what follows; never held while calling out
    isthmusRequest_t request_ = nullptr;
    bool isSettled_ = false;  ///< outcome_ is known
    bool isClaimed_ = false;  ///< somebody completes
    bool hasEnded_ = false;   ///< futures may be marked
    Outcome outcome_;
    /// A thread inside the library on this work's behalf takes the reference that the library's
    /// callback holds, so that the library's thread never drops the last one.
    c10::intrusive_ptr<Work>* driver_ = nullptr;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    c10::intrusive_ptr<c10::ivalue::Future> futureResult_;
};

/// Torch may keep a work for the tensor that it fills, where collectives in flight go into compiled
/// graphs; waiting for it is the end of that.
void forgetInRegistry(c10d::Work* work);

/// Several works that end as one.
class BatchWork final : public c10d::Work {
public:
    BatchWork(int rank, c10d::OpType type, std::vector<c10::intrusive_ptr<c10d::Work>> parts);

    bool isCompleted() override;
    bool isSuccess() const override;
    std::exception_ptr exception() const override;
    bool wait(std::chrono::milliseconds timeout) override;
    void synchronize() override;
    void blockCurrentStream() override { wait(kNoTimeout); }
    std::vector<at::Tensor> result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
    float getDuration() const override;
    std::uint64_t getSequencenumber() const override;

private:
    std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
};

}  // namespace isthmus::glue
