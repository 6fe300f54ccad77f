#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <isthmus/isthmus.h>
#include <isthmus/options.hpp>
#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus {
inline namespace v1 {

/// A reduction of the program's own, for one Communicator, which outlives it: op() goes where
/// ReduceOp::kSum would, in calls on elements of T. It lasts until the calls with it are done.
template <Element T>
class Reduction {
public:
    /// Whether f(a, b) is f(b, a). If not, operands are combined in the order of ranks.
    enum class Commutes : bool { kNo, kYes };

    /// `function(a, b)` gives the T of both, `a` from lower ranks; it is associative, and runs on
    /// whichever thread moves the call. All ranks give the same `name`.
    template <typename Function>
    static Result<Reduction> make(isthmusComm_t communicator, const std::string& name,
                                  Function function, Commutes commutes) {
        auto held = std::make_shared<Function>(std::move(function));
        const isthmusReduction each = [](const void* in, void* inOut, std::size_t count,
                                         isthmusDataType_t, void* context) {
            Function& apply = *static_cast<Function*>(context);
            const T* const left = static_cast<const T*>(in);
            T* const right = static_cast<T*>(inOut);
            for (std::size_t i = 0; i < count; ++i) right[i] = apply(left[i], right[i]);
        };
        isthmusRedOp_t op = isthmusSum;
        ISTHMUS_TRY(
            detail::statusOf(isthmusRedOpCreate(&op, name.c_str(), each, held.get(),
                                                commutes == Commutes::kYes ? 1 : 0, communicator)));
        return Reduction(communicator, op, std::move(held));
    }

    Reduction(Reduction&& other) noexcept
        : communicator_(std::exchange(other.communicator_, nullptr)),
          op_(other.op_),
          function_(std::move(other.function_)) {}
    Reduction& operator=(Reduction&& other) noexcept {
        std::swap(communicator_, other.communicator_);
        std::swap(op_, other.op_);
        std::swap(function_, other.function_);
        return *this;
    }
    ~Reduction() {
        if (communicator_ != nullptr) (void)isthmusRedOpDestroy(op_, communicator_);
    }

    ReduceOp op() const { return static_cast<ReduceOp>(op_); }

private:
    Reduction(isthmusComm_t communicator, isthmusRedOp_t op, std::shared_ptr<void> function)
        : communicator_(communicator), op_(op), function_(std::move(function)) {}

    isthmusComm_t communicator_;
    isthmusRedOp_t op_;
    std::shared_ptr<void> function_;
};

}  // namespace v1
}  // namespace isthmus
