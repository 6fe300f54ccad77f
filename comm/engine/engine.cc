#include "comm/engine/engine.hpp"

#include <algorithm>

#include "comm/base/assert.hpp"
#include "comm/base/bytes.hpp"

namespace isthmus {

namespace {

// News about communicators that this process has not made yet: more than this is not ours.
constexpr std::size_t kMostEarlyNews = 4096;

// Communicators that this process has left, whose number it still knows: for peers that ask late.
constexpr std::size_t kMostLeft = 4096;

enum class Control : std::uint8_t {
    kVerdict = 1,
    kProbe = 2,
    kAnswer = 3,
    kLeave = 4,
    kAsk = 5,  ///< answered by kLeave, now or when it happens
};

// Verdict texts travel in one control message of at most 4096 bytes.
constexpr std::size_t kMostText = 3500;

Bytes numberMessage(Control kind, std::uint64_t group, Rank me, std::uint64_t number) {
    ByteWriter writer;
    writer.put(static_cast<std::uint8_t>(kind)).put(group);
    writer.put(static_cast<std::uint32_t>(me)).put(number);
    return writer.take();
}

// A communicator that is not made yet hears later of all but what it never asked. One that was left
// is asked about only: to a goodbye there is no answer, or two would say goodbye for ever.
bool isNewsOfUnknown(Control kind, bool wasLeft) {
    if (wasLeft) return kind == Control::kProbe || kind == Control::kAsk;
    return kind != Control::kAnswer;
}

}  // namespace

Engine::Engine(EngineConfig config) : config_(std::move(config)) {
    ISTHMUS_ASSERT(config_.clock != nullptr && config_.arena != nullptr);
    watchForks();
    scratchPool_ = std::make_unique<ScratchPool>(*config_.arena, config_.scratchBytes);
    if (config_.hasThread) progress_ = std::thread([this] { progressLoop(); });
}

Engine::~Engine() {
    if (isForked()) {
        if (progress_.joinable()) progress_.detach();  // it does not exist in the child
        return;
    }
    isStopping_.store(true);
    sleepSet_.wake();
    nudge();
    if (progress_.joinable()) progress_.join();
    transports_.clear();
}

void Engine::addTransport(std::unique_ptr<Transport> transport) {
    withToken([&] { transports_.push_back(std::move(transport)); });
}

void Engine::submit(std::function<void()> run) {
    auto* task = new Task{std::move(run)};
    submitted_.push(task);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in arm()
    if (isAsleep_.load(std::memory_order_relaxed)) sleepSet_.wake();
    if (token_.isMine() || !token_.tryTake()) return;  // the owner takes it at its next step
    take();
    step();
    release();
}

void Engine::takeSubmitted() {
    Task* task = submitted_.takeAll();
    while (task != nullptr) {
        const std::unique_ptr<Task> mine(task);
        task = task->nextQueued;
        mine->run();
    }
    token_.tellSleepers();
}

bool Engine::step() {
    if (isClosed_) return false;
    ++counters_.steps;
    bool isNews = false;
    if (!submitted_.isEmpty()) {
        takeSubmitted();
        isNews = true;
    }
    lookedAt_ = steppedAt_ = now();
    for (const auto& transport : transports_) isNews |= transport->progress(steppedAt_) > 0;
    isNews |= moveGroups(true);
    if (!leaving_.empty()) forget();
    return isNews;
}

// Not `all`: those for which something has come.
bool Engine::moveGroups(bool all) {
    bool isNews = false;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        if (!all && !groups_[i]->mayMove()) continue;
        isNews |= groups_[i]->progress(lookedAt_);
        groups_[i]->refreshIdle();
    }
    return isNews;
}

void Engine::add(Membership& group) {
    groups_.push_back(&group);
    groupsById_[group.id()] = &group;
    for (auto it = early_.begin(); it != early_.end();) {
        if (it->group != group.id()) {
            ++it;
            continue;
        }
        it->tell(group);
        it = early_.erase(it);
    }
    // Losses before this moment were told to the groups that there were.
    for (Rank rank = 0; rank < group.ranks(); ++rank) {
        Endpoint* const endpoint = group.member(rank).endpoint;
        if (endpoint == nullptr) continue;
        const auto state = endpoint->state();
        if (state == Endpoint::State::kLost || state == Endpoint::State::kLeft)
            group.lost(*endpoint, Status::peerLost(endpoint->describe() + " is gone"), now());
    }
}

