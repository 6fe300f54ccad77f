#pragma once

#include <vector>

#include "comm/transport/tcp/tcp_bundle.hpp"

namespace isthmus {

/// One peer over TCP: connections made here for what goes out, as many made there for what comes
/// in; one for each pair of cards.
class TcpLink final : public Carrier {
public:
    /// `ways`: one address of the peer for each of our cards that is used towards it, in their
    /// order.
    TcpLink(TcpShared& shared, const ProcessId& peer, std::vector<TcpAddress> ways,
            std::uint32_t peerPid);
    ~TcpLink() override;

    std::string_view transportName() const override { return "tcp"; }
    std::string describe() const override { return name_; }
    void connect() override;
    Endpoint::MappedArena mapped() const override { return {}; }
    void ringDoorbell() override {}

    FrameEndpoint& endpoint() { return endpoint_; }
    /// False: there is one already.
    bool takeIncoming(UniqueFd fd);
    void happened(const TcpSocket& socket, std::uint32_t events);
    int progress(Time now);
    void count(std::vector<CardCounters>& cards) const {
        out_.count(cards);
        in_.count(cards);
    }
    bool hasWork() const;
    bool isExpecting() const { return !endpoint_.isGone() && endpoint_.isExpecting(); }
    /// How soon progress() must run again; Time::max(): when something arrives.
    Time lookWithin() const { return out_.lookWithin(); }
    bool isHolding() const { return isBroken_; }

    /// False when there is nothing left to push out, or no way to.
    bool flush();
    /// Says goodbye on both connections and closes them.
    void leave();

private:
    void opened(std::size_t lane, Result<UniqueFd> socket);
    void outgoingHappened(std::size_t lane, std::uint32_t events);
    void broke(const Status& why);
    std::size_t write();
    std::size_t read();
    bool isOpen() const { return endpoint_.state() == Endpoint::State::kOpen; }

    TcpShared& shared_;
    const ProcessId peer_;
    const std::vector<TcpAddress> ways_;
    const std::string name_;
    TcpBundleOut out_;
    TcpBundleIn in_;
    FrameEndpoint endpoint_;
    bool isBroken_ = false;  // the last outgoing connection ended
    Time brokenSince_{0};    // zero: not looked at yet
    Status brokenWhy_;
    bool saidBye_ = false;  // the peer did, on our outgoing connection
};

}  // namespace isthmus
