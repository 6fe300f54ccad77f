// Compiled once per instruction set (Highway's foreach_target): how vectors of each element type
// are read, kept and written. No include guard in the usual sense.
#include "comm/reduce/simd_targets.hpp"

#include <hwy/highway.h>

#if defined(ISTHMUS_REDUCE_SIMD_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef ISTHMUS_REDUCE_SIMD_LANES
#undef ISTHMUS_REDUCE_SIMD_LANES
#else
#define ISTHMUS_REDUCE_SIMD_LANES
#endif

#include <cstddef>
#include <cstdint>

#define ISTHMUS_REDUCE_IS_PORTABLE (HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128)

#if !ISTHMUS_REDUCE_IS_PORTABLE
HWY_BEFORE_NAMESPACE();
namespace isthmus::reduction {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using ByteTag = hn::ScalableTag<std::uint8_t>;
using ByteVector = hn::Vec<ByteTag>;
inline constexpr std::size_t kVectorBytes = HWY_MAX_BYTES;

// Bytes are what has no alignment: pointers of users need none.
HWY_INLINE ByteVector loadBytes(const std::byte* from) {
    return hn::LoadU(ByteTag(), reinterpret_cast<const std::uint8_t*>(from));
}

/// Of vectors on their own.
template <typename Lanes>
struct PackedApart {
    template <std::size_t kCount, typename Value>
    static HWY_INLINE void packAll(const Value (&values)[kCount], ByteVector (&packed)[kCount]) {
        for (std::size_t i = 0; i < kCount; ++i) packed[i] = Lanes::pack(values[i]);
    }
};

/// Types that are added as they are stored.
template <typename T>
struct PlainLanes : PackedApart<PlainLanes<T>> {
    static constexpr bool kScalesAlways = true;  // memory takes longer
    static constexpr std::size_t kElementBytes = sizeof(T);
    using Tag = hn::ScalableTag<T>;
    using Value = hn::Vec<Tag>;  // one vector of elements, ready for arithmetic

    static HWY_INLINE Value load(const std::byte* from) {
        return hn::BitCast(Tag(), loadBytes(from));
    }
    static HWY_INLINE ByteVector pack(Value value) { return hn::BitCast(ByteTag(), value); }

    template <typename Op>
    static HWY_INLINE Value apply(Value left, Value right) {
        return Op::template combine<Tag>(left, right);
    }
    static HWY_INLINE Value factor(double scale) { return hn::Set(Tag(), static_cast<T>(scale)); }
    static HWY_INLINE Value scale(Value value, Value by) {
        if constexpr (hwy::IsFloat<T>()) {
            return hn::Mul(value, by);
        } else {
            return value;
        }
    }
};

/// What both 16-bit floating types share: one vector of them is two of f32.
template <typename Derived>
struct WideLanes {
    static constexpr bool kScalesAlways = false;
    static constexpr std::size_t kElementBytes = 2;
    using Tag = hn::ScalableTag<float>;
    using Half = hn::Vec<Tag>;
    struct Value {
        Half first;
        Half second;
    };

    template <typename Op>
    static HWY_INLINE Value apply(Value left, Value right) {
        return {Op::template combine<Tag>(left.first, right.first),
                Op::template combine<Tag>(left.second, right.second)};
    }
    static HWY_INLINE Half factor(double scale) {
        return hn::Set(Tag(), static_cast<float>(scale));
    }
    static HWY_INLINE Value scale(Value value, Half by) {
        return {hn::Mul(value.first, by), hn::Mul(value.second, by)};
    }
};

/// bf16: a 32-bit lane holds two, so elements of even position are a shift away and those of odd
/// position a mask away from f32; nothing crosses lanes. Little-endian. Rounds in integers on every
/// machine, AVX512_BF16 or not: that instruction takes subnormals for zero, and ranks of one job
/// must agree.
struct Bfloat16Lanes : WideLanes<Bfloat16Lanes> {
    using BitsTag = hn::RebindToUnsigned<Tag>;
    using Bits = hn::Vec<BitsTag>;
    using ShortTag = hn::ScalableTag<std::uint16_t>;

