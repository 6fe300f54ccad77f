#pragma once

#include <utility>

#include <isthmus/isthmus.h>
#include <isthmus/options.hpp>
#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus {
inline namespace v1 {

/// A sum of inputs that are multiplied first, each rank's by a factor of its own: op() goes where
/// ReduceOp::kSum would. For one Communicator, which outlives it, and one floating type.
class PremulSum {
public:
    /// kInvalidArgument: T is not a floating type.
    template <Element T>
    static Result<PremulSum> make(isthmusComm_t communicator, T factor) {
        isthmusRedOp_t op = isthmusSum;
        ISTHMUS_TRY(detail::statusOf(
            isthmusRedOpCreatePreMulSum(&op, &factor, detail::toC(DataTypeOf<T>::value),
                                        isthmusScalarHostImmediate, communicator)));
        return PremulSum(communicator, op);
    }

    PremulSum(PremulSum&& other) noexcept
        : communicator_(std::exchange(other.communicator_, nullptr)), op_(other.op_) {}
    PremulSum& operator=(PremulSum&& other) noexcept {
        std::swap(communicator_, other.communicator_);
        std::swap(op_, other.op_);
        return *this;
    }
    ~PremulSum() {
        if (communicator_ != nullptr) (void)isthmusRedOpDestroy(op_, communicator_);
    }

    ReduceOp op() const { return static_cast<ReduceOp>(op_); }

private:
    PremulSum(isthmusComm_t communicator, isthmusRedOp_t op)
        : communicator_(communicator), op_(op) {}

    isthmusComm_t communicator_;
    isthmusRedOp_t op_;
};

}  // namespace v1
}  // namespace isthmus
