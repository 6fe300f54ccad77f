#include "comm/bootstrap/host_port.hpp"

#include <sys/un.h>

#include <charconv>

namespace isthmus {

namespace {

Status wrong(std::string_view text, std::string_view why) {
    std::string what("\"");
    what.append(text).append("\" ").append(why);
    return Status::configuration(std::move(what));
}

}  // namespace

Result<std::uint16_t> parsePort(std::string_view text) {
    unsigned long port = 0;
    const auto* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, port);
    if (text.empty() || end != last || error == std::errc::invalid_argument) {
        return wrong(text, "is not a port number");
    }
    if (error != std::errc() || port > 65535) {
        return Status::configuration("port " + std::string(text) +
                                     " is out of range, the largest is 65535");
    }
    return static_cast<std::uint16_t>(port);
}

Result<HostPort> parseHostPort(std::string_view text) {
    if (text.starts_with('@')) {
        // The name and the zero byte before it must fit sun_path (unix(7)).
        if (text.size() < 2 || text.size() > sizeof(sockaddr_un{}.sun_path)) {
            return wrong(text, "is not a usable local name");
        }
        return HostPort{std::string(text), 0};
    }
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos || text.ends_with(']')) {
        return wrong(text, "has no port, expected host:port or [IPv6]:port");
    }
    const std::string_view host = text.substr(0, colon);
    if (host.empty()) return wrong(text, "has no host, expected host:port or [IPv6]:port");
    const bool isBracketed = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
    if (!isBracketed && host.find_first_of(":[]") != std::string_view::npos) {
        return wrong(text, "is ambiguous, write an IPv6 address as [IPv6]:port");
    }
    const auto port = parsePort(text.substr(colon + 1));
    if (!port.ok()) return port.status().within(text);
    return HostPort{withoutBrackets(host), *port};
}

std::string withoutBrackets(std::string_view host) {
    if (host.size() > 2 && host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    return std::string(host);
}

std::string toText(const HostPort& place) {
    if (place.isLocalName()) return place.host;
    std::string text = place.host;
    if (text.find(':') != std::string::npos) {
        text.insert(text.begin(), '[');
        text += ']';
    }
    return text + ':' + std::to_string(place.port);
}

Result<PortRange> parsePortRange(std::string_view text) {
    if (text.empty()) return PortRange{};
    const auto dash = text.find('-');
    const auto first = parsePort(text.substr(0, dash));
    if (!first.ok()) return first.status().within("port range");
    auto last = first;
    if (dash != std::string_view::npos) last = parsePort(text.substr(dash + 1));
    if (!last.ok()) return last.status().within("port range");
    if (*first == 0 || *last < *first) {
        return wrong(text, "is not a range of ports, expected first-last such as 5000-5015");
    }
    return PortRange{*first, *last};
}

}  // namespace isthmus
