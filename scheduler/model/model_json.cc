#include "scheduler/model/model_json.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "scheduler/json/field.hpp"
#include "scheduler/model/generate.hpp"

namespace isthmus::scheduler {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostLayers =
    100000;  ///< with their repetitions; a slip of the pen has more
constexpr std::int64_t kMostWidth = std::int64_t{1} << 24;  ///< sizes whose products fit 64 bits
constexpr std::int64_t kMostRows = std::int64_t{1} << 40;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;

int integerIn(const Field& field, std::int64_t least, std::int64_t most, std::int64_t otherwise) {
    return static_cast<int>(field.integer(least, most, otherwise));
}

std::vector<std::int64_t> widths(const Field& field, std::int64_t most) {
    std::vector<std::int64_t> list;
    for (const Field& element : field.elements()) list.push_back(element.integer(1, most));
    return list;
}

TransformerShape transformerShape(const Field& field, const Job& job) {
    field.hasOnly({"family", "layers", "hidden", "heads", "key_value_heads", "feed_forward",
                   "vocabulary", "sequence", "positions", "token_types", "experts",
                   "experts_per_token", "keeps_scores"});
    TransformerShape shape;
    shape.layers = static_cast<int>(field["layers"].integer(1, kMostLayers));
    shape.hidden = field["hidden"].integer(1, kMostWidth);
    shape.heads = static_cast<int>(field["heads"].integer(1, kMostWidth));
    shape.keyValueHeads = integerIn(field["key_value_heads"], 1, shape.heads, shape.heads);
    shape.feedForward = field["feed_forward"].integer(1, kMostWidth, 4 * shape.hidden);
    shape.vocabulary = field["vocabulary"].integer(0, kMostWidth, 0);
    if (job.sequence > 0) {
        shape.sequence = field["sequence"].integer(1, kMostTokens, job.sequence);
        shape.sequence = job.sequence;
    } else {
        shape.sequence = field["sequence"].integer(1, kMostTokens);
    }
    shape.positions = field["positions"].integer(0, kMostTokens, 0);
    shape.tokenTypes = field["token_types"].integer(0, kMostTokens, 0);
    shape.experts = integerIn(field["experts"], 0, kMostWidth, 0);
    shape.expertsPerToken = integerIn(field["experts_per_token"], 1, kMostWidth, 2);
    shape.keepsScores = field["keeps_scores"].truth(true);
    shape.elementBytes = bytesOf(job.precision);
    if (shape.hidden % shape.heads != 0) field["heads"].refuse("does not divide hidden");
    if (shape.heads % shape.keyValueHeads != 0) {
        field["key_value_heads"].refuse("does not divide heads");
    }
    if (shape.experts > 0 && shape.expertsPerToken > shape.experts) {
        field["experts_per_token"].refuse("is more than experts");
    }
    return shape;
}

Model recommender(const Field& field, const Job& job) {
    field.hasOnly(
        {"family", "table_rows", "dimension", "dense_features", "bottom", "top", "lookups"});
    RecommenderShape shape;
    shape.tableRows = widths(field["table_rows"], kMostRows);
    shape.dimension = field["dimension"].integer(1, kMostWidth >> 8);
    shape.denseFeatures = field["dense_features"].integer(1, kMostWidth, 13);
    shape.bottom = widths(field["bottom"], kMostWidth);
    shape.top = widths(field["top"], kMostWidth);
    shape.lookups = field["lookups"].integer(1, kMostWidth, 1);
    shape.elementBytes = bytesOf(job.precision);
    const auto layers =
        static_cast<std::int64_t>(shape.tableRows.size() + shape.bottom.size() + shape.top.size());
    if (layers > kMostLayers) {
        field["table_rows"].refuse("makes more than 100000 layers");
        return {};
    }
    if (!shape.bottom.empty() && shape.bottom.back() != shape.dimension) {
        field["bottom"].refuse("does not end with the dimension");
    }
    return recommenderModel(shape);
}

/// Whether no number of a layer of such sizes can leave 64 bits; the largest are below.
bool fits(const TransformerShape& shape) {
    const double wide = 3.0 * static_cast<double>(shape.hidden) *
                        static_cast<double>(shape.feedForward) * std::max(shape.experts, 1);
    const double attention = 4.0 * static_cast<double>(shape.hidden) *
                             static_cast<double>(shape.hidden + shape.sequence);
    const double tokens = static_cast<double>(shape.sequence);
    const double head = static_cast<double>(shape.vocabulary) * static_cast<double>(shape.hidden);
    const double scores = 16.0 * tokens * tokens * shape.heads;
    constexpr double kMost = 9e18 / 8;  // below 2^63, with room for bytes of an element
    return 6 * tokens * (wide + attention + head) < kMost && scores < kMost;
}

Model generated(const Field& field, const Job& job) {
    const std::string family = field["family"].text();
    if (family == "recommender") return recommender(field, job);
    const bool isKnown =
        family == "gpt" || family == "llama" || family == "mixture" || family == "bert";
    if (!isKnown) {
        field["family"].refuse("is none of gpt, llama, mixture, bert, recommender");
        return {};
    }
    const TransformerShape shape = transformerShape(field, job);
    if (!fits(shape)) {
        field.refuse("has sizes whose product does not fit 64 bits");
        return {};
    }
    if (family == "gpt") return gptModel(shape);
    if (family == "bert") return bertModel(shape);
    if ((family == "mixture") != (shape.experts > 0)) {
        field["experts"].refuse("goes with the family mixture, and only with it");
    }
    return llamaModel(shape);
}

void readLayer(const Field& field, Model& model) {
    // The numbers are checked by name below; what else may be there is this.
    Layer layer;
    layer.name = field["name"].text();
    layer.type = field["type"].text("layer");
    layer.tiedTo = field["tied_to"].text("");
    layer.checkpointed = field["checkpointed"].truth(false);
    const std::int64_t repeat = field["repeat"].integer(1, kMostLayers, 1);
    for (const LayerNumber& number : kLayerNumbers) {
        layer.*number.member = field[number.name].integer(0, kMostInJson, 0);
    }
    const bool hasBackward = field["backward_flops"].exists();
    if (!hasBackward) layer.backwardFlops = 2 * layer.forwardFlops;
    if (static_cast<std::int64_t>(model.layers.size()) + repeat > kMostLayers) {
        return field.refuse("makes more than 100000 layers");
    }
    for (std::int64_t turn = 0; turn < repeat; ++turn) {
        model.layers.push_back(layer);
        if (repeat > 1) model.layers.back().name += std::to_string(turn);
    }
}

void refuseUnknown(const Field& field) {
    field.hasOnly({"name",
                   "type",
                   "tied_to",
                   "checkpointed",
                   "repeat",
                   "parameters",
                   "replicated_parameters",
                   "frozen_parameters",
                   "expert_parameters",
                   "tied_parameters",
                   "forward_flops",
                   "backward_flops",
                   "recomputed_flops",
                   "replicated_activation_bytes",
                   "split_activation_bytes",
                   "dropped_activation_bytes",
                   "input_bytes",
                   "boundary_bytes",
                   "tensor_forward",
                   "tensor_backward",
                   "reduction_bytes",
                   "key_value_bytes",
                   "query_bytes",
                   "routed_bytes",
                   "experts"});
}

void readEdges(const Field& field, Model& model) {
    std::map<std::string, int> places;
    for (const Layer& layer : model.layers) {
        places.emplace(layer.name, static_cast<int>(places.size()));
    }
    for (const Field& edge : field.elements()) {
        const std::vector<Field> ends = edge.elements();
        if (ends.size() != 2) return edge.refuse("is no pair of layers' names");
        const auto from = places.find(ends[0].text());
        const auto to = places.find(ends[1].text());
        if (from == places.end()) return ends[0].refuse("names no layer");
        if (to == places.end()) return ends[1].refuse("names no layer");
        model.edges.push_back({from->second, to->second});
    }
}

Model listed(const Field& document) {
    Model model;
    model.name = document["name"].text("model");
    model.sequence = document["sequence"].integer(1, kMostTokens, 1);
    model.elementBytes = integerIn(document["element_bytes"], 1, 8, 2);
    model.heads = integerIn(document["heads"], 0, kMostWidth, 0);
    model.keyValueHeads = integerIn(document["key_value_heads"], 0, kMostWidth, model.heads);
    const Field layers = document["layers"];
    if (!layers.exists()) layers.refuse("is missing; so is generate");
    for (const Field& field : layers.elements()) {
        refuseUnknown(field);
        readLayer(field, model);
    }
    readEdges(document["edges"], model);
    return model;
}

}  // namespace

