#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <isthmus/types.hpp>

#include "comm/engine/call.hpp"
#include "comm/engine/meeting.hpp"

namespace isthmus {

/// A blocking call of the plainest form: one count, an operation that the library has, no name, no
/// algorithm, nothing to tell anybody of its end.
struct QuickCall {
    struct Kind {
        Collective collective = Collective::kBarrier;
        DataType type = DataType::kUint8;
        ReduceOp op = ReduceOp::kSum;
        Rank root = 0;
        std::size_t count = 0;

        bool operator==(const Kind&) const = default;
    };
    Kind kind;
    const std::byte* input = nullptr;
    std::byte* output = nullptr;

    CallRequest request() const;
};

/// How far a QuickCall came.
enum class Quick : std::uint8_t {
    kNotNow,   ///< nothing happened: it must go the way of all calls
    kLearn,    ///< the same, and it is worth keeping what was found out about its kind
    kEntered,  ///< peers know of it, and keep it waiting: Membership::adopt() makes a call of it
    kDone,
};

/// Of one communicator, the kinds of calls that meet once (CompiledPlan::meetsOnce), with all that
/// is the same for each call of a kind: what a small call costs is mostly bookkeeping. Engine
/// thread only.
class QuickCalls {
public:
    struct Known {
        QuickCall::Kind kind;
        CallRequest like;  ///< without buffers
        CallFingerprint fingerprint;
        Meeting meeting;
        bool isSeen = false;    ///< once at least
        bool isLearnt = false;  ///< the fields above and below are filled in
        bool isQuick = false;
    };

    /// What is known of `kind`, which is then remembered; the pointer holds until the next call.
    Known& find(const QuickCall::Kind& kind);
    /// `like`: a prepared call of that kind; `mayBeQuick`: false where more than the plan says so.
    void learn(const QuickCall::Kind& kind, CallRequest like, bool mayBeQuick);

private:
    std::vector<std::unique_ptr<Known>> known_;
    std::size_t last_ = 0;  ///< found most lately
    std::size_t next_ = 0;  ///< to be forgotten for a new one
};

}  // namespace isthmus
