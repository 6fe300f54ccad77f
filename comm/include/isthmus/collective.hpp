#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <isthmus/isthmus.h>
#include <isthmus/blocks.hpp>
#include <isthmus/calls.hpp>
#include <isthmus/lists.hpp>
#include <isthmus/options.hpp>
#include <isthmus/status.hpp>
#include <isthmus/types.hpp>
#include <isthmus/work.hpp>

namespace isthmus {
inline namespace v1 {

/// All calls on a Communicator. `Answer` is Work (the call is started) or Status (the call has
/// ended).
///
/// Untyped forms take counts in elements of `type`; what a count means is said in
/// <isthmus/isthmus.h>. Typed forms take the count and the type from the buffers. Buffers stay
/// untouched by the caller until the call is done. In place: the same addresses, or the forms with
/// one buffer. Zero elements are legal. Errors: kInvalidArgument (nothing started), kMismatch
/// (ranks disagree on the call), kTimeout, kPeerLost, kAborted. Thread: any; calls come in the same
/// order on every rank.
template <typename Answer>
class Collectives : public ListCollectives<Answer> {
    using Base = ListCollectives<Answer>;

public:
    static constexpr bool kStarts = Base::kIsStarted;
    /// What a receive gives: the Work, whose source() it is in the end, or the source.
    using Received = std::conditional_t<kStarts, Work, Result<Rank>>;

    Collectives(isthmusComm_t communicator, Rank rank, int ranks)
        : Base(communicator, rank, ranks) {}

    /// Every rank ends with the reduction of all inputs.
    Answer allReduce(const void* input, void* output, std::size_t elements, DataType type,
                     ReduceOp op = ReduceOp::kSum, const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusAllReduce(input, output, elements, detail::toC(type), detail::toC(op),
                                    communicator_, how, request);
        });
    }
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer allReduce(In&& input, Out&& output,
                                                    ReduceOp op = ReduceOp::kSum,
                                                    const CallOptions& options = {})
    const {
        Status sizes = expect("all_reduce: output", std::size(output), std::size(input));
        if (!sizes.ok()) return Answer(std::move(sizes));
        return allReduce(std::data(input), std::data(output), std::size(input), kTypeOf<In>, op,
                         options);
    }
    template <GivenWritableBuffer<kStarts> InOut>
    Answer allReduce(InOut&& buffer, ReduceOp op = ReduceOp::kSum,
                     const CallOptions& options = {}) const {
        return allReduce(std::data(buffer), std::data(buffer), std::size(buffer), kTypeOf<InOut>,
                         op, options);
    }

