#include "comm/communicator/formation.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "comm/algorithm/summing.hpp"
#include "comm/algorithm/water_fill.hpp"
#include "comm/base/bytes.hpp"
#include "comm/base/digest.hpp"
#include "comm/base/log.hpp"

namespace isthmus {

namespace {

// Of the blobs below. Ranks of other versions are told apart before anything else is read.
constexpr std::uint32_t kFormationVersion = 4;

// How long proving co-location may take before TCP is used instead; a peer that is alive answers in
// microseconds.
constexpr std::chrono::milliseconds kProofLimit(5000);

struct Card {  // a rank's calling card
    ProcessId process;
    std::uint64_t communicator = 0;
    std::string place;
    std::string options;  ///< those that must agree
    Bytes inside;
    Bytes between;
    std::uint64_t lineBitsPerSecond = 0;  ///< 0: not known
    std::uint8_t cards = 1;
    bool onlySums = false;
    RackWord rack;
};

std::string agreedOptions(const Runtime& runtime) {
    // Rules, not the path of a file with them: what counts is what it says.
    std::string text = "ISTHMUS_ALGORITHM=" + textOf(runtime.selectorOptions().rules) + " ";
    for (const auto name : {"ISTHMUS_SEGMENT", "ISTHMUS_WINDOW", "ISTHMUS_INLINE",
                            "ISTHMUS_DETERMINISTIC", "ISTHMUS_ONE_ROUNDING"}) {
        text += std::string(name) + "=" + runtime.options().text(name) + " ";
    }
    // What reaches other nodes must be one thing; who shares memory may differ.
    const Transport* const between = runtime.betweenNodes();
    return text +
           "ISTHMUS_TRANSPORTS=" + (between == nullptr ? "shm" : std::string(between->name())) +
           " ";
}

std::string placeHere() {
    char host[256] = {};
    ::gethostname(host, sizeof(host) - 1);
    return std::string(host) + " pid " + std::to_string(::getpid());
}

Bytes pack(const Card& card) {
    ByteWriter writer;
    writer.put(kFormationVersion)
        .put(card.process.high)
        .put(card.process.low)
        .put(card.communicator);
    writer.put(std::string_view(card.place)).put(std::string_view(card.options));
    writer.put(card.lineBitsPerSecond).put(card.cards);
    writer.put(static_cast<std::uint8_t>(card.onlySums ? 1 : 0));
    writer.put(std::string_view(card.rack.name)).put(card.rack.bitsPerSecond);
    writer.put(std::span<const std::byte>(card.inside))
        .put(std::span<const std::byte>(card.between));
    return writer.take();
}

Result<Card> unpack(const Bytes& bytes, Rank rank) {
    ByteReader reader(bytes);
    if (const auto version = reader.get<std::uint32_t>(); version != kFormationVersion) {
        return Status::mismatch(
            "rank " + std::to_string(rank) + " runs another version of isthmus (start-up format " +
            std::to_string(version) + ", here " + std::to_string(kFormationVersion) + ")");
    }
    Card card;
    card.process.high = reader.get<std::uint64_t>();
    card.process.low = reader.get<std::uint64_t>();
    card.communicator = reader.get<std::uint64_t>();
    card.place = reader.getText();
    card.options = reader.getText();
    card.lineBitsPerSecond = reader.get<std::uint64_t>();
    card.cards = reader.get<std::uint8_t>();
    card.onlySums = reader.get<std::uint8_t>() != 0;
    card.rack = {reader.getText(), reader.get<std::uint64_t>(), card.lineBitsPerSecond};
    const auto inside = reader.getBytes();
    card.inside.assign(inside.begin(), inside.end());
    const auto between = reader.getBytes();
    card.between.assign(between.begin(), between.end());
    if (!reader.ok())
        return Status::mismatch("rank " + std::to_string(rank) + " sent a broken start-up message");
    return card;
}

Result<std::vector<Card>> readCards(const std::vector<Bytes>& blobs, Rank me) {
    std::vector<Card> cards;
    for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
        Result<Card> card = unpack(blobs[rank], static_cast<Rank>(rank));
        if (!card.ok()) return card.status();
        cards.push_back(std::move(*card));
    }
    for (std::size_t rank = 0; rank < cards.size(); ++rank) {
        if (cards[rank].options != cards[me].options) {
            return Status(Status::Code::kConfiguration,
                          "options differ between the ranks: rank " + std::to_string(me) + " has " +
                              cards[me].options + "and rank " + std::to_string(rank) + " has " +
                              cards[rank].options);
        }
        for (std::size_t other = 0; other < rank; ++other) {
            if (cards[other].process != cards[rank].process) continue;
            return Status::invalidArgument("ranks " + std::to_string(other) + " and " +
                                           std::to_string(rank) + " are the same process (" +
                                           cards[rank].place +
                                           "): a process has one rank in a communicator");
        }
    }
    return cards;
}

// Endpoints of ranks that may be on this node; those that turn out to share memory stay.
std::vector<Endpoint*> proveNode(Runtime& runtime, const std::vector<Card>& cards, Rank me,
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

struct Proof {
    std::vector<Rank> ranks;
    std::uint64_t blockOffset = 0;
};

Bytes pack(const Proof& proof) {
    ByteWriter writer;
    writer.put(proof.blockOffset).put(static_cast<std::uint32_t>(proof.ranks.size()));
    for (const Rank rank : proof.ranks) writer.put(static_cast<std::int32_t>(rank));
    return writer.take();
}

Result<std::vector<Proof>> readProofs(const std::vector<Bytes>& blobs) {
    std::vector<Proof> proofs;
    for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
        ByteReader reader(blobs[rank]);
        Proof proof;
        proof.blockOffset = reader.get<std::uint64_t>();
        const auto count = reader.get<std::uint32_t>();
        for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
            const auto proven = reader.get<std::int32_t>();
            if (proven >= 0 && proven < static_cast<std::int32_t>(blobs.size()))
                proof.ranks.push_back(proven);
        }
        if (!reader.ok()) {
            return Status::mismatch("rank " + std::to_string(rank) +
                                    " sent a broken start-up message");
        }
        proofs.push_back(std::move(proof));
    }
    return proofs;
}

