#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus::scheduler {

/// One layer of a model: what it holds, computes and hands on. A value.
///
/// Operations and bytes are those of one sample (one sequence of Model::sequence tokens) on a
/// device that has the whole layer; bytes are those of Model::elementBytes per element.
struct Layer {
    std::string name;
    std::string
        type;  ///< what `type:<regex>` cuts look at: "transformer", "embedding", "head", ...

    std::int64_t parameters = 0;            ///< its own, without those of the experts
    std::int64_t replicatedParameters = 0;  ///< of these: whole on each rank of a tensor group
    std::int64_t frozenParameters = 0;      ///< of these: neither gradient nor optimizer state
    std::int64_t expertParameters = 0;      ///< of all experts of the layer together
    std::string tiedTo;                     ///< an earlier layer that it shares parameters with
    std::int64_t tiedParameters = 0;        ///< of that layer; beside `parameters`

    std::int64_t forwardFlops = 0;
    std::int64_t backwardFlops = 0;
    std::int64_t recomputedFlops = 0;  ///< forward operations that selective recomputation repeats

    std::int64_t replicatedActivationBytes = 0;  ///< kept for backward; split by tokens only
    std::int64_t splitActivationBytes = 0;       ///< kept for backward; split by tensor parallelism
    std::int64_t droppedActivationBytes = 0;     ///< as split; selective recomputation drops them
    std::int64_t inputBytes = 0;                 ///< what full recomputation keeps instead of all
    std::int64_t boundaryBytes = 0;              ///< the output, as the next layer receives it
    bool checkpointed = false;                   ///< full recomputation applies to this layer

    std::int64_t tensorForward = 0;   ///< reductions over the tensor group, forward
    std::int64_t tensorBackward = 0;  ///< and backward
    std::int64_t reductionBytes = 0;  ///< operand of one of them

    std::int64_t keyValueBytes = 0;  ///< keys and values; context parallelism sends them round
    std::int64_t queryBytes = 0;     ///< queries; with the keys and values, what all-to-all turns
    std::int64_t routedBytes = 0;    ///< token copies handed to experts; 0 without experts
    std::int64_t experts = 0;

    bool operator==(const Layer&) const = default;
};

/// A number of a layer and what JSON calls it.
struct LayerNumber {
    std::string_view name;
    std::int64_t Layer::*member;
};

inline constexpr LayerNumber kLayerNumbers[] = {
    {"parameters", &Layer::parameters},
    {"replicated_parameters", &Layer::replicatedParameters},
    {"frozen_parameters", &Layer::frozenParameters},
    {"expert_parameters", &Layer::expertParameters},
    {"tied_parameters", &Layer::tiedParameters},
    {"forward_flops", &Layer::forwardFlops},
    {"backward_flops", &Layer::backwardFlops},
    {"recomputed_flops", &Layer::recomputedFlops},
    {"replicated_activation_bytes", &Layer::replicatedActivationBytes},
    {"split_activation_bytes", &Layer::splitActivationBytes},
    {"dropped_activation_bytes", &Layer::droppedActivationBytes},
    {"input_bytes", &Layer::inputBytes},
    {"boundary_bytes", &Layer::boundaryBytes},
    {"tensor_forward", &Layer::tensorForward},
    {"tensor_backward", &Layer::tensorBackward},
    {"reduction_bytes", &Layer::reductionBytes},
    {"key_value_bytes", &Layer::keyValueBytes},
    {"query_bytes", &Layer::queryBytes},
    {"routed_bytes", &Layer::routedBytes},
    {"experts", &Layer::experts},
};

/// A data dependency: the boundary of `from` is an input of `to`. Layers by their place.
struct Edge {
    int from = 0;
    int to = 0;

    auto operator<=>(const Edge&) const = default;
};

/// What is trained: layers in an order in which they can run. A value.
struct Model {
    std::string name;
    std::int64_t sequence = 1;  ///< tokens of a sample
    int elementBytes = 2;       ///< of the activations and boundaries above
    int heads = 0;              ///< tensor and all-to-all context degrees divide it; 0: no limit
    int keyValueHeads = 0;
    std::vector<Layer> layers;
    std::vector<Edge> edges;  ///< empty: a chain

    bool isChain() const { return edges.empty(); }
    std::vector<Edge> dependencies() const;  ///< the edges, or those of the chain

    std::int64_t parameters() const;        ///< tied ones once
    std::int64_t activeParameters() const;  ///< those that one token meets: not all experts
    std::int64_t forwardFlops() const;

    bool operator==(const Model&) const = default;
};

/// Whether every number is possible and the edges run forward. kInvalidArgument names the place.
Status checkModel(const Model& model);

/// What a number of bytes that does not fit 64 bits becomes; checked where totals are made.
inline constexpr std::int64_t kMostBytes = INT64_MAX;

/// The product of two numbers that are not negative, or kMostBytes.
std::int64_t productOrMost(std::int64_t left, std::int64_t right);

/// Bytes of `bytes` when elements are `elementBytes` instead of the model's; rounded up.
std::int64_t scaledBytes(const Model& model, std::int64_t bytes, int elementBytes);

}  // namespace isthmus::scheduler
