#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/engine/call.hpp"
#include "comm/engine/compiled_plan.hpp"
#include "comm/engine/extents.hpp"

namespace isthmus {

/// The copies and reductions of a plan that meets once (CompiledPlan::meetsOnce), bound to the
/// sizes of one call: offsets into a few buffers. Kept from call to call, since a small call is
/// mostly bookkeeping and the next one is mostly like it. Engine thread only.
class Meeting {
public:
    /// Where the offsets start: input, output, and the inline area of each position of the node.
    struct Buffers {
        const std::byte* input = nullptr;
        std::byte* output = nullptr;
        std::span<std::byte* const> shared;
    };

    /// Binds to `plan` and the sizes of `call`. Cheap when both are as before.
    void bind(std::shared_ptr<const CompiledPlan> plan, const CallRequest& call);
    /// Of my inline area: bytes that it must have room for.
    std::size_t sharedBytes() const { return sharedBytes_; }

    /// What comes before the meeting: fills my shared memory, which peers read after it.
    void before(const CallRequest& call, const Buffers& buffers) { run(0, call, buffers); }
    /// What comes after it.
    void after(const CallRequest& call, const Buffers& buffers) { run(1, call, buffers); }

private:
    static constexpr int kInput = 0;
    static constexpr int kOutput = 1;
    static constexpr int kShared = 2;  ///< of position 0; the others follow

    struct Place {
        int buffer = 0;
        std::size_t offset = 0;
    };
    /// One copy (one source) or reduction of runs of bytes that lie together in every place.
    struct Move {
        std::size_t bytes = 0;
        std::size_t results = 0;
        std::vector<Place> places;  ///< results before operands
        bool isCopy = false;
        bool completes = false;
    };

    bool isBoundTo(const std::shared_ptr<const CompiledPlan>& plan, const CallRequest& call) const;
    void addMoves(int step, const Extents& extents);
    Place placeOf(const Location& location, const Extents& extents) const;
    void run(int phase, const CallRequest& call, const Buffers& buffers);

    std::shared_ptr<const CompiledPlan> plan_;
    std::size_t uniform_ = 0;
    DataType type_ = DataType::kUint8;
    bool hasCounts_ = false;
    std::size_t sharedBytes_ = 0;
    std::vector<std::size_t> sharedOffsets_;
    std::array<std::vector<Move>, 2> moves_;  ///< before and after the meeting
    std::vector<void*> addresses_;            ///< of the move at hand
};

}  // namespace isthmus
