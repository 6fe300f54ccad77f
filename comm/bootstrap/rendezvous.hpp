#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <isthmus/store.hpp>

#include "comm/bootstrap/host_port.hpp"
#include "comm/bootstrap/job_key.hpp"
#include "comm/bootstrap/launch_environment.hpp"
#include "comm/bootstrap/store_tcp.hpp"

namespace isthmus {

/// Where the ranks of a job met. Rank 0 may serve the store from its own process: keep this until
/// no rank needs the store any more, at best until the process ends.
struct Rendezvous {
    std::unique_ptr<TcpStoreServer> server;  ///< where this process serves it
    std::unique_ptr<Store> store;
    JobKey key;                ///< what authenticates all connections of the job
    std::string localAddress;  ///< ours on the way to the store; empty on one node
};

struct RendezvousOptions {
    std::string jobKeyDescriptor;  ///< ISTHMUS_JOB_KEY_FD
    std::string jobKeyFile;        ///< ISTHMUS_JOB_KEY_FILE
    PortRange ports;               ///< ISTHMUS_PORT_RANGE
    std::chrono::milliseconds limit{300'000};
};

/// Connects this rank to the others' store. Rank 0 starts it, unless the launcher did. Blocks until
/// the store is there, at most `limit`.
/// Without a job key: on one node the kernel vouches for the user behind every connection, and rank
/// 0 hands a random key out through the store; between nodes the key is made from the job's id,
/// which keeps jobs apart but keeps nobody out who knows the id: rank 0 warns.
Result<std::unique_ptr<Rendezvous>> meet(const LaunchEnvironment& environment,
                                         const RendezvousOptions& options);

/// Every rank listens at a port of its own. kConfiguration, alike on all ranks of this node, when a
/// range has fewer.
Status checkPorts(const PortRange& ports, const LaunchEnvironment& environment);

/// Where a server that others know as `place` should listen.
struct ListeningPlaces {
    std::vector<HostPort> places;
    /// True when `place` is one of our addresses. False when its name means loopback here (but
    /// perhaps not elsewhere) or no address of ours (but perhaps one that is translated): then the
    /// places are all our addresses.
    bool isExact = true;
};
Result<ListeningPlaces> listeningPlaces(const HostPort& place);

}  // namespace isthmus
