#include "topology/discover/net_device.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <bit>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "comm/base/descriptors.hpp"
#include "comm/base/unique_fd.hpp"
#include "topology/discover/small_file.hpp"

namespace isthmus {

namespace {

namespace fs = std::filesystem;

int prefixBitsOf(const sockaddr* mask) {
    if (mask == nullptr) return 0;
    const bool isIpv6 = mask->sa_family == AF_INET6;
    const void* bytes =
        isIpv6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr)
               : &reinterpret_cast<const sockaddr_in*>(mask)->sin_addr;
    int bits = 0;
    for (std::size_t i = 0; i < (isIpv6 ? 16U : 4U); ++i) {
        bits += std::popcount(static_cast<const unsigned char*>(bytes)[i]);
    }
    return bits;
}

std::optional<NetAddress> addressOf(const ifaddrs& entry) {
    if (entry.ifa_addr == nullptr) return std::nullopt;
    const bool isIpv6 = entry.ifa_addr->sa_family == AF_INET6;
    if (!isIpv6 && entry.ifa_addr->sa_family != AF_INET) return std::nullopt;
    const socklen_t length = isIpv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    char text[NI_MAXHOST];
    if (::getnameinfo(entry.ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) {
        return std::nullopt;
    }
    NetAddress address{text, prefixBitsOf(entry.ifa_netmask), isIpv6, false};
    if (isIpv6) {
        const auto& raw = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
        address.isLinkLocal = IN6_IS_ADDR_LINKLOCAL(&raw);
    } else {
        address.isLinkLocal = address.text.starts_with("169.254.");  // RFC 3927
    }
    return address;
}

/// What sysfs knows beyond getifaddrs(3).
void describe(NetDevice& device, const std::string& sysfs) {
    const std::string folder = sysfs + "/class/net/" + device.name;
    std::error_code error;
    device.isVirtual = !fs::exists(folder + "/device", error);
    if (!device.isVirtual) {
        device.pciAddress = fs::canonical(folder + "/device", error).filename().string();
        device.numaNode = static_cast<int>(readNumber(folder + "/device/numa_node").value_or(-1));
    }
    if (const auto bytes = readNumber(folder + "/mtu")) {
        device.largestUnitBytes = Fact<std::int64_t>::reported(*bytes, folder + "/mtu");
    }
    // In Mbit/s; -1 or an error where the link is down or the driver does not tell. Virtual devices
    // say 10000 whatever carries them (drivers/net/veth.c, tun.c): that is no fact.
    const auto megabits = readNumber(folder + "/speed");
    if (megabits && *megabits > 0 && !device.isVirtual) {
        device.bitsPerSecond =
            Fact<std::int64_t>::reported(*megabits * 1'000'000, folder + "/speed");
    }
}

}  // namespace

Result<std::vector<NetDevice>> discoverNetDevices(const std::string& sysfs) {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) {
        return Status::configuration("cannot list network devices: " + causeOf(errno));
    }
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
    std::map<std::string, NetDevice> devices;
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
        NetDevice& device = devices[entry->ifa_name];
        device.name = entry->ifa_name;
        device.isUp = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
        device.isLoopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
        if (auto address = addressOf(*entry)) device.addresses.push_back(std::move(*address));
    }
    std::vector<NetDevice> all;
    for (auto& [name, device] : devices) {
        describe(device, sysfs);
        all.push_back(std::move(device));
    }
    return all;
}

Result<std::string> addressTowards(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.c_str(), "9", &hints, &found);  // the port is never used
    if (error != 0) {
        return Status::configuration("cannot resolve \"" + host + "\": " + ::gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        const UniqueFd socket(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_storage ours{};
        socklen_t length = sizeof ours;
        auto* raw = reinterpret_cast<sockaddr*>(&ours);
        // connect(2) on a datagram socket only looks up the route and fixes our address.
        if (!socket.isOpen() || ::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) != 0 ||
            ::getsockname(socket.get(), raw, &length) != 0) {
            continue;
        }
        char text[NI_MAXHOST];
        if (::getnameinfo(raw, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
            return std::string(text);
        }
    }
    return Status::configuration("there is no route to \"" + host + "\"");
}

bool isLoopbackAddress(const std::string& address) {
    return address.starts_with("127.") || address == "::1";
}

}  // namespace isthmus
