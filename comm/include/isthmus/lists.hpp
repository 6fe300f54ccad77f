#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <isthmus/isthmus.h>
#include <isthmus/blocks.hpp>
#include <isthmus/calls.hpp>
#include <isthmus/options.hpp>
#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus {
inline namespace v1 {

namespace detail {

template <typename L>
using ItemOf = decltype(*std::begin(std::declval<L&>()));

}  // namespace detail

/// Buffers of one element type, which may differ in size: a vector of vectors, an array of spans.
template <typename L>
concept BufferList = requires(L& list) {
    std::begin(list);
    std::end(list);
    { std::size(list) } -> std::convertible_to<std::size_t>;
}
&&Buffer<detail::ItemOf<L>>;

template <typename L>
concept WritableBufferList = BufferList<L> && WritableBuffer<detail::ItemOf<L>>;

/// A list that a call may be given, see GivenBuffer. The list itself may always be temporary.
template <typename L, bool isStarted>
concept GivenBufferList = BufferList<L> &&
    (!isStarted || std::is_lvalue_reference_v<L> || detail::kIsView<detail::ItemOf<L>>);

template <typename L, bool isStarted>
concept GivenWritableBufferList = WritableBufferList<L> && GivenBufferList<L, isStarted>;

/// Ranks at the other ends of this rank's edges in a directed graph: a block arrives from each
/// source and leaves for each destination. A rank may be there several times, and be its own.
struct Neighbors {
    std::vector<Rank> sources{};
    std::vector<Rank> destinations{};
};

namespace detail {

/// What the C call gets of two lists of buffers.
struct TensorList {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<std::size_t> counts;

    /// `inputBlocks` and `outputBlocks`: how many blocks of a tensor's count its buffers hold.
    template <typename Ins, typename Outs>
    Status fill(const char* call, const Ins& from, Outs& to, std::size_t inputBlocks,
                std::size_t outputBlocks) {
        const std::string name(call);
        if (std::size(from) != std::size(to)) {
            return Status::invalidArgument(name + ": " + std::to_string(std::size(from)) +
                                           " inputs, " + std::to_string(std::size(to)) +
                                           " outputs");
        }
        auto output = std::begin(to);
        for (const auto& input : from) {
            auto&& target = *output++;
            const std::size_t count = std::size(input) / inputBlocks;
            const std::string which = name + ": tensor " + std::to_string(counts.size());
            ISTHMUS_TRY(
                expectElements((which + ": input").c_str(), std::size(input), count * inputBlocks));
            ISTHMUS_TRY(expectElements((which + ": output").c_str(), std::size(target),
                                       count * outputBlocks));
            inputs.push_back(std::data(input));
            outputs.push_back(std::data(target));
            counts.push_back(count);
        }
        return {};
    }
};

inline isthmusNeighbors_t toC(const Neighbors& neighbors) {
    return {static_cast<int>(neighbors.sources.size()), neighbors.sources.data(),
            static_cast<int>(neighbors.destinations.size()), neighbors.destinations.data()};
}

}  // namespace detail

/// Calls over lists, of tensors and of neighbours; <isthmus/lists.h> says what they mean. A
/// coalesced form is one call over many tensors, what the plain one would do to each of them, and
/// few messages. Its lists have the same sizes on every rank. `Answer` and errors: see Collectives.
template <typename Answer>
class ListCollectives : public detail::Calls<Answer> {
    using Base = detail::Calls<Answer>;
    template <typename L>
    static constexpr DataType kTypeOfItem = Base::template kTypeOf<detail::ItemOf<L>>;

protected:
    using Base::kIsStarted;

public:
    template <GivenBufferList<kIsStarted> Ins, GivenWritableBufferList<kIsStarted> Outs>
    requires SameElements<detail::ItemOf<Ins>, detail::ItemOf<Outs>> Answer allReduceCoalesced(
        Ins&& inputs, Outs&& outputs, ReduceOp op = ReduceOp::kSum, const CallOptions& options = {})
    const {
        return many("all_reduce", inputs, outputs, 1, 1, options,
                    [&](const detail::TensorList& list, const auto* how, auto* request) {
                        return isthmusAllReduceCoalesced(
                            list.counts.size(), list.inputs.data(), list.outputs.data(),
                            list.counts.data(), detail::toC(kTypeOfItem<Ins>), detail::toC(op),
                            communicator_, how, request);
                    });
    }
    /// In place.
    template <GivenWritableBufferList<kIsStarted> InOuts>
    Answer allReduceCoalesced(InOuts&& buffers, ReduceOp op = ReduceOp::kSum,
                              const CallOptions& options = {}) const {
        return allReduceCoalesced(std::as_const(buffers), buffers, op, options);
    }

    template <GivenWritableBufferList<kIsStarted> InOuts>
    Answer broadcastCoalesced(InOuts&& buffers, Rank root, const CallOptions& options = {}) const {
        return many("broadcast", std::as_const(buffers), buffers, 1, 1, options,
                    [&](const detail::TensorList& list, const auto* how, auto* request) {
                        return isthmusBroadcastCoalesced(list.counts.size(), list.inputs.data(),
                                                         list.outputs.data(), list.counts.data(),
                                                         detail::toC(kTypeOfItem<InOuts>), root,
                                                         communicator_, how, request);
                    });
    }

    template <GivenBufferList<kIsStarted> Ins, GivenWritableBufferList<kIsStarted> Outs>
    requires SameElements<detail::ItemOf<Ins>, detail::ItemOf<Outs>> Answer
    allGatherCoalesced(Ins&& inputs, Outs&& outputs, const CallOptions& options = {})
    const {
        return many("all_gather", inputs, outputs, 1, timesRanks(1), options,
                    [&](const detail::TensorList& list, const auto* how, auto* request) {
                        return isthmusAllGatherCoalesced(list.counts.size(), list.inputs.data(),
                                                         list.outputs.data(), list.counts.data(),
                                                         detail::toC(kTypeOfItem<Ins>),
                                                         communicator_, how, request);
                    });
    }

    template <GivenBufferList<kIsStarted> Ins, GivenWritableBufferList<kIsStarted> Outs>
    requires SameElements<detail::ItemOf<Ins>, detail::ItemOf<Outs>> Answer reduceScatterCoalesced(
        Ins&& inputs, Outs&& outputs, ReduceOp op = ReduceOp::kSum, const CallOptions& options = {})
    const {
        return many("reduce_scatter", inputs, outputs, timesRanks(1), 1, options,
                    [&](const detail::TensorList& list, const auto* how, auto* request) {
                        return isthmusReduceScatterCoalesced(
                            list.counts.size(), list.inputs.data(), list.outputs.data(),
                            list.counts.data(), detail::toC(kTypeOfItem<Ins>), detail::toC(op),
                            communicator_, how, request);
                    });
    }

    template <GivenBufferList<kIsStarted> Ins, GivenWritableBufferList<kIsStarted> Outs>
    requires SameElements<detail::ItemOf<Ins>, detail::ItemOf<Outs>> Answer
    allToAllCoalesced(Ins&& inputs, Outs&& outputs, const CallOptions& options = {})
    const {
        return many("all_to_all", inputs, outputs, timesRanks(1), timesRanks(1), options,
                    [&](const detail::TensorList& list, const auto* how, auto* request) {
                        return isthmusAlltoAllCoalesced(list.counts.size(), list.inputs.data(),
                                                        list.outputs.data(), list.counts.data(),
                                                        detail::toC(kTypeOfItem<Ins>),
                                                        communicator_, how, request);
                    });
    }

    /// `elements` along every edge, packed in the order of the lists. Only neighbours wait for each
    /// other; not ordered with other calls.
    Answer neighborAllToAll(const void* input, void* output, std::size_t elements, DataType type,
                            const Neighbors& neighbors, const CallOptions& options = {}) const {
        const isthmusNeighbors_t edges = detail::toC(neighbors);
        return Base::answer(options, [&](const auto* how, auto* request) {
            return isthmusNeighborAlltoAll(input, output, elements, detail::toC(type), &edges,
                                           communicator_, how, request);
        });
    }
    template <GivenBuffer<kIsStarted> In, GivenWritableBuffer<kIsStarted> Out>
    requires SameElements<In, Out> Answer neighborAllToAll(In&& input, Out&& output,
                                                           const Neighbors& neighbors,
                                                           const CallOptions& options = {})
    const {
        const std::size_t leaving = neighbors.destinations.size();
        const std::size_t arriving = neighbors.sources.size();
        const std::size_t each = leaving > 0    ? std::size(input) / leaving
                                 : arriving > 0 ? std::size(output) / arriving
                                                : 0;
        Status sizes = Base::expect("neighbor_all_to_all: input", std::size(input), each * leaving);
        if (sizes.ok())
            sizes = Base::expect("neighbor_all_to_all: output", std::size(output), each * arriving);
        if (!sizes.ok()) return Answer(std::move(sizes));
        return neighborAllToAll(std::data(input), std::data(output), each,
                                Base::template kTypeOf<In>, neighbors, options);
    }
    /// Of unequal blocks: an entry of `sent` for each destination, of `received` for each source.
    template <GivenBuffer<kIsStarted> In, GivenWritableBuffer<kIsStarted> Out>
    requires SameElements<In, Out> Answer neighborAllToAll(In&& input, const Blocks& sent,
                                                           Out&& output, const Blocks& received,
                                                           const Neighbors& neighbors,
                                                           const CallOptions& options = {})
    const {
        const isthmusNeighbors_t edges = detail::toC(neighbors);
        Status sizes = detail::expectBlocks("neighbor_all_to_all: input", std::size(input), sent,
                                            edges.destinations, "destination");
        if (sizes.ok())
            sizes = detail::expectBlocks("neighbor_all_to_all: output", std::size(output), received,
                                         edges.sources, "source");
        if (!sizes.ok()) return Answer(std::move(sizes));
        return Base::answer(options, [&](const auto* how, auto* request) {
            return isthmusNeighborAlltoAllV(
                std::data(input), sent.counts.data(), detail::placesOf(sent), std::data(output),
                received.counts.data(), detail::placesOf(received),
                detail::toC(Base::template kTypeOf<In>), &edges, communicator_, how, request);
        });
    }

protected:
    using Base::Base;
    using Base::communicator_;
    using Base::timesRanks;

private:
    template <typename Ins, typename Outs, typename Call>
    static Answer many(const char* name, const Ins& inputs, Outs& outputs, std::size_t inputBlocks,
                       std::size_t outputBlocks, const CallOptions& options, const Call& call) {
        detail::TensorList list;
        Status sizes = list.fill(name, inputs, outputs, inputBlocks, outputBlocks);
        if (!sizes.ok()) return Answer(std::move(sizes));
        return Base::answer(
            options, [&](const auto* how, auto* request) { return call(list, how, request); });
    }
};

}  // namespace v1
}  // namespace isthmus
