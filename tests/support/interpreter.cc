#include "tests/support/interpreter.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "comm/plan/operand.hpp"
#include "comm/plan/print.hpp"
#include "comm/proof/symbolic_state.hpp"

namespace isthmus::test {
namespace {

constexpr std::uint64_t kScale = 0x9E3779B97F4A7C15U;  // odd, so scaling twice shows
using Lane = std::tuple<Rank, Rank, int>;              // from, to, channel

enum class State { kWaiting, kPosted, kRead, kDone };

struct Act {
    const Step* step = nullptr;
    Rank rank = 0;
    State state = State::kWaiting;
    int missing = 0;                          // steps of `after` not done yet
    std::vector<int> next;                    // acts that wait for me
    int partner = -1;                         // of a message
    std::vector<std::pair<Lane, int>> needs;  // wait: lane and how many signals
    std::vector<std::vector<std::uint64_t>> data;
    double pace = 1;
};

/// A value for each number that looks like none of its neighbours' (the finaliser of SplitMix64;
/// Steele, Lea and Flood, OOPSLA 2014, doi 10.1145/2660193.2660195).
std::uint64_t scattered(std::uint64_t number) {
    number += kScale;
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9U;
    number = (number ^ (number >> 27)) * 0x94D049BB133111EBU;
    return number ^ (number >> 31);
}

class Interpreter {
public:
    Interpreter(const std::vector<Plan>& plans, const Choices& choices)
        : plans_(plans),
          choices_(choices),
          operand_(Operand::of(plans.front())),
          names_(plans, choices_.isInPlace),
          random_(choices.seed),
          memory_(names_.count()) {}

    std::string play() {
        if (!setUp()) return "unmatched";
        // each turn moves something with a probability above 1 %, or finds that nothing can move
        for (int turn = 0; turn < 2000000 && what_.empty(); ++turn) {
            if (late_.empty() && ready_.empty() && flying_.empty()) break;
            takeTurn();
        }
        if (!what_.empty()) return what_;
        const bool isDone = std::all_of(acts_.begin(), acts_.end(),
                                        [](const Act& act) { return act.state == State::kDone; });
        return isDone ? "" : "deadlock";
    }

private:
    double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
    std::size_t pick(std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
    }
    static int takeOut(std::vector<int>& list, std::size_t at) {
        const int taken = list[at];
        list[at] = list.back();
        list.pop_back();
        return taken;
    }
    Act& act(int id) { return acts_[static_cast<std::size_t>(id)]; }
    std::uint64_t& at(const Location& location) { return memory_[names_.of(location)]; }

    bool setUp() {
        haste_ = chance();
        for (const Plan& plan : plans_) addActs(plan);
        for (Rank rank = 0; rank < static_cast<Rank>(plans_.size()); ++rank) {
            late_.push_back(rank);
            rankPace_.push_back(chance() * chance() + 0.02);
            scribble(rank);
        }
        std::shuffle(late_.begin(), late_.end(), random_);
        isStarted_.assign(plans_.size(), false);
        isGone_.assign(plans_.size(), false);
        return matchMessages() && signals_ == waits_;
    }

    void addActs(const Plan& plan) {
        const int first = static_cast<int>(acts_.size());
        firstOf_.push_back(first);
        todo_.push_back(static_cast<int>(plan.steps.size()));
        for (const Step& step : plan.steps) {
            const int id = static_cast<int>(acts_.size());
            Act& made = acts_.emplace_back();
            made.step = &step;
            made.rank = plan.me;
            made.pace = chance() * chance() * chance() + 0.02;
            made.missing = static_cast<int>(step.after.size());
            for (const Rank peer : step.peers) addSide(id, peer);
            for (const int before : step.after) act(first + before).next.push_back(id);
        }
        firstOf_.push_back(static_cast<int>(acts_.size()));
    }

    void addSide(int id, Rank peer) {
        Act& made = act(id);
        const Step& step = *made.step;
        const Lane out{made.rank, peer, step.channel};
        const Lane in{peer, made.rank, step.channel};
        if (step.verb == Verb::kSend) sends_[out].push_back(id);
        if (step.verb == Verb::kRecv) recvs_[in].push_back(id);
        if (step.verb == Verb::kSignal) ++signals_[out];
        if (step.verb == Verb::kWait) made.needs.emplace_back(in, ++waits_[in]);
    }

