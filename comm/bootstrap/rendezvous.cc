#include "comm/bootstrap/rendezvous.hpp"

#include <algorithm>

#include "comm/base/log.hpp"
#include "comm/bootstrap/exchange.hpp"
#include "comm/bootstrap/port_holder.hpp"
#include "comm/bootstrap/store_file.hpp"
#include "comm/bootstrap/store_memory.hpp"
#include "topology/discover/net_device.hpp"

namespace isthmus {

namespace {

using std::chrono::milliseconds;

/// How long rank 0 waits for an answer at the store's address before it serves there itself; a
/// refusal comes at once, silence means that packets are lost.
constexpr milliseconds kLookLimit{3'000};
constexpr std::string_view kKeyPrefix = "isthmus";

/// One call of meet().
class Meeting {
public:
    Meeting(const LaunchEnvironment& environment, const RendezvousOptions& options)
        : environment_(environment), options_(options), deadline_(deadlineIn(options.limit)) {}

    Result<std::unique_ptr<Rendezvous>> run() {
        auto given = readJobKey(options_.jobKeyDescriptor, options_.jobKeyFile);
        if (!given.ok()) return given.status();
        auto met = std::make_unique<Rendezvous>();
        if (environment_.ranks == 1) {
            met->store = std::make_unique<MemoryStore>();
        } else if (environment_.store.starts_with('/')) {
            auto store = FileStore::open(environment_.store);
            if (!store.ok()) return store.status();
            met->store = std::move(*store);
        } else {
            ISTHMUS_TRY(reachServer(*met, *given));
        }
        if (*given) {
            met->key = **given;
            return met;
        }
        const auto key = agreeOnJobKey(*met->store, kKeyPrefix, environment_.rank, deadline_);
        if (!key.ok()) return key.status();
        met->key = *key;
        return met;
    }

private:
    Status reachServer(Rendezvous& met, const std::optional<JobKey>& given) {
        const auto place = parseHostPort(environment_.store);
        if (!place.ok()) return place.status().within("store");
        const JobKey key = given ? *given : JobKey::derivedFrom(environment_.jobId);
        if (environment_.rank == 0) {
            if (!given && !place->isLocalName()) warnOfOpenStore();
            ISTHMUS_TRY(lookOrServe(met, *place, key));
        }
        if (met.store != nullptr) return {};
        auto store = TcpStore::connect(*place, key, timeLeft(deadline_));
        if (!store.ok()) return explain(store.status(), *place);
        adopt(met, std::move(*store));
        return {};
    }

    /// What the failure to reach the store means to this rank. `isthmus run` serves it itself; else
    /// rank 0 does.
    Status explain(const Status& failure, const HostPort& place) const {
        if (environment_.launcher == Launcher::kIsthmus) return failure;
        if (environment_.rank != 0) {
            const bool isLate = failure.code() == Status::Code::kTimeout;
            return isLate ? Status::timeout(failure.what() + "; rank 0 serves it: is it there?")
                          : failure;
        }
        const std::string holder = place.isLocalName() ? "" : portHolder(place.port);
        if (holder.empty() || failure.code() != Status::Code::kTimeout) return failure;
        return Status::configuration(failure.what() + "; the port is in use by " + holder);
    }

    /// Rank 0's part: starts a store unless the launcher did, whose store is there before any rank.
    Status lookOrServe(Rendezvous& met, const HostPort& place, const JobKey& key) {
        const auto answer = connectTo(place, std::min(deadline_, deadlineIn(kLookLimit)));
        if (answer.ok()) return {};  // the usual way connects, or says who answers there
        if (answer.status().code() != Status::Code::kPeerLost) return answer.status();
        const auto listening = listeningPlaces(place);
        if (!listening.ok()) return listening.status();
        // A launcher's store on another machine may only be slow to reach.
        if (environment_.launcher == Launcher::kIsthmus && !listening->isExact) return {};
        auto server = TcpStoreServer::start(listening->places, key, options_.ports);
        if (!server.ok()) return server.status();
        met.server = std::move(*server);
        auto store = TcpStore::connect(met.server->place(), key, timeLeft(deadline_));
        if (!store.ok()) return store.status();
        adopt(met, std::move(*store));
        return {};
    }

    static void adopt(Rendezvous& met, std::unique_ptr<TcpStore> store) {
        met.localAddress = store->localAddress();
        met.store = std::move(store);
    }

    void warnOfOpenStore() const {
        log(LogLevel::kWarning, "there is no job key (ISTHMUS_JOB_KEY_FILE): whoever reaches " +
                                    environment_.store +
                                    " and knows the job's variables can join this job");
    }

    const LaunchEnvironment& environment_;
    const RendezvousOptions& options_;
    const Deadline deadline_;
};

}  // namespace

Result<std::unique_ptr<Rendezvous>> meet(const LaunchEnvironment& environment,
                                         const RendezvousOptions& options) {
    log(LogLevel::kInfo, environment.explanation);
    ISTHMUS_TRY(checkPorts(options.ports, environment));
    auto met = Meeting(environment, options).run();
    if (met.ok()) return met;
    return met.status().within("rank " + std::to_string(environment.rank) + " of " +
                               std::to_string(environment.ranks) + " cannot meet the others");
}

Status checkPorts(const PortRange& ports, const LaunchEnvironment& environment) {
    const int needed = environment.localRanks;
    if (ports.ports() == 0 || needed <= ports.ports()) return {};
    return Status::configuration("ISTHMUS_PORT_RANGE " + std::to_string(ports.first) + "-" +
                                 std::to_string(ports.last) + " has " +
                                 std::to_string(ports.ports()) + " ports; this job needs " +
                                 std::to_string(needed) + " on this node, one for each rank");
}

Result<ListeningPlaces> listeningPlaces(const HostPort& place) {
    if (place.isLocalName()) return ListeningPlaces{{place}, true};
    const auto meant = numericAddresses(place.host);
    if (!meant.ok()) return meant.status();
    const auto devices = discoverNetDevices();
    if (!devices.ok()) return devices.status();
    ListeningPlaces all{{}, false};
    for (const NetDevice& device : *devices) {
        for (const NetAddress& address : device.addresses) {
            const bool isMeant =
                std::find(meant->begin(), meant->end(), address.text) != meant->end();
            if (isMeant && !device.isLoopback) {
                return ListeningPlaces{{{address.text, place.port}}, true};
            }
            all.places.push_back({address.text, place.port});
        }
    }
    // Written as a number, or by the name that means loopback everywhere, it is meant so.
    const bool isNumber = meant->front() == place.host;
    if (isLoopbackAddress(meant->front()) && (isNumber || place.host == "localhost")) {
        return ListeningPlaces{{{meant->front(), place.port}}, true};
    }
    for (const std::string& address : *meant) {
        const HostPort ours{address, place.port};
        const bool isNew =
            std::find(all.places.begin(), all.places.end(), ours) == all.places.end();
        if (isNew && isLoopbackAddress(address)) all.places.push_back(ours);
    }
    // The first is the one that rank 0 connects to, and so the address that it tells others.
    const auto isReachable = [](const HostPort& ours) {
        return !isLoopbackAddress(ours.host) && ours.host.find('%') == std::string::npos;
    };
    std::stable_partition(all.places.begin(), all.places.end(), isReachable);
    log(LogLevel::kInfo, place.host +
                             " is no address of a network device here: the store listens "
                             "at all addresses");
    return all;
}

}  // namespace isthmus
