#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <isthmus/status.hpp>

namespace isthmus {

/// Where a service listens. `host` is a name, an IPv4 address, an IPv6 address without brackets
/// (with "%scope" where it is link-local), or "@name": a socket of this machine's network namespace
/// that has a name instead of a port (unix(7), abstract) and that only our user may use.
struct HostPort {
    std::string host;
    std::uint16_t port = 0;

    bool isLocalName() const { return host.starts_with('@'); }
    bool operator==(const HostPort&) const = default;
};

/// "host:port", "[IPv6]:port" or "@name". kConfiguration says what is wrong with anything else.
Result<HostPort> parseHostPort(std::string_view text);

/// Decimal digits, 0 to 65535.
Result<std::uint16_t> parsePort(std::string_view text);

/// Removes the brackets of "[IPv6]"; other text stays.
std::string withoutBrackets(std::string_view host);

/// As parseHostPort reads it: IPv6 in brackets.
std::string toText(const HostPort& place);

/// Ports that a listener may take, both ends included. {0, 0}: any free one.
struct PortRange {
    std::uint16_t first = 0;
    std::uint16_t last = 0;

    int ports() const { return first == 0 ? 0 : last - first + 1; }
};

/// "5000-5015", "5000" or empty.
Result<PortRange> parsePortRange(std::string_view text);

}  // namespace isthmus
