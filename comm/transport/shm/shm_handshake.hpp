#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/base/sleep_set.hpp"
#include "comm/base/unique_fd.hpp"
#include "comm/transport/negotiate.hpp"

namespace isthmus {

/// What the connecting side gives with its proof, and the descriptor of its arena beside it.
struct ShmOffer {
    std::uint64_t ringOffset = 0;  ///< in that arena: the ring it will write to
    std::uint64_t pageOffset = 0;  ///< in that arena: its ShmPage
};

/// Connects to a peer's socket, proves the key, and hands over this process's arena.
class ShmConnect {
public:
    ShmConnect(const JobKey& key, const ProcessId& self, const ProcessId& peer,
               std::string socketName, const ShmOffer& offer, int arenaFd, SleepSet& sleepSet,
               Time limit);
    ~ShmConnect();
    ShmConnect(const ShmConnect&) = delete;
    ShmConnect& operator=(const ShmConnect&) = delete;

    /// None: not yet. The socket is in the SleepSet.
    std::optional<Result<UniqueFd>> poll(Time now);

private:
    Status dial();
    Result<bool> readAnswer();
    Status sendProof();

    const std::string socketName_;
    const ShmOffer offer_;
    const int arenaFd_;
    SleepSet& sleepSet_;
    const Time limit_;
    Time deadline_ = Time::max();  // limit_ after the first poll
    NegotiateConnector negotiation_;
    UniqueFd socket_;
    Answer answer_{};
    std::size_t answered_ = 0;
};

/// Somebody who connected to this process's socket.
class ShmAccept {
public:
    struct Guest {
        ProcessId peer;
        UniqueFd socket;
        UniqueFd arena;
        ShmOffer offer;
    };

    ShmAccept(const JobKey& key, const ProcessId& self, UniqueFd socket, SleepSet& sleepSet,
              Time limit);
    ~ShmAccept();
    ShmAccept(const ShmAccept&) = delete;
    ShmAccept& operator=(const ShmAccept&) = delete;

    /// None: not yet. A failure says why it was turned away.
    std::optional<Result<std::unique_ptr<Guest>>> poll(Time now);

private:
    Result<bool> readHello();
    Result<bool> readProof();

    SleepSet& sleepSet_;
    const Time limit_;
    Time deadline_ = Time::max();  // limit_ after the first poll
    NegotiateAcceptor negotiation_;
    UniqueFd socket_;
    UniqueFd arena_;
    Hello hello_{};
    std::array<std::byte, kProofBytes + sizeof(ShmOffer)> last_{};
    std::size_t got_ = 0;
    bool isAnswered_ = false;
};

}  // namespace isthmus
