#include "topology/model/snapshot.hpp"

#include <unistd.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace isthmus {

namespace {

using Json = nlohmann::ordered_json;

/// A topology file of a large node has some ten kilobytes; a larger one is a mistake or an attack.
constexpr std::uintmax_t kMostFileBytes = 4 * 1024 * 1024;

/// Carries the first mistake out of the readers below, which only fill in what they can.
class Reader {
public:
    explicit Reader(const Json& json, std::string path, Status& failure)
        : json_(json), path_(std::move(path)), failure_(failure) {
        if (!json_.is_object()) fail("", "an object");
    }

    void read(const char* name, std::string& value) {
        const Json* member = find(name);
        if (member == nullptr) return;
        if (!member->is_string()) return fail(name, "text");
        value = member->get<std::string>();
    }
    void read(const char* name, bool& value) {
        const Json* member = find(name);
        if (member == nullptr) return;
        if (!member->is_boolean()) return fail(name, "true or false");
        value = member->get<bool>();
    }
    void read(const char* name, std::int64_t& value) {
        const Json* member = find(name);
        if (member == nullptr) return;
        if (!member->is_number_integer()) return fail(name, "a whole number");
        value = member->get<std::int64_t>();
    }
    void read(const char* name, int& value) {
        std::int64_t wide = value;
        read(name, wide);
        if (wide < INT_MIN || wide > INT_MAX) return fail(name, "a smaller number");
        value = static_cast<int>(wide);
    }
    void read(const char* name, double& value) {
        const Json* member = find(name);
        if (member == nullptr) return;
        if (!member->is_number()) return fail(name, "a number");
        value = member->get<double>();
    }

    /// A fact is an object of value, from and where; a bare value was given by the user.
    template <typename T>
    void read(const char* name, Fact<T>& fact) {
        const Json* member = find(name);
        if (member == nullptr) return;
        if (!member->is_object()) {
            fact = {fact.value, Provenance::kGiven, "file"};
            return read(name, fact.value);
        }
        Reader inner(*member, path_ + name + ".", failure_);
        std::string from(nameOf(Provenance::kGiven));
        inner.read("value", fact.value);
        inner.read("from", from);
        inner.read("where", fact.where);
        const auto known = provenanceNamed(from);
        if (!known) return inner.fail("from", "unknown, assumed, reported, measured or given");
        fact.from = *known;
    }

    template <typename T, typename Read>
    void readList(const char* name, std::vector<T>& list, const Read& readOne) {
        const Json* member = find(name);
        if (member == nullptr) return;
        if (!member->is_array()) return fail(name, "a list");
        list.clear();
        for (const Json& element : *member) {
            const std::string place = path_ + name + "[" + std::to_string(list.size()) + "].";
            Reader inner(element, place, failure_);
            T value;
            readOne(inner, value);
            list.push_back(std::move(value));
        }
    }

    template <typename Read>
    void readObject(const char* name, const Read& readInner) {
        const Json* member = find(name);
        if (member == nullptr) return;
        Reader inner(*member, path_ + name + ".", failure_);
        readInner(inner);
    }

private:
    const Json* find(const char* name) const {
        if (!json_.is_object()) return nullptr;
        const auto found = json_.find(name);
        return found == json_.end() ? nullptr : &*found;
    }
    void fail(const char* name, const char* expected) {
        if (!failure_.ok()) return;
        std::string what = path_ + name;
        what.append(" is wrong, expected ").append(expected);
        failure_ = Status::configuration(std::move(what));
    }

