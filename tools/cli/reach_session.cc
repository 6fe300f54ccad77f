#include "tools/cli/reach_session.hpp"

#include <algorithm>
#include <chrono>

#include "comm/base/bytes.hpp"
#include "comm/base/digest.hpp"
#include "comm/base/log.hpp"
#include "comm/communicator/environment_job.hpp"
#include "comm/communicator/pair_choice.hpp"

namespace isthmus::cli {
namespace {

constexpr const char* kShm = "shm";
/// Both ends begin together: whoever answers does so in milliseconds.
constexpr std::chrono::seconds kTrialLimit{5};
/// 4 MiB are longer than TCP's start and than the credit of a shaper (tools/cluster/rate.cc).
constexpr WireUpDose kDose{100, 5, std::size_t{4} << 20};

using Verdicts = std::vector<TransportVerdict>;

/// What a rank tells of its trials with ranks above it, and its verdicts on all.
Bytes pack(const std::vector<WireUpTrial>& trials) {
    ByteWriter writer;
    for (const WireUpTrial& trial : trials) {
        writer.put(static_cast<std::int32_t>(trial.peer)).put(std::string_view(trial.transport));
        writer.put(std::string_view(trial.outcome.what()));
        writer.put(trial.latencySeconds).put(trial.bytesPerSecond);
    }
    return writer.take();
}

std::vector<WireUpTrial> unpack(const Bytes& bytes) {
    ByteReader reader(bytes);
    std::vector<WireUpTrial> trials;
    while (reader.ok() && !reader.atEnd()) {
        WireUpTrial trial;
        trial.peer = reader.get<std::int32_t>();
        trial.transport = reader.getText();
        const std::string why = reader.getText();
        if (!why.empty()) trial.outcome = Status::peerLost(why);
        trial.latencySeconds = reader.get<double>();
        trial.bytesPerSecond = reader.get<double>();
        if (reader.ok()) trials.push_back(std::move(trial));
    }
    return trials;
}

class Survey {
public:
    Survey(Runtime& runtime, Exchanger& exchanger, Rank me, int ranks, Deadline deadline)
        : runtime_(runtime), exchanger_(exchanger), me_(me), ranks_(ranks), deadline_(deadline) {}

    Status meet() {
        auto cards = exchangeCards(runtime_, exchanger_, me_, ranks_, deadline_);
        if (!cards.ok()) return cards.status();
        cards_ = std::move(*cards);
        return {};
    }

    /// Everything at every pair, both ends together; nobody else disturbs the two.
    Status tryAll() {
        std::size_t most = 0;
        for (const CallingCard& card : cards_) most = std::max(most, card.between.size());
        const auto rounds = roundsOf(ranks_);
        for (std::size_t round = 0; round < rounds.size(); ++round) {
            const Rank partner = rounds[round][static_cast<std::size_t>(me_)];
            for (std::size_t turn = 0; turn < most + 1; ++turn) {
                ISTHMUS_TRY(wait(std::to_string(round) + "." + std::to_string(turn)));
                const auto ways = waysTo(partner);
                if (turn < ways.size()) tryOne(ways[turn], round * (most + 1) + turn);
            }
        }
        return {};
    }

    Result<ClusterReach> gather() {
        std::vector<Bytes> blobs = {pack(trials_)};
        if (ranks_ > 1) {
            auto all = exchanger_.allGather("trials", blobs.front(), deadline_);
            if (!all.ok()) return all.status();
            blobs = std::move(*all);
        }
        for (const Bytes& blob : blobs) all_.push_back(unpack(blob));
        ClusterReach reach;
        for (const CallingCard& card : cards_) reach.ranks.push_back(rankReach(card));
        for (Rank one = 0; one < ranks_; ++one) {
            for (Rank other = one + 1; other < ranks_; ++other) {
                reach.pairs.push_back(pairReach(one, other));
            }
        }
        return reach;
    }

private:
    Status wait(const std::string& label) {
        return ranks_ == 1 ? Status() : exchanger_.allGather(label, {}, deadline_).status();
    }

    std::vector<WireUp> waysTo(Rank partner) const {
        std::vector<WireUp> ways;
        if (partner < 0) return ways;
        const CallingCard& card = cards_[static_cast<std::size_t>(partner)];
        if (runtime_.insideNode() != nullptr && !card.inside.empty()) {
            ways.push_back({partner, card.process, runtime_.insideNode(), card.inside});
        }
        for (const std::string& name : commonTransports(cards_, me_, partner)) {
            ways.push_back(
                {partner, card.process, runtime_.betweenNodes(name), card.offer(name)->address});
        }
        return ways;
    }

