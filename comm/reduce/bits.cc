#include "comm/reduce/job.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/reduce/bits.cc"
#include "comm/reduce/simd_targets.hpp"

#include <hwy/foreach_target.h>

#include "comm/reduce/simd_pass-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace isthmus::reduction {
namespace HWY_NAMESPACE {

#if ISTHMUS_REDUCE_IS_PORTABLE
void bits(BitOp op, const Job& job) {
    portable::runBits(op, job);
}
#else
using BitLanes = PlainLanes<std::uint8_t>;

HWY_INLINE ByteVector zeroOrOne(ByteVector value) {
    return hn::Min(value, hn::Set(ByteTag(), 1));
}

struct BitAnd : PlainOp {
    template <typename Tag>
    static HWY_INLINE ByteVector combine(ByteVector left, ByteVector right) {
        return hn::And(left, right);
    }
};

struct BitOr : PlainOp {
    template <typename Tag>
    static HWY_INLINE ByteVector combine(ByteVector left, ByteVector right) {
        return hn::Or(left, right);
    }
};

struct BitXor : PlainOp {
    template <typename Tag>
    static HWY_INLINE ByteVector combine(ByteVector left, ByteVector right) {
        return hn::Xor(left, right);
    }
};

/// All are non-zero when the smallest is.
struct BoolAnd : PlainOp {
    template <typename Tag>
    static HWY_INLINE ByteVector combine(ByteVector left, ByteVector right) {
        return hn::Min(left, right);
    }
    template <typename Lanes>
    static HWY_INLINE ByteVector after(ByteVector value) {
        return zeroOrOne(value);
    }
};

struct BoolOr : BitOr {
    template <typename Lanes>
    static HWY_INLINE ByteVector after(ByteVector value) {
        return zeroOrOne(value);
    }
};

struct BoolXor : BitXor {
    template <typename Lanes>
    static HWY_INLINE ByteVector before(ByteVector value) {
        return zeroOrOne(value);
    }
};

void bits(BitOp op, const Job& job) {
    switch (op) {
    case BitOp::kAnd:
        return runFewOrMany<BitLanes, BitAnd>(job);
    case BitOp::kOr:
        return runFewOrMany<BitLanes, BitOr>(job);
    case BitOp::kXor:
        return runFewOrMany<BitLanes, BitXor>(job);
    case BitOp::kBoolAnd:
        return runFewOrMany<BitLanes, BoolAnd>(job);
    case BitOp::kBoolOr:
        return runFewOrMany<BitLanes, BoolOr>(job);
    case BitOp::kBoolXor:
        return runFewOrMany<BitLanes, BoolXor>(job);
    }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace isthmus::reduction
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace isthmus::reduction {
HWY_EXPORT(bits);
void runBits(BitOp op, const Job& job) {
    HWY_DYNAMIC_DISPATCH(bits)(op, job);
}
}  // namespace isthmus::reduction
#endif
