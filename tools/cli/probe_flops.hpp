#pragma once

#include <chrono>

namespace isthmus::cli {

/// What a thread got done.
struct Flops {
    double ofProcessor = 0;  ///< float32 operations in a second of a processor's time
    double share = 1;        ///< how much of its time the thread had a processor
};

/// Computes for `window`: the processor's widest fused multiply-adds on registers, which products
/// of matrices come near to.
Flops measureFlops(std::chrono::milliseconds window);

}  // namespace isthmus::cli