Result<std::vector<std::vector<int>>> racksOf(const Layout& layout,
                                              const std::vector<Card>& cards) {
    std::vector<RackWord> words;
    for (const Card& card : cards) words.push_back(card.rack);
    return racksOf(layout, words);
}

/// Ranks that only add; none where nobody would have anything to add.
std::vector<Rank> summingOf(const std::vector<Card>& cards) {
    std::vector<Rank> summing;
    for (std::size_t rank = 0; rank < cards.size(); ++rank) {
        if (cards[rank].onlySums) summing.push_back(static_cast<Rank>(rank));
    }
    return summing.size() < cards.size() ? summing : std::vector<Rank>{};
}

int fewestCards(const std::vector<Card>& cards) {
    return std::min_element(
               cards.begin(), cards.end(),
               [](const Card& left, const Card& right) { return left.cards < right.cards; })
        ->cards;
}

std::vector<int> sharesOf(const Layout& layout, const std::vector<Card>& cards) {
    std::vector<double> rates;
    for (const auto& node : layout.nodes) {
        std::uint64_t most = 0;
        for (const Rank rank : node) most = std::max(most, cards[rank].lineBitsPerSecond);
        rates.push_back(static_cast<double>(most) / 8);
    }
    if (layout.summing.empty()) return unequalShares(rates);
    return unequalShares(rates, nodesWithData(layout));
}

Status placeMembers(Runtime& runtime, MembershipConfig& config, const std::vector<Card>& cards,
                    const std::vector<Proof>& proofs, const std::vector<Endpoint*>& inside) {
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
                Transport* const between = runtime.betweenNodes();
                const auto endpoint = between == nullptr
                                          ? Result<Endpoint*>(Status::configuration(
                                                "no transport reaches " + cards[i].place))
                                          : between->endpoint(cards[i].process, cards[i].between);
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
    const auto knows = [&](Rank a, Rank b) {
        return std::find(proven[a].begin(), proven[a].end(), b) != proven[a].end();
    };
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
    static std::atomic<std::uint64_t> made{0};
    Card mine;
    mine.process = runtime.self();
    mine.communicator =
        Digest().add(mine.process.high).add(mine.process.low).add(made.fetch_add(1)).value();
    mine.place = placeHere();
    mine.options = agreedOptions(runtime);
    mine.onlySums = runtime.onlySums();
    mine.rack = runtime.rack();
    mine.lineBitsPerSecond = static_cast<std::uint64_t>(runtime.lineBitsPerSecond());
    mine.cards = static_cast<std::uint8_t>(runtime.cards());
    runtime.engine().withToken([&] {
        if (Transport* inside = runtime.insideNode()) mine.inside = inside->address();
        if (Transport* between = runtime.betweenNodes()) mine.between = between->address();
    });
    std::vector<Bytes> blobs = {pack(mine)};
    if (ranks > 1) {
        auto all = exchanger.allGather("cards", blobs.front(), deadline);
        if (!all.ok()) return all.status();
        blobs = std::move(*all);
    }
    const auto cards = readCards(blobs, me);
    if (!cards.ok()) return cards.status();

    const std::vector<Endpoint*> inside = proveNode(runtime, *cards, me, deadline);
    Proof proof;
    for (Rank rank = 0; rank < ranks; ++rank) {
        if (inside[rank] != nullptr) proof.ranks.push_back(rank);
    }
    MembershipConfig config;
    config.id = cards->front().communicator;
    config.me = me;
    config.cards = fewestCards(*cards);
    config.inlineBytes =
        static_cast<std::size_t>(runtime.selectorOptions().inlineBytes) + kInlineSlack * ranks;
    config.inlineBytes = (config.inlineBytes + 127) / 128 * 128;
    const int nodeRanks = static_cast<int>(proof.ranks.size()) + 1;
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
        config.layout.summing = summingOf(*cards);
        config.layout.shares = sharesOf(config.layout, *cards);
        auto racks = racksOf(config.layout, *cards);
        status = racks.status();
        if (status.ok()) config.layout.racks = std::move(*racks);
    }
    if (status.ok()) {
        status = placeMembers(runtime, config, *cards, *proofs, inside);
    }
    if (!status.ok()) {
        runtime.arena().free(*memory);
        return status;
    }
    return config;
}

}  // namespace isthmus
