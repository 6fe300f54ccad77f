#include "comm/reduce/job.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/reduce/sum.cc"
#include "comm/reduce/simd_targets.hpp"

#include <hwy/foreach_target.h>

#include "comm/reduce/simd_pass-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace isthmus::reduction {
namespace HWY_NAMESPACE {

#if ISTHMUS_REDUCE_IS_PORTABLE
void sum(DataType type, const Job& job) {
    portable::runSum(type, job);
}
#else
struct Sum : PlainOp {
    template <typename Tag>
    static HWY_INLINE hn::Vec<Tag> combine(hn::Vec<Tag> left, hn::Vec<Tag> right) {
        return hn::Add(left, right);
    }
};

void sum(DataType type, const Job& job) {
    switch (type) {
    case DataType::kFloat16:
        return runUnrolled<Float16Lanes, Sum>(job);
    case DataType::kBfloat16:
        return runUnrolled<Bfloat16Lanes, Sum>(job);
    case DataType::kFloat32:
        return runUnrolled<PlainLanes<float>, Sum>(job);
    case DataType::kFloat64:
        return runUnrolled<PlainLanes<double>, Sum>(job);
    case DataType::kUint8:
        return runFewOrMany<PlainLanes<std::uint8_t>, Sum>(job);
    case DataType::kUint16:
        return runFewOrMany<PlainLanes<std::uint16_t>, Sum>(job);
    case DataType::kUint32:
        return runFewOrMany<PlainLanes<std::uint32_t>, Sum>(job);
    default:
        return runFewOrMany<PlainLanes<std::uint64_t>, Sum>(job);
    }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace isthmus::reduction
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace isthmus::reduction {
HWY_EXPORT(sum);
void runSum(DataType type, const Job& job) {
    HWY_DYNAMIC_DISPATCH(sum)(type, job);
}
}  // namespace isthmus::reduction
#endif
