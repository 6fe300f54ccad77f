#include "comm/bootstrap/unique_id.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "comm/base/bytes.hpp"
#include "comm/base/log.hpp"
#include "comm/bootstrap/socket.hpp"
#include "comm/bootstrap/store_tcp.hpp"
#include "topology/discover/net_device.hpp"
#include "topology/discover/select_interface.hpp"

namespace isthmus {

namespace {

using std::chrono::milliseconds;

// Layout: magic 8, key 32, port 2, IPv4 addresses 1, IPv6 addresses 1, then 4 and 16 bytes each.
constexpr std::string_view kMagic = "ISTHMID1";
constexpr std::size_t kKeyAt = kMagic.size();
constexpr std::size_t kPortAt = kKeyAt + JobKey::kBytes;
constexpr std::size_t kCountsAt = kPortAt + 2;
constexpr std::size_t kAddressesAt = kCountsAt + 2;
constexpr std::size_t kIpv4Bytes = 4;
constexpr std::size_t kIpv6Bytes = 16;
static_assert(kAddressesAt + UniqueId::kMostAddresses * kIpv6Bytes <=
              UniqueId::kBytes + kIpv4Bytes);

constexpr milliseconds kFirstTry{500};
constexpr milliseconds kLongestTry{8'000};
constexpr milliseconds kReportEvery{10'000};

bool isIpv6(const std::string& address) {
    return address.find(':') != std::string::npos;
}

/// Whether an address can stand in an id: link-local ones need a device's name, which differs
/// between nodes.
bool canBeTold(const NetAddress& address) {
    return !address.isLinkLocal;
}

std::vector<std::string> addressesOf(const std::vector<NetDevice>& devices) {
    std::vector<std::string> addresses;
    for (const bool wantsLoopback : {false, true}) {
        for (const bool wantsIpv6 : {false, true}) {
            for (const NetDevice& device : devices) {
                if (!device.isUp || device.isLoopback != wantsLoopback) continue;
                for (const NetAddress& address : device.addresses) {
                    if (address.isIpv6 != wantsIpv6 || !canBeTold(address)) continue;
                    addresses.push_back(address.text);
                }
            }
        }
    }
    return addresses;
}

/// Drops what does not fit the id, from the end but for the last, which is loopback's.
void shorten(std::vector<std::string>& addresses) {
    const auto bytes = [&] {
        std::size_t sum = 0;
        for (const auto& address : addresses) sum += isIpv6(address) ? kIpv6Bytes : kIpv4Bytes;
        return sum;
    };
    while (addresses.size() > UniqueId::kMostAddresses ||
           kAddressesAt + bytes() > UniqueId::kBytes) {
        addresses.erase(addresses.end() - (addresses.size() > 1 ? 2 : 1));
    }
}

/// Keeps the server of an id until its ranks have come and gone, or the process ends. A rank holds
/// its connection until the last one has joined, so nobody comes late.
void keep(std::unique_ptr<TcpStoreServer> server) {
    static std::mutex mutex;
    // Never destroyed: ending threads while the process exits would race with their users.
    static auto* const servers = new std::vector<std::unique_ptr<TcpStoreServer>>;
    const std::lock_guard lock(mutex);
    std::erase_if(*servers, [](const auto& each) { return each->isAbandoned(); });
    servers->push_back(std::move(server));
}

}  // namespace

std::array<std::byte, UniqueId::kBytes> UniqueId::bytes() const {
    std::array<std::byte, kBytes> raw{};
    std::memcpy(raw.data(), kMagic.data(), kMagic.size());
    std::memcpy(raw.data() + kKeyAt, key.bytes.data(), key.bytes.size());
    std::memcpy(raw.data() + kPortAt, &port, sizeof port);
    std::size_t at = kAddressesAt;
    for (const bool wantsIpv6 : {false, true}) {
        for (const std::string& address : addresses) {
            const std::size_t width = wantsIpv6 ? kIpv6Bytes : kIpv4Bytes;
            if (isIpv6(address) != wantsIpv6 || at + width > kBytes) continue;
            const int family = wantsIpv6 ? AF_INET6 : AF_INET;
            if (::inet_pton(family, address.c_str(), raw.data() + at) != 1) continue;
            at += width;
            auto& count = raw[kCountsAt + (wantsIpv6 ? 1 : 0)];
            count = static_cast<std::byte>(std::to_integer<int>(count) + 1);
        }
    }
    return raw;
}

Result<UniqueId> UniqueId::from(std::span<const std::byte, kBytes> raw) {
    const auto wrong = [] {
        return Status::invalidArgument(
            "this is no unique id: it must come from isthmusGetUniqueId on one rank");
    };
    if (std::memcmp(raw.data(), kMagic.data(), kMagic.size()) != 0) return wrong();
    UniqueId id;
    std::memcpy(id.key.bytes.data(), raw.data() + kKeyAt, id.key.bytes.size());
    std::memcpy(&id.port, raw.data() + kPortAt, sizeof id.port);
    std::size_t at = kAddressesAt;
    for (const bool areIpv6 : {false, true}) {
        const std::size_t width = areIpv6 ? kIpv6Bytes : kIpv4Bytes;
        const auto count = std::to_integer<std::size_t>(raw[kCountsAt + (areIpv6 ? 1 : 0)]);
        if (at + count * width > kBytes) return wrong();
        for (std::size_t i = 0; i < count; ++i, at += width) {
            char text[INET6_ADDRSTRLEN];
            ::inet_ntop(areIpv6 ? AF_INET6 : AF_INET, raw.data() + at, text, sizeof text);
            id.addresses.emplace_back(text);
        }
    }
    if (id.addresses.empty() || id.port == 0) return wrong();
    // Loopback answers at once on the maker's node, and may be somebody else's elsewhere: last.
    std::stable_partition(id.addresses.begin(), id.addresses.end(),
                          [](const std::string& address) { return !isLoopbackAddress(address); });
    return id;
}

Result<UniqueId> makeUniqueId(std::string_view interfaces, PortRange ports) {
    const auto devices = discoverNetDevices();
    if (!devices.ok()) return devices.status();
    UniqueId id;
    if (interfaces.empty()) {
        id.addresses = addressesOf(*devices);
    } else {
        const auto choices = selectInterfaces(*devices, interfaces, {});
        if (!choices.ok()) return choices.status();
        for (const InterfaceChoice& choice : *choices) {
            if (choice.address.find('%') == std::string::npos) {
                id.addresses.push_back(choice.address);
            }
        }
    }
    if (id.addresses.empty()) {
        return Status::configuration("no address to be found at; there are " +
                                     describeInterfaces(*devices));
    }
    shorten(id.addresses);
    const auto key = JobKey::random();
    if (!key.ok()) return key.status();
    id.key = *key;
    std::vector<HostPort> places;
    for (const std::string& address : id.addresses) places.push_back({address, 0});
    auto server = TcpStoreServer::start(places, id.key, ports);
    if (!server.ok()) return server.status();
    id.port = (*server)->place().port;
    keep(std::move(*server));
    return id;
}

/// Rounds over all addresses, each round more patient: an address that drops packets must not hold
/// up the one that answers, and a slow network must not be given up.
Result<UniqueIdStore> connectTo(const UniqueId& id, milliseconds limit) {
    const auto deadline = deadlineIn(limit);
    auto nextReport = std::chrono::steady_clock::now() + kReportEvery;
    Status last = Status::timeout("no time to connect");
    for (milliseconds patience = kFirstTry;; patience = std::min(patience * 2, kLongestTry)) {
        for (const std::string& address : id.addresses) {
            const auto left = std::min(patience, timeLeft(deadline));
            auto store = TcpStore::connect({address, id.port}, id.key, left);
            if (store.ok()) {
                std::string ours = (*store)->localAddress();
                return UniqueIdStore{std::move(*store), std::move(ours)};
            }
            last = store.status();
        }
        if (std::chrono::steady_clock::now() >= nextReport) {
            log(LogLevel::kWarning, "waiting for the maker of the unique id (" +
                                        std::to_string(timeLeft(deadline).count() / 1000) +
                                        " s left): " + last.what());
            nextReport = std::chrono::steady_clock::now() + kReportEvery;
        }
        if (timeLeft(deadline).count() > 0) continue;
        return Status::timeout("waited " + std::to_string(limit.count()) +
                               " ms for the maker of the unique id, " + last.what());
    }
}

}  // namespace isthmus