    bool matchMessages() {
        if (sends_.size() != recvs_.size()) return false;
        for (const auto& [lane, sends] : sends_) {
            const auto recvs = recvs_.find(lane);
            if (recvs == recvs_.end() || recvs->second.size() != sends.size()) return false;
            for (std::size_t i = 0; i < sends.size(); ++i) {
                act(sends[i]).partner = recvs->second[i];
                act(recvs->second[i]).partner = sends[i];
                const auto chunks = act(sends[i]).step->sources[0].size();
                if (chunks != act(recvs->second[i]).step->target.size()) return false;
            }
        }
        return true;
    }

    /// Junk wherever `rank` has memory; shared slots that outlive the call stay once it is over.
    void scribble(Rank rank, bool isOver = false) {
        const Plan& plan = plans_[static_cast<std::size_t>(rank)];
        const auto fill = [&](Buffer buffer, int chunks) {
            for (int chunk = 0; chunk < chunks; ++chunk) at({rank, buffer, chunk}) = random_();
        };
        fill(Buffer::kInput, operand_.inputChunks(rank));
        fill(Buffer::kOutput, operand_.outputChunks(rank));
        fill(Buffer::kScratch, static_cast<int>(plan.scratch.size()));
        if (isOver && plan.sharedOutlivesCall) return;
        fill(Buffer::kShared, static_cast<int>(plan.shared.size()));
    }

    /// The operand: what `rank` contributes to a chunk.
    std::uint64_t contribution(Rank rank, const ChunkName& name) const {
        std::uint64_t mixed = choices_.seed * 31 + static_cast<std::uint64_t>(rank);
        mixed = mixed * 1000003 + static_cast<std::uint64_t>(name.block);
        mixed = mixed * 1000003 + static_cast<std::uint64_t>(name.chunk);
        return scattered(mixed);
    }

    void takeTurn() {
        const bool isIdle = ready_.empty() && flying_.empty();
        if (!late_.empty() && (isIdle || chance() < 0.1)) return startOne();
        if (!ready_.empty() && (flying_.empty() || chance() < 0.5)) return postOne();
        if (!flying_.empty()) moveOne();
    }

    void startOne() {
        const Rank rank = late_.back();
        late_.pop_back();
        scribble(rank);
        isStarted_[static_cast<std::size_t>(rank)] = true;
        for (int chunk = 0; chunk < operand_.inputChunks(rank); ++chunk) {
            const Location location{rank, Buffer::kInput, chunk};
            at(location) = contribution(rank, operand_.meaning(location));
        }
        const auto index = static_cast<std::size_t>(rank) * 2;
        for (int id = firstOf_[index]; id < firstOf_[index + 1]; ++id) {
            if (act(id).missing == 0) ready_.push_back(id);
        }
        if (firstOf_[index] == firstOf_[index + 1]) leave(rank);
    }

    void postOne() {
        const std::size_t place = pick(ready_.size());
        const Act& chosen = act(ready_[place]);
        const double pace = rankPace_[static_cast<std::size_t>(chosen.rank)];
        if (!flying_.empty() && chance() > pace) return;
        const int id = takeOut(ready_, place);
        flying_.push_back(id);
        act(id).state = State::kPosted;
        if (readsSomething(id) && chance() < haste_) readSources(id);
        if (act(id).step->verb == Verb::kRecv) spoilTarget(id);
    }

    bool readsSomething(int id) { return !act(id).step->sources.empty(); }

    void readSources(int id) {
        Act& reader = act(id);
        for (const Slice& source : reader.step->sources) {
            auto& values = reader.data.emplace_back();
            for (const Location& location : source) values.push_back(at(location));
        }
        reader.state = State::kRead;
        spoilTarget(id);
    }

    void spoilTarget(int id) {
        const Step& step = *act(id).step;
        for (std::size_t i = 0; i < step.target.size(); ++i) {
            const bool isOntoItself = step.verb == Verb::kCopy &&
                                      names_.of(step.target[i]) == names_.of(step.sources[0][i]);
            if (!isOntoItself) at(step.target[i]) = random_();
        }
    }

    bool isMovable(int id) {
        const Act& moved = act(id);
        switch (moved.step->verb) {
        case Verb::kRecv:
            return act(moved.partner).state >= State::kRead;
        case Verb::kWait:
            return std::all_of(moved.needs.begin(), moved.needs.end(), [&](const auto& need) {
                return raised_[need.first] >= need.second;
            });
        case Verb::kSend:
            return moved.state == State::kPosted || !choices_.sendsWait ||
                   act(moved.partner).state >= State::kPosted;
        default:
            return true;
        }
    }

