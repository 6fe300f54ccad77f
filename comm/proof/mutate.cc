#include "comm/proof/mutate.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "comm/plan/edges.hpp"
#include "comm/proof/matching.hpp"

namespace isthmus {
namespace {

class SiteFinder {
public:
    explicit SiteFinder(const std::vector<Plan>& plans) : plans_(plans) {}

    std::vector<MutationSite> run() {
        for (const Plan& plan : plans_) {
            for (std::size_t i = 0; i < plan.steps.size(); ++i) addStep(plan, i);
        }
        return std::move(sites_);
    }

private:
    void add(Damage damage, const Plan& plan, std::size_t step, int source, std::size_t index) {
        sites_.push_back(
            {damage, plan.me, static_cast<int>(step), source, static_cast<int>(index)});
    }

    void addStep(const Plan& plan, std::size_t at) {
        const Step& step = plan.steps[at];
        for (std::size_t i = 0; i < step.after.size(); ++i) add(Damage::kEdge, plan, at, -1, i);
        addSlice(plan, at, step.target, -1);
        for (std::size_t s = 0; s < step.sources.size(); ++s) {
            addSlice(plan, at, step.sources[s], static_cast<int>(s));
            if (step.verb == Verb::kReduce && step.sources.size() > 1) {
                add(Damage::kSourceTwice, plan, at, static_cast<int>(s), 0);
                add(Damage::kSourceGone, plan, at, static_cast<int>(s), 0);
            }
        }
        if (plans_.size() > 2) {
            for (std::size_t i = 0; i < step.peers.size(); ++i) add(Damage::kPeer, plan, at, -1, i);
        }
        if (step.verb == Verb::kSend) addPeerSwap(plan, at);
        if (at + 1 < plan.steps.size()) add(Damage::kStepSwap, plan, at, -1, at + 1);
        if (step.verb == Verb::kSignal) {
            for (const Rank peer : step.peers) {
                add(Damage::kPairGone, plan, at, -1, static_cast<std::size_t>(peer));
                add(Damage::kSignalGone, plan, at, -1, static_cast<std::size_t>(peer));
            }
        }
        const bool mayComplete = step.verb == Verb::kReduce || step.verb == Verb::kCopy;
        if (mayComplete && reduces(plan.collective)) add(Damage::kCompletes, plan, at, -1, 0);
    }

    void addSlice(const Plan& plan, std::size_t at, const Slice& slice, int source) {
        for (std::size_t i = 0; i < slice.size(); ++i) {
            add(Damage::kChunk, plan, at, source, i);
            if (slice[i].rank != plan.me) add(Damage::kOwner, plan, at, source, i);
        }
    }

    void addPeerSwap(const Plan& plan, std::size_t at) {
        for (std::size_t other = at + 1; other < plan.steps.size(); ++other) {
            const Step& step = plan.steps[other];
            if (step.verb != Verb::kSend || step.peers == plan.steps[at].peers) continue;
            return add(Damage::kPeerSwap, plan, at, -1, other);
        }
    }

    const std::vector<Plan>& plans_;
    std::vector<MutationSite> sites_;
};

class Mutation {
public:
    Mutation(const std::vector<Plan>& plans, const MutationSite& site, std::mt19937_64& random)
        : before_(plans), plans_(plans), site_(site), random_(random) {}

    std::optional<std::vector<Plan>> run() {
        Step& step = plan().steps[static_cast<std::size_t>(site_.step)];
        const auto index = static_cast<std::ptrdiff_t>(site_.index);
        if (site_.damage == Damage::kEdge) {
            step.after.erase(step.after.begin() + index);
            return std::move(plans_);
        }
        if (!damage(step)) return std::nullopt;
        inferEdges(plan());
        return std::move(plans_);
    }

private:
    Plan& plan() { return plans_[static_cast<std::size_t>(site_.rank)]; }

    template <typename Choice>
    Choice anyOf(const std::vector<Choice>& choices) {
        const auto last = choices.size() - 1;
        return choices[std::uniform_int_distribution<std::size_t>(0, last)(random_)];
    }

