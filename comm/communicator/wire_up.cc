#include "comm/communicator/wire_up.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "comm/base/digest.hpp"
#include "comm/base/log.hpp"

namespace isthmus {

namespace {

/// For cards to let go of memory, which they do within 2 s (Endpoint::cancel).
constexpr std::chrono::seconds kGiveBack{3};
constexpr std::size_t kPingBytes = 8;
/// Who has answered over one transport has begun with the others at the same moment; the slowest
/// connection seen takes tenths of a second.
constexpr std::chrono::seconds kPatience{2};

double secondsOf(Time time) {
    return std::chrono::duration<double>(time).count();
}

/// What all games have come to. Written on the engine's thread, read by whoever waits.
class Board {
public:
    explicit Board(const std::vector<WireUp>& all) : games_(static_cast<int>(all.size())) {
        for (const WireUp& each : all) ++open_[each.peer];
        silent_ = static_cast<int>(open_.size());
    }

    int games() const { return games_.load(); }
    bool areOver() const { return games() == 0; }
    /// Each rank has answered over something, or nothing is left to hear from it.
    bool hasHeardAll() const { return silent_.load() == 0; }

    void gameOver(Rank peer, bool isProved) {
        games_.fetch_sub(1);
        const auto found = open_.find(peer);
        if (found == open_.end() || (--found->second > 0 && !isProved)) return;
        open_.erase(found);
        silent_.fetch_sub(1);
    }
    /// Those who have answered over nothing. Engine's thread.
    std::string silentOnes() const {
        std::string text;
        for (const auto& [peer, games] : open_) {
            text += (text.empty() ? "" : ", ") + std::to_string(peer);
        }
        return text;
    }

private:
    std::atomic<int> games_;  // that are not over
    std::atomic<int> silent_{0};
    std::map<Rank, int> open_;  // games of each that is silent; engine's thread
};

/// Messages to and fro between this rank and another: the lower rank begins each round, the other
/// sends back what it got. Engine's thread, except for the results.
class PingPong {
public:
    PingPong(Engine& engine, const MessageTag& tag, const WireUpDose& dose, Board& board)
        : engine_(engine), tag_(tag), dose_(dose), isFirst_(tag.from < tag.to), board_(board) {
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
        if (isOver() && !std::exchange(isCounted_, true)) board_.gameOver(tag_.to, outcome_.ok());
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
    Board& board_;
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

/// Until all is over, or what is left stays silent.
void waitFor(Engine& engine, const Board& board, Time until) {
    const auto hasHeardAll = [&board] { return board.hasHeardAll(); };
    if (!engine.waitUntil(hasHeardAll, std::min<Time>(until, engine.now() + kPatience))) {
        std::string silent;
        engine.withToken([&] { silent = board.silentOnes(); });
        const auto left = std::chrono::round<std::chrono::seconds>(until - engine.now());
        log(LogLevel::kWarning, "between nodes: no answer over any transport from rank " + silent +
                                    "; it is waited for another " + std::to_string(left.count()) +
                                    " s at most");
        engine.waitUntil(hasHeardAll, until);
    }
    bool isNews = true;
    while (isNews && !board.areOver() && engine.now() < until) {
        const int before = board.games();
        isNews = engine.waitUntil([&] { return board.games() < before; },
                                  std::min<Time>(until, engine.now() + kPatience));
    }
}

}  // namespace

std::vector<WireUpTrial> wireUp(Engine& engine, std::uint64_t id, Rank me,
                                const std::vector<WireUp>& all, const WireUpDose& dose,
                                Time until) {
    MessageTag tag;
    tag.communicator = Digest().add(id).add(std::string_view("wire-up")).value();
    tag.channel = kWireUpChannel;
    tag.from = static_cast<std::uint16_t>(me);
    // Shared with games that outlive this call.
    auto board = std::make_unique<Board>(all);
    std::vector<std::unique_ptr<PingPong>> games;
    for (const WireUp& each : all) {
        tag.to = static_cast<std::uint16_t>(each.peer);
        games.push_back(std::make_unique<PingPong>(engine, tag, dose, *board));
    }
    engine.withToken([&] {
        for (std::size_t at = 0; at < all.size(); ++at) {
            games[at]->start(all[at].transport->endpoint(all[at].process, all[at].address));
        }
    });
    waitFor(engine, *board, until);
    if (!board->areOver()) {
        engine.withToken([&] {
            for (const auto& game : games) game->giveUp();
        });
        engine.waitUntil([&board] { return board->areOver(); }, engine.now() + kGiveBack);
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
        if (!board->areOver()) (void)board.release();
    });
    return trials;
}

}  // namespace isthmus