    void tryOne(const WireUp& way, std::size_t number) {
        const std::uint64_t id = Digest().add(cards_.front().communicator).add(number).value();
        Engine& engine = runtime_.engine();
        auto trials = wireUp(engine, id, me_, {way}, kDose, engine.now() + kTrialLimit);
        trials_.push_back(std::move(trials.front()));
    }

    const WireUpTrial* trialOf(Rank rank, Rank peer, const std::string& transport) const {
        for (const WireUpTrial& trial : all_[static_cast<std::size_t>(rank)]) {
            if (trial.peer == peer && trial.transport == transport) return &trial;
        }
        return nullptr;
    }

    Verdicts verdicts(Rank rank, Rank peer) const {
        Verdicts found;
        for (const WireUpTrial& trial : all_[static_cast<std::size_t>(rank)]) {
            if (trial.peer == peer) found.push_back({trial.transport, trial.outcome.what()});
        }
        return found;
    }

    static RankReach rankReach(const CallingCard& card) {
        RankReach reach;
        reach.place = card.place;
        if (!card.inside.empty()) reach.transports.emplace_back(kShm);
        for (const TransportOffer& offer : card.between) reach.transports.push_back(offer.name);
        for (const MissingTransport& missing : card.missing) {
            reach.missing.push_back({missing.name, false, 0, 0, missing.why});
        }
        return reach;
    }

    /// As both ends found it; the lower rank's figures.
    WayBetween wayOf(Rank one, Rank other, const std::string& transport) const {
        WayBetween way;
        way.transport = transport;
        const WireUpTrial* const mine = trialOf(one, other, transport);
        const WireUpTrial* const theirs = trialOf(other, one, transport);
        if (mine == nullptr || theirs == nullptr) {
            way.why = "not tried";
            return way;
        }
        way.isProven = mine->outcome.ok() && theirs->outcome.ok();
        way.why = mine->outcome.ok() ? theirs->outcome.what() : mine->outcome.what();
        way.latencySeconds = mine->latencySeconds;
        way.bytesPerSecond = mine->bytesPerSecond;
        return way;
    }

    PairReach pairReach(Rank one, Rank other) const {
        PairReach pair;
        pair.one = one;
        pair.other = other;
        const bool mayShare = !cards_[static_cast<std::size_t>(one)].inside.empty() &&
                              !cards_[static_cast<std::size_t>(other)].inside.empty();
        if (mayShare) pair.ways.push_back(wayOf(one, other, kShm));
        pair.isOneNode = mayShare && pair.ways.front().isProven;
        const PairChoice choice =
            choosePair(cards_, one, other, verdicts(one, other), verdicts(other, one));
        pair.chosen = pair.isOneNode ? kShm : choice.transport;
        for (const std::string& name : commonTransports(cards_, one, other)) {
            pair.ways.push_back(wayOf(one, other, name));
            WayBetween& way = pair.ways.back();
            if (name != pair.chosen && way.isProven) way.why = "it comes after " + pair.chosen;
        }
        for (const TransportVerdict& verdict : choice.rejected) {
            if (pair.way(verdict.transport) != nullptr) continue;
            pair.ways.push_back({verdict.transport, false, 0, 0, verdict.why});
        }
        return pair;
    }

    Runtime& runtime_;
    Exchanger& exchanger_;
    const Rank me_;
    const int ranks_;
    const Deadline deadline_;
    std::vector<CallingCard> cards_;
    std::vector<WireUpTrial> trials_;
    std::vector<std::vector<WireUpTrial>> all_;
};

}  // namespace

Result<std::optional<ClusterReach>> surveyReach() {
    const auto options = environmentOptions();
    if (!options.ok()) return options.status();
    const auto limit = options->milliseconds("ISTHMUS_TIMEOUT");
    const auto job = meetByEnvironment(limit);
    if (!job.ok()) return job.status();
    const int me = (*job)->environment.rank;
    const int ranks = (*job)->environment.ranks;
    const auto runtime = Runtime::ofProcess((*job)->towards());
    if (!runtime.ok()) return runtime.status();
    setLogRank(me);
    StoreExchanger exchanger((*job)->store, "reach", me, ranks);
    Survey survey(**runtime, exchanger, me, ranks, deadlineIn(limit));
    ISTHMUS_TRY(survey.meet());
    ISTHMUS_TRY(survey.tryAll());
    auto reach = survey.gather();
    // What the others have said is with rank 0, which may be gone before they have heard of it.
    if (me != 0) return std::optional<ClusterReach>();
    if (!reach.ok()) return reach.status();
    return std::optional(std::move(*reach));
}

}  // namespace isthmus::cli
