#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "scheduler/cluster/cluster.hpp"
#include "scheduler/json/field.hpp"

namespace isthmus::scheduler {
namespace {

using Json = nlohmann::json;

// The one format that there is; a later one gets another number.
constexpr int kFormat = 1;
constexpr int kMostDevicesOfNode = 1024;

Level levelOf(const Field& field) {
    field.hasOnly({"name", "latency_seconds", "bits_per_second", "oversubscription"});
    Level level;
    level.name = field["name"].text();
    level.latencySeconds = field["latency_seconds"].number(0, 0);
    level.bitsPerSecond = field["bits_per_second"].number(0, 0);
    level.oversubscription = field["oversubscription"].number(1, 1);
    return level;
}

Card cardOf(const Field& field, std::size_t number) {
    field.hasOnly({"name", "bits_per_second", "rail"});
    Card card;
    card.name = field["name"].text("card" + std::to_string(number));
    card.bitsPerSecond = field["bits_per_second"].number(0, 0);
    card.rail = static_cast<int>(
        field["rail"].integer(0, kMostDevicesOfNode, static_cast<std::int64_t>(number)));
    return card;
}

/// What a device has unless it says otherwise.
Device deviceOf(const Field& field, const Device& base) {
    Device device = base;
    device.flopsPerSecond = field["flops_per_second"].number(0, base.flopsPerSecond);
    device.memoryBytes = field["memory_bytes"].integer(0, kMostInJson, base.memoryBytes);
    device.memoryBytesPerSecond =
        field["memory_bytes_per_second"].number(0, base.memoryBytesPerSecond);
    return device;
}

std::vector<Device> devicesOf(const Field& node, const Device& base) {
    std::vector<Device> devices;
    const Field field = node["devices"];
    if (field.isList()) {
        for (const Field& each : field.elements()) {
            each.hasOnly({"index", "flops_per_second", "memory_bytes", "memory_bytes_per_second"});
            Device device = deviceOf(each, base);
            device.index = static_cast<int>(each["index"].integer(
                0, kMostDevicesOfNode - 1, static_cast<std::int64_t>(devices.size())));
            devices.push_back(device);
        }
    } else {
        const auto count = field.integer(1, kMostDevicesOfNode);
        for (int index = 0; index < count; ++index) {
            devices.push_back(base);
            devices.back().index = index;
        }
    }
    std::sort(devices.begin(), devices.end(),
              [](const Device& left, const Device& right) { return left.index < right.index; });
    for (std::size_t at = 1; at < devices.size(); ++at) {
        if (devices[at].index != devices[at - 1].index) continue;
        field.refuse("index " + std::to_string(devices[at].index) + " is there twice");
    }
    return devices;
}

void takeAway(const Field& missing, std::vector<Device>& devices) {
    for (const Field& each : missing.elements()) {
        const auto index = each.integer(0, kMostDevicesOfNode - 1);
        const auto at = std::find_if(devices.begin(), devices.end(),
                                     [&](const Device& device) { return device.index == index; });
        if (at == devices.end()) {
            each.refuse("the node has no device " + std::to_string(index));
        } else {
            devices.erase(at);
        }
    }
}

Node nodeOf(const Field& field, const Device& base) {
    field.hasOnly({"name", "at", "devices", "missing", "cards", "flops_per_second", "memory_bytes",
                   "memory_bytes_per_second"});
    Node node;
    node.name = field["name"].text();
    if (node.name.empty()) field["name"].refuse("is empty");
    for (const Field& group : field["at"].elements()) node.at.push_back(group.text());
    node.devices = devicesOf(field, deviceOf(field, base));
    takeAway(field["missing"], node.devices);
    for (const Field& card : field["cards"].elements()) {
        node.cards.push_back(cardOf(card, node.cards.size()));
    }
    return node;
}

void readNodes(const Field& root, Cluster& cluster) {
    const Field nodes = root["nodes"];
    if (!nodes.isList()) return nodes.refuse(nodes.exists() ? "is no list" : "is missing");
    const Field defaults = root["device"];
    if (defaults.exists())
        defaults.hasOnly({"flops_per_second", "memory_bytes", "memory_bytes_per_second"});
    const Device base = deviceOf(defaults, {});
    std::set<std::string> names;
    std::int64_t ranks = 0;
    for (const Field& field : nodes.elements()) {
        Node node = nodeOf(field, base);
        if (!names.insert(node.name).second) {
            field["name"].refuse("\"" + node.name + "\" is there twice");
        }
        if (!cluster.nodes.empty() && node.at.size() != cluster.nodes.front().at.size()) {
            field["at"].refuse("has " + std::to_string(node.at.size()) +
                               " groups, the first node " +
                               std::to_string(cluster.nodes.front().at.size()));
        }
        ranks += node.size();
        if (node.size() > 0) cluster.nodes.push_back(std::move(node));
    }
    if (ranks < 1) nodes.refuse("has no device");
    if (ranks > kMostRanks) {
        nodes.refuse("has " + std::to_string(ranks) + " devices, at most " +
                     std::to_string(kMostRanks) + " are known to work");
    }
}

void readLevels(const Field& root, Cluster& cluster) {
    for (const Field& level : root["levels"].elements()) cluster.levels.push_back(levelOf(level));
    if (cluster.nodes.empty()) return;
    const std::size_t wanted = cluster.nodes.front().at.size() + 2;
    if (cluster.levels.empty() && !root["levels"].exists()) {
        for (std::size_t level = 0; level < wanted; ++level) {
            const bool isNode = level + 1 == wanted;
            cluster.levels.push_back(
                {.name =
                     isNode ? "node" : (level == 0 ? "cluster" : "level" + std::to_string(level))});
        }
    }
    if (cluster.levels.size() == wanted) return;
    root["levels"].refuse("has " + std::to_string(cluster.levels.size()) + ", nodes in " +
                          std::to_string(wanted - 2) + " groups want " + std::to_string(wanted) +
                          ": the outermost first, the last inside a node");
}

/// Whether "so many devices" says all there is.
bool areAlike(const std::vector<Device>& devices) {
    for (std::size_t at = 0; at < devices.size(); ++at) {
        Device expected = devices.front();
        expected.index = static_cast<int>(at);
        if (devices[at] != expected) return false;
    }
    return true;
}

/// What is known of a device but its index.
void addDevice(const Device& device, Json& json) {
    json["flops_per_second"] = device.flopsPerSecond;
    json["memory_bytes"] = device.memoryBytes;
    if (device.memoryBytesPerSecond > 0) {
        json["memory_bytes_per_second"] = device.memoryBytesPerSecond;
    }
}

Json jsonOf(const Node& node) {
    Json json = {{"name", node.name}, {"devices", Json::array()}, {"cards", Json::array()}};
    if (!node.at.empty()) json["at"] = node.at;
    for (const Device& device : node.devices) {
        Json each = {{"index", device.index}};
        addDevice(device, each);
        json["devices"].push_back(std::move(each));
    }
    if (areAlike(node.devices)) {
        json["devices"] = node.devices.size();
        addDevice(node.devices.front(), json);
    }
    for (const Card& card : node.cards) {
        json["cards"].push_back(
            {{"name", card.name}, {"bits_per_second", card.bitsPerSecond}, {"rail", card.rail}});
    }
    return json;
}

}  // namespace

Result<Cluster> clusterFromJson(const std::string& text) {
    const Result<Json> document = parseJson(text);
    if (!document.ok()) return document.status();
    Field::Reading reading;
    const Field root(*document, reading);
    if (!root["isthmus_topology"].exists()) {
        return Status::configuration("has no \"isthmus_topology\": no topology of isthmus");
    }
    if (document->at("isthmus_topology") != kFormat) {
        return Status::configuration("isthmus_topology: format " +
                                     document->at("isthmus_topology").dump() +
                                     ", this version reads " + std::to_string(kFormat));
    }
    root.hasOnly({"isthmus_topology", "levels", "communicator_bits_per_second", "device", "nodes",
                  "comment"});
    Cluster cluster;
    cluster.communicatorBitsPerSecond = root["communicator_bits_per_second"].number(0, 0);
    readNodes(root, cluster);
    readLevels(root, cluster);
    if (!reading.failure.ok()) return reading.failure;
    sortNodes(cluster);
    return cluster;
}

Result<Cluster> clusterFromFile(const std::string& path) {
    const Result<std::string> text = textOfFile(path);
    if (!text.ok()) return text.status();
    Result<Cluster> cluster = clusterFromJson(*text);
    return cluster.ok() ? cluster : Result<Cluster>(cluster.status().within(path));
}

std::string toJson(const Cluster& cluster, int indent) {
    Json json = {{"isthmus_topology", kFormat},
                 {"levels", Json::array()},
                 {"communicator_bits_per_second", cluster.communicatorBitsPerSecond},
                 {"nodes", Json::array()}};
    for (const Level& level : cluster.levels) {
        json["levels"].push_back({{"name", level.name},
                                  {"latency_seconds", level.latencySeconds},
                                  {"bits_per_second", level.bitsPerSecond},
                                  {"oversubscription", level.oversubscription}});
    }
    for (const Node& node : cluster.nodes) json["nodes"].push_back(jsonOf(node));
    return json.dump(indent) + "\n";
}

}  // namespace isthmus::scheduler
