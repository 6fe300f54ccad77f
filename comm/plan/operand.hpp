#pragma once

#include "comm/plan/plan.hpp"

namespace isthmus {

/// Which locations of input and output a collective has, what each means, and which are one memory
/// when a rank runs in place. A value.
///
/// P ranks, C chunks per block; location chunk = block * C + j:
///   all-reduce, reduce   input c; output c (reduce: at the root only; neither at ranks that only
///                        add)
///   broadcast            input c at the root only; output c
///   reduce-scatter       input (d, j); output j
///   all-gather           input j; output (q, j)
///   all-to-all           input (d, j); output (q, j)
///   gather               input j; output (q, j) at the root only
///   scatter              input (d, j) at the root only; output j
///   barrier              none
struct Operand {
    Collective collective = Collective::kBarrier;
    int ranks = 1;
    Rank root = 0;
    int chunksPerBlock = 1;
    std::vector<Rank> summing = {};  ///< Plan::summing

    static Operand of(const Plan& plan) {
        return {plan.collective, plan.ranks, plan.root, plan.chunking.chunksPerBlock(),
                plan.summing};
    }

    /// Blocks that `rank` has; the chunks 0 to blocks * chunksPerBlock - 1 exist.
    int inputBlocks(Rank rank) const;
    int outputBlocks(Rank rank) const;
    int inputChunks(Rank rank) const { return inputBlocks(rank) * chunksPerBlock; }
    int outputChunks(Rank rank) const { return outputBlocks(rank) * chunksPerBlock; }

    bool onlySums(Rank rank) const;

    /// True for every chunk of the table; scratch is not its business (false).
    bool has(const Location& location) const;

    /// Which chunk of the logical operand an input or output location holds (output: will hold).
    ChunkName meaning(const Location& location) const;

    /// The one name that an input or output location and its other name share when its rank runs in
    /// place. Scratch stays as it is.
    Location inPlace(const Location& location) const;

    bool operator==(const Operand&) const = default;
};

}  // namespace isthmus
