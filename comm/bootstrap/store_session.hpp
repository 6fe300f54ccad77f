#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/bootstrap/socket.hpp"
#include "comm/bootstrap/store_wire.hpp"

namespace isthmus {

/// The values of a store's server and the callers that wait for one. No socket, no clock: the loop
/// above brings both.
class StoreTable {
public:
    using Caller = int;

    struct Reply {
        Caller caller;
        StoreAnswer answer;
    };

    /// Serves one request. Replies go to its caller and to whom it woke; no reply to the caller
    /// means that it waits now. A caller asks one thing at a time.
    std::vector<Reply> serve(Caller caller, StoreRequest request, Deadline now);

    /// Replies to callers whose time is over.
    std::vector<Reply> expire(Deadline now);

    /// When expire() has something to do next.
    std::optional<Deadline> nextDeadline() const;

    bool isWaiting(Caller caller) const { return waiting_.count(caller) > 0; }
    void forget(Caller caller) { waiting_.erase(caller); }

private:
    struct Wait {
        std::string key;
        Deadline until;
        std::chrono::milliseconds limit;
    };
    std::vector<Reply> store(Caller caller, StoreRequest request);

    std::map<std::string, Bytes, std::less<>> values_;
    std::map<Caller, Wait> waiting_;
};

/// One connection as the server sees it: bytes in, requests and bytes out. No socket.
class ServerSession {
public:
    ServerSession(const JobKey& key, const StoreInstance& instance, const Nonce& nonce);

    /// Takes received bytes; returns the requests that became whole. A failure means: close this
    /// connection. Before the other end has proved that it knows the key, at most one hello is
    /// kept.
    Result<std::vector<StoreRequest>> feed(std::span<const std::byte> data);

    void answer(const StoreAnswer& answer);

    bool isTrusted() const { return incoming_.has_value(); }

    /// What is to be sent; the loop removes what it could send.
    Bytes& output() { return output_; }

private:
    Status shakeHands();
    Result<std::vector<StoreRequest>> takeFrames();

    JobKey key_;
    StoreInstance instance_;
    Nonce nonce_;
    Bytes received_;
    Bytes output_;
    Bytes clientHello_;
    Bytes serverHello_;
    std::optional<FrameStream> incoming_;
    std::optional<FrameStream> outgoing_;
};

}  // namespace isthmus