    bool damage(Step& step) {
        const auto index = static_cast<std::size_t>(site_.index);
        const auto source = static_cast<std::size_t>(site_.source);
        switch (site_.damage) {
        case Damage::kChunk:
            return changeChunk(site_.source < 0 ? step.target[index] : step.sources[source][index]);
        case Damage::kOwner:
            return changeRank(
                (site_.source < 0 ? step.target[index] : step.sources[source][index]).rank, -1);
        case Damage::kPeer:
            return changeRank(step.peers[index], site_.rank);
        case Damage::kPeerSwap:
            std::swap(step.peers, plan().steps[index].peers);
            return true;
        case Damage::kStepSwap:
            std::swap(step, plan().steps[index]);
            return true;
        case Damage::kSourceTwice:
            step.sources[source] = step.sources[(source + 1) % step.sources.size()];
            return true;
        case Damage::kSourceGone:
            step.sources.erase(step.sources.begin() + site_.source);
            return true;
        case Damage::kPairGone:
            return dropWait() && dropPeer(step, site_.index);
        case Damage::kSignalGone:
            return dropPeer(step, site_.index);
        case Damage::kCompletes:
            step.completes = !step.completes;
            return true;
        case Damage::kEdge:
            break;
        }
        return false;
    }

    /// Another chunk of that rank's buffer that some plan names.
    bool changeChunk(Location& location) {
        std::set<int> chunks;
        const auto note = [&](const Slice& slice) {
            for (const Location& named : slice) {
                const bool isSameBuffer =
                    named.rank == location.rank && named.buffer == location.buffer;
                if (isSameBuffer && named.chunk != location.chunk) chunks.insert(named.chunk);
            }
        };
        for (const Plan& plan : before_) {
            for (const Step& step : plan.steps) {
                note(step.target);
                for (const Slice& source : step.sources) note(source);
            }
        }
        if (chunks.empty()) return false;
        location.chunk = anyOf(std::vector<int>(chunks.begin(), chunks.end()));
        return true;
    }

    bool changeRank(Rank& rank, Rank except) {
        std::vector<Rank> others;
        for (Rank other = 0; other < static_cast<Rank>(plans_.size()); ++other) {
            if (other != rank && other != except) others.push_back(other);
        }
        if (others.empty()) return false;
        rank = anyOf(others);
        return true;
    }

    static bool dropPeer(Step& step, Rank peer) {
        const auto found = std::find(step.peers.begin(), step.peers.end(), peer);
        if (found == step.peers.end()) return false;
        step.peers.erase(found);
        return true;
    }

    /// The wait of the peer that this signal meets forgets me.
    bool dropWait() {
        const Result<Matching> matching = match(before_);
        if (!matching.ok()) return false;
        const int signal = matching->firstOf[static_cast<std::size_t>(site_.rank)] + site_.step;
        Plan& other = plans_[static_cast<std::size_t>(site_.index)];
        const int first = matching->firstOf[static_cast<std::size_t>(site_.index)];
        for (std::size_t i = 0; i < other.steps.size(); ++i) {
            const auto& raisedBy = matching->raisedBy[static_cast<std::size_t>(first) + i];
            if (std::find(raisedBy.begin(), raisedBy.end(), signal) == raisedBy.end()) continue;
            dropPeer(other.steps[i], site_.rank);
            inferEdges(other);
            return true;
        }
        return false;
    }

    const std::vector<Plan>& before_;
    std::vector<Plan> plans_;
    const MutationSite& site_;
    std::mt19937_64& random_;
};

}  // namespace

std::string_view nameOf(Damage damage) {
    constexpr std::array<std::string_view, kDamages> kNames = {
        "edge",         "chunk",           "at(q)",
        "peer",         "peers exchanged", "steps exchanged",
        "source twice", "source gone",     "signal pair",
        "signal alone", "completes"};
    return kNames[static_cast<std::size_t>(damage)];
}

std::vector<MutationSite> mutationSites(const std::vector<Plan>& plans) {
    return SiteFinder(plans).run();
}

std::optional<std::vector<Plan>> mutated(const std::vector<Plan>& plans, const MutationSite& site,
                                         std::mt19937_64& random) {
    return Mutation(plans, site, random).run();
}

}  // namespace isthmus
