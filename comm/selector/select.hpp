#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

#include "comm/algorithm/catalogue.hpp"
#include "comm/base/knobs.hpp"
#include "comm/cost/link_model.hpp"
#include "comm/selector/rules.hpp"

namespace isthmus {

inline constexpr Knob kSelectorKnobs[] = {
    {"ISTHMUS_ALGORITHM", "", Unit::kText,
     "algorithm to use where it fits: ring, or all_reduce@2+2:64K-1M=ring,broadcast=chain, or the "
     "file of isthmus tune"},
    {"ISTHMUS_SEGMENT", "1M", Unit::kBytes,
     "operand bytes that one pass of a plan moves (at most 512K inside one node); less overlaps "
     "more"},
    {"ISTHMUS_WINDOW", "3", Unit::kCount,
     "passes of one call that may be under way at once: 1 to 8"},
    {"ISTHMUS_DETERMINISTIC", "0", Unit::kFlag,
     "sums have the same bits whatever the size, layout, transport and segments"},
    {"ISTHMUS_ONE_ROUNDING", "0", Unit::kFlag,
     "f16 and bf16 sums travel as f32 and are rounded once: twice the bytes between nodes"},
    {"ISTHMUS_INLINE", "", Unit::kBytes,
     "operand bytes up to which a call inside a node meets once only (all-reduce at most 16K); "
     "empty: 8K, 64K where ranks share processors"},
};

/// ISTHMUS_INLINE where it is empty. A copy more against a meeting less: where every rank has a
/// processor a meeting is half a microsecond, else several (benchmarks/NOTES.md).
inline constexpr std::int64_t kInlineWhereAlone = 8 << 10;
inline constexpr std::int64_t kInlineWhereShared = 64 << 10;

/// What a call looks like to every one of its ranks. All fields are agreed inputs.
struct CallShape {
    Collective collective = Collective::kBarrier;
    DataType type = DataType::kUint8;
    /// The whole operand, as nccl-tests counts: all-reduce, broadcast, reduce: the buffer; the
    /// others: ranks x block. Ignored for an all-to-all with counts, whose ranks do not know it.
    std::uint64_t bytes = 0;
    Rank root = 0;
    bool hasCounts = false;      ///< a v-form: blocks differ in size
    bool isInRankOrder = false;  ///< operands must be combined in the order of ranks

    bool operator==(const CallShape&) const = default;
};

/// How to run a call. The same on every rank of it.
struct Selection {
    std::string algorithm;
    int segments = 1;  ///< passes of the plan (k)
    int window = 1;  ///< at most this many under way (w), never more than `segments` or kMaxWindow
    /// Of an all-to-all with counts: of each block inside a node that one staged pass moves
    /// (PreparedPlans::pieceBytes).
    std::uint64_t pieceBytes = 0;
    /// Passes to use instead when the layout is one node and all ranks gave mapped buffers: then
    /// nothing is staged, and cutting buys nothing.
    int segmentsWhenMapped = 1;
    /// One node, "direct": where not all buffers are mapped, the plan of "inline" with scratch of
    /// its own: every rank copies what it has once, meets, and adds up all.
    bool stagesOnce = false;

    bool operator==(const Selection&) const = default;
};

struct SelectorOptions {
    std::string algorithm;  ///< the caller's own wish for this call; "": none. Must fit.
    AlgorithmRules rules;   ///< wishes of the environment; used where they fit, the first first
    std::int64_t segmentBytes = 1 << 20;
    std::int64_t inlineBytes = kInlineWhereAlone;
    int window = 3;
    bool isDeterministic = false;  ///< of every call
    bool roundsOnce = false;       ///< of every call
    bool canRead = false;          ///< ranks of this node the buffers of others: plans of kRead
    LinkModel model;

    /// From the knobs. Errors: kConfiguration (an unknown algorithm or collective is named together
    /// with the known ones).
    static Result<SelectorOptions> from(const Options& options);
};

/// Chooses algorithm and pipelining. A pure function of agreed inputs: which buffers are mapped is
/// no part of it, since each node decides direct or staged alone.
/// Errors: kInvalidArgument (options.algorithm is unknown for the collective, or does not fit the
/// layout or the call).
Result<Selection> select(const CallShape& call, const Layout& layout,
                         const SelectorOptions& options);

/// Whether the order of operands can be seen in the bits of a result.
bool dependsOnOrder(Collective collective, DataType type, ReduceOp op);

/// Whether partial results of several hops would be rounded to 16 bits each time.
bool roundsInHops(Collective collective, DataType type, ReduceOp op);

/// Why select() answered so, in one line for people.
std::string reasonOf(const Selection& selection, const CallShape& call, const Layout& layout,
                     const SelectorOptions& options);

/// all_reduce to Collective::kAllReduce. Also takes nccl-tests' spelling (alltoall, all-reduce).
/// kInvalidArgument lists the known names.
Result<Collective> collectiveNamed(std::string_view name);

/// "ring, exchange, ...": the catalogue's names for a collective.
std::string knownAlgorithms(Collective collective);

}  // namespace isthmus
