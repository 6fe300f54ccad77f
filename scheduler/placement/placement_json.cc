#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "comm/base/digest.hpp"
#include "scheduler/json/field.hpp"
#include "scheduler/placement/placement.hpp"
#include "scheduler/prediction/prediction_json.hpp"
#include "scheduler/search/racks.hpp"

namespace isthmus::scheduler {
namespace {

using Json = nlohmann::ordered_json;

// The one format that there is; a later one gets another number.
constexpr int kFormat = 1;

template <typename T>
Json jsonOf(const Placement& placement, const PerAxis<T>& values) {
    Json json = Json::object();
    for (const Axis axis : kAxes) {
        if (placement.isNamed[axis]) json[std::string(nameOf(axis))] = values[axis];
    }
    return json;
}

Json trafficOf(const Placement& placement) {
    const Shape shape(placement.degrees);
    const auto nodes = static_cast<int>(placement.cluster.nodes.size());
    const auto bytes = bytesOfNodes(shape, placement.bytes, placement.nodeOfRank(), nodes);
    Json json = Json::array();
    for (std::size_t node = 0; node < bytes.size(); ++node) {
        const Json axes = jsonOf(placement, bytes[node]);
        json.push_back(
            {{"node", placement.cluster.nodes[node].name}, {"egress", axes}, {"ingress", axes}});
    }
    return json;
}

/// What leaves the dearest group of each level above nodes, and all of them.
Json levelsOf(const Placement& placement) {
    Json json = Json::array();
    const Result<Weights> weights = weightsOf(placement.degrees, placement.bytes);
    if (placement.cluster.nodes.empty() || !weights.ok()) return json;
    const std::size_t depth = placement.cluster.nodes.front().at.size();
    for (std::size_t level = 0; level < depth; ++level) {
        const std::vector<int> groups = groupOfNodes(placement.cluster, level);
        std::vector<int> groupOfRank;
        for (const Seat& seat : placement.seats) {
            groupOfRank.push_back(groups[static_cast<std::size_t>(seat.node)]);
        }
        const int count = 1 + *std::max_element(groups.begin(), groups.end());
        const NodeCost cost = costOf(Shape(placement.degrees), *weights, groupOfRank, count);
        json.push_back({{"level", placement.cluster.levels[level + 1].name},
                        {"max_egress", cost.most},
                        {"sum_egress", cost.sum}});
    }
    return json;
}

Json ordersOf(const Placement& placement) {
    Json json = Json::array();
    for (const OrderCost& order : placement.orders) {
        json.push_back({{"name", order.name},
                        {"max_node_egress", order.cost.most},
                        {"sum_node_egress", order.cost.sum},
                        {"saved_max", order.cost.most - placement.cost.most},
                        {"saved_sum", order.cost.sum - placement.cost.sum}});
        if (!order.exact) continue;
        json.back()["exact_max_node_egress"] = order.exact->most;
        json.back()["exact_sum_node_egress"] = order.exact->sum;
    }
    return json;
}

Json programsOf(const std::vector<Rival>& rivals) {
    Json json = Json::array();
    for (const Rival& rival : rivals) {
        Json each = {{"name", rival.name},
                     {"degrees", Json::object()},
                     {"zero_stage", rival.job.zeroStage},
                     {"shard", rival.job.shard}};
        for (const Axis axis : kAxes) {
            each["degrees"][std::string(nameOf(axis))] = rival.degrees[axis];
        }
        if (!rival.impossible.empty()) {
            each["impossible"] = rival.impossible;
            json.push_back(std::move(each));
            continue;
        }
        const Prediction& prediction = rival.prediction;
        const NodeCost cost = costOf(prediction.nodes);
        const auto fullest = static_cast<std::size_t>(prediction.fullestStage());
        each["micro_steps"] = prediction.step.shape.microBatches;
        each["max_node_egress"] = cost.most;
        each["sum_node_egress"] = cost.sum;
        each["step_seconds"] = prediction.step.seconds;
        each["memory_bytes"] = prediction.stages[fullest].memory.total();
        each["fits"] = prediction.fits();
        json.push_back(std::move(each));
    }
    return json;
}

Json alternativesOf(const Placement& placement, const std::vector<Candidate>& alternatives) {
    Json json = Json::array();
    for (const Candidate& each : alternatives) {
        json.push_back({{"degrees", jsonOf(placement, each.degrees)},
                        {"max_node_egress", each.cost.most},
                        {"sum_node_egress", each.cost.sum},
                        {"lower_bound", each.bound.most},
                        {"optimal", each.isOptimal}});
    }
    return json;
}

std::string hex(std::uint64_t value) {
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[value >> shift & 15];
    return text;
}

/// One rank a line: nothing else grows with the job.
std::string ranksText(const Placement& placement) {
    const Shape shape(placement.degrees);
    std::vector<std::string> names;
    for (const Node& node : placement.cluster.nodes) names.push_back(Json(node.name).dump());
    std::string text = "[";
    for (int rank = 0; rank < shape.ranks(); ++rank) {
        const Seat& seat = placement.seats[static_cast<std::size_t>(rank)];
        text += rank == 0 ? "\n    " : ",\n    ";
        text += "{\"rank\": " + std::to_string(rank) +
                ", \"node\": " + names[static_cast<std::size_t>(seat.node)] +
                ", \"device\": " + std::to_string(seat.device) + ", \"coordinates\": {";
        bool isFirst = true;
        for (const Axis axis : kAxes) {
            if (!placement.isNamed[axis]) continue;
            text.append(std::exchange(isFirst, false) ? "\"" : ", \"").append(nameOf(axis));
            text += "\": " + std::to_string(shape.coordinate(rank, axis));
        }
        text += "}}";
    }
    return text + "\n  ]";
}

std::string groupsText(const Placement& placement) {
    std::string text = "{";
    bool isFirst = true;
    for (const Axis axis : kAxes) {
        if (!placement.isNamed[axis]) continue;
        text.append(std::exchange(isFirst, false) ? "\n    \"" : ",\n    \"").append(nameOf(axis));
        text += "\": [";
        bool isFirstGroup = true;
        for (const std::vector<int>& group : groupsOf(placement, axis)) {
            text += std::exchange(isFirstGroup, false) ? "[" : ", [";
            for (std::size_t at = 0; at < group.size(); ++at) {
                text += (at == 0 ? "" : ", ") + std::to_string(group[at]);
            }
            text += "]";
        }
        text += "]";
    }
    return text + "\n  }";
}

}  // namespace

std::string toJson(const Placement& placement, const std::vector<Candidate>& alternatives,
                   const SearchAnswer* search) {
    const std::string topology = toJson(placement.cluster, -1);
    Json json = {{"isthmus_placement", kFormat},
                 {"topology_digest", hex(digestOf(topology))},
                 {"nodes", placement.cluster.text()},
                 {"max_node_egress", placement.cost.most},
                 {"sum_node_egress", placement.cost.sum},
                 {"lower_bound", placement.bound.most},
                 {"sum_lower_bound", placement.bound.sum},
                 {"optimal", placement.isOptimal},
                 {"sum_optimal", placement.isSumOptimal},
                 {"method", placement.method},
                 {"degrees", jsonOf(placement, placement.degrees)},
                 {"bytes", jsonOf(placement, placement.bytes)},
                 {"traffic", trafficOf(placement)},
                 {"levels", levelsOf(placement)},
                 {"orders", ordersOf(placement)},
                 {"alternatives", alternativesOf(placement, alternatives)}};
    if (search != nullptr) {
        json["search"] = {{"degrees_tried", search->degreesTried},
                          {"matrices", search->matrices},
                          {"complete", search->isComplete}};
    }
    if (placement.predicted) addPrediction(*placement.predicted, placement.cluster, json);
    if (!placement.rivals.empty()) json["programs"] = programsOf(placement.rivals);
    json["topology"] = Json::parse(topology);
    std::string text = json.dump(2);
    text.resize(text.rfind('\n'));
    return text + ",\n  \"groups\": " + groupsText(placement) +
           ",\n  \"ranks\": " + ranksText(placement) + "\n}\n";
}

namespace {

void readAxes(const Field& root, Placement& placement) {
    for (const std::string& name : root["degrees"].names()) {
        const Result<Axis> axis = axisNamed(name);
        if (!axis.ok()) return root["degrees"].refuse(axis.status().what());
        placement.isNamed[*axis] = true;
        placement.degrees[*axis] = static_cast<int>(root["degrees"][name].integer(1, kMostRanks));
    }
    for (const std::string& name : root["bytes"].names()) {
        const Result<Axis> axis = axisNamed(name);
        if (!axis.ok()) return root["bytes"].refuse(axis.status().what());
        placement.bytes[*axis] = root["bytes"][name].integer(0, kMostInJson);
    }
}

/// The seat of `rank`, which must be where its coordinates say.
void readSeat(const Field& field, int rank, Placement& placement) {
    const Shape shape(placement.degrees);
    if (field["rank"].integer(0, kMostRanks) != rank) {
        field["rank"].refuse("is not " + std::to_string(rank));
    }
    for (const std::string& name : field["coordinates"].names()) {
        const Result<Axis> axis = axisNamed(name);
        if (!axis.ok()) return field["coordinates"].refuse(axis.status().what());
        if (field["coordinates"][name].integer(0, kMostRanks) != shape.coordinate(rank, *axis)) {
            field["coordinates"][name].refuse("rank " + std::to_string(rank) + " has " +
                                              std::to_string(shape.coordinate(rank, *axis)) +
                                              ": tensor changes fastest");
        }
    }
    const std::string name = field["node"].text();
    const std::vector<Node>& nodes = placement.cluster.nodes;
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [&](const Node& each) { return each.name == name; });
    if (node == nodes.end()) return field["node"].refuse("the topology has no \"" + name + "\"");
    const auto index = static_cast<int>(field["device"].integer(0, kMostRanks));
    const bool isThere = std::any_of(node->devices.begin(), node->devices.end(),
                                     [&](const Device& each) { return each.index == index; });
    if (!isThere) field["device"].refuse("the node has no device " + std::to_string(index));
    placement.seats.push_back({static_cast<int>(node - nodes.begin()), index});
}

void readRanks(const Field& root, Placement& placement) {
    const std::vector<Field> ranks = root["ranks"].elements();
    if (static_cast<std::int64_t>(ranks.size()) != ranksOf(placement.degrees)) {
        return root["ranks"].refuse("are " + std::to_string(ranks.size()) + ", degrees of " +
                                    textOf(placement.degrees) + " want " +
                                    std::to_string(ranksOf(placement.degrees)));
    }
    std::set<Seat> taken;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        readSeat(ranks[rank], static_cast<int>(rank), placement);
        if (placement.seats.size() != rank + 1) return;
        if (!taken.insert(placement.seats.back()).second) {
            ranks[rank].refuse("another rank has its device");
        }
    }
}

