#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

#include "topology/discover/net_device.hpp"

namespace isthmus {

/// A network device to use, and the address of it to listen at and to tell others.
struct InterfaceChoice {
    std::string device;
    std::string address;

    bool operator==(const InterfaceChoice&) const = default;
};

/// What is known about the job when interfaces are chosen.
struct InterfaceContext {
    std::string towards;  ///< our address on the way to the store (addressTowards), or empty
    bool isMultiNode = false;
};

/// Chooses by `wish` (ISTHMUS_INTERFACE), in the order of the wish. Grammar: items with commas
/// between them. An item is a device's name; the start of names, when no device has that very name;
/// an address; a network in CIDR form. `=` before an item forbids names that only start so. `^`
/// before the whole excludes what the items name, instead of choosing it. A device that several
/// items name is one, with the address that the first of them means. Empty: the device with the
/// address `towards`, else the fastest that is up and has hardware. Loopback serves one-node jobs
/// only. kConfiguration lists the interfaces and addresses there are.
Result<std::vector<InterfaceChoice>> selectInterfaces(const std::vector<NetDevice>& devices,
                                                      std::string_view wish,
                                                      const InterfaceContext& context);

/// "eth0 (10.77.0.1, fd77::1), lo (127.0.0.1)": for messages.
std::string describeInterfaces(const std::vector<NetDevice>& devices);

}  // namespace isthmus
