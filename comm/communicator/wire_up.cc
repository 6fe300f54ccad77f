#include "comm/communicator/wire_up.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "comm/base/digest.hpp"

namespace isthmus {

namespace {

/// For cards to let go of memory, which they do within 2 s (Endpoint::cancel).
constexpr std::chrono::seconds kGiveBack{3};
constexpr std::size_t kPingBytes = 8;

double secondsOf(Time time) {
    return std::chrono::duration<double>(time).count();
}

/// Messages to and fro between this rank and another: the lower rank begins each round, the other
/// sends back what it got. Engine's thread, except for the results.
class PingPong {
public:
    PingPong(Engine& engine, const MessageTag& tag, const WireUpDose& dose, std::atomic<int>& left)
        : engine_(engine), tag_(tag), dose_(dose), isFirst_(tag.from < tag.to), left_(left) {
        for (Operation* operation : {&send_, &receive_}) {
            operation->owner = this;
            operation->done = [](Operation& self, const Status& status) {
                static_cast<PingPong*>(self.owner)->ended(self, status);
            };
        }
        memory_.resize(2 * std::max(kPingBytes, dose_.transferBytes) / sizeof(std::uint64_t));
    }

    void start(const Result<Endpoint*>& endpoint) {
        if (endpoint.ok()) {
            endpoint_ = *endpoint;
            beginRound();
        } else {
            end(endpoint.status());
        }
        noteOver();
    }
    bool isOver() const { return hasOutcome_ && pending_ == 0; }
    void giveUp() {
        if (isOver()) return;
        const Status why = Status::timeout(round_ == 0 ? "no answer"
                                                       : "no answer any more, after " +
                                                             std::to_string(round_) + " messages");
        end(why);
        endpoint_->cancel(tag_.communicator, why);  // nothing completes in there
    }

    void report(WireUpTrial& trial) const {
        trial.outcome = outcome_;
        if (!outcome_.ok()) return;
        trial.latencySeconds = secondsOf(quickestPing_) / 2;
        const double transfer = secondsOf(quickestTransfer_) / 2 - trial.latencySeconds;
        trial.bytesPerSecond = static_cast<double>(dose_.transferBytes) / std::max(transfer, 1e-9);
    }

private:
    int rounds() const { return dose_.pings + dose_.transfers; }
    bool isPing() const { return round_ < dose_.pings; }
    std::size_t bytes() const { return isPing() ? kPingBytes : dose_.transferBytes; }
    std::byte* outgoing() { return reinterpret_cast<std::byte*>(memory_.data()); }
    std::byte* incoming() { return outgoing() + bytes(); }

    void beginRound() {
        if (round_ == rounds()) return end({});
        // Each round's bytes are others: what lies there from the last one is no answer.
        for (std::size_t at = 0; isFirst_ && at < bytes() / sizeof(std::uint64_t); ++at) {
            memory_[at] = (at + 1) * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(round_);
        }
        began_ = engine_.now();
        post(receive_, incoming());
        if (isFirst_) post(send_, outgoing());
    }

    void post(Operation& operation, std::byte* memory) {
        operation.tag = tag_;
        operation.tag.index = static_cast<std::uint32_t>(round_);
        if (&operation == &receive_) std::swap(operation.tag.from, operation.tag.to);
        operation.pieces = {{memory, bytes()}};
        operation.moved = 0;
        operation.isGranted = operation.isOpen = false;
        ++pending_;
        &operation == &send_ ? endpoint_->postSend(operation) : endpoint_->postRecv(operation);
    }

    void ended(const Operation& operation, const Status& status) {
        --pending_;
        if (!hasOutcome_) {
            if (!status.ok()) {
                end(status);
            } else if (&operation == &receive_) {
                arrived();
            } else if (pending_ == 0) {
                endRound();
            }
        }
        noteOver();
    }

    void arrived() {
        took_ = engine_.now() - began_;
        if (!isFirst_) return post(send_, incoming());
        if (std::memcmp(outgoing(), incoming(), bytes()) != 0) {
            return end(Status::mismatch("other bytes came back than were sent"));
        }
        if (pending_ == 0) endRound();
    }

    void endRound() {
        Time& quickest = isPing() ? quickestPing_ : quickestTransfer_;
        if (round_ > 0) quickest = std::min(quickest, took_);
        ++round_;
        beginRound();
    }

    void noteOver() {
        if (isOver() && !std::exchange(isCounted_, true)) left_.fetch_sub(1);
    }

    void end(const Status& outcome) {
        if (hasOutcome_) return;
        hasOutcome_ = true;
        outcome_ = outcome;
    }

    Engine& engine_;
    const MessageTag tag_;
    const WireUpDose dose_;
    const bool isFirst_;
    std::atomic<int>& left_;  // games that are not over; also looked at by whoever waits
    bool isCounted_ = false;
    Endpoint* endpoint_ = nullptr;
    std::vector<std::uint64_t> memory_;  // what leaves, then what comes
    Operation send_;
    Operation receive_;
    int round_ = 0;
    int pending_ = 0;
    Time began_{0};
    Time took_{0};
    Time quickestPing_ = Time::max();
    Time quickestTransfer_ = Time::max();
    bool hasOutcome_ = false;
    Status outcome_;
};

}  // namespace

std::vector<WireUpTrial> wireUp(Engine& engine, std::uint64_t id, Rank me,
                                const std::vector<WireUp>& all, const WireUpDose& dose,
                                Time until) {
    MessageTag tag;
    tag.communicator = Digest().add(id).add(std::string_view("wire-up")).value();
    tag.channel = kWireUpChannel;
    tag.from = static_cast<std::uint16_t>(me);
    // Shared with games that outlive this call.
    auto left = std::make_unique<std::atomic<int>>(static_cast<int>(all.size()));
    std::vector<std::unique_ptr<PingPong>> games;
    for (const WireUp& each : all) {
        tag.to = static_cast<std::uint16_t>(each.peer);
        games.push_back(std::make_unique<PingPong>(engine, tag, dose, *left));
    }
    const auto areOver = [&left] { return left->load() == 0; };
    engine.withToken([&] {
        for (std::size_t at = 0; at < all.size(); ++at) {
            games[at]->start(all[at].transport->endpoint(all[at].process, all[at].address));
        }
    });
    if (!engine.waitUntil(areOver, until)) {
        engine.withToken([&] {
            for (const auto& game : games) game->giveUp();
        });
        engine.waitUntil(areOver, engine.now() + kGiveBack);
    }
    std::vector<WireUpTrial> trials(all.size());
    engine.withToken([&] {
        for (std::size_t at = 0; at < all.size(); ++at) {
            trials[at].peer = all[at].peer;
            trials[at].transport = all[at].transport->name();
            games[at]->report(trials[at]);
            // A transport that breaks its promise still has the memory: it stays.
            if (!games[at]->isOver()) (void)games[at].release();
        }
        if (!areOver()) (void)left.release();
    });
    return trials;
}

}  // namespace isthmus
