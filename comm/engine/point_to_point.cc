#include "comm/engine/point_to_point.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "comm/engine/engine.hpp"
#include "comm/engine/membership.hpp"

namespace isthmus {

void PointToPoint::submit(std::unique_ptr<PointToPointRequest> request) {
    if (!group_.failure().ok()) {
        request->work->complete(group_.failure());
        return;
    }
    auto transfer = std::make_unique<Transfer>();
    transfer->owner = transfer.get();
    transfer->peer = request->peer;
    transfer->priority = static_cast<std::uint8_t>(request->priority);
    if (request->bytes > 0) transfer->pieces = {{request->buffer, request->bytes}};
    transfer->done = [](Operation& self, const Status& status) {
        auto& mine = static_cast<Transfer&>(self);
        mine.isBack = true;
        mine.outcome = status;
    };
    transfer->request = std::move(request);
    transfers_.push_back(std::move(transfer));
}

// A rank that leaves tells those that it has written to, and those that asked.
void PointToPoint::ask(Rank peer) {
    if (asked_.insert(peer).second) group_.engine().sendAsk(group_, peer);
}

void PointToPoint::bind(Transfer& transfer, Rank peer) {
    const PointToPointRequest& request = *transfer.request;
    transfer.peer = peer;
    transfer.isPosted = true;
    MessageTag& tag = transfer.tag;
    tag.communicator = group_.id();
    tag.pointToPoint = true;
    tag.segment = request.tag;
    tag.sequence = (request.isSend ? sent_ : received_)[{peer, request.tag}]++;
    tag.from = static_cast<std::uint16_t>(request.isSend ? group_.me() : peer);
    tag.to = static_cast<std::uint16_t>(request.isSend ? peer : group_.me());
    Endpoint& endpoint = *group_.member(peer).endpoint;
    transfer.isMet = !request.isSend && endpoint.isAnnounced(tag);
    ask(peer);
    request.isSend ? endpoint.postSend(transfer) : endpoint.postRecv(transfer);
}

bool PointToPoint::bindAnySource(Transfer& transfer) {
    for (Rank peer = 0; peer < group_.ranks(); ++peer) {
        const Endpoint* endpoint = group_.member(peer).endpoint;
        if (endpoint == nullptr) continue;  // messages to myself are met by deliverToSelf
        ask(peer);
        MessageTag tag;
        tag.communicator = group_.id();
        tag.pointToPoint = true;
        tag.segment = transfer.request->tag;
        const auto next = received_.find({peer, tag.segment});
        tag.sequence = next == received_.end() ? 0 : next->second;
        tag.from = static_cast<std::uint16_t>(peer);
        tag.to = static_cast<std::uint16_t>(group_.me());
        if (!endpoint->isAnnounced(tag)) continue;
        bind(transfer, peer);
        return true;
    }
    return false;
}

void PointToPoint::deliverToSelf() {
    for (const auto& receive : transfers_) {
        const Rank from = receive->request->peer;
        if (receive->request->isSend || receive->isPosted || (from != group_.me() && from >= 0))
            continue;
        for (const auto& send : transfers_) {
            const PointToPointRequest& sending = *send->request;
            if (!sending.isSend || send->isPosted || sending.peer != group_.me() ||
                sending.tag != receive->request->tag) {
                continue;
            }
            if (sending.bytes == receive->request->bytes) {
                if (sending.bytes > 0)
                    std::memmove(receive->request->buffer, sending.buffer, sending.bytes);
            } else {
                send->outcome = receive->outcome = Status::mismatch(
                    title(sending) + " to itself sends " + std::to_string(sending.bytes) +
                    " bytes and receives " + std::to_string(receive->request->bytes));
            }
            receive->peer = group_.me();
            send->isPosted = send->isBack = receive->isPosted = receive->isBack = true;
            break;
        }
    }
}

bool PointToPoint::finish(Transfer& transfer) {
    if (!transfer.isBack) return false;
    if (transfer.outcome.code() == Status::Code::kPeerLost && group_.failure().ok()) {
        return false;  // the group fails in a moment, with the root cause
    }
    Work& work = *transfer.request->work;
    if (transfer.isCancelled) {
        group_.engine().finish(work, transfer.outcome);
        return true;
    }
    work.setSource(transfer.peer);
    Status outcome = transfer.outcome;
    if (!outcome.ok() && group_.failure().ok()) {
        group_.fail(Status(outcome.code(),
                           title(*transfer.request) + ": " + group_.nameOf(group_.me()) + " with " +
                               group_.nameOf(transfer.peer) + ": " + outcome.what()));
    }
    if (!outcome.ok()) outcome = group_.failure();
    group_.engine().finish(work, std::move(outcome));
    return true;
}

// When it is certain that the peer, or for any source all of them, will never do their part.
Time PointToPoint::orphanedAt(const Transfer& transfer) const {
    if (transfer.isBack ? transfer.outcome.code() != Status::Code::kPeerLost : transfer.isMet)
        return Time::max();
    if (transfer.peer >= 0) return group_.goneAt(transfer.peer);
    Time last{0};
    for (Rank peer = 0; peer < group_.ranks(); ++peer) {
        if (peer != group_.me()) last = std::max(last, group_.goneAt(peer));
    }
    return group_.ranks() > 1 ? last : Time::max();
}

bool PointToPoint::failOrphan(const Transfer& transfer, Time now) {
    if (now < orphanedAt(transfer)) return false;
    const std::string who = transfer.peer >= 0 ? group_.nameOf(transfer.peer) + " has"
                                               : std::string("all other ranks have");
    group_.fail(Status::peerLost(title(*transfer.request) + ": " + who + " left the communicator"));
    return true;
}

Status PointToPoint::cancel(const Work& work) {
    const auto found = std::find_if(transfers_.begin(), transfers_.end(), [&](const auto& each) {
        return each->request->work.get() == &work;
    });
    if (found == transfers_.end() || (*found)->request->isSend) {
        return Status::invalidArgument(
            "cancel: other ranks count on this call; receives can be cancelled, nothing else");
    }
    Transfer& transfer = **found;
    const std::string name = "cancel: " + title(*transfer.request) + " has begun: ";
    if (transfer.isBack)
        return Status::invalidArgument(name + "its message has arrived, or it has failed");
    if (transfer.isPosted && !withdraw(transfer)) {
        return Status::invalidArgument(
            name + group_.nameOf(transfer.peer) +
            " was offered room for its message, or for that of a later receive with the same tag, "
            "and may be sending it; long receives make the offer as soon as they are posted");
    }
    transfer.isPosted = transfer.isBack = transfer.isCancelled = true;
    transfer.outcome = Status::aborted(title(*transfer.request) + " was cancelled");
    return {};
}

// Later receives of its lane move up by one, since the n-th message meets the n-th of them. One
// that has begun to get its message keeps this one where it is.
bool PointToPoint::withdraw(Transfer& transfer) {
    const auto endpointOf = [this](const Transfer& each) -> Endpoint& {
        return *group_.member(each.peer).endpoint;
    };
    std::vector<Transfer*> taken;
    for (auto it = transfers_.rbegin(); it != transfers_.rend(); ++it) {
        Transfer& each = **it;
        const bool isOfLane = each.isPosted && !each.isBack && !each.request->isSend &&
                              each.peer == transfer.peer &&
                              each.request->tag == transfer.request->tag &&
                              each.tag.sequence >= transfer.tag.sequence;
        if (!isOfLane) continue;
        if (!endpointOf(each).withdraw(each)) {
            for (Transfer* other : taken) endpointOf(*other).postRecv(*other);
            return false;
        }
        taken.push_back(&each);
    }
    received_[{transfer.peer, transfer.request->tag}] = transfer.tag.sequence;
    for (Transfer* each : taken)
        each->isPosted = false;  // progress() binds the rest anew, in order
    return true;
}

bool PointToPoint::progress(Time now) {
    if (transfers_.empty()) return false;
    bool isNews = false;
    const bool isFailed = !group_.failure().ok();
    if (!isFailed) deliverToSelf();
    std::set<std::uint32_t> blocked;  // tags on which an earlier any-source receive still waits
    for (auto it = transfers_.begin(); it != transfers_.end();) {
        Transfer& transfer = **it;
        const PointToPointRequest& request = *transfer.request;
        if (!transfer.isPosted && !isFailed) {
            const bool isReceive = !request.isSend;
            if (isReceive && blocked.contains(request.tag)) {
                // keeps its turn
            } else if (isReceive && request.peer < 0) {
                if (bindAnySource(transfer)) {
                    isNews = true;
                } else {
                    blocked.insert(request.tag);
                }
            } else if (request.peer != group_.me()) {
                bind(transfer, request.peer);
                isNews = true;
            }
        }
        if (isFailed && !transfer.isPosted) {
            transfer.isBack = true;
            transfer.outcome = group_.failure();
        }
        if (!isFailed && failOrphan(transfer, now)) return true;
        if (!transfer.isBack && !isFailed && now >= request.deadline) {
            const bool isSilent = transfer.peer >= 0 && group_.isSilent(transfer.peer, now);
            group_.fail(
                Status::timeout(title(request) + ": " + group_.nameOf(group_.me()) +
                                " gave up on " + group_.nameOf(transfer.peer) +
                                (isSilent ? " which does not answer after " : " after ") +
                                std::to_string(request.limit / std::chrono::milliseconds(1)) +
                                " ms, " + std::to_string(transfer.moved) + " of " +
                                std::to_string(request.bytes) + " bytes done"));
            return true;
        }
        if (finish(transfer)) {
            it = transfers_.erase(it);
            isNews = true;
            if (!isFailed && !group_.failure().ok()) return true;
        } else {
            ++it;
        }
    }
    return isNews;
}

Time PointToPoint::nextDeadline() const {
    Time next = Time::max();
    for (const auto& transfer : transfers_) {
        next = std::min({next, transfer->request->deadline, orphanedAt(*transfer)});
    }
    return next;
}

std::vector<Rank> PointToPoint::awaited() const {
    std::vector<Rank> ranks;
    for (const auto& transfer : transfers_) {
        const bool isUnderWay = transfer->isPosted && !transfer->isBack;
        if (isUnderWay && transfer->peer != group_.me()) ranks.push_back(transfer->peer);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
}

void PointToPoint::fail(const Status& why) {
    for (const auto& transfer : transfers_) {
        if (transfer->isPosted || transfer->isBack) continue;
        transfer->isBack = true;
        transfer->outcome = why;
    }
}

std::string PointToPoint::unfinished() const {
    const Transfer& first = *transfers_.front();
    return title(*first.request) + (first.request->isSend ? " to " : " from ") +
           group_.nameOf(first.peer);
}

std::string PointToPoint::title(const PointToPointRequest& request) const {
    std::string text = request.isSend ? "send" : "recv";
    text += " tag " + std::to_string(request.tag) + " on \"" + group_.name() + "\"";
    if (!request.name.empty()) text += " named \"" + request.name + "\"";
    return text;
}

}  // namespace isthmus