    void moveOne() {
        const std::size_t place = pick(flying_.size());
        const int id = flying_[place];
        if (flying_.size() > 1 && chance() > act(id).pace) return;
        if (!isMovable(id)) return noticeStandstill();
        misses_ = 0;
        if (act(id).state == State::kPosted && readsSomething(id)) return readSources(id);
        takeOut(flying_, place);
        finish(id);
    }

    void noticeStandstill() {
        if (++misses_ < 50 || !ready_.empty() || !late_.empty()) return;
        const auto isMoving = [&](int id) { return isMovable(id); };
        if (std::none_of(flying_.begin(), flying_.end(), isMoving)) what_ = "deadlock";
    }

    void finish(int id) {
        Act& done = act(id);
        done.state = State::kDone;
        if (done.step->verb == Verb::kSignal) {
            for (const Rank peer : done.step->peers) {
                ++raised_[{done.rank, peer, done.step->channel}];
            }
        }
        writeTarget(done);
        if (--todo_[static_cast<std::size_t>(done.rank)] == 0) leave(done.rank);
        for (const int next : done.next) {
            if (--act(next).missing == 0) ready_.push_back(next);
        }
    }

    void writeTarget(const Act& done) {
        const Step& step = *done.step;
        const auto& data = step.verb == Verb::kRecv ? act(done.partner).data : done.data;
        for (std::size_t i = 0; i < step.target.size(); ++i) {
            std::uint64_t value = 0;
            for (const auto& source : data) value += source[i];
            if (step.completes) value *= kScale;
            const auto owner = static_cast<std::size_t>(step.target[i].rank);
            const bool outlives =
                step.target[i].buffer == Buffer::kShared && plans_[owner].sharedOutlivesCall;
            if (isGone_[owner] && !outlives) {
                what_ = "writes to a rank that has left: " + textOf(step);
            }
            at(step.target[i]) = value;
        }
    }

    void leave(Rank rank) {
        for (int chunk = 0; chunk < operand_.outputChunks(rank); ++chunk) {
            const Location location{rank, Buffer::kOutput, chunk};
            if (at(location) != expected(location)) {
                what_ = "wrong data in " + textOf(location);
                return;
            }
        }
        const bool isBarrier = operand_.collective == Collective::kBarrier;
        if (isBarrier &&
            std::find(isStarted_.begin(), isStarted_.end(), false) != isStarted_.end()) {
            what_ = "left a barrier before all had come";
        }
        isGone_[static_cast<std::size_t>(rank)] = true;
        scribble(rank, true);
    }

    std::uint64_t expected(const Location& location) const {
        const ChunkName name = operand_.meaning(location);
        const int block = location.chunk / operand_.chunksPerBlock;
        if (!reduces(operand_.collective)) {
            const bool fromRoot = operand_.collective == Collective::kBroadcast ||
                                  operand_.collective == Collective::kScatter;
            return contribution(fromRoot ? operand_.root : block, name);
        }
        std::uint64_t sum = 0;
        for (Rank rank = 0; rank < operand_.ranks; ++rank) {
            if (!operand_.onlySums(rank)) sum += contribution(rank, name);
        }
        return sum * kScale;
    }

    const std::vector<Plan>& plans_;
    const Choices choices_;
    const Operand operand_;
    const LocationNames names_;
    std::mt19937_64 random_;
    std::vector<std::uint64_t> memory_;
    std::vector<Act> acts_;
    std::vector<int> firstOf_;  // begin and end of each rank's acts
    std::vector<int> todo_;     // by rank
    std::map<Lane, std::vector<int>> sends_;
    std::map<Lane, std::vector<int>> recvs_;
    std::map<Lane, int> signals_;
    std::map<Lane, int> waits_;
    std::map<Lane, int> raised_;
    std::vector<Rank> late_;
    std::vector<int> ready_;
    std::vector<int> flying_;
    std::vector<bool> isStarted_;
    std::vector<bool> isGone_;
    std::vector<double> rankPace_;
    double haste_ = 0;
    int misses_ = 0;
    std::string what_;
};

}  // namespace

std::string interpret(const std::vector<Plan>& plans, const Choices& choices) {
    return Interpreter(plans, choices).play();
}

}  // namespace isthmus::test
