#pragma once

// Include before anything of Highway. Which instruction sets get kernels of their own: AVX2,
// AVX-512 (AVX3) and NEON; everything else runs the plain C++ of portable.cc, which compilers
// vectorise for the baseline. Left out: SSE (machines that old are not trained on, and each set
// costs 15 s of compile time), SVE (vectors of unknown size fit in no struct), PPC and RVV (never
// tried).
#define HWY_DISABLED_TARGETS \
    (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_PPC8 | HWY_RVV)