    static HWY_INLINE Value load(const std::byte* from) {
        const Bits pair = hn::BitCast(BitsTag(), loadBytes(from));
        return {hn::BitCast(Tag(), hn::ShiftLeft<16>(pair)),
                hn::BitCast(Tag(), hn::And(pair, hn::Set(BitsTag(), 0xFFFF0000u)))};
    }
    static HWY_INLINE ByteVector pack(Value value) {
        const Bits even = hn::ShiftRight<16>(rounded(value.first));
        const Bits odd = hn::And(rounded(value.second), hn::Set(BitsTag(), 0xFFFF0000u));
        return hn::BitCast(ByteTag(), hn::Or(even, odd));
    }
    /// The same bits. Rounding costs more than the sum, and NaN is what makes it dear: looked for
    /// in all of them at once (infinities of both signs pass for it, and go the longer way).
    template <std::size_t kCount>
    static HWY_INLINE void packAll(const Value (&values)[kCount], ByteVector (&packed)[kCount]) {
        Half all = hn::Add(values[0].first, values[0].second);
        for (std::size_t i = 1; i < kCount; ++i)
            all = hn::Add(all, hn::Add(values[i].first, values[i].second));
        if (HWY_LIKELY(hn::AllFalse(Tag(), hn::IsNaN(all)))) {
            for (std::size_t i = 0; i < kCount; ++i) packed[i] = packNumbers(values[i]);
        } else {
            for (std::size_t i = 0; i < kCount; ++i) packed[i] = pack(values[i]);
        }
    }

private:
    /// Of values that are not NaN: the lower halves of all elements in one vector, the upper ones
    /// in another, which are one more where the lower ones say so.
    static HWY_INLINE ByteVector packNumbers(Value value) {
        const ShortTag shorts;
        const Bits even = hn::BitCast(BitsTag(), value.first);
        const Bits odd = hn::BitCast(BitsTag(), value.second);
        const auto upper =
            hn::OddEven(hn::BitCast(shorts, odd), hn::BitCast(shorts, hn::ShiftRight<16>(even)));
        const auto lower =
            hn::OddEven(hn::BitCast(shorts, hn::ShiftLeft<16>(odd)), hn::BitCast(shorts, even));
        const auto one = hn::Set(shorts, std::uint16_t{1});
        const auto sticky = hn::SaturatedAdd(lower, hn::And(upper, one));
        const auto isUp = hn::Gt(sticky, hn::Set(shorts, std::uint16_t{0x8000}));
        return hn::BitCast(ByteTag(), hn::IfThenElse(isUp, hn::Add(upper, one), upper));
    }

    /// The upper 16 bits are the nearest bf16, ties to even; NaN stays NaN.
    static HWY_INLINE Bits rounded(Half value) {
        const Bits bits = hn::BitCast(BitsTag(), value);
        const Bits last = hn::And(hn::ShiftRight<16>(bits), hn::Set(BitsTag(), 1u));
        const Bits nearest = hn::Add(hn::Add(bits, hn::Set(BitsTag(), 0x7FFFu)), last);
        const Bits quiet = hn::Or(bits, hn::Set(BitsTag(), 0x00400000u));
        return hn::IfThenElse(hn::RebindMask(BitsTag(), hn::IsNaN(value)), quiet, nearest);
    }
};

/// f16 by the processor's own conversion (F16C or NEON: nearest, ties to even, NaN kept).
struct Float16Lanes : WideLanes<Float16Lanes>, PackedApart<Float16Lanes> {
    using HalfBytes = hn::Half<ByteTag>;
    using StoredHalf = hn::Rebind<hwy::float16_t, Tag>;

    static HWY_INLINE Value load(const std::byte* from) {
        return {widen(from), widen(from + kVectorBytes / 2)};
    }
    static HWY_INLINE ByteVector pack(Value value) {
        const auto low = hn::BitCast(HalfBytes(), hn::DemoteTo(StoredHalf(), value.first));
        const auto high = hn::BitCast(HalfBytes(), hn::DemoteTo(StoredHalf(), value.second));
        return hn::Combine(ByteTag(), high, low);
    }

private:
    static HWY_INLINE Half widen(const std::byte* from) {
        const auto bytes = hn::LoadU(HalfBytes(), reinterpret_cast<const std::uint8_t*>(from));
        return hn::PromoteTo(Tag(), hn::BitCast(StoredHalf(), bytes));
    }
};

}  // namespace HWY_NAMESPACE
}  // namespace isthmus::reduction
HWY_AFTER_NAMESPACE();
#endif

#endif
