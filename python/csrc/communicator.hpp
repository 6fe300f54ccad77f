#pragma once

#include <isthmus/isthmus.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/csrc/operations.hpp"
#include "python/csrc/pending.hpp"

namespace isthmus::python {

/// What every call takes beside its own arguments; times in seconds.
struct Wishes {
    bool wait = true;
    std::optional<double> timeout;
    int priority = 0;
    std::optional<std::string> name;
    std::optional<std::string> algorithm;
    bool isPersistent = false;
    bool isDeterministic = false;
    bool roundsOnce = false;
};

/// Milliseconds for the library: at least one, so that a short time is not taken for none.
std::int64_t millisecondsOf(std::optional<double> seconds);

using StartCall = std::function<isthmusResult_t(isthmusComm_t, const isthmusCallOptions_t*,
                                                isthmusRequest_t*, int* source)>;

/// isthmusComm_t with its calls in flight. Thread: with Python's lock, which waiting releases.
class Communicator {
public:
    explicit Communicator(isthmusComm_t comm);
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    /// Waits a second for calls in flight, then aborts.
    ~Communicator();

    /// The handle; raises when it is closed.
    isthmusComm_t handle() const;
    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    bool isClosed() const { return comm_ == nullptr; }

    /// Starts a call that uses these arrays; the memory is kept until the call is done, whatever
    /// becomes of what is returned.
    std::shared_ptr<Pending> start(const Wishes& wishes, std::vector<Array> arrays,
                                   const StartCall& begin);

    /// A call of the library that is over when it returns. Python's lock is released meanwhile: the
    /// library may be inside a function of Python, which wants it.
    void use(const std::function<isthmusResult_t(isthmusComm_t)>& call);

    Reductions& reductions() { return *reductions_; }
    /// Raises what a reduction of the program has raised.
    void checkReductions() { reductions_->check(*this); }

    /// Waits for the calls in flight, then leaves. Raises what the library says, or what a signal
    /// raises: then it stays open.
    void close();
    void abort(const std::optional<std::string>& reason);
    /// For ends that must not fail: calls get `grace`, then the communicator is aborted.
    void leave(Milliseconds grace) noexcept;

private:
    void forgetDone();
    isthmusResult_t destroy();

    isthmusComm_t comm_;
    int rank_ = 0;
    int ranks_ = 0;
    int starting_ = 0;  ///< threads that are inside the library with comm_
    std::vector<std::shared_ptr<Pending>> pending_;
    std::unique_ptr<Reductions> reductions_ = std::make_unique<Reductions>();
};

/// Leaves every communicator; registered to run before Python ends.
void leaveAll();

}  // namespace isthmus::python
