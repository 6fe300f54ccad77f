// hwloc's XML of one machine, read by hwloc itself (hwloc.h, "XML Import/Export").
#include <hwloc.h>

#include <algorithm>
#include <map>
#include <memory>

#include "tools/import/formats.hpp"

namespace isthmus::foreign {
namespace {

struct Destroy {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

Result<Topology> loaded(const std::string& text) {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) return Status::resource("hwloc has no memory");
    Topology topology(raw);
    // The length counts the final zero.
    if (hwloc_topology_set_xmlbuffer(raw, text.c_str(), static_cast<int>(text.size() + 1)) != 0 ||
        hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        hwloc_topology_load(raw) != 0) {
        return Status::configuration("<topology>: hwloc " + std::string(HWLOC_VERSION) +
                                     " cannot read it");
    }
    return topology;
}

/// The PCI function that an operating system device belongs to: one device may have several names
/// (cuda0, nvml0, opencl0d0).
hwloc_obj_t functionOf(hwloc_obj_t device) {
    for (hwloc_obj_t at = device->parent; at != nullptr; at = at->parent) {
        if (at->type == HWLOC_OBJ_PCI_DEVICE) return at;
    }
    return device;
}

bool isDevice(hwloc_obj_t object) {
    return object->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC;
}

bool isCard(hwloc_obj_t object) {
    const auto type = object->attr->osdev.type;
    const std::string name = object->name == nullptr ? "" : object->name;
    return (type == HWLOC_OBJ_OSDEV_NETWORK || type == HWLOC_OBJ_OSDEV_OPENFABRICS) && name != "lo";
}

/// NUMA nodes that have cores of their own. One without any is given the cores around it by hwloc;
/// two kinds of memory beside the same cores are one place.
std::vector<scheduler::Device> placesOfMemory(hwloc_topology* tree) {
    std::vector<hwloc_obj_t> nodes;
    hwloc_obj_t next = nullptr;
    while ((next = hwloc_get_next_obj_by_type(tree, HWLOC_OBJ_NUMANODE, next)) != nullptr) {
        nodes.push_back(next);
    }
    std::stable_sort(nodes.begin(), nodes.end(), [](hwloc_obj_t one, hwloc_obj_t other) {
        return hwloc_bitmap_weight(one->cpuset) < hwloc_bitmap_weight(other->cpuset);
    });
    std::vector<scheduler::Device> places;
    hwloc_bitmap_t taken = hwloc_bitmap_alloc();
    for (const hwloc_obj_t node : nodes) {
        if (hwloc_bitmap_isincluded(node->cpuset, taken) != 0) continue;
        hwloc_bitmap_or(taken, taken, node->cpuset);
        const auto bytes = static_cast<std::int64_t>(node->attr->numanode.local_memory);
        places.push_back({.index = static_cast<int>(places.size()), .memoryBytes = bytes});
    }
    hwloc_bitmap_free(taken);
    return places;
}

}  // namespace

Result<scheduler::Cluster> fromHwlocXml(const std::string& text, const Defaults& defaults) {
    const Result<Topology> topology = loaded(text);
    if (!topology.ok()) return topology.status();
    hwloc_topology* const tree = topology->get();
    scheduler::Node node;
    const char* host = hwloc_obj_get_info_by_name(hwloc_get_root_obj(tree), "HostName");
    node.name = host == nullptr ? defaults.name : host;
    std::map<hwloc_obj_t, bool> seen;
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_osdev(tree, object)) != nullptr) {
        const bool isOne = isDevice(object);
        if (!isOne && !isCard(object)) continue;
        if (!seen.emplace(functionOf(object), true).second) continue;
        if (isOne) {
            node.devices.push_back({.index = node.size()});
        } else {
            const auto number = static_cast<int>(node.cards.size());
            node.cards.push_back({.name = object->name, .rail = number});
        }
    }
    // Machines without accelerators run a rank on each NUMA node that has cores.
    if (node.devices.empty()) node.devices = placesOfMemory(tree);
    return clusterOfNode(std::move(node), 0);
}

}  // namespace isthmus::foreign
