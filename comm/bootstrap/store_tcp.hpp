#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <isthmus/store.hpp>

#include "comm/bootstrap/host_port.hpp"
#include "comm/bootstrap/job_key.hpp"
#include "comm/bootstrap/socket.hpp"
#include "comm/bootstrap/store_wire.hpp"

namespace isthmus {

/// Serves a Store to the ranks of one job from a thread of its own; rank 0 or the launcher starts
/// it. Nothing that a stranger sends does more than close that stranger's connection.
class TcpStoreServer {
public:
    /// Listens at every place of `places` (at least one). A port of 0 is chosen at the first place,
    /// from `range`, and used at the others too. Places of addresses that this machine does not
    /// have are left out while any other remains; else kInvalidArgument. kConfiguration where a
    /// port cannot be had.
    static Result<std::unique_ptr<TcpStoreServer>> start(const std::vector<HostPort>& places,
                                                         const JobKey& key, PortRange range = {});
    static Result<std::unique_ptr<TcpStoreServer>> start(const HostPort& place, const JobKey& key,
                                                         PortRange range = {});

    /// Closes all connections and ends the thread.
    ~TcpStoreServer();
    TcpStoreServer(const TcpStoreServer&) = delete;
    TcpStoreServer& operator=(const TcpStoreServer&) = delete;

    /// Where clients connect, with the port that was chosen.
    const std::vector<HostPort>& places() const { return places_; }
    const HostPort& place() const { return places_.front(); }

    /// Clients that proved the key were here, and the last one has gone. Any thread.
    bool isAbandoned() const;

private:
    class Loop;
    TcpStoreServer(std::vector<HostPort> places, std::unique_ptr<Loop> loop);

    std::vector<HostPort> places_;
    std::unique_ptr<Loop> loop_;
};

/// The Store behind a TcpStoreServer. Calls that overlap use a connection each, so a get that waits
/// holds up nobody.
class TcpStore final : public Store {
public:
    /// Connects, again and again until `limit`: the server may start later. Says every 10 s what it
    /// waits for. kTimeout at the limit; kConfiguration at once when another service answers or the
    /// job key differs.
    static Result<std::unique_ptr<TcpStore>> connect(const HostPort& place, const JobKey& key,
                                                     std::chrono::milliseconds limit);

    ~TcpStore() override;

    /// kPeerLost when the server is gone, or was started anew and has lost its values.
    Status set(std::string_view key, const Bytes& value) override;
    Result<Bytes> get(std::string_view key, std::chrono::milliseconds limit) override;
    Result<bool> has(std::string_view key) override;
    Status erase(std::string_view key) override;

    /// Our address as the way to the server shows it (empty for a local name): the one to tell
    /// others, unlike whatever our host name resolves to.
    const std::string& localAddress() const { return localAddress_; }
    const HostPort& place() const { return place_; }

private:
    struct Connection;
    TcpStore(HostPort place, const JobKey& key);

    Result<std::unique_ptr<Connection>> open(Deadline deadline);
    Result<std::unique_ptr<Connection>> openWithin(Deadline deadline, std::string_view why);
    Result<std::unique_ptr<Connection>> take();
    Result<StoreAnswer> ask(const StoreRequest& request, std::chrono::milliseconds limit);

    const HostPort place_;
    const JobKey key_;
    std::string localAddress_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Connection>> idle_;  // under mutex_
    std::optional<StoreInstance> instance_;          // under mutex_
};

}  // namespace isthmus
