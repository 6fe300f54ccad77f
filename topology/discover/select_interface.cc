#include "topology/discover/select_interface.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace isthmus {

namespace {

/// The bytes of an address, for comparison under a mask.
struct RawAddress {
    std::array<unsigned char, 16> bytes{};
    int bits = 0;  // 32 or 128
};

std::optional<RawAddress> rawOf(std::string_view text) {
    const std::string plain(text.substr(0, text.find('%')));
    RawAddress raw;
    if (::inet_pton(AF_INET, plain.c_str(), raw.bytes.data()) == 1) {
        raw.bits = 32;
        return raw;
    }
    if (::inet_pton(AF_INET6, plain.c_str(), raw.bytes.data()) == 1) {
        raw.bits = 128;
        return raw;
    }
    return std::nullopt;
}

bool isWithin(const RawAddress& address, const RawAddress& network, int prefixBits) {
    if (address.bits != network.bits) return false;
    for (int bit = 0; bit < prefixBits; ++bit) {
        const auto mask = static_cast<unsigned char>(0x80U >> (bit % 8));
        const auto place = static_cast<std::size_t>(bit / 8);
        if (((address.bytes[place] ^ network.bytes[place]) & mask) != 0) return false;
    }
    return true;
}

/// One item of the wish, read.
struct Item {
    std::string_view text;  // without brackets and '='
    bool isExact = false;
    std::optional<RawAddress> network;
    int prefixBits = 0;

    bool names(const NetAddress& address) const {
        const auto raw = rawOf(address.text);
        if (!network || !raw || !isWithin(*raw, *network, prefixBits)) return false;
        const auto scope = text.find('%');
        return scope == std::string_view::npos || address.text.ends_with(text.substr(scope));
    }
};

Result<Item> readItem(std::string_view text) {
    Item item;
    item.isExact = text.starts_with('=');
    if (item.isExact) text.remove_prefix(1);
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    item.text = text;
    if (text.empty()) return Status::configuration("an interface's name is empty");
    if (text.starts_with('^')) {
        return Status::configuration(std::string(text) +
                                     ": a ^ stands before the whole list, and excludes all of it");
    }
    const auto slash = text.find('/');
    item.network = rawOf(text.substr(0, slash));
    if (!item.network) return item;
    item.prefixBits = item.network->bits;
    if (slash == std::string_view::npos) return item;
    const std::string_view bits = text.substr(slash + 1);
    const auto [end, error] =
        std::from_chars(bits.data(), bits.data() + bits.size(), item.prefixBits);
    if (error != std::errc() || end != bits.data() + bits.size() || item.prefixBits < 0 ||
        item.prefixBits > item.network->bits) {
        return Status::configuration(std::string(text) +
                                     " is not a network, expected something like 10.77.0.0/24");
    }
    return item;
}

Result<std::vector<Item>> readItems(std::string_view text) {
    std::vector<Item> items;
    // An '=' in front of the whole list counts for each of its items.
    const bool areExact = text.starts_with('=');
    for (;;) {
        const auto comma = text.find(',');
        auto item = readItem(text.substr(0, comma));
        if (!item.ok()) return item.status();
        item->isExact = item->isExact || areExact;
        items.push_back(*item);
        if (comma == std::string_view::npos) return items;
        text.remove_prefix(comma + 1);
    }
}

/// The address of a device that others reach best: the family of `towards`, then IPv4, then IPv6,
/// link-local ones last.
std::optional<std::string> bestAddress(const NetDevice& device, const std::string& towards) {
    const bool prefersIpv6 = towards.find(':') != std::string::npos;
    const NetAddress* best = nullptr;
    const auto rank = [&](const NetAddress& address) {
        const bool isPreferred = address.isIpv6 == prefersIpv6;
        return (address.isLinkLocal ? 2 : 0) + (isPreferred ? 0 : 1);
    };
    for (const NetAddress& address : device.addresses) {
        if (address.text == towards) return address.text;
        if (best == nullptr || rank(address) < rank(*best)) best = &address;
    }
    if (best == nullptr) return std::nullopt;
    return best->text;
}

class Selection {
public:
    Selection(const std::vector<NetDevice>& devices, const InterfaceContext& context)
        : devices_(devices), context_(context) {}

    Result<std::vector<InterfaceChoice>> automatic() const {
        if (!context_.towards.empty() &&
            !(context_.isMultiNode && isLoopbackAddress(context_.towards))) {
            for (const NetDevice& device : devices_) {
                for (const NetAddress& address : device.addresses) {
                    if (address.text != context_.towards) continue;
                    return std::vector<InterfaceChoice>{{device.name, address.text}};
                }
            }
        }
        return best(devices_);
    }