    const Json& json_;
    const std::string path_;
    Status& failure_;
};

template <typename T>
Json write(const Fact<T>& fact) {
    return {{"value", fact.value}, {"from", nameOf(fact.from)}, {"where", fact.where}};
}

Json write(const Machine& machine) {
    Json caches = Json::array();
    for (const Cache& cache : machine.caches) {
        caches.push_back({{"level", cache.level},
                          {"bytes", cache.bytes},
                          {"processors", cache.processors},
                          {"copies", cache.copies}});
    }
    Json nodes = Json::array();
    for (const NumaNode& node : machine.numaNodes) {
        nodes.push_back(
            {{"index", node.index}, {"bytes", node.bytes}, {"processors", node.processors}});
    }
    return {{"processor_model", machine.processorModel},
            {"packages", machine.packages},
            {"cores", machine.cores},
            {"processors", machine.processors},
            {"allowed", machine.allowed},
            {"allowed_processors", write(machine.allowedProcessors)},
            {"memory_bytes", write(machine.memoryBytes)},
            {"caches", caches},
            {"numa_nodes", nodes}};
}

void read(Reader& reader, Machine& machine) {
    reader.read("processor_model", machine.processorModel);
    reader.read("packages", machine.packages);
    reader.read("cores", machine.cores);
    reader.read("processors", machine.processors);
    reader.read("allowed", machine.allowed);
    reader.read("allowed_processors", machine.allowedProcessors);
    reader.read("memory_bytes", machine.memoryBytes);
    reader.readList("caches", machine.caches, [](Reader& inner, Cache& cache) {
        inner.read("level", cache.level);
        inner.read("bytes", cache.bytes);
        inner.read("processors", cache.processors);
        inner.read("copies", cache.copies);
    });
    reader.readList("numa_nodes", machine.numaNodes, [](Reader& inner, NumaNode& node) {
        inner.read("index", node.index);
        inner.read("bytes", node.bytes);
        inner.read("processors", node.processors);
    });
}

Json write(const NetDevice& device) {
    Json addresses = Json::array();
    for (const NetAddress& address : device.addresses) {
        addresses.push_back({{"text", address.text},
                             {"prefix_bits", address.prefixBits},
                             {"ipv6", address.isIpv6},
                             {"link_local", address.isLinkLocal}});
    }
    return {{"name", device.name},
            {"addresses", addresses},
            {"up", device.isUp},
            {"loopback", device.isLoopback},
            {"virtual", device.isVirtual},
            {"numa_node", device.numaNode},
            {"pci_address", device.pciAddress},
            {"bits_per_second", write(device.bitsPerSecond)},
            {"largest_unit_bytes", write(device.largestUnitBytes)}};
}

void read(Reader& reader, NetDevice& device) {
    reader.read("name", device.name);
    reader.readList("addresses", device.addresses, [](Reader& inner, NetAddress& address) {
        inner.read("text", address.text);
        inner.read("prefix_bits", address.prefixBits);
        inner.read("ipv6", address.isIpv6);
        inner.read("link_local", address.isLinkLocal);
    });
    reader.read("up", device.isUp);
    reader.read("loopback", device.isLoopback);
    reader.read("virtual", device.isVirtual);
    reader.read("numa_node", device.numaNode);
    reader.read("pci_address", device.pciAddress);
    reader.read("bits_per_second", device.bitsPerSecond);
    reader.read("largest_unit_bytes", device.largestUnitBytes);
}

Json write(const RdmaPort& port) {
    return {{"device", port.device},
            {"port", port.port},
            {"active", port.isActive},
            {"link_layer", port.linkLayer},
            {"net_device", port.netDevice},
            {"numa_node", port.numaNode},
            {"bits_per_second", write(port.bitsPerSecond)}};
}

void read(Reader& reader, RdmaPort& port) {
    reader.read("device", port.device);
    reader.read("port", port.port);
    reader.read("active", port.isActive);
    reader.read("link_layer", port.linkLayer);
    reader.read("net_device", port.netDevice);
    reader.read("numa_node", port.numaNode);
    reader.read("bits_per_second", port.bitsPerSecond);
}

}  // namespace

Result<NodeSnapshot> discoverNode() {
    NodeSnapshot node;
    char host[HOST_NAME_MAX + 1] = "";
    ::gethostname(host, HOST_NAME_MAX);
    node.hostName = host;
    auto machine = discoverMachine();
    if (!machine.ok()) return machine.status();
    node.machine = std::move(*machine);
    node.limits = discoverContainerLimits();
    auto devices = discoverNetDevices();
    if (!devices.ok()) return devices.status();
    node.netDevices = std::move(*devices);
    node.rdmaPorts = discoverRdmaPorts();
    return node;
}

std::string toJson(const NodeSnapshot& node, int indent) {
    Json devices = Json::array();
    for (const NetDevice& device : node.netDevices) devices.push_back(write(device));
    Json ports = Json::array();
    for (const RdmaPort& port : node.rdmaPorts) ports.push_back(write(port));
    const Json json = {{"host_name", node.hostName},
                       {"machine", write(node.machine)},
                       {"limits",
                        {{"processors", write(node.limits.processors)},
                         {"memory_bytes", write(node.limits.memoryBytes)},
                         {"shared_bytes", write(node.limits.sharedBytes)}}},
                       {"net_devices", devices},
                       {"rdma_ports", ports}};
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Result<NodeSnapshot> nodeFromJson(std::string_view text, const NodeSnapshot& base) {
    // Without exceptions; JSON itself has no recursion limit, so the depth is checked on the way.
    constexpr int kDeepest = 16;
    bool isTooDeep = false;
    const Json json = Json::parse(
        text,
        [&](int depth, Json::parse_event_t, Json&) {
            isTooDeep = isTooDeep || depth > kDeepest;
            return !isTooDeep;
        },
        false);
    if (json.is_discarded() || isTooDeep) {
        return Status::configuration("the topology is no JSON text");
    }
    NodeSnapshot node = base;
    Status failure;
    Reader reader(json, "", failure);
    reader.read("host_name", node.hostName);
    reader.readObject("machine", [&](Reader& inner) { read(inner, node.machine); });
    reader.readObject("limits", [&](Reader& inner) {
        inner.read("processors", node.limits.processors);
        inner.read("memory_bytes", node.limits.memoryBytes);
        inner.read("shared_bytes", node.limits.sharedBytes);
    });
    const auto readOne = [](Reader& inner, auto& value) { read(inner, value); };
    reader.readList("net_devices", node.netDevices, readOne);
    reader.readList("rdma_ports", node.rdmaPorts, readOne);
    if (!failure.ok()) return failure;
    return node;
}

Result<NodeSnapshot> discoverNodeWith(const std::string& path) {
    auto node = discoverNode();
    if (!node.ok() || path.empty()) return node;
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    std::ifstream file(path);
    if (error || !file) return Status::configuration("cannot read the topology file " + path);
    if (bytes > kMostFileBytes) {
        return Status::configuration("the topology file " + path + " has " + std::to_string(bytes) +
                                     " bytes, the most is " + std::to_string(kMostFileBytes));
    }
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    auto changed = nodeFromJson(text, *node);
    return changed.ok() ? std::move(changed) : Result<NodeSnapshot>(changed.status().within(path));
}

}  // namespace isthmus
