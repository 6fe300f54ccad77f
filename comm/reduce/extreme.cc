#include "comm/reduce/job.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/reduce/extreme.cc"
#include "comm/reduce/simd_targets.hpp"

#include <hwy/foreach_target.h>

#include "comm/reduce/simd_pass-inl.hpp"

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace isthmus::reduction {
namespace HWY_NAMESPACE {

#if ISTHMUS_REDUCE_IS_PORTABLE
void extreme(DataType type, bool wantsMaximum, const Job& job) {
    portable::runExtreme(type, wantsMaximum, job);
}
#else
/// Min and max that do not care for the order of their sources: a NaN anywhere gives the one NaN of
/// the type, and of two equal numbers, which differ at most in the sign of zero, min takes -0.
template <bool kMaximum>
struct Extreme : PlainOp {
    template <typename Tag>
    static HWY_INLINE hn::Vec<Tag> combine(hn::Vec<Tag> left, hn::Vec<Tag> right) {
        using T = hn::TFromD<Tag>;
        const auto further = kMaximum ? hn::Max(left, right) : hn::Min(left, right);
        if constexpr (hwy::IsFloat<T>()) {
            const auto equal = kMaximum ? hn::And(left, right) : hn::Or(left, right);
            const auto number = hn::IfThenElse(hn::Eq(left, right), equal, further);
            const auto nan = hn::Or(hn::IsNaN(left), hn::IsNaN(right));
            return hn::IfThenElse(nan, hn::Set(Tag(), std::numeric_limits<T>::quiet_NaN()), number);
        } else {
            return further;
        }
    }
};

template <bool kMaximum>
void extremeOf(DataType type, const Job& job) {
    using Op = Extreme<kMaximum>;
    switch (type) {
    case DataType::kInt8:
        return runFewOrMany<PlainLanes<std::int8_t>, Op>(job);
    case DataType::kUint8:
        return runFewOrMany<PlainLanes<std::uint8_t>, Op>(job);
    case DataType::kInt16:
        return runFewOrMany<PlainLanes<std::int16_t>, Op>(job);
    case DataType::kUint16:
        return runFewOrMany<PlainLanes<std::uint16_t>, Op>(job);
    case DataType::kInt32:
        return runFewOrMany<PlainLanes<std::int32_t>, Op>(job);
    case DataType::kUint32:
        return runFewOrMany<PlainLanes<std::uint32_t>, Op>(job);
    case DataType::kInt64:
        return runFewOrMany<PlainLanes<std::int64_t>, Op>(job);
    case DataType::kUint64:
        return runFewOrMany<PlainLanes<std::uint64_t>, Op>(job);
    case DataType::kFloat16:
        return runFewOrMany<Float16Lanes, Op>(job);
    case DataType::kBfloat16:
        return runFewOrMany<Bfloat16Lanes, Op>(job);
    case DataType::kFloat32:
        return runFewOrMany<PlainLanes<float>, Op>(job);
    default:
        return runFewOrMany<PlainLanes<double>, Op>(job);
    }
}

void extreme(DataType type, bool wantsMaximum, const Job& job) {
    if (wantsMaximum) return extremeOf<true>(type, job);
    extremeOf<false>(type, job);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace isthmus::reduction
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace isthmus::reduction {
HWY_EXPORT(extreme);
void runExtreme(DataType type, bool wantsMaximum, const Job& job) {
    HWY_DYNAMIC_DISPATCH(extreme)(type, wantsMaximum, job);
}
}  // namespace isthmus::reduction
#endif
