#include "comm/communicator/formation.hpp"

#include <algorithm>
#include <atomic>
#include <map>

#include "comm/algorithm/summing.hpp"
#include "comm/algorithm/water_fill.hpp"
#include "comm/base/bytes.hpp"
#include "comm/base/log.hpp"
#include "comm/communicator/calling_card.hpp"
#include "comm/communicator/inline_limit.hpp"
#include "comm/communicator/pair_choice.hpp"

namespace isthmus {

namespace {

// How long proving co-location may take before TCP is used instead; a peer that is alive answers in
// microseconds.
constexpr std::chrono::milliseconds kProofLimit(5000);

// How long the transports of a pair may take to prove themselves: longer than the above, which the
// other end may have to wait for first.
constexpr std::chrono::milliseconds kWireUpLimit(10'000);

using Verdicts = std::vector<TransportVerdict>;

// Endpoints of ranks that may be on this node; those that turn out to share memory stay.
std::vector<Endpoint*> proveNode(Runtime& runtime, const std::vector<CallingCard>& cards, Rank me,
                                 Deadline deadline) {
    std::vector<Endpoint*> endpoints(cards.size(), nullptr);
    Transport* const inside = runtime.insideNode();
    if (inside == nullptr) return endpoints;
    Engine& engine = runtime.engine();
    engine.withToken([&] {
        for (std::size_t rank = 0; rank < cards.size(); ++rank) {
            if (static_cast<Rank>(rank) == me || cards[rank].inside.empty()) continue;
            const auto endpoint = inside->endpoint(cards[rank].process, cards[rank].inside);
            if (!endpoint.ok()) continue;  // says itself that it is elsewhere
            endpoints[rank] = *endpoint;
            (*endpoint)->connect();
        }
    });
    const auto limit = std::min<std::chrono::milliseconds>(kProofLimit, timeLeft(deadline));
    engine.waitUntil(
        [&] {
            return std::all_of(endpoints.begin(), endpoints.end(), [](const Endpoint* endpoint) {
                return endpoint == nullptr || (endpoint->state() != Endpoint::State::kConnecting &&
                                               endpoint->state() != Endpoint::State::kIdle);
            });
        },
        engine.now() + limit);
    engine.withToken([&] {
        for (Endpoint*& endpoint : endpoints) {
            if (endpoint != nullptr && endpoint->mapped().base == nullptr) endpoint = nullptr;
        }
    });
    return endpoints;
}

/// The transports of pairs that have several and have not tried them before.
std::vector<WireUpTrial> tryTransports(Runtime& runtime, const std::vector<CallingCard>& cards,
                                       Rank me, const std::vector<Endpoint*>& inside,
                                       Deadline deadline) {
    std::vector<WireUp> all;
    for (std::size_t i = 0; i < cards.size(); ++i) {
        const auto rank = static_cast<Rank>(i);
        if (rank == me || inside[i] != nullptr) continue;
        if (runtime.pairChoices().find(cards[i].process)) continue;
        const std::vector<std::string> common = commonTransports(cards, me, rank);
        if (common.size() < 2) continue;
        for (const std::string& name : common) {
            all.push_back({rank, cards[i].process, runtime.betweenNodes(name),
                           cards[i].offer(name)->address});
        }
    }
    if (all.empty()) return {};
    const auto limit = std::min({kWireUpLimit, timeLeft(deadline),
                                 runtime.options().milliseconds("ISTHMUS_CONNECT_TIMEOUT")});
    Engine& engine = runtime.engine();
    return wireUp(engine, cards.front().communicator, me, all, {}, engine.now() + limit);
}

struct Proof {
    std::vector<Rank> ranks;
    std::uint64_t blockOffset = 0;
    std::vector<Rank> readable;         // of `ranks`, those whose memory this rank can read
    std::map<Rank, Verdicts> verdicts;  // on the ways to other ranks

    const Verdicts& on(Rank rank) const {
        static const Verdicts none;
        const auto found = verdicts.find(rank);
        return found == verdicts.end() ? none : found->second;
    }
};

void put(ByteWriter& writer, const std::vector<Rank>& ranks) {
    writer.put(static_cast<std::uint32_t>(ranks.size()));
    for (const Rank rank : ranks) writer.put(static_cast<std::int32_t>(rank));
}

std::vector<Rank> getRanks(ByteReader& reader, int most) {
    std::vector<Rank> ranks;
    const auto count = reader.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
        const auto rank = reader.get<std::int32_t>();
        if (rank >= 0 && rank < most) ranks.push_back(rank);
    }
    if (!std::is_sorted(ranks.begin(), ranks.end())) std::sort(ranks.begin(), ranks.end());
    return ranks;
}

Bytes pack(const Proof& proof) {
    ByteWriter writer;
    writer.put(proof.blockOffset);
    put(writer, proof.ranks);
    put(writer, proof.readable);
    for (const auto& [rank, verdicts] : proof.verdicts) {
        for (const TransportVerdict& verdict : verdicts) {
            writer.put(static_cast<std::int32_t>(rank));
            writer.put(std::string_view(verdict.transport)).put(std::string_view(verdict.why));
        }
    }
    return writer.take();
}

Result<Proof> readProof(const Bytes& bytes, Rank rank, int ranks) {
    ByteReader reader(bytes);
    Proof proof;
    proof.blockOffset = reader.get<std::uint64_t>();
    proof.ranks = getRanks(reader, ranks);
    proof.readable = getRanks(reader, ranks);
    while (reader.ok() && !reader.atEnd()) {
        Verdicts& verdicts = proof.verdicts[reader.get<std::int32_t>()];
        std::string transport = reader.getText();
        verdicts.push_back({std::move(transport), reader.getText()});
    }
    if (reader.ok()) return proof;
    return Status::mismatch("rank " + std::to_string(rank) + " sent a broken start-up message");
}

Result<std::vector<Proof>> readProofs(const std::vector<Bytes>& blobs) {
    std::vector<Proof> proofs;
    for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
        auto proof =
            readProof(blobs[rank], static_cast<Rank>(rank), static_cast<int>(blobs.size()));
        if (!proof.ok()) return proof.status();
        proofs.push_back(std::move(*proof));
    }
    return proofs;
}

/// What leads from this rank to each that is on another node. New choices are logged and kept.
std::map<Rank, PairChoice> choosePairs(Runtime& runtime, const std::vector<CallingCard>& cards,
                                       const Layout& layout, Rank me,
                                       const std::vector<Proof>& proofs,
                                       const std::vector<WireUpTrial>& trials) {
    std::map<Rank, PairChoice> choices;
    std::map<Rank, PairChoice> fresh;
    for (std::size_t i = 0; i < cards.size(); ++i) {
        const auto rank = static_cast<Rank>(i);
        if (layout.nodeOf(rank) == layout.nodeOf(me)) continue;
        const Verdicts& mine = proofs[me].on(rank);
        const Verdicts& theirs = proofs[i].on(me);
        const auto known = runtime.pairChoices().find(cards[i].process);
        // Who tries again has not heard what came of it the last time.
        if (known && mine.empty() && theirs.empty()) {
            choices[rank] = *known;
            continue;
        }
        choices[rank] = fresh[rank] = choosePair(cards, me, rank, mine, theirs);
        runtime.pairChoices().keep(cards[i].process, choices[rank]);
    }
    for (const ChoiceLine& line : describeChoices(fresh, trials)) {
        log(line.isWarning ? LogLevel::kWarning : LogLevel::kInfo, "between nodes: " + line.text);
    }
    return choices;
}

/// Each rank of the node the memory of all others; all of them find the same.
bool nodeReadsItself(const std::vector<Rank>& node, const std::vector<Proof>& proofs) {
    return node.size() > 1 && std::all_of(node.begin(), node.end(), [&](Rank reader) {
               std::vector<Rank> others = node;
               std::erase(others, reader);
               const auto& readable = proofs[static_cast<std::size_t>(reader)].readable;
               return std::includes(readable.begin(), readable.end(), others.begin(), others.end());
           });
}

Result<std::vector<std::vector<int>>> racksOf(const Layout& layout,
                                              const std::vector<CallingCard>& cards) {
    std::vector<RackWord> words;
    for (const CallingCard& card : cards) words.push_back(card.rack);
    return racksOf(layout, words);
}

/// Ranks that only add; none where nobody would have anything to add.
std::vector<Rank> summingOf(const std::vector<CallingCard>& cards) {
    std::vector<Rank> summing;
    for (std::size_t rank = 0; rank < cards.size(); ++rank) {
        if (cards[rank].onlySums) summing.push_back(static_cast<Rank>(rank));
    }
    return summing.size() < cards.size() ? summing : std::vector<Rank>{};
}

int fewestCards(const std::vector<CallingCard>& cards) {
    return std::min_element(cards.begin(), cards.end(),
                            [](const CallingCard& left, const CallingCard& right) {
                                return left.cards < right.cards;
                            })
        ->cards;
}

/// Cards are used in pairs, the first with the first: who has more says what stays idle, once.
void noteFewerCards(const std::vector<CallingCard>& cards, Rank me) {
    static std::atomic<bool> isNoted{false};
    for (std::size_t rank = 0; rank < cards.size(); ++rank) {
        if (cards[rank].cards >= cards[me].cards || isNoted.exchange(true)) continue;
        log(LogLevel::kWarning, "tcp: " + std::to_string(cards[me].cards) + " cards here, " +
                                    std::to_string(cards[rank].cards) + " at rank " +
                                    std::to_string(rank) + " (" + cards[rank].place +
                                    "): as many lead there as both have");
    }
}

std::vector<int> sharesOf(const Layout& layout, const std::vector<CallingCard>& cards) {
    std::vector<double> rates;
    for (const auto& node : layout.nodes) {
        std::uint64_t most = 0;
        for (const Rank rank : node) most = std::max(most, cards[rank].lineBitsPerSecond);
        rates.push_back(static_cast<double>(most) / 8);
    }
    if (layout.summing.empty()) return unequalShares(rates);
    return unequalShares(rates, nodesWithData(layout));
}

Status placeMembers(Runtime& runtime, MembershipConfig& config,
                    const std::vector<CallingCard>& cards, const std::vector<Proof>& proofs,
                    const std::vector<Endpoint*>& inside,
                    const std::map<Rank, PairChoice>& choices) {
    const auto& node = config.layout.nodes[config.layout.nodeOf(config.me)];
    Status status;
    runtime.engine().withToken([&] {
        for (std::size_t i = 0; i < cards.size(); ++i) {
            const auto rank = static_cast<Rank>(i);
            Member member;
            member.process = cards[i].process;
            member.place = cards[i].place;
            const auto at = std::find(node.begin(), node.end(), rank);
            if (at != node.end()) {
                if (rank != config.me && inside[i] == nullptr) {
                    status = Status::mismatch(
                        "rank " + std::to_string(rank) + " says that it shares memory with rank " +
                        std::to_string(config.me) +
                        ", which has not mapped it: are these proofs of an earlier start?");
                    return;
                }
                member.position = static_cast<int>(at - node.begin());
                member.pid = cards[i].mark.pid;
                member.endpoint = rank == config.me ? nullptr : inside[i];
                member.arena = rank == config.me
                                   ? Endpoint::MappedArena{runtime.arena().base(),
                                                           runtime.arena().capacityBytes()}
                                   : inside[i]->mapped();
                if (member.arena.base == nullptr) {  // it was mapped a moment ago
                    status = Status::peerLost("rank " + std::to_string(rank) + " (" + member.place +
                                              ") ended during the start");
                    return;
                }
                member.block =
                    reinterpret_cast<ControlBlock*>(member.arena.base + proofs[i].blockOffset);
            } else {
                const std::string& name = choices.at(rank).transport;
                const auto endpoint = runtime.betweenNodes(name)->endpoint(
                    cards[i].process, cards[i].offer(name)->address);
                if (!endpoint.ok()) {
                    status = endpoint.status().within("rank " + std::to_string(rank));
                    return;
                }
                member.endpoint = *endpoint;
                runtime.engine().noteBetweenNodes(**endpoint);
            }
            config.members.push_back(std::move(member));
        }
    });
    return status;
}

}  // namespace

