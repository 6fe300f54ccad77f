#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "topology/model/fact.hpp"

namespace isthmus {

struct NetAddress {
    std::string text;  ///< numeric; link-local IPv6 with "%device"
    int prefixBits = 0;
    bool isIpv6 = false;
    bool isLinkLocal = false;

    bool operator==(const NetAddress&) const = default;
};

/// One network device as this network namespace shows it.
struct NetDevice {
    std::string name;
    std::vector<NetAddress> addresses;
    bool isUp = false;  ///< administratively up, and running where the driver tells
    bool isLoopback = false;
    bool isVirtual = false;  ///< no hardware behind it: bridge, veth, tunnel, dummy
    int numaNode = -1;
    std::string pciAddress;               ///< empty when virtual
    Fact<std::int64_t> bitsPerSecond;     ///< unknown where the driver does not tell
    Fact<std::int64_t> largestUnitBytes;  ///< MTU

    bool operator==(const NetDevice&) const = default;
};

/// All devices, ordered by name. `sysfs` is where /sys/class/net is looked for.
Result<std::vector<NetDevice>> discoverNetDevices(const std::string& sysfs = "/sys");

/// Our address on the way to `host`, as the routing table decides; no packet is sent.
/// kConfiguration when there is no way or no such host.
Result<std::string> addressTowards(const std::string& host);

/// True for 127.0.0.0/8 and ::1, as numeric text.
bool isLoopbackAddress(const std::string& address);

}  // namespace isthmus
