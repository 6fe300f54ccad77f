#include "scheduler/model/generate.hpp"

#include <utility>

namespace isthmus::scheduler {

namespace {

constexpr std::int64_t kFloat32Bytes = 4;

/// What all layers of one transformer share.
struct Sizes {
    explicit Sizes(const TransformerShape& shape)
        : tokens(shape.sequence),
          hidden(shape.hidden),
          element(shape.elementBytes),
          feedForward(shape.feedForward > 0 ? shape.feedForward : 4 * shape.hidden),
          keyHidden(shape.keyValueHeads > 0 ? shape.hidden / shape.heads * shape.keyValueHeads
                                            : shape.hidden),
          plane(shape.sequence * shape.hidden),
          scores(shape.sequence * shape.sequence * shape.heads) {}

    std::int64_t tokens;
    std::int64_t hidden;
    std::int64_t element;
    std::int64_t feedForward;
    std::int64_t keyHidden;
    std::int64_t plane;   ///< elements of one sample's hidden state
    std::int64_t scores;  ///< elements of one sample's attention scores
};

Model emptyModel(const TransformerShape& shape, std::string name) {
    Model model;
    model.name = std::move(name);
    model.sequence = shape.sequence;
    model.elementBytes = shape.elementBytes;
    model.heads = shape.heads;
    model.keyValueHeads = shape.keyValueHeads > 0 ? shape.keyValueHeads : shape.heads;
    return model;
}

/// What attention asks of any transformer layer.
Layer blockWithAttention(const Sizes& sizes, int place) {
    Layer layer;
    layer.name = "transformer" + std::to_string(place);
    layer.type = "transformer";
    layer.inputBytes = sizes.plane * sizes.element;
    layer.boundaryBytes = layer.inputBytes;
    layer.reductionBytes = layer.inputBytes;
    layer.tensorForward = 2;  // after attention and after the feed-forward
    layer.tensorBackward = 2;
    layer.checkpointed = true;
    layer.keyValueBytes = 2 * sizes.tokens * sizes.keyHidden * sizes.element;
    layer.queryBytes = layer.inputBytes;
    layer.recomputedFlops = 4 * sizes.tokens * sizes.tokens * sizes.hidden;  // QK and AV
    return layer;
}

void setFlops(Layer& layer, std::int64_t forward) {
    layer.forwardFlops = forward;
    layer.backwardFlops = 2 * forward;  // for the input and for the weights
}

/// arXiv 2205.05198, section 4.1: 11 + 19 + 4 bytes of each element of s x b x h and 5 of each
/// score, with 2-byte elements and 1-byte dropout masks.
Layer gptBlock(const Sizes& sizes, const TransformerShape& shape, int place) {
    Layer layer = blockWithAttention(sizes, place);
    const std::int64_t wide = sizes.hidden * sizes.feedForward;
    layer.parameters =
        4 * sizes.hidden * sizes.hidden + 2 * wide + 9 * sizes.hidden + sizes.feedForward;
    layer.replicatedParameters = 6 * sizes.hidden;  // two norms, two biases after a reduction
    layer.replicatedActivationBytes = (4 * sizes.element + 2) * sizes.plane;
    layer.splitActivationBytes =
        4 * sizes.element * sizes.plane + 2 * sizes.element * sizes.tokens * sizes.feedForward;
    layer.droppedActivationBytes = shape.keepsScores ? (2 * sizes.element + 1) * sizes.scores : 0;
    setFlops(layer, 2 * sizes.tokens * (4 * sizes.hidden * sizes.hidden + 2 * wide) +
                        layer.recomputedFlops);
    return layer;
}

/// No masks; two norms and their inputs; queries, keys, values, the attention's output; gate, up,
/// the activated gate and the product.
Layer llamaBlock(const Sizes& sizes, const TransformerShape& shape, int place) {
    Layer layer = blockWithAttention(sizes, place);
    const std::int64_t attention =
        2 * sizes.hidden * sizes.hidden + 2 * sizes.hidden * sizes.keyHidden;
    const std::int64_t wide = 3 * sizes.hidden * sizes.feedForward;
    const std::int64_t chosen = shape.experts > 0 ? shape.expertsPerToken : 1;
    layer.replicatedParameters = 2 * sizes.hidden + shape.experts * sizes.hidden;
    layer.parameters = attention + layer.replicatedParameters + (shape.experts > 0 ? 0 : wide);
    layer.expertParameters = shape.experts * wide;
    layer.experts = shape.experts;
    layer.replicatedActivationBytes = 4 * sizes.element * sizes.plane;
    layer.splitActivationBytes =
        sizes.element * (2 * sizes.plane + 2 * sizes.tokens * sizes.keyHidden +
                         chosen * 4 * sizes.tokens * sizes.feedForward);
    layer.droppedActivationBytes = shape.keepsScores ? sizes.element * sizes.scores : 0;
    if (shape.experts > 0) {
        layer.routedBytes = chosen * layer.inputBytes;
        layer.splitActivationBytes += layer.routedBytes;
    }
    const std::int64_t router = shape.experts * sizes.hidden;
    setFlops(layer,
             2 * sizes.tokens * (attention + chosen * wide + router) + layer.recomputedFlops);
    return layer;
}

Layer embedding(const Sizes& sizes, const TransformerShape& shape, std::int64_t positions) {
    Layer layer;
    layer.name = "embedding";
    layer.type = "embedding";
    layer.replicatedParameters = (positions + shape.tokenTypes) * sizes.hidden;
    layer.parameters = shape.vocabulary * sizes.hidden + layer.replicatedParameters;
    layer.boundaryBytes = sizes.plane * sizes.element;
    layer.reductionBytes = layer.boundaryBytes;
    layer.tensorForward = 1;  // each rank looks up its part of the vocabulary
    return layer;
}

/// The norm before it and the product with the vocabulary; logits are kept in float32.
Layer head(const Sizes& sizes, const TransformerShape& shape, std::int64_t norm, bool isTied) {
    Layer layer;
    layer.name = "head";
    layer.type = "head";
    const std::int64_t matrix = shape.vocabulary * sizes.hidden;
    layer.replicatedParameters = norm;
    layer.parameters = norm + (isTied ? 0 : matrix);
    if (isTied) {
        layer.tiedTo = "embedding";
        layer.tiedParameters = matrix;
    }
    layer.replicatedActivationBytes = 2 * sizes.element * sizes.plane;
    layer.splitActivationBytes = kFloat32Bytes * sizes.tokens * shape.vocabulary;
    layer.inputBytes = sizes.plane * sizes.element;
    layer.reductionBytes = layer.inputBytes;
    layer.tensorBackward = 1;
    setFlops(layer, 2 * sizes.tokens * matrix);
    return layer;
}

Layer perceptron(std::string name, std::int64_t from, std::int64_t to, std::int64_t element) {
    Layer layer;
    layer.name = std::move(name);
    layer.type = "perceptron";
    layer.parameters = from * to + to;
    layer.replicatedActivationBytes = from * element;
    layer.splitActivationBytes = to * element;
    layer.inputBytes = from * element;
    layer.boundaryBytes = to * element;
    layer.reductionBytes = layer.boundaryBytes;
    layer.tensorForward = 1;
    layer.tensorBackward = 1;
    setFlops(layer, 2 * from * to);
    return layer;
}

Layer table(std::size_t place, const RecommenderShape& shape) {
    Layer layer;
    layer.name = "table" + std::to_string(place);
    layer.type = "table";
    layer.parameters = shape.tableRows[place] * shape.dimension;
    layer.boundaryBytes = shape.dimension * shape.elementBytes;
    layer.reductionBytes = layer.boundaryBytes;
    layer.tensorForward = 1;
    setFlops(layer, shape.lookups * shape.dimension);
    return layer;
}

}  // namespace

Model gptModel(const TransformerShape& shape) {
    const Sizes sizes(shape);
    Model model = emptyModel(shape, "gpt");
    const std::int64_t positions = shape.positions > 0 ? shape.positions : shape.sequence;
    if (shape.vocabulary > 0) model.layers.push_back(embedding(sizes, shape, positions));
    for (int place = 0; place < shape.layers; ++place) {
        model.layers.push_back(gptBlock(sizes, shape, place));
    }
    if (shape.vocabulary > 0) {
        model.layers.front().replicatedActivationBytes = sizes.plane;  // its dropout mask
        model.layers.push_back(head(sizes, shape, 2 * shape.hidden, true));
    }
    return model;
}

Model llamaModel(const TransformerShape& shape) {
    const Sizes sizes(shape);
    Model model = emptyModel(shape, shape.experts > 0 ? "mixture" : "llama");
    if (shape.vocabulary > 0) model.layers.push_back(embedding(sizes, shape, 0));
    for (int place = 0; place < shape.layers; ++place) {
        model.layers.push_back(llamaBlock(sizes, shape, place));
    }
    if (shape.vocabulary > 0) model.layers.push_back(head(sizes, shape, shape.hidden, false));
    return model;
}

Model mixtureModel(const TransformerShape& shape) {
    return llamaModel(shape);
}

Model bertModel(const TransformerShape& shape) {
    const Sizes sizes(shape);
    Model model = emptyModel(shape, "bert");
    const std::int64_t positions = shape.positions > 0 ? shape.positions : shape.sequence;
    Layer first = embedding(sizes, shape, positions);
    first.parameters += 2 * shape.hidden;  // its norm
    first.replicatedParameters += 2 * shape.hidden;
    first.replicatedActivationBytes = (sizes.element + 1) * sizes.plane;  // norm, dropout
    model.layers.push_back(std::move(first));
    for (int place = 0; place < shape.layers; ++place) {
        model.layers.push_back(gptBlock(sizes, shape, place));
    }
    Layer pooler = perceptron("pooler", shape.hidden, shape.hidden, sizes.element);
    pooler.type = "head";
    model.layers.push_back(std::move(pooler));
    return model;
}

Model recommenderModel(const RecommenderShape& shape) {
    Model model;
    model.name = "recommender";
    model.elementBytes = shape.elementBytes;
    std::vector<int> inputs;
    for (std::size_t place = 0; place < shape.tableRows.size(); ++place) {
        inputs.push_back(static_cast<int>(model.layers.size()));
        model.layers.push_back(table(place, shape));
    }
    const auto addPerceptron = [&](const char* name, std::int64_t from, std::int64_t to) {
        const std::string place = std::to_string(model.layers.size());
        model.layers.push_back(perceptron(name + place, from, to, shape.elementBytes));
        return static_cast<int>(model.layers.size()) - 1;
    };
    std::int64_t width = shape.denseFeatures;
    int before = -1;
    for (const std::int64_t next : shape.bottom) {
        const int added = addPerceptron("bottom", width, next);
        if (before >= 0) model.edges.push_back({before, added});
        before = added;
        width = next;
    }
    if (before >= 0) inputs.push_back(before);

    const auto vectors = static_cast<std::int64_t>(inputs.size());
    const std::int64_t pairs = vectors * (vectors - 1) / 2;
    Layer products;
    products.name = "interaction";
    products.type = "interaction";
    products.boundaryBytes = (pairs + shape.dimension) * shape.elementBytes;
    products.inputBytes = vectors * shape.dimension * shape.elementBytes;
    products.replicatedActivationBytes = products.inputBytes;
    setFlops(products, 2 * pairs * shape.dimension);
    model.layers.push_back(std::move(products));
    before = static_cast<int>(model.layers.size()) - 1;
    for (const int input : inputs) model.edges.push_back({input, before});
    width = pairs + shape.dimension;
    for (const std::int64_t next : shape.top) {
        const int added = addPerceptron("top", width, next);
        model.edges.push_back({before, added});
        before = added;
        width = next;
    }
    return model;
}

}  // namespace isthmus::scheduler
