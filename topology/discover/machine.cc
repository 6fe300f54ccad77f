#include "topology/discover/machine.hpp"

#include <hwloc.h>
#include <sched.h>

#include <memory>

namespace isthmus {

namespace {

using Topology = std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)>;

std::string listOf(hwloc_const_bitmap_t set) {
    char* text = nullptr;
    if (set == nullptr || hwloc_bitmap_list_asprintf(&text, set) < 0) return {};
    const std::unique_ptr<char, void (*)(void*)> owner(text, std::free);
    return text;
}

/// -1 (several levels deep) and -2 (unknown) count as none.
int countOf(hwloc_topology_t topology, hwloc_obj_type_t type) {
    const int objects = hwloc_get_nbobjs_by_type(topology, type);
    return objects > 0 ? objects : 0;
}

std::vector<Cache> cachesOf(hwloc_topology_t topology) {
    constexpr hwloc_obj_type_t kLevels[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                            HWLOC_OBJ_L4CACHE};
    std::vector<Cache> caches;
    int level = 0;
    for (const auto type : kLevels) {
        ++level;
        const hwloc_obj_t first = hwloc_get_obj_by_type(topology, type, 0);
        if (first == nullptr) continue;
        caches.push_back({level, static_cast<std::int64_t>(first->attr->cache.size),
                          hwloc_bitmap_weight(first->cpuset), countOf(topology, type)});
    }
    return caches;
}

std::vector<NumaNode> numaNodesOf(hwloc_topology_t topology) {
    std::vector<NumaNode> nodes;
    for (int i = 0; i < countOf(topology, HWLOC_OBJ_NUMANODE); ++i) {
        const hwloc_obj_t node =
            hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
        nodes.push_back({static_cast<int>(node->os_index),
                         static_cast<std::int64_t>(node->attr->numanode.local_memory),
                         listOf(node->cpuset)});
    }
    return nodes;
}

std::string modelOf(hwloc_topology_t topology) {
    const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    if (package == nullptr) return {};
    const char* model = hwloc_obj_get_info_by_name(package, "CPUModel");
    return model == nullptr ? "" : model;
}

Result<Machine> read(const Topology& topology, const std::string& where) {
    // Processors that a cgroup keeps from us stay in the picture; `allowed` says which are ours.
    const auto flags = hwloc_topology_get_flags(topology.get());
    if (hwloc_topology_set_flags(topology.get(), flags | HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) !=
            0 ||
        hwloc_topology_load(topology.get()) != 0) {
        return Status::configuration("hwloc cannot read the topology of " + where);
    }
    const hwloc_obj_t root = hwloc_get_root_obj(topology.get());
    const auto allowed = hwloc_topology_get_allowed_cpuset(topology.get());
    Machine machine;
    machine.processorModel = modelOf(topology.get());
    machine.packages = countOf(topology.get(), HWLOC_OBJ_PACKAGE);
    machine.cores = countOf(topology.get(), HWLOC_OBJ_CORE);
    machine.processors = countOf(topology.get(), HWLOC_OBJ_PU);
    machine.allowed = listOf(allowed);
    machine.allowedProcessors = Fact<int>::reported(hwloc_bitmap_weight(allowed), where);
    machine.memoryBytes =
        Fact<std::int64_t>::reported(static_cast<std::int64_t>(root->total_memory), where);
    machine.caches = cachesOf(topology.get());
    machine.numaNodes = numaNodesOf(topology.get());
    return machine;
}

Result<Topology> emptyTopology() {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) return Status::resource("hwloc cannot start");
    return Topology(raw, hwloc_topology_destroy);
}

}  // namespace

Result<Machine> discoverMachine() {
    auto topology = emptyTopology();
    if (!topology.ok()) return topology.status();
    auto machine = read(*topology, "hwloc");
    if (!machine.ok()) return machine;
    // What the cgroup allows may be narrowed further by the process's own mask.
    cpu_set_t mask;
    if (::sched_getaffinity(0, sizeof mask, &mask) == 0) {
        const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> bound(hwloc_bitmap_alloc(),
                                                                              hwloc_bitmap_free);
        for (unsigned i = 0; i < CPU_SETSIZE; ++i) {
            if (CPU_ISSET(i, &mask)) hwloc_bitmap_set(bound.get(), i);
        }
        machine->allowed = listOf(bound.get());
        machine->allowedProcessors = Fact<int>::reported(CPU_COUNT(&mask), "sched_getaffinity");
    }
    return machine;
}

}  // namespace isthmus