std::vector<int> nodesFromProofs(const std::vector<std::vector<Rank>>& proven) {
    std::vector<std::vector<bool>> known(proven.size(), std::vector<bool>(proven.size()));
    for (std::size_t rank = 0; rank < proven.size(); ++rank) {
        for (const Rank other : proven[rank]) known[rank][other] = true;
    }
    const auto knows = [&](Rank a, Rank b) { return known[a][b]; };
    std::vector<std::vector<Rank>> nodes;
    std::vector<int> nodeOfRank;
    for (Rank rank = 0; rank < static_cast<Rank>(proven.size()); ++rank) {
        const auto home =
            std::find_if(nodes.begin(), nodes.end(), [&](const std::vector<Rank>& node) {
                return std::all_of(node.begin(), node.end(), [&](Rank other) {
                    return knows(rank, other) && knows(other, rank);
                });
            });
        nodeOfRank.push_back(static_cast<int>(home - nodes.begin()));
        if (home == nodes.end()) {
            nodes.push_back({rank});
        } else {
            home->push_back(rank);
        }
    }
    return nodeOfRank;
}

Result<MembershipConfig> formMembership(Runtime& runtime, Exchanger& exchanger, Rank me, int ranks,
                                        Deadline deadline) {
    const auto cards = exchangeCards(runtime, exchanger, me, ranks, deadline);
    if (!cards.ok()) return cards.status();
    noteFewerCards(*cards, me);

    const std::vector<Endpoint*> inside = proveNode(runtime, *cards, me, deadline);
    Proof proof;
    for (Rank rank = 0; rank < ranks; ++rank) {
        if (inside[rank] == nullptr) continue;
        proof.ranks.push_back(rank);
        const bool mayRead = (*cards)[me].mark.pid != 0;
        if (mayRead && (*cards)[rank].mark.isReadable()) proof.readable.push_back(rank);
    }
    const auto trials = tryTransports(runtime, *cards, me, inside, deadline);
    for (const WireUpTrial& trial : trials) {
        proof.verdicts[trial.peer].push_back({trial.transport, trial.outcome.what()});
    }
    MembershipConfig config;
    config.id = cards->front().communicator;
    config.me = me;
    config.cards = fewestCards(*cards);
    config.inlineLimit = inlineBytesFor(runtime.options(), *cards);
    const int nodeRanks = static_cast<int>(proof.ranks.size()) + 1;
    config.inlineBytes = ControlBlock::inlineBytesFor(
        nodeRanks, static_cast<std::size_t>(config.inlineLimit) + kInlineSlack * ranks);
    config.inlineBytes = (config.inlineBytes + 127) / 128 * 128;
    const auto memory =
        runtime.arena().allocate(ControlBlock::bytes(nodeRanks, config.inlineBytes), 128);
    if (!memory.ok()) return memory.status();
    config.block = *memory;
    ControlBlock::construct(*memory, nodeRanks, config.inlineBytes);
    proof.blockOffset = *runtime.arena().offsetOf(*memory, 1);

    std::vector<Bytes> proofBlobs = {pack(proof)};
    if (ranks > 1) {
        auto all = exchanger.allGather("proofs", proofBlobs.front(), deadline);
        if (!all.ok()) {
            runtime.arena().free(*memory);
            return all.status();
        }
        proofBlobs = std::move(*all);
    }
    const auto proofs = readProofs(proofBlobs);
    Status status = proofs.status();
    if (status.ok()) {
        std::vector<std::vector<Rank>> proven;
        for (const Proof& each : *proofs) proven.push_back(each.ranks);
        config.layout = Layout::of(nodesFromProofs(proven));
        config.canRead = nodeReadsItself(config.layout.nodes[config.layout.nodeOf(me)], *proofs);
        config.reading = runtime.reading() == Runtime::Reading::kAlways
                             ? ReadChoice::Wish::kAlways
                             : ReadChoice::Wish::kMeasure;
        std::vector<CallingCard> ofNode;
        for (const Rank rank : config.layout.nodes[config.layout.nodeOf(me)]) {
            ofNode.push_back((*cards)[static_cast<std::size_t>(rank)]);
        }
        const int processors = processorsOf(ofNode);
        if (static_cast<int>(ofNode.size()) > processors) runtime.engine().noteCrowded();
        config.cacheBytes = cacheBytesFor(processors, runtime.engine().cacheBytes());
        config.layout.summing = summingOf(*cards);
        config.layout.shares = sharesOf(config.layout, *cards);
        auto racks = racksOf(config.layout, *cards);
        status = racks.status();
        if (status.ok()) config.layout.racks = std::move(*racks);
    }
    if (status.ok()) status = checkTransports(*cards, config.layout.nodes);
    if (status.ok()) {
        const auto choices = choosePairs(runtime, *cards, config.layout, me, *proofs, trials);
        status = placeMembers(runtime, config, *cards, *proofs, inside, choices);
    }
    if (!status.ok()) {
        runtime.arena().free(*memory);
        return status;
    }
    return config;
}

}  // namespace isthmus
