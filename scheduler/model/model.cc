#include "scheduler/model/model.hpp"

#include <set>
#include <unordered_map>

namespace isthmus::scheduler {

namespace {

/// No sum of a model's numbers may leave 64 bits: 2^62 over the most layers that a file may have.
constexpr std::int64_t kMostTotal = std::int64_t{1} << 62;

Status wrong(std::size_t layer, std::string_view member, std::string_view reason) {
    std::string what = "layers[" + std::to_string(layer) + "].";
    what.append(member).append(" is wrong: ").append(reason);
    return Status::invalidArgument(std::move(what));
}

Status checkNumbers(std::size_t place, const Layer& layer, std::int64_t& total) {
    for (const LayerNumber& number : kLayerNumbers) {
        const std::int64_t value = layer.*number.member;
        if (value < 0) return wrong(place, number.name, "it is negative");
        if (value > kMostTotal - total) {
            return wrong(place, number.name, "the model's numbers add up to more than 2^62");
        }
        total += value;
    }
    if (layer.replicatedParameters > layer.parameters) {
        return wrong(place, "replicated_parameters", "they are more than parameters");
    }
    if (layer.frozenParameters > layer.parameters) {
        return wrong(place, "frozen_parameters", "they are more than parameters");
    }
    if (layer.recomputedFlops > layer.forwardFlops) {
        return wrong(place, "recomputed_flops", "they are more than forward_flops");
    }
    if (layer.tiedTo.empty() != (layer.tiedParameters == 0)) {
        return wrong(place, "tied_parameters", "tied_to and tied_parameters go together");
    }
    if ((layer.experts == 0) != (layer.expertParameters == 0)) {
        return wrong(place, "experts", "experts and expert_parameters go together");
    }
    if (layer.experts > 0 && layer.expertParameters % layer.experts != 0) {
        return wrong(place, "expert_parameters", "they do not divide by experts");
    }
    return {};
}

Status checkEdges(const Model& model) {
    const int layers = static_cast<int>(model.layers.size());
    std::set<Edge> seen;
    for (std::size_t place = 0; place < model.edges.size(); ++place) {
        const Edge edge = model.edges[place];
        const std::string where = "edges[" + std::to_string(place) + "] is wrong: ";
        if (edge.from < 0 || edge.to < 0 || edge.from >= layers || edge.to >= layers) {
            return Status::invalidArgument(where + "there are layers 0 to " +
                                           std::to_string(layers - 1));
        }
        if (edge.from >= edge.to) {
            return Status::invalidArgument(where + "layer " + std::to_string(edge.from) +
                                           " does not come before layer " +
                                           std::to_string(edge.to));
        }
        if (!seen.insert(edge).second) return Status::invalidArgument(where + "it is there twice");
    }
    return {};
}

}  // namespace

std::vector<Edge> Model::dependencies() const {
    if (!isChain()) return edges;
    std::vector<Edge> chain;
    for (int layer = 1; layer < static_cast<int>(layers.size()); ++layer) {
        chain.push_back({layer - 1, layer});
    }
    return chain;
}

std::int64_t Model::parameters() const {
    std::int64_t total = 0;
    for (const Layer& layer : layers) {
        total += layer.parameters + layer.expertParameters;
    }
    return total;
}

std::int64_t Model::activeParameters() const {
    std::int64_t total = 0;
    for (const Layer& layer : layers) {
        total += layer.parameters;
        if (layer.experts == 0 || layer.inputBytes == 0) continue;
        const std::int64_t chosen = layer.routedBytes / layer.inputBytes;
        total += layer.expertParameters / layer.experts * chosen;
    }
    return total;
}

std::int64_t Model::forwardFlops() const {
    std::int64_t total = 0;
    for (const Layer& layer : layers) total += layer.forwardFlops;
    return total;
}

Status checkModel(const Model& model) {
    if (model.layers.empty()) return Status::invalidArgument("layers is wrong: there are none");
    if (model.sequence < 1) return Status::invalidArgument("sequence is wrong: it is below 1");
    if (model.elementBytes < 1 || model.elementBytes > 8) {
        return Status::invalidArgument("element_bytes is wrong: it is not 1 to 8");
    }
    if (model.heads < 0) return Status::invalidArgument("heads is wrong: it is negative");
    if (model.keyValueHeads < 0 || model.keyValueHeads > model.heads) {
        return Status::invalidArgument("key_value_heads is wrong: it is not 0 to heads");
    }
    std::int64_t total = 0;
    std::unordered_map<std::string_view, const Layer*> byName;
    for (std::size_t place = 0; place < model.layers.size(); ++place) {
        const Layer& layer = model.layers[place];
        if (layer.name.empty()) return wrong(place, "name", "it is empty");
        ISTHMUS_TRY(checkNumbers(place, layer, total));
        if (!layer.tiedTo.empty()) {
            const auto owner = byName.find(layer.tiedTo);
            if (owner == byName.end()) {
                return wrong(place, "tied_to", "no earlier layer is named " + layer.tiedTo);
            }
            if (owner->second->parameters < layer.tiedParameters) {
                return wrong(place, "tied_parameters", "that layer has fewer");
            }
        }
        if (!byName.emplace(layer.name, &layer).second) {
            return wrong(place, "name", "an earlier layer is named " + layer.name);
        }
    }
    return checkEdges(model);
}

std::int64_t productOrMost(std::int64_t left, std::int64_t right) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(left, right, &product) ? kMostBytes : product;
}

std::int64_t scaledBytes(const Model& model, std::int64_t bytes, int elementBytes) {
    const std::int64_t whole = productOrMost(bytes / model.elementBytes, elementBytes);
    const std::int64_t rest = bytes % model.elementBytes * elementBytes;
    const std::int64_t more = (rest + model.elementBytes - 1) / model.elementBytes;
    return whole > kMostBytes - more ? kMostBytes : whole + more;
}

}  // namespace isthmus::scheduler
