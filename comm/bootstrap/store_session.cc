#include "comm/bootstrap/store_session.hpp"

#include "comm/base/assert.hpp"
#include "comm/base/bytes.hpp"
#include "comm/bootstrap/store_memory.hpp"

namespace isthmus {

namespace {

/// More keys than any job writes; a runaway loop of a rank ends here and not at the memory's end.
constexpr std::size_t kMostKeys = 128 * 1024;

StoreAnswer answerOf(const Status& status) {
    return {status.code(), toBytes(status.what())};
}

}  // namespace

std::vector<StoreTable::Reply> StoreTable::serve(Caller caller, StoreRequest request,
                                                 Deadline now) {
    const auto found = values_.find(request.key);
    const bool isThere = found != values_.end();
    switch (request.verb) {
    case StoreVerb::kSet:
        return store(caller, std::move(request));
    case StoreVerb::kHas:
        return {{caller, {Status::Code::kOk, {isThere ? std::byte{1} : std::byte{0}}}}};
    case StoreVerb::kErase:
        if (isThere) values_.erase(found);
        return {{caller, {}}};
    case StoreVerb::kGet:
        break;
    }
    if (isThere) return {{caller, {Status::Code::kOk, found->second}}};
    const std::chrono::milliseconds limit(request.limitMilliseconds);
    if (limit.count() == 0) return {{caller, answerOf(nobodyWrote(request.key, limit))}};
    waiting_.insert_or_assign(caller, Wait{std::move(request.key), now + limit, limit});
    return {};
}

std::vector<StoreTable::Reply> StoreTable::store(Caller caller, StoreRequest request) {
    const auto found = values_.find(request.key);
    if (found != values_.end()) {
        const bool isSame = found->second == request.value;
        return {{caller, isSame ? StoreAnswer{} : answerOf(heldByOthers(request.key))}};
    }
    if (values_.size() >= kMostKeys) {
        return {{caller, answerOf(Status::resource("the store holds " + std::to_string(kMostKeys) +
                                                   " keys, the most it takes"))}};
    }
    std::vector<Reply> replies{{caller, {}}};
    for (auto wait = waiting_.begin(); wait != waiting_.end();) {
        if (wait->second.key != request.key) {
            ++wait;
            continue;
        }
        replies.push_back({wait->first, {Status::Code::kOk, request.value}});
        wait = waiting_.erase(wait);
    }
    values_.emplace(std::move(request.key), std::move(request.value));
    return replies;
}

std::vector<StoreTable::Reply> StoreTable::expire(Deadline now) {
    std::vector<Reply> replies;
    for (auto wait = waiting_.begin(); wait != waiting_.end();) {
        if (wait->second.until > now) {
            ++wait;
            continue;
        }
        const Status late = nobodyWrote(wait->second.key, wait->second.limit);
        replies.push_back({wait->first, answerOf(late)});
        wait = waiting_.erase(wait);
    }
    return replies;
}

std::optional<Deadline> StoreTable::nextDeadline() const {
    std::optional<Deadline> next;
    for (const auto& [caller, wait] : waiting_) {
        if (!next || wait.until < *next) next = wait.until;
    }
    return next;
}

ServerSession::ServerSession(const JobKey& key, const StoreInstance& instance, const Nonce& nonce)
    : key_(key), instance_(instance), nonce_(nonce) {}

Result<std::vector<StoreRequest>> ServerSession::feed(std::span<const std::byte> data) {
    append(received_, data);
    if (!isTrusted()) ISTHMUS_TRY(shakeHands());
    if (!isTrusted()) return std::vector<StoreRequest>();
    return takeFrames();
}

Status ServerSession::shakeHands() {
    const auto take = [this](std::size_t bytes) {
        const auto end = received_.begin() + static_cast<std::ptrdiff_t>(bytes);
        Bytes taken(received_.begin(), end);
        received_.erase(received_.begin(), end);
        return taken;
    };
    if (clientHello_.empty()) {
        if (!mayBeClientHello(received_)) return Status::mismatch("not a client of a store");
        if (received_.size() < kClientHelloBytes) return {};
        clientHello_ = take(kClientHelloBytes);
        ISTHMUS_TRY(checkClientHello(clientHello_));
        serverHello_ = serverHello(key_, instance_, nonce_, clientHello_);
        append(output_, serverHello_);
    }
    if (received_.size() < sizeof(Mac)) return {};
    const Mac expected = clientProof(key_, clientHello_, serverHello_);
    if (!isEqualInConstantTime(take(sizeof(Mac)), expected)) {
        return Status::configuration("the job key differs");
    }
    incoming_.emplace(key_, expected, Side::kClient);
    outgoing_.emplace(key_, expected, Side::kServer);
    return {};
}

Result<std::vector<StoreRequest>> ServerSession::takeFrames() {
    std::vector<StoreRequest> requests;
    std::size_t taken = 0;
    for (;;) {
        const auto opened = incoming_->open(std::span(received_).subspan(taken));
        if (!opened.ok()) return opened.status();
        if (!opened->has_value()) break;
        auto request = decodeStoreRequest((*opened)->body);
        if (!request.ok()) return request.status();
        requests.push_back(std::move(*request));
        taken += (*opened)->taken;
    }
    received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(taken));
    return requests;
}

void ServerSession::answer(const StoreAnswer& answer) {
    ISTHMUS_ASSERT(outgoing_.has_value());
    const Bytes frame = outgoing_->seal(encode(answer));
    append(output_, frame);
}

}  // namespace isthmus
