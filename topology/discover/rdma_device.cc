#include "topology/discover/rdma_device.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "topology/discover/small_file.hpp"

namespace isthmus {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> namesIn(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        names.push_back(entry->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

RdmaPort readPort(const std::string& device, const std::string& folder, int number) {
    const std::string port = folder + "/ports/" + std::to_string(number);
    RdmaPort found;
    found.device = device;
    found.port = number;
    found.isActive = readLine(port + "/state").value_or("").find("ACTIVE") != std::string::npos;
    found.linkLayer = readLine(port + "/link_layer").value_or("");
    found.numaNode = static_cast<int>(readNumber(folder + "/device/numa_node").value_or(-1));
    const auto cards = namesIn(folder + "/device/net");
    if (!cards.empty()) found.netDevice = cards.front();
    // "100 Gb/sec (4X EDR)" (Documentation/ABI/stable/sysfs-class-infiniband).
    std::istringstream rate(readLine(port + "/rate").value_or(""));
    double gigabits = 0;
    if (rate >> gigabits && gigabits > 0) {
        found.bitsPerSecond =
            Fact<std::int64_t>::reported(std::llround(gigabits * 1e9), port + "/rate");
    }
    return found;
}

}  // namespace

std::vector<RdmaPort> discoverRdmaPorts(const std::string& sysfs) {
    std::vector<RdmaPort> ports;
    const std::string devices = sysfs + "/class/infiniband";
    for (const std::string& device : namesIn(devices)) {
        const std::string folder = devices + "/" + device;
        for (const std::string& name : namesIn(folder + "/ports")) {
            int number = 0;
            std::from_chars(name.data(), name.data() + name.size(), number);
            if (number > 0) ports.push_back(readPort(device, folder, number));
        }
    }
    return ports;
}

}  // namespace isthmus