void readPrediction(const Field& root, Placement& placement) {
    Prediction prediction = predictionOf(root, placement.degrees);
    if (static_cast<int>(prediction.stages.size()) != placement.degrees[Axis::kPipe]) {
        return root["stages"].refuse("are not as many as the pipe's degree");
    }
    const std::int64_t shard = prediction.volumes.shard;
    if (pipelinesOf(placement.degrees) % shard != 0) {
        return root["predicted"]["shard"].refuse("does not divide data x expert");
    }
    if (placement.seats.size() == static_cast<std::size_t>(ranksOf(placement.degrees))) {
        prediction.nodes = bytesOfNodes(prediction.volumes, placement.nodeOfRank(),
                                        static_cast<int>(placement.cluster.nodes.size()));
    }
    placement.predicted = std::move(prediction);
}

}  // namespace

Result<Placement> placementFromJson(const std::string& text) {
    const Result<nlohmann::json> document = parseJson(text);
    if (!document.ok()) return document.status();
    Field::Reading reading;
    const Field root(*document, reading);
    if (!root["isthmus_placement"].exists()) {
        return Status::configuration("has no \"isthmus_placement\": no answer of isthmus place");
    }
    if (document->at("isthmus_placement") != kFormat) {
        return Status::configuration("isthmus_placement: format " +
                                     document->at("isthmus_placement").dump() +
                                     ", this version reads " + std::to_string(kFormat));
    }
    if (!root["topology"].isObject()) return Status::configuration("topology: is missing");
    Result<Cluster> cluster = clusterFromJson(document->at("topology").dump());
    if (!cluster.ok()) return cluster.status().within("topology");
    Placement placement;
    placement.cluster = std::move(*cluster);
    readAxes(root, placement);
    if (reading.failure.ok()) readRanks(root, placement);
    placement.cost = {root["max_node_egress"].integer(0, kMostInJson),
                      root["sum_node_egress"].integer(0, kMostInJson)};
    placement.bound = {root["lower_bound"].integer(0, kMostInJson),
                       root["sum_lower_bound"].integer(0, kMostInJson)};
    placement.isOptimal = root["optimal"].truth();
    placement.isSumOptimal = root["sum_optimal"].truth();
    placement.method = root["method"].text();
    if (root["predicted"].exists()) {
        readPrediction(root, placement);
    }
    if (!reading.failure.ok()) return reading.failure;
    return placement;
}

Result<Placement> placementFromFile(const std::string& path) {
    const Result<std::string> text = textOfFile(path);
    if (!text.ok()) return text.status();
    Result<Placement> placement = placementFromJson(*text);
    return placement.ok() ? placement : Result<Placement>(placement.status().within(path));
}

}  // namespace isthmus::scheduler
