// NCCL's topology XML (NCCL_TOPO_DUMP_FILE, src/graph/xml.cc): <system>, <cpu>, <pci>, <gpu>,
// <nic>.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "tools/import/formats.hpp"

#ifdef ISTHMUS_HAS_PUGIXML
#include <pugixml.hpp>
#endif

namespace isthmus::foreign {

#ifdef ISTHMUS_HAS_PUGIXML

namespace {

constexpr double kMegabit = 1e6;

/// What one NVLink carries each way, by compute capability (NVIDIA's datasheets: 18, 20 or 25 GB/s
/// raw; the numbers are those that NCCL reckons with, src/graph/topo.h).
double linkBitsPerSecond(int capability) {
    constexpr double kGigabyte = 8e9;
    if (capability >= 90) return 20.6 * kGigabyte;
    if (capability == 86) return 12.0 * kGigabyte;
    if (capability >= 70) return 20.0 * kGigabyte;
    return 18.0 * kGigabyte;
}

/// "system/cpu[1]/pci[0]/gpu[2]": for errors.
std::string pathOf(pugi::xml_node node) {
    std::string path;
    for (; node && *node.name() != '\0'; node = node.parent()) {
        int place = 0;
        const std::string name = node.name();
        for (auto before = node.previous_sibling(name.c_str()); before;
             before = before.previous_sibling(name.c_str())) {
            ++place;
        }
        const std::string step =
            name + (node.parent().parent() ? "[" + std::to_string(place) + "]" : "");
        path = path.empty() ? step : step + "/" + path;
    }
    return path;
}

class Reader {
public:
    void read(const pugi::xml_node& element) {
        const std::string name = element.name();
        if (name == "gpu") readDevice(element);
        if (name == "net") readCard(element);
        for (const pugi::xml_node& child : element.children()) read(child);
    }

    Result<scheduler::Cluster> cluster(const std::string& name) {
        if (!failure_.ok()) return failure_;
        std::sort(node_.devices.begin(), node_.devices.end(),
                  [](const auto& one, const auto& other) { return one.index < other.index; });
        node_.name = name;
        return clusterOfNode(std::move(node_), inside_);
    }

private:
    void refuse(const pugi::xml_node& element, const std::string& why) {
        if (failure_.ok()) failure_ = Status::configuration(pathOf(element) + ": " + why);
    }

    /// -1: it is missing or no whole number. (pugixml takes any text for 0.)
    int number(const pugi::xml_node& element, const char* attribute) {
        const std::string_view text = element.attribute(attribute).as_string();
        int value = -1;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc() && stop == text.data() + text.size() ? value : -1;
    }

    void readDevice(const pugi::xml_node& gpu) {
        const int index = number(gpu, "dev");
        if (index < 0 || index >= 1024) return refuse(gpu, "dev is no number of a device");
        for (const auto& known : node_.devices) {
            if (known.index == index) {
                return refuse(gpu, "dev " + std::to_string(index) + " is there twice");
            }
        }
        node_.devices.push_back({.index = index});
        int links = 0;
        for (const pugi::xml_node& link : gpu.children("nvlink")) {
            const int count = number(link, "count");
            if (count < 1) return refuse(link, "count is no number of links");
            links += count;
        }
        const double rate = links * linkBitsPerSecond(number(gpu, "sm"));
        inside_ = node_.devices.size() == 1 ? rate : std::min(inside_, rate);
    }

    void readCard(const pugi::xml_node& net) {
        const int speed = number(net, "speed");
        if (speed < 0) return refuse(net, "speed is no number of Mbit/s");
        const std::string name = net.attribute("name").as_string();
        if (name.empty()) return refuse(net, "has no name");
        const auto number = static_cast<int>(node_.cards.size());
        node_.cards.push_back({name, speed * kMegabit, number});
    }

    scheduler::Node node_;
    double inside_ = 0;
    Status failure_;
};

}  // namespace

Result<scheduler::Cluster> fromNcclXml(const std::string& text, const Defaults& defaults) {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed = document.load_string(text.c_str());
    if (!parsed) {
        return Status::configuration("byte " + std::to_string(parsed.offset) + ": " +
                                     parsed.description());
    }
    Reader reader;
    reader.read(document.child("system"));
    return reader.cluster(defaults.name);
}

#else

Result<scheduler::Cluster> fromNcclXml(const std::string&, const Defaults&) {
    return Status::unsupported("is NCCL's XML, and this program was built without pugixml");
}

#endif

}  // namespace isthmus::foreign
