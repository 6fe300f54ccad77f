#include "topology/discover/container_limits.hpp"

#include <sys/statvfs.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "topology/discover/small_file.hpp"

namespace isthmus {

namespace {

namespace fs = std::filesystem;

/// v1 writes a number near 2^63 where there is no limit (cgroup-v1/memory.rst).
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

template <typename T>
void tighten(Fact<T>& fact, T value, const std::string& where) {
    if (!fact.isKnown() || value < fact.value) fact = Fact<T>::reported(value, where);
}

/// "max 100000" or "150000 100000": quota and period in microseconds (cgroup-v2.rst, cpu.max).
void readCpuMax(ContainerLimits& limits, const std::string& path) {
    const auto line = readLine(path);
    if (!line) return;
    std::istringstream words(*line);
    double quota = 0;
    double period = 0;
    if (words >> quota >> period && quota > 0 && period > 0) {
        tighten(limits.processors, quota / period, path);
    }
}

void readMemoryMax(ContainerLimits& limits, const std::string& path) {
    const auto bytes = readNumber(path);  // "max" is no number
    if (bytes && *bytes > 0 && *bytes < kNoLimit) tighten(limits.memoryBytes, *bytes, path);
}

/// Calls `visit` for the folder of our group and of each group above it.
template <typename Visit>
void visitUpwards(const std::string& mount, fs::path group, const Visit& visit) {
    constexpr int kDeepest = 64;
    for (int i = 0; i < kDeepest; ++i) {
        visit(mount + (group == "/" ? "" : group.string()));
        if (group == "/" || group.empty()) return;
        group = group.parent_path();
    }
}

void readV1(ContainerLimits& limits, const std::string& cgroups, const std::string& controllers,
            const fs::path& group) {
    if (controllers.find("memory") != std::string::npos) {
        visitUpwards(cgroups + "/memory", group, [&](const std::string& folder) {
            readMemoryMax(limits, folder + "/memory.limit_in_bytes");
        });
    }
    if (controllers != "cpu" && controllers.find("cpu,") == std::string::npos &&
        controllers.find(",cpu") == std::string::npos) {
        return;
    }
    visitUpwards(cgroups + "/cpu", group, [&](const std::string& folder) {
        const auto quota = readNumber(folder + "/cpu.cfs_quota_us");
        const auto period = readNumber(folder + "/cpu.cfs_period_us");
        if (!quota || !period || *quota <= 0 || *period <= 0) return;
        tighten(limits.processors, static_cast<double>(*quota) / static_cast<double>(*period),
                folder + "/cpu.cfs_quota_us");
    });
}

}  // namespace

ContainerLimits discoverContainerLimits(const std::string& root) {
    ContainerLimits limits;
    const std::string cgroups = root + "/sys/fs/cgroup";
    std::ifstream membership(root + "/proc/self/cgroup");
    std::string line;
    while (std::getline(membership, line)) {  // "0::/group" or "4:cpu,cpuacct:/group"
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const fs::path group = line.substr(second + 1);
        if (!controllers.empty()) {
            readV1(limits, cgroups, controllers, group);
            continue;
        }
        visitUpwards(cgroups, group, [&](const std::string& folder) {
            readCpuMax(limits, folder + "/cpu.max");
            readMemoryMax(limits, folder + "/memory.max");
        });
    }
    struct statvfs shared {};
    if (::statvfs((root + "/dev/shm").c_str(), &shared) == 0 && root.empty()) {
        limits.sharedBytes = Fact<std::int64_t>::reported(
            static_cast<std::int64_t>(shared.f_blocks * shared.f_frsize), "/dev/shm");
    }
    return limits;
}

}  // namespace isthmus