void Engine::retire(std::unique_ptr<Membership> group) {
    group->leave();
    leaving_.push_back(std::move(group));
    forget();
}

void Engine::forget() {
    std::erase_if(leaving_, [this](const std::unique_ptr<Membership>& group) {
        if (!group->isForgotten()) return false;
        groups_.erase(std::find(groups_.begin(), groups_.end(), group.get()));
        groupsById_.erase(group->id());
        if (left_.insert({group->id(), {group->me(), group->finished()}}).second)
            leftInOrder_.push_back(group->id());
        if (leftInOrder_.size() > kMostLeft) {
            left_.erase(leftInOrder_.front());
            leftInOrder_.pop_front();
        }
        return true;
    });
}

void Engine::finish(Work& work, Status status) {
    ++(isProgressDriving_ ? counters_.finishedByProgress : counters_.finishedByCaller);
    work.complete(std::move(status));
    token_.tellSleepers();
}

std::uint64_t Engine::mappedOffset(const std::byte* buffer, std::size_t bytes) const {
    const auto offset = config_.arena->offsetOf(buffer, bytes);
    return offset.has_value() ? *offset : kNotMapped;
}

WireCounters Engine::wireCounters() const {
    WireCounters sum;
    for (const Endpoint* endpoint : betweenNodes_) {
        const WireCounters one = endpoint->counters();
        sum.sentPayload += one.sentPayload;
        sum.receivedPayload += one.receivedPayload;
        sum.sentTotal += one.sentTotal;
        sum.receivedTotal += one.receivedTotal;
    }
    return sum;
}

StepOperation* Engine::takeOperation() {
    if (freeOperations_.empty()) {
        operations_.push_back(std::make_unique<StepOperation>());
        return operations_.back().get();
    }
    StepOperation* operation = freeOperations_.back();
    freeOperations_.pop_back();
    return operation;
}

Membership* Engine::groupOf(std::uint64_t id) {
    const auto it = groupsById_.find(id);
    return it == groupsById_.end() ? nullptr : it->second;
}

// News of a communicator that this process has not made yet, or has left already.
void Engine::keepNews(Endpoint& from, std::uint64_t id, std::function<void(Membership&)> tell) {
    if (const auto it = left_.find(id); it != left_.end()) {
        const auto& [me, finished] = it->second;
        from.sendControl(numberMessage(Control::kLeave, id, me, finished));
        from.ringDoorbell();
        return;
    }
    if (early_.size() == kMostEarlyNews) early_.pop_front();
    early_.push_back({id, std::move(tell)});
}

void Engine::announced(Endpoint& from, const MessageTag& tag, const CallFingerprint& fingerprint,
                       std::uint64_t bytes) {
    if (tag.channel == kWireUpChannel) return;
    const auto tell = [tag, fingerprint, bytes](Membership& group) {
        // The receiver's readiness has the message's tag.
        const Rank peer = tag.from == group.me() ? tag.to : tag.from;
        if (peer < group.ranks()) group.announced(peer, tag, fingerprint, bytes);
    };
    if (Membership* group = groupOf(tag.communicator)) {
        tell(*group);
    } else {
        keepNews(from, tag.communicator, tell);
    }
}