    Result<std::vector<InterfaceChoice>> named(const std::vector<Item>& items) const {
        std::vector<InterfaceChoice> choices;
        for (const Item& item : items) {
            auto found = item.network ? byAddress(item) : byName(item);
            if (found.empty()) return unknown(item);
            for (InterfaceChoice& choice : found) {
                const bool isNew =
                    std::none_of(choices.begin(), choices.end(),
                                 [&](const auto& each) { return each.device == choice.device; });
                if (isNew) choices.push_back(std::move(choice));
            }
        }
        const bool hasLoopback = std::any_of(
            choices.begin(), choices.end(),
            [](const InterfaceChoice& choice) { return isLoopbackAddress(choice.address); });
        if (hasLoopback && context_.isMultiNode) {
            return Status::configuration(
                "the loopback interface cannot reach other nodes; there are " +
                describeInterfaces(devices_));
        }
        return choices;
    }

    Result<std::vector<InterfaceChoice>> withoutNamed(const std::vector<Item>& items) const {
        std::vector<NetDevice> left;
        for (const NetDevice& device : devices_) {
            const bool isExcluded = std::any_of(items.begin(), items.end(), [&](const Item& item) {
                if (!item.network) return matches(item, device.name);
                return std::any_of(device.addresses.begin(), device.addresses.end(),
                                   [&](const NetAddress& address) { return item.names(address); });
            });
            if (!isExcluded) left.push_back(device);
        }
        const Selection rest(left, context_);
        auto choices = rest.automatic();
        if (choices.ok()) return choices;
        return Status::configuration("no interface is left after the exclusion; there are " +
                                     describeInterfaces(devices_));
    }

private:
    static bool matches(const Item& item, const std::string& name) {
        return item.isExact ? name == item.text : name.starts_with(item.text);
    }

    std::vector<InterfaceChoice> byName(const Item& item) const {
        std::vector<InterfaceChoice> exact;
        std::vector<InterfaceChoice> starting;
        for (const NetDevice& device : devices_) {
            const auto address = bestAddress(device, context_.towards);
            if (!address) continue;
            if (device.name == item.text) exact.push_back({device.name, *address});
            if (matches(item, device.name)) starting.push_back({device.name, *address});
        }
        return exact.empty() ? starting : exact;
    }

    std::vector<InterfaceChoice> byAddress(const Item& item) const {
        std::vector<InterfaceChoice> found;
        for (const NetDevice& device : devices_) {
            const auto address =
                std::find_if(device.addresses.begin(), device.addresses.end(),
                             [&](const NetAddress& candidate) { return item.names(candidate); });
            if (address != device.addresses.end()) found.push_back({device.name, address->text});
        }
        return found;
    }

    /// The fastest device with hardware that is up, then any other that is up; by name among
    /// equals.
    Result<std::vector<InterfaceChoice>> best(const std::vector<NetDevice>& devices) const {
        const NetDevice* chosen = nullptr;
        const auto value = [](const NetDevice& device) {
            const std::int64_t speed = device.bitsPerSecond.value;
            return std::pair(device.isLoopback ? 0 : (device.isVirtual ? 1 : 2), speed);
        };
        for (const NetDevice& device : devices) {
            if (!device.isUp || device.addresses.empty()) continue;
            if (device.isLoopback && context_.isMultiNode) continue;
            if (chosen == nullptr || value(device) > value(*chosen)) chosen = &device;
        }
        if (chosen == nullptr) {
            return Status::configuration("no interface that reaches other nodes is up; there are " +
                                         describeInterfaces(devices_));
        }
        return std::vector<InterfaceChoice>{
            {chosen->name, *bestAddress(*chosen, context_.towards)}};
    }

    Status unknown(const Item& item) const {
        for (const NetDevice& device : devices_) {
            if (device.name == item.text) {
                return Status::configuration("interface " + device.name +
                                             " has no address; there are " +
                                             describeInterfaces(devices_));
            }
        }
        return Status::configuration("no interface or address here matches \"" +
                                     std::string(item.text) + "\"; there are " +
                                     describeInterfaces(devices_));
    }

    const std::vector<NetDevice>& devices_;
    const InterfaceContext& context_;
};

}  // namespace

Result<std::vector<InterfaceChoice>> selectInterfaces(const std::vector<NetDevice>& devices,
                                                      std::string_view wish,
                                                      const InterfaceContext& context) {
    const Selection selection(devices, context);
    if (wish.empty()) return selection.automatic();
    const bool isExclusion = wish.starts_with('^');
    if (isExclusion) wish.remove_prefix(1);
    const auto items = readItems(wish);
    if (!items.ok()) return items.status();
    return isExclusion ? selection.withoutNamed(*items) : selection.named(*items);
}

std::string describeInterfaces(const std::vector<NetDevice>& devices) {
    std::string text;
    for (const NetDevice& device : devices) {
        if (!text.empty()) text += ", ";
        text += device.name + " (";
        for (std::size_t i = 0; i < device.addresses.size(); ++i) {
            if (i > 0) text += ", ";
            text += device.addresses[i].text;
        }
        if (device.addresses.empty()) text += "no address";
        text += device.isUp ? ")" : "; down)";
    }
    return text.empty() ? "none" : text;
}

}  // namespace isthmus
