#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace isthmus {

/// Why something did not happen. Success holds nothing, so returning it costs nothing.
class [[nodiscard]] Status {
public:
    /// Values are those of isthmusResult_t.
    enum class Code : std::uint8_t {
        kOk = 0,
        kInvalidArgument = 1,  ///< the caller is wrong; nothing was started
        kMismatch = 2,         ///< ranks disagree, or the wire says what it must not
        kTimeout = 3,          ///< a deadline passed
        kPeerLost = 4,         ///< a process or its connection is gone
        kAborted = 5,          ///< the caller, or a peer, gave up the Communicator
        kConfiguration = 6,    ///< environment, options or authentication are wrong
        kResource = 7,         ///< memory, space or descriptors ran out
        kUnsupported = 8,      ///< a valid wish that this build or machine cannot serve
        kInternal = 70,        ///< our fault
    };

    Status() = default;
    Status(Code code, std::string what)
        : cause_(std::make_shared<const Cause>(Cause{code, std::move(what)})) {}

    bool ok() const { return cause_ == nullptr; }
    Code code() const { return ok() ? Code::kOk : cause_->code; }
    const std::string& what() const {
        static const std::string none;
        return ok() ? none : cause_->what;
    }

    /// The same code with `context: ` before the text; success stays success.
    Status within(std::string_view context) const {
        return ok() ? Status() : Status(code(), std::string(context) + ": " + what());
    }

    static Status invalidArgument(std::string what) {
        return {Code::kInvalidArgument, std::move(what)};
    }
    static Status mismatch(std::string what) { return {Code::kMismatch, std::move(what)}; }
    static Status timeout(std::string what) { return {Code::kTimeout, std::move(what)}; }
    static Status peerLost(std::string what) { return {Code::kPeerLost, std::move(what)}; }
    static Status aborted(std::string what) { return {Code::kAborted, std::move(what)}; }
    static Status configuration(std::string what) {
        return {Code::kConfiguration, std::move(what)};
    }
    static Status resource(std::string what) { return {Code::kResource, std::move(what)}; }
    static Status unsupported(std::string what) { return {Code::kUnsupported, std::move(what)}; }
    static Status internal(std::string what) { return {Code::kInternal, std::move(what)}; }

private:
    struct Cause {
        Code code;
        std::string what;
    };
    std::shared_ptr<const Cause> cause_;  // shared: one failure completes many Works
};

/// A T, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}             // NOLINT: implicit on purpose
    Result(Status failure) : failure_(std::move(failure)) {}  // NOLINT: implicit on purpose

    bool ok() const { return value_.has_value(); }
    const Status& status() const { return failure_; }

    T& operator*() { return *value_; }
    const T& operator*() const { return *value_; }
    T* operator->() { return &*value_; }
    const T* operator->() const { return &*value_; }

private:
    std::optional<T> value_;
    Status failure_;
};

/// Returns early with the Status of `expression` unless it is success.
#define ISTHMUS_TRY(expression)                                                  \
    do {                                                                         \
        if (::isthmus::Status isthmusTried = (expression); !isthmusTried.ok()) { \
            return isthmusTried;                                                 \
        }                                                                        \
    } while (false)

}  // namespace isthmus
