#include "tools/cli/probe_flops.hpp"

#include <cstdint>
#include <ctime>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/cli/probe_flops.cc"
#include "comm/reduce/simd_targets.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace isthmus::cli {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Does `rounds` of ten independent chains, which hide the latency of an addition (4 cycles) at two
/// a cycle; returns the operations, and adds to `kept` what keeps the compiler from leaving them
/// out.
double multiplyAdd(std::uint64_t rounds, float& kept) {
    const hn::ScalableTag<float> tag;
    const auto factor = hn::Set(tag, 0.999F);
    const auto term = hn::Set(tag, kept + 1e-3F);
    auto a = term, b = term, c = term, d = term, e = term;
    auto f = factor, g = factor, h = factor, i = factor, j = factor;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        a = hn::MulAdd(a, factor, term);
        b = hn::MulAdd(b, factor, term);
        c = hn::MulAdd(c, factor, term);
        d = hn::MulAdd(d, factor, term);
        e = hn::MulAdd(e, factor, term);
        f = hn::MulAdd(f, factor, term);
        g = hn::MulAdd(g, factor, term);
        h = hn::MulAdd(h, factor, term);
        i = hn::MulAdd(i, factor, term);
        j = hn::MulAdd(j, factor, term);
    }
    const auto left = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), e);
    const auto right = hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), j);
    kept = hn::GetLane(hn::Add(left, right)) * 1e-9F;
    return 10.0 * 2.0 * static_cast<double>(hn::Lanes(tag)) * static_cast<double>(rounds);
}

}  // namespace HWY_NAMESPACE
}  // namespace isthmus::cli
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace isthmus::cli {

HWY_EXPORT(multiplyAdd);

double processorSeconds() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Flops measureFlops(std::chrono::milliseconds window) {
    using Clock = std::chrono::steady_clock;
    constexpr std::uint64_t kRounds = 20'000;  // some 30 us between looks at the clock
    const auto began = Clock::now();
    const double before = processorSeconds();
    double operations = 0;
    float kept = 0;
    auto now = began;
    while (now - began < window) {
        operations += HWY_DYNAMIC_DISPATCH(multiplyAdd)(kRounds, kept);
        now = Clock::now();
    }
    const double had = processorSeconds() - before;
    volatile float sink = kept;
    static_cast<void>(sink);
    return {operations / had, had / std::chrono::duration<double>(now - began).count()};
}

}  // namespace isthmus::cli
#endif