    /// Every rank ends with the input of `root`; only there `input` is read.
    Answer broadcast(const void* input, void* output, std::size_t elements, DataType type,
                     Rank root, const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusBroadcast(input, output, elements, detail::toC(type), root, communicator_,
                                    how, request);
        });
    }
    template <GivenWritableBuffer<kStarts> InOut>
    Answer broadcast(InOut&& buffer, Rank root, const CallOptions& options = {}) const {
        return broadcast(std::data(buffer), std::data(buffer), std::size(buffer), kTypeOf<InOut>,
                         root, options);
    }

    /// `root` ends with the reduction of all inputs; only there `output` is written.
    Answer reduce(const void* input, void* output, std::size_t elements, DataType type, ReduceOp op,
                  Rank root, const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusReduce(input, output, elements, detail::toC(type), detail::toC(op), root,
                                 communicator_, how, request);
        });
    }
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer reduce(In&& input, Out&& output, ReduceOp op, Rank root,
                                                 const CallOptions& options = {})
    const {
        const std::size_t needed = rank_ == root ? std::size(input) : std::size(output);
        Status sizes = expect("reduce: output", std::size(output), needed);
        if (!sizes.ok()) return Answer(std::move(sizes));
        return reduce(std::data(input), std::data(output), std::size(input), kTypeOf<In>, op, root,
                      options);
    }

    /// Every rank ends with all inputs, in rank order: `elements` of each.
    Answer allGather(const void* input, void* output, std::size_t elements, DataType type,
                     const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusAllGather(input, output, elements, detail::toC(type), communicator_, how,
                                    request);
        });
    }
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer allGather(In&& input, Out&& output,
                                                    const CallOptions& options = {})
    const {
        Status sizes =
            expect("all_gather: output", std::size(output), timesRanks(std::size(input)));
        if (!sizes.ok()) return Answer(std::move(sizes));
        return allGather(std::data(input), std::data(output), std::size(input), kTypeOf<In>,
                         options);
    }

    /// Rank r ends with the reduction of the r-th `elements` of all inputs.
    Answer reduceScatter(const void* input, void* output, std::size_t elements, DataType type,
                         ReduceOp op = ReduceOp::kSum, const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusReduceScatter(input, output, elements, detail::toC(type), detail::toC(op),
                                        communicator_, how, request);
        });
    }
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer reduceScatter(In&& input, Out&& output,
                                                        ReduceOp op = ReduceOp::kSum,
                                                        const CallOptions& options = {})
    const {
        Status sizes =
            expect("reduce_scatter: input", std::size(input), timesRanks(std::size(output)));
        if (!sizes.ok()) return Answer(std::move(sizes));
        return reduceScatter(std::data(input), std::data(output), std::size(output), kTypeOf<In>,
                             op, options);
    }

    /// Rank r ends with the r-th `elements` of every rank, in rank order.
    Answer allToAll(const void* input, void* output, std::size_t elements, DataType type,
                    const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusAlltoAll(input, output, elements, detail::toC(type), communicator_, how,
                                   request);
        });
    }
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer allToAll(In&& input, Out&& output,
                                                   const CallOptions& options = {})
    const {
        const std::size_t each = std::size(input) / static_cast<std::size_t>(ranks_);
        Status sizes = expect("all_to_all: input", std::size(input), timesRanks(each));
        if (sizes.ok()) sizes = expect("all_to_all: output", std::size(output), std::size(input));
        if (!sizes.ok()) return Answer(std::move(sizes));
        return allToAll(std::data(input), std::data(output), each, kTypeOf<In>, options);
    }

    /// `root` ends with all inputs, in rank order; only there `output` is written.
    Answer gather(const void* input, void* output, std::size_t elements, DataType type, Rank root,
                  const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusGather(input, output, elements, detail::toC(type), root, communicator_,
                                 how, request);
        });
    }
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer gather(In&& input, Out&& output, Rank root,
                                                 const CallOptions& options = {})
    const {
        const std::size_t needed = rank_ == root ? timesRanks(std::size(input)) : std::size(output);
        Status sizes = expect("gather: output", std::size(output), needed);
        if (!sizes.ok()) return Answer(std::move(sizes));
        return gather(std::data(input), std::data(output), std::size(input), kTypeOf<In>, root,
                      options);
    }

    /// Rank r ends with the r-th `elements` of the input of `root`; only there `input` is read.
    Answer scatter(const void* input, void* output, std::size_t elements, DataType type, Rank root,
                   const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusScatter(input, output, elements, detail::toC(type), root, communicator_,
                                  how, request);
        });
    }
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer scatter(In&& input, Out&& output, Rank root,
                                                  const CallOptions& options = {})
    const {
        const std::size_t needed = rank_ == root ? timesRanks(std::size(output)) : std::size(input);
        Status sizes = expect("scatter: input", std::size(input), needed);
        if (!sizes.ok()) return Answer(std::move(sizes));
        return scatter(std::data(input), std::data(output), std::size(output), kTypeOf<In>, root,
                       options);
    }

    /// Done when every rank has called it.
    Answer barrier(const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusBarrier(communicator_, how, request);
        });
    }

    /// allGather() of unequal blocks; `received` is the same on every rank.
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer allGather(In&& input, Out&& output,
                                                    const Blocks& received,
                                                    const CallOptions& options = {})
    const {
        Status sizes = expect("all_gather: output", std::size(output), received);
        if (!sizes.ok()) return Answer(std::move(sizes));
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusAllGatherV(std::data(input), std::size(input), std::data(output),
                                     received.counts.data(), detail::placesOf(received),
                                     detail::toC(kTypeOf<In>), communicator_, how, request);
        });
    }

    /// gather() of unequal blocks; `received.counts` is the same on every rank, the rest counts at
    /// `root` only.
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer gather(In&& input, Out&& output, const Blocks& received,
                                                 Rank root, const CallOptions& options = {})
    const {
        Status sizes = detail::expectCounts("gather: output", received, ranks_);
        if (sizes.ok()) sizes = expectMine("gather: input", std::size(input), received);
        if (sizes.ok() && rank_ == root)
            sizes = expect("gather: output", std::size(output), received);
        if (!sizes.ok()) return Answer(std::move(sizes));
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusGatherV(std::data(input), std::size(input), std::data(output),
                                  received.counts.data(), detail::placesOf(received),
                                  detail::toC(kTypeOf<In>), root, communicator_, how, request);
        });
    }

    /// scatter() of unequal blocks; `sent.counts` is the same on every rank, the rest counts at
    /// `root` only.
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer scatter(In&& input, const Blocks& sent, Out&& output,
                                                  Rank root, const CallOptions& options = {})
    const {
        Status sizes = detail::expectCounts("scatter: input", sent, ranks_);
        if (sizes.ok()) sizes = expectMine("scatter: output", std::size(output), sent);
        if (sizes.ok() && rank_ == root) sizes = expect("scatter: input", std::size(input), sent);
        if (!sizes.ok()) return Answer(std::move(sizes));
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusScatterV(std::data(input), sent.counts.data(), detail::placesOf(sent),
                                   std::data(output), std::size(output), detail::toC(kTypeOf<In>),
                                   root, communicator_, how, request);
        });
    }

    /// reduceScatter() of unequal blocks, packed in rank order; `counts` is the same on every rank.
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer reduceScatter(In&& input, Out&& output,
                                                        const std::vector<std::size_t>& counts,
                                                        ReduceOp op = ReduceOp::kSum,
                                                        const CallOptions& options = {})
    const {
        Status sizes = expect("reduce_scatter: input", std::size(input), Blocks{counts, {}});
        if (sizes.ok()) {
            const std::size_t mine = counts[static_cast<std::size_t>(rank_)];
            sizes = expect("reduce_scatter: output", std::size(output), mine);
        }
        if (!sizes.ok()) return Answer(std::move(sizes));
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusReduceScatterV(std::data(input), std::data(output), counts.data(),
                                         detail::toC(kTypeOf<In>), detail::toC(op), communicator_,
                                         how, request);
        });
    }

    /// allToAll() of unequal blocks: what `sent` says here of rank q, `received` says at q of this
    /// one.
    template <GivenBuffer<kStarts> In, GivenWritableBuffer<kStarts> Out>
    requires SameElements<In, Out> Answer allToAll(In&& input, const Blocks& sent, Out&& output,
                                                   const Blocks& received,
                                                   const CallOptions& options = {})
    const {
        Status sizes = expect("all_to_all: input", std::size(input), sent);
        if (sizes.ok()) sizes = expect("all_to_all: output", std::size(output), received);
        if (!sizes.ok()) return Answer(std::move(sizes));
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusAlltoAllV(std::data(input), sent.counts.data(), detail::placesOf(sent),
                                    std::data(output), received.counts.data(),
                                    detail::placesOf(received), detail::toC(kTypeOf<In>),
                                    communicator_, how, request);
        });
    }

    /// Meets the next receive of the same `tag` (0 or more) at `peer`. Not ordered with
    /// collectives.
    Answer send(const void* input, std::size_t elements, DataType type, Rank peer, int tag = 0,
                const CallOptions& options = {}) const {
        return answer(options, [&](const auto* how, auto* request) {
            return isthmusSend(input, elements, detail::toC(type), peer, tag, communicator_, how,
                               request);
        });
    }
    template <GivenBuffer<kStarts> In>
    Answer send(In&& input, Rank peer, int tag = 0, const CallOptions& options = {}) const {
        return send(std::data(input), std::size(input), kTypeOf<In>, peer, tag, options);
    }

    /// Meets the next send of the same `tag` at `peer`, or of any rank for kAnySource.
    Received recv(void* output, std::size_t elements, DataType type, Rank peer, int tag = 0,
                  const CallOptions& options = {}) const {
        const isthmusCallOptions_t how = detail::toC(options);
        const auto begin = [&](isthmusRequest_t* request, int* source) {
            return isthmusRecv(output, elements, detail::toC(type), peer, tag, source,
                               communicator_, &how, request);
        };
        if constexpr (kStarts) {
            return Work::begin(begin, std::make_shared<int>(-1));
        } else {
            Rank source = -1;
            ISTHMUS_TRY(detail::statusOf(begin(nullptr, &source)));
            return source;
        }
    }
    template <GivenWritableBuffer<kStarts> Out>
    Received recv(Out&& output, Rank peer, int tag = 0, const CallOptions& options = {}) const {
        return recv(std::data(output), std::size(output), kTypeOf<Out>, peer, tag, options);
    }

private:
    using Base::answer;
    using Base::communicator_;
    using Base::expect;
    using Base::expectMine;
    using Base::rank_;
    using Base::ranks_;
    using Base::timesRanks;
    template <typename B>
    static constexpr DataType kTypeOf = Base::template kTypeOf<B>;
};

/// The peer of a receive that takes from any rank.
inline constexpr Rank kAnySource = ISTHMUS_ANY_SOURCE;

/// Calls started while a CallGroup lives on this thread begin together at its end; blocking calls
/// among them have finished, and written, when end() returns.
class CallGroup {
public:
    CallGroup() : isOpen_(isthmusGroupStart() == isthmusSuccess) {}
    CallGroup(const CallGroup&) = delete;
    CallGroup& operator=(const CallGroup&) = delete;
    ~CallGroup() { (void)end().ok(); }

    /// Ends it once, with the first failure of its blocking calls.
    Status end() {
        if (!std::exchange(isOpen_, false)) return {};
        return detail::statusOf(isthmusGroupEnd());
    }

private:
    bool isOpen_;
};

}  // namespace v1
}  // namespace isthmus
