// Compiled once per instruction set: the pass over memory that all kernels share.
#include "comm/reduce/simd_lanes-inl.hpp"

#if defined(ISTHMUS_REDUCE_SIMD_PASS) == defined(HWY_TARGET_TOGGLE)
#ifdef ISTHMUS_REDUCE_SIMD_PASS
#undef ISTHMUS_REDUCE_SIMD_PASS
#else
#define ISTHMUS_REDUCE_SIMD_PASS
#endif

#include <cstring>

#include <hwy/cache_control.h>

#include "comm/reduce/job.hpp"

#if !ISTHMUS_REDUCE_IS_PORTABLE
HWY_BEFORE_NAMESPACE();
namespace isthmus::reduction {
namespace HWY_NAMESPACE {

/// One operation over one job. `Op` has combine(left, right), and may have before(value) for each
/// source and after(value) for the result. `kSources` 0: as many as the job says.
template <typename Lanes, typename Op, std::size_t kSources>
class Pass {
public:
    explicit HWY_INLINE Pass(const Job& job) : job_(job) {}

    HWY_INLINE void run() const {
        if constexpr (Lanes::kScalesAlways) {
            pass<true>();
        } else if (job_.scale == 1) {
            pass<false>();
        } else {
            pass<true>();
        }
    }

private:
    using Value = typename Lanes::Value;
    using Factor = decltype(Lanes::factor(1.0));

    // Four vectors a time hide the latency of the additions and, with 32-byte vectors, make two
    // cache lines: what the adjacent-line prefetcher of x86 fetches together.
    static constexpr std::size_t kVectors = 4;
    static constexpr std::size_t kBlockBytes = kVectors * kVectorBytes;
    static constexpr std::size_t kLine = 64;  // a non-temporal store must fill whole lines
    static_assert(kBlockBytes % kLine == 0);

    template <bool kScales>
    HWY_INLINE void pass() const {
        // Kept here, because stores through user pointers may change anything in memory.
        const auto factor = Lanes::factor(job_.scale);
        const std::size_t targets = job_.targetCount;
        std::size_t at = job_.streaming ? bytesToLine() : 0;
        slowly(0, at);
        for (; job_.bytes - at >= kBlockBytes; at += kBlockBytes) {
            block<kVectors, kScales>(at, targets, factor);
        }
        slowly(at, job_.bytes);
        if (job_.streaming) hwy::FlushStream();
    }

    HWY_INLINE std::size_t sources() const { return kSources == 0 ? job_.sourceCount : kSources; }

    /// Up to the first target's next cache line; 0 when elements do not divide it.
    HWY_INLINE std::size_t bytesToLine() const {
        const std::size_t bytes = -reinterpret_cast<std::uintptr_t>(job_.target(0)) % kLine;
        return bytes % Lanes::kElementBytes == 0 && bytes <= job_.bytes ? bytes : 0;
    }

    template <std::size_t kCount, bool kScales>
    HWY_INLINE void block(std::size_t at, std::size_t targets, Factor factor) const {
        Value sums[kCount];
        for (std::size_t i = 0; i < kCount; ++i) {
            sums[i] =
                Op::template before<Lanes>(Lanes::load(job_.source(0) + at + i * kVectorBytes));
        }
        for (std::size_t s = 1; s < sources(); ++s) {
            const std::byte* const from = job_.source(s) + at;
            for (std::size_t i = 0; i < kCount; ++i) {
                const Value value =
                    Op::template before<Lanes>(Lanes::load(from + i * kVectorBytes));
                sums[i] = Lanes::template apply<Op>(sums[i], value);
            }
        }
        for (std::size_t i = 0; i < kCount; ++i) {
            sums[i] = Op::template after<Lanes>(sums[i]);
            if constexpr (kScales) sums[i] = Lanes::scale(sums[i], factor);
        }
        ByteVector packed[kCount];
        Lanes::packAll(sums, packed);
        for (std::size_t t = 0; t < job_.targetCount; ++t)
            store<kCount>(job_.target(t) + at, packed);
    }

    template <std::size_t kCount>
    HWY_INLINE void store(std::byte* target, const ByteVector (&packed)[kCount]) const {
        auto* const to = reinterpret_cast<std::uint8_t*>(target);
        if (kCount == kVectors && job_.streaming &&
            reinterpret_cast<std::uintptr_t>(to) % kLine == 0) {
            for (std::size_t i = 0; i < kCount; ++i) {
                hn::Stream(packed[i], ByteTag(), to + i * kVectorBytes);
            }
        } else {
            for (std::size_t i = 0; i < kCount; ++i) {
                hn::StoreU(packed[i], ByteTag(), to + i * kVectorBytes);
            }
        }
    }

    static HWY_INLINE ByteVector finish(Value sum, Factor factor) {
        return Lanes::pack(Lanes::scale(Op::template after<Lanes>(sum), factor));
    }

    /// Single vectors, then what is left through a padded copy: nothing is read or written outside
    /// [from, to), and no byte twice, so a target may be a source.
    HWY_NOINLINE void slowly(std::size_t from, std::size_t to) const {
        const auto factor = Lanes::factor(job_.scale);
        for (; to - from >= kVectorBytes; from += kVectorBytes) {
            block<1, true>(from, job_.targetCount, factor);
        }
        if (from != to) rest(from, to - from);
    }

    HWY_NOINLINE void rest(std::size_t at, std::size_t bytes) const {
        alignas(64) std::byte padded[kVectorBytes] = {};
        std::memcpy(padded, job_.source(0) + at, bytes);
        Value sum = Op::template before<Lanes>(Lanes::load(padded));
        for (std::size_t s = 1; s < sources(); ++s) {
            std::memcpy(padded, job_.source(s) + at, bytes);
            sum = Lanes::template apply<Op>(sum, Op::template before<Lanes>(Lanes::load(padded)));
        }
        hn::StoreU(finish(sum, Lanes::factor(job_.scale)), ByteTag(),
                   reinterpret_cast<std::uint8_t*>(padded));
        for (std::size_t t = 0; t < job_.targetCount; ++t) {
            std::memcpy(job_.target(t) + at, padded, bytes);
        }
    }

    const Job& job_;
};

/// What most operations do before and after: nothing.
struct PlainOp {
    template <typename Lanes>
    static HWY_INLINE typename Lanes::Value before(typename Lanes::Value value) {
        return value;
    }
    template <typename Lanes>
    static HWY_INLINE typename Lanes::Value after(typename Lanes::Value value) {
        return value;
    }
};

template <typename Lanes, typename Op>
void runFewOrMany(const Job& job) {
    if (job.sourceCount == 2) return Pass<Lanes, Op, 2>(job).run();
    Pass<Lanes, Op, 0>(job).run();
}

/// For the sums of gradients, which is what nearly all calls are.
template <typename Lanes, typename Op>
void runUnrolled(const Job& job) {
    if (job.sourceCount == 3) return Pass<Lanes, Op, 3>(job).run();
    if (job.sourceCount == 4) return Pass<Lanes, Op, 4>(job).run();
    runFewOrMany<Lanes, Op>(job);
}

}  // namespace HWY_NAMESPACE
}  // namespace isthmus::reduction
HWY_AFTER_NAMESPACE();
#endif

#endif