void Engine::control(Endpoint& sender, std::span<const std::byte> message) {
    ByteReader reader(message);
    const auto kind = reader.get<std::uint8_t>();
    const auto id = reader.get<std::uint64_t>();
    const auto from = static_cast<Rank>(reader.get<std::uint32_t>());
    std::function<void(Membership&)> tell;
    if (kind == static_cast<std::uint8_t>(Control::kVerdict)) {
        const auto finished = reader.get<std::uint64_t>();
        const auto code = static_cast<Status::Code>(reader.get<std::uint8_t>());
        tell = [from, finished, verdict = Status(code, reader.getText())](Membership& g) {
            g.told(from, verdict, finished);
        };
    } else if (kind == static_cast<std::uint8_t>(Control::kProbe)) {
        const auto sequence = reader.get<std::uint64_t>();
        CallFingerprint print;
        print.collective = reader.get<std::uint8_t>();
        print.type = reader.get<std::uint8_t>();
        print.op = reader.get<std::uint8_t>();
        print.flags = reader.get<std::uint8_t>();
        print.root = reader.get<std::int32_t>();
        print.elements = reader.get<std::uint64_t>();
        print.planDigest = reader.get<std::uint64_t>();
        const auto wanted = reader.get<std::uint64_t>();
        tell = [from, sequence, print, wanted](Membership& g) {
            g.probed(from, sequence, print, wanted);
        };
    } else if (kind == static_cast<std::uint8_t>(Control::kAnswer)) {
        const auto entered = reader.get<std::uint64_t>();
        const bool isInside = reader.get<std::uint8_t>() != 0;
        tell = [from, entered, isInside](Membership& g) { g.answered(from, entered, isInside); };
    } else if (kind == static_cast<std::uint8_t>(Control::kLeave)) {
        const auto finished = reader.get<std::uint64_t>();
        tell = [from, finished](Membership& g) { g.left(from, finished); };
    } else if (kind == static_cast<std::uint8_t>(Control::kAsk)) {
        tell = [from](Membership& g) { g.asked(from); };
    }
    if (!reader.ok() || !tell) return;  // bytes of another version: nothing that we must understand
    if (Membership* group = groupOf(id)) {
        if (from >= 0 && from < group->ranks()) tell(*group);
    } else if (isNewsOfUnknown(static_cast<Control>(kind), left_.contains(id))) {
        keepNews(sender, id, std::move(tell));
    }
}

void Engine::lost(Endpoint& from, const Status& why) {
    for (Membership* group : groups_) group->lost(from, why, now());
}

void Engine::sendControl(const Membership& group, Rank to, Bytes message) {
    Endpoint* endpoint = group.member(to).endpoint;
    if (endpoint == nullptr || endpoint->state() == Endpoint::State::kLost) return;
    endpoint->sendControl(message);
    endpoint->ringDoorbell();
}

void Engine::sendVerdict(const Membership& group, Rank to, const Status& verdict,
                         std::uint64_t finished) {
    ByteWriter writer;
    writer.put(static_cast<std::uint8_t>(Control::kVerdict)).put(group.id());
    writer.put(static_cast<std::uint32_t>(group.me())).put(finished);
    writer.put(static_cast<std::uint8_t>(verdict.code()));
    writer.put(std::string_view(verdict.what()).substr(0, kMostText));
    sendControl(group, to, writer.take());
}

void Engine::sendProbe(const Membership& group, Rank to, std::uint64_t sequence,
                       const CallFingerprint& print, std::uint64_t wanted) {
    ByteWriter writer;
    writer.put(static_cast<std::uint8_t>(Control::kProbe)).put(group.id());
    writer.put(static_cast<std::uint32_t>(group.me())).put(sequence);
    writer.put(print.collective).put(print.type).put(print.op).put(print.flags);
    writer.put(print.root).put(print.elements).put(print.planDigest).put(wanted);
    sendControl(group, to, writer.take());
}

void Engine::sendAnswer(const Membership& group, Rank to, std::uint64_t entered, bool isInside) {
    Bytes message = numberMessage(Control::kAnswer, group.id(), group.me(), entered);
    message.push_back(std::byte{static_cast<unsigned char>(isInside ? 1 : 0)});
    sendControl(group, to, std::move(message));
}

void Engine::sendLeave(const Membership& group, Rank to, std::uint64_t finished) {
    sendControl(group, to, numberMessage(Control::kLeave, group.id(), group.me(), finished));
}

void Engine::sendAsk(const Membership& group, Rank to) {
    sendControl(group, to, numberMessage(Control::kAsk, group.id(), group.me(), 0));
}

void Engine::farewell(Time until) {
    // A thread that the exit has stopped in its tracks may own the engine for ever: then nobody is
    // told.
    const auto act = [&] {
        for (Membership* group : groups_) {
            const bool isThrough = group->failure().ok() && group->isIdle() && !group->isLeaving();
            if (isThrough) group->leave();
        }
        for (const auto& transport : transports_) transport->close(until);
    };
    while (!token_.tryTake()) {
        if (now() >= until) return;
        token_.waitForNews([] { return false; }, std::chrono::milliseconds(1));
    }
    disarm();
    act();
    isClosed_ = true;
    token_.release();
}

}  // namespace isthmus