Result<Model> modelFromJson(const std::string& text, const Job& job) {
    const Result<nlohmann::json> json = parseJson(text);
    if (!json.ok()) return json.status();
    Field::Reading reading;
    const Field document(*json, reading);
    document.hasOnly({"isthmus_model", "name", "sequence", "element_bytes", "heads",
                      "key_value_heads", "layers", "edges", "generate"});
    document["isthmus_model"].integer(kModelSchemaVersion, kModelSchemaVersion);
    const Field generate = document["generate"];
    if (generate.exists() && document["layers"].exists()) {
        document["layers"].refuse("is there beside generate");
    }
    Model model = generate.exists() ? generated(generate, job) : listed(document);
    if (generate.exists() && document["name"].exists()) model.name = document["name"].text();
    ISTHMUS_TRY(reading.failure);
    const Status checked = checkModel(model);
    if (!checked.ok()) return Status::configuration(checked.what());
    return model;
}

std::string toJson(const Model& model) {
    Json document = {{"isthmus_model", kModelSchemaVersion},
                     {"name", model.name},
                     {"sequence", model.sequence},
                     {"element_bytes", model.elementBytes},
                     {"heads", model.heads},
                     {"key_value_heads", model.keyValueHeads},
                     {"layers", Json::array()}};
    for (const Layer& layer : model.layers) {
        Json one = {{"name", layer.name}, {"type", layer.type}};
        if (!layer.tiedTo.empty()) one["tied_to"] = layer.tiedTo;
        if (layer.checkpointed) one["checkpointed"] = true;
        for (const LayerNumber& number : kLayerNumbers) {
            const bool isSaid = number.member == &Layer::backwardFlops;
            if (layer.*number.member != 0 || isSaid) {
                one[std::string(number.name)] = layer.*number.member;
            }
        }
        document["layers"].push_back(std::move(one));
    }
    if (!model.isChain()) document["edges"] = Json::array();
    for (const Edge& edge : model.edges) {
        document["edges"].push_back({model.layers[static_cast<std::size_t>(edge.from)].name,
                                     model.layers[static_cast<std::size_t>(edge.to)].name});
    }
    return document.dump(2);
}

}  // namespace isthmus::scheduler
