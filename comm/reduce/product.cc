#include "comm/reduce/job.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/reduce/product.cc"
#include "comm/reduce/simd_targets.hpp"

#include <hwy/foreach_target.h>

#include "comm/reduce/simd_pass-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace isthmus::reduction {
namespace HWY_NAMESPACE {

#if ISTHMUS_REDUCE_IS_PORTABLE
void product(DataType type, const Job& job) {
    portable::runProduct(type, job);
}
#else
/// There is no 8-bit multiplication: multiply the even and the odd bytes as 16-bit numbers.
HWY_INLINE ByteVector multiplyBytes(ByteVector left, ByteVector right) {
    const hn::RepartitionToWide<ByteTag> wide;
    const auto a = hn::BitCast(wide, left);
    const auto b = hn::BitCast(wide, right);
    const auto even = hn::And(hn::Mul(a, b), hn::Set(wide, 0x00FF));
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a), hn::ShiftRight<8>(b)));
    return hn::BitCast(ByteTag(), hn::Or(even, odd));
}

/// Nor a 64-bit one before AVX-512DQ: low * low + 2^32 * (low * high + high * low).
template <typename Tag>
HWY_INLINE hn::Vec<Tag> multiplyWords(hn::Vec<Tag> left, hn::Vec<Tag> right) {
    const hn::RepartitionToNarrow<Tag> narrow;
    const auto a = hn::BitCast(narrow, left);
    const auto b = hn::BitCast(narrow, right);
    const auto lows = hn::MulEven(a, b);
    const auto crosses = hn::BitCast(Tag(), hn::Mul(a, hn::Shuffle2301(b)));
    const auto upper = hn::And(crosses, hn::Set(Tag(), 0xFFFFFFFF00000000u));
    return hn::Add(lows, hn::Add(upper, hn::ShiftLeft<32>(crosses)));
}

struct Product : PlainOp {
    template <typename Tag>
    static HWY_INLINE hn::Vec<Tag> combine(hn::Vec<Tag> left, hn::Vec<Tag> right) {
        using T = hn::TFromD<Tag>;
        if constexpr (sizeof(T) == 1) {
            return multiplyBytes(left, right);
        } else if constexpr (sizeof(T) == 8 && !hwy::IsFloat<T>()) {
            return multiplyWords<Tag>(left, right);
        } else {
            return hn::Mul(left, right);
        }
    }
};

void product(DataType type, const Job& job) {
    switch (type) {
    case DataType::kFloat16:
        return runFewOrMany<Float16Lanes, Product>(job);
    case DataType::kBfloat16:
        return runFewOrMany<Bfloat16Lanes, Product>(job);
    case DataType::kFloat32:
        return runFewOrMany<PlainLanes<float>, Product>(job);
    case DataType::kFloat64:
        return runFewOrMany<PlainLanes<double>, Product>(job);
    case DataType::kUint8:
        return runFewOrMany<PlainLanes<std::uint8_t>, Product>(job);
    case DataType::kUint16:
        return runFewOrMany<PlainLanes<std::uint16_t>, Product>(job);
    case DataType::kUint32:
        return runFewOrMany<PlainLanes<std::uint32_t>, Product>(job);
    default:
        return runFewOrMany<PlainLanes<std::uint64_t>, Product>(job);
    }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace isthmus::reduction
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace isthmus::reduction {
HWY_EXPORT(product);
void runProduct(DataType type, const Job& job) {
    HWY_DYNAMIC_DISPATCH(product)(type, job);
}
}  // namespace isthmus::reduction
#endif
