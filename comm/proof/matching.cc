#include "comm/proof/matching.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "comm/plan/print.hpp"

namespace isthmus {
namespace {

/// One side of a message or signal.
struct Side {
    Rank from;
    Rank to;
    int channel;
    int step;

    bool isSameLane(const Side& other) const {
        return from == other.from && to == other.to && channel == other.channel;
    }
    auto operator<=>(const Side&) const = default;
};

std::string textOf(const Side& side) {
    std::string text = std::to_string(side.from);
    text += " to ";
    text += std::to_string(side.to);
    text += " channel ";
    text += std::to_string(side.channel);
    return text;
}

class Matcher {
public:
    explicit Matcher(const std::vector<Plan>& plans) {
        for (const Plan& plan : plans) addPlan(plan);
        found_.firstOf.push_back(found_.size());
        found_.partner.assign(found_.steps.size(), -1);
        found_.raisedBy.resize(found_.steps.size());
        for (auto& sides : sides_) std::sort(sides.begin(), sides.end());
    }

    Result<Matching> run() {
        ISTHMUS_TRY(agree(Verb::kSend, Verb::kRecv));
        ISTHMUS_TRY(agree(Verb::kSignal, Verb::kWait));
        ISTHMUS_TRY(pairMessages());
        pairSignals();
        return std::move(found_);
    }

private:
    std::vector<Side>& sidesOf(Verb verb) { return sides_[static_cast<std::size_t>(verb)]; }

    void addPlan(const Plan& plan) {
        found_.firstOf.push_back(found_.size());
        for (const Step& step : plan.steps) {
            const bool isOut = step.verb == Verb::kSend || step.verb == Verb::kSignal;
            for (const Rank peer : step.peers) {
                const Rank from = isOut ? plan.me : peer;
                const Rank to = isOut ? peer : plan.me;
                sidesOf(step.verb).push_back({from, to, step.channel, found_.size()});
            }
            found_.rankOf.push_back(plan.me);
            found_.steps.push_back(&step);
        }
    }

    /// Both sorted lists hold the same lanes equally often.
    Status agree(Verb out, Verb in) {
        const auto& outs = sidesOf(out);
        const auto& ins = sidesOf(in);
        for (std::size_t i = 0; i < std::max(outs.size(), ins.size()); ++i) {
            if (i < outs.size() && i < ins.size() && outs[i].isSameLane(ins[i])) continue;
            const bool isOutAlone = i < outs.size() && (i >= ins.size() || outs[i] < ins[i]);
            std::string text = "unmatched ";
            text += nameOf(isOutAlone ? out : in);
            text += " ";
            text += textOf(isOutAlone ? outs[i] : ins[i]);
            return Status::mismatch(std::move(text));
        }
        return {};
    }

    Status pairMessages() {
        const auto& sends = sidesOf(Verb::kSend);
        const auto& recvs = sidesOf(Verb::kRecv);
        for (std::size_t i = 0; i < sends.size(); ++i) {
            const int send = sends[i].step;
            const int recv = recvs[i].step;
            found_.partner[static_cast<std::size_t>(send)] = recv;
            found_.partner[static_cast<std::size_t>(recv)] = send;
            const auto sent = found_.steps[static_cast<std::size_t>(send)]->sources[0].size();
            const auto expected = found_.steps[static_cast<std::size_t>(recv)]->target.size();
            if (sent != expected) {
                return Status::mismatch("message " + textOf(sends[i]) + ": sends " +
                                        std::to_string(sent) + " chunks, receives " +
                                        std::to_string(expected));
            }
        }
        addLanes(sends);
        addLanes(recvs);
        return {};
    }

    void addLanes(const std::vector<Side>& sides) {
        for (std::size_t i = 0; i < sides.size(); ++i) {
            if (i == 0 || !sides[i].isSameLane(sides[i - 1])) found_.lanes.emplace_back();
            found_.lanes.back().push_back(sides[i].step);
        }
    }

    void pairSignals() {
        const auto& signals = sidesOf(Verb::kSignal);
        const auto& waits = sidesOf(Verb::kWait);
        for (std::size_t i = 0; i < signals.size(); ++i) {
            found_.raisedBy[static_cast<std::size_t>(waits[i].step)].push_back(signals[i].step);
            if (i > 0 && signals[i].isSameLane(signals[i - 1])) {
                found_.signals.emplace_back(signals[i - 1].step, signals[i].step);
            }
        }
    }

    Matching found_;
    std::array<std::vector<Side>, 6> sides_;  // by Verb
};

}  // namespace

Result<Matching> match(const std::vector<Plan>& plans) {
    return Matcher(plans).run();
}

}  // namespace isthmus
