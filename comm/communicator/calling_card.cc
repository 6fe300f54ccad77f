#include "comm/communicator/calling_card.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "comm/base/bytes.hpp"
#include "comm/base/digest.hpp"

namespace isthmus {

namespace {

// Of what ranks exchange. Ranks of other versions are told apart before anything else is read.
constexpr std::uint32_t kFormationVersion = 8;

std::string agreedOptions(const Runtime& runtime) {
    // Rules, not the path of a file with them: what counts is what it says.
    std::string text = "ISTHMUS_ALGORITHM=" + textOf(runtime.selectorOptions().rules) + " ";
    for (const auto name :
         {"ISTHMUS_SEGMENT", "ISTHMUS_WINDOW", "ISTHMUS_INLINE", "ISTHMUS_DETERMINISTIC",
          "ISTHMUS_ONE_ROUNDING", "ISTHMUS_READ_PEERS"}) {
        text += std::string(name) + "=" + runtime.options().text(name) + " ";
    }
    return text;
}

std::string placeHere() {
    char host[256] = {};
    ::gethostname(host, sizeof(host) - 1);
    return std::string(host) + " pid " + std::to_string(::getpid());
}

Bytes cpuMaskHere() {
    cpu_set_t set;
    CPU_ZERO(&set);
    Bytes mask;
    if (::sched_getaffinity(0, sizeof(set), &set) != 0) return mask;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &set)) continue;
        mask.resize(std::max(mask.size(), cpu / 8 + 1));
        mask[cpu / 8] |= std::byte(1 << cpu % 8);
    }
    return mask;
}

CallingCard cardOf(Runtime& runtime) {
    static std::atomic<std::uint64_t> made{0};
    CallingCard card;
    card.process = runtime.self();
    card.communicator =
        Digest().add(card.process.high).add(card.process.low).add(made.fetch_add(1)).value();
    card.place = placeHere();
    card.options = agreedOptions(runtime);
    card.onlySums = runtime.onlySums();
    if (runtime.reading() != Runtime::Reading::kNever) card.mark = ReadMark::ofProcess();
    card.rack = runtime.rack();
    card.host = runtime.host();
    card.cpuMask = cpuMaskHere();
    card.cpusAllowed = runtime.engine().config().cpus;
    card.sharesProcessors = runtime.engine().isCrowded();
    card.lineBitsPerSecond = static_cast<std::uint64_t>(runtime.lineBitsPerSecond());
    card.cards = static_cast<std::uint8_t>(runtime.cards());
    card.missing = runtime.missingTransports();
    runtime.engine().withToken([&] {
        if (Transport* inside = runtime.insideNode()) card.inside = inside->address();
        for (const Transport* between : runtime.betweenNodes()) {
            card.between.push_back({std::string(between->name()), between->address()});
        }
    });
    return card;
}

Bytes pack(const CallingCard& card) {
    ByteWriter writer;
    writer.put(kFormationVersion)
        .put(card.process.high)
        .put(card.process.low)
        .put(card.communicator);
    writer.put(std::string_view(card.place)).put(std::string_view(card.options));
    writer.put(card.lineBitsPerSecond).put(card.cards);
    writer.put(static_cast<std::uint8_t>(card.onlySums ? 1 : 0));
    writer.put(std::string_view(card.rack.name)).put(card.rack.bitsPerSecond);
    writer.put(card.host.id).put(static_cast<std::uint8_t>(card.host.isLoopbackOnly ? 1 : 0));
    writer.put(std::span<const std::byte>(card.cpuMask));
    writer.put(card.cpusAllowed).put(static_cast<std::uint8_t>(card.sharesProcessors ? 1 : 0));
    writer.put(card.mark.pid).put(card.mark.address).put(card.mark.value);
    writer.put(std::span<const std::byte>(card.inside));
    writer.put(static_cast<std::uint8_t>(card.between.size()));
    for (const TransportOffer& offer : card.between) {
        writer.put(std::string_view(offer.name)).put(std::span<const std::byte>(offer.address));
    }
    writer.put(static_cast<std::uint8_t>(card.missing.size()));
    for (const MissingTransport& missing : card.missing) {
        writer.put(std::string_view(missing.name)).put(std::string_view(missing.why));
    }
    return writer.take();
}

Bytes bytesOf(ByteReader& reader) {
    const auto bytes = reader.getBytes();
    return {bytes.begin(), bytes.end()};
}

Result<CallingCard> unpack(const Bytes& bytes, Rank rank) {
    ByteReader reader(bytes);
    if (const auto version = reader.get<std::uint32_t>(); version != kFormationVersion) {
        return Status::mismatch(
            "rank " + std::to_string(rank) + " runs another version of isthmus (start-up format " +
            std::to_string(version) + ", here " + std::to_string(kFormationVersion) + ")");
    }
    CallingCard card;
    card.process.high = reader.get<std::uint64_t>();
    card.process.low = reader.get<std::uint64_t>();
    card.communicator = reader.get<std::uint64_t>();
    card.place = reader.getText();
    card.options = reader.getText();
    card.lineBitsPerSecond = reader.get<std::uint64_t>();
    card.cards = reader.get<std::uint8_t>();
    card.onlySums = reader.get<std::uint8_t>() != 0;
    card.rack = {reader.getText(), reader.get<std::uint64_t>(), card.lineBitsPerSecond};
    card.host.id = reader.get<std::uint64_t>();
    card.host.isLoopbackOnly = reader.get<std::uint8_t>() != 0;
    card.cpuMask = bytesOf(reader);
    card.cpusAllowed = reader.get<std::int32_t>();
    card.sharesProcessors = reader.get<std::uint8_t>() != 0;
    card.mark.pid = reader.get<std::int32_t>();
    card.mark.address = reader.get<std::uint64_t>();
    card.mark.value = reader.get<std::uint64_t>();
    card.inside = bytesOf(reader);
    for (auto left = reader.get<std::uint8_t>(); left > 0; --left) {
        std::string name = reader.getText();
        card.between.push_back({std::move(name), bytesOf(reader)});
    }
    for (auto left = reader.get<std::uint8_t>(); left > 0; --left) {
        std::string name = reader.getText();
        card.missing.push_back({std::move(name), reader.getText()});
    }
    if (!reader.ok())
        return Status::mismatch("rank " + std::to_string(rank) + " sent a broken start-up message");
    return card;
}

Status check(const std::vector<CallingCard>& cards, Rank me) {
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
    return {};
}

/// That nobody offers his loopback to another host. All ranks find the same pair.
Status checkReach(const std::vector<CallingCard>& cards) {
    for (std::size_t rank = 0; rank < cards.size(); ++rank) {
        const Runtime::Host& host = cards[rank].host;
        if (!host.isLoopbackOnly || host.id == 0) continue;
        for (std::size_t other = 0; other < cards.size(); ++other) {
            if (cards[other].host.id == host.id || cards[other].host.id == 0) continue;
            return Status::configuration(
                "rank " + std::to_string(rank) + " (" + cards[rank].place +
                ") has nothing but loopback addresses for rank " + std::to_string(other) + " (" +
                cards[other].place + "), which is on another host: see ISTHMUS_INTERFACE there");
        }
    }
    return {};
}

}  // namespace

const TransportOffer* CallingCard::offer(std::string_view name) const {
    const auto found = std::find_if(between.begin(), between.end(),
                                    [&](const TransportOffer& each) { return each.name == name; });
    return found == between.end() ? nullptr : &*found;
}

Result<std::vector<CallingCard>> exchangeCards(Runtime& runtime, Exchanger& exchanger, Rank me,
                                               int ranks, Deadline deadline) {
    std::vector<Bytes> blobs = {pack(cardOf(runtime))};
    if (ranks > 1) {
        auto all = exchanger.allGather("cards", blobs.front(), deadline);
        if (!all.ok()) return all.status();
        blobs = std::move(*all);
    }
    std::vector<CallingCard> cards;
    for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
        Result<CallingCard> card = unpack(blobs[rank], static_cast<Rank>(rank));
        if (!card.ok()) return card.status();
        cards.push_back(std::move(*card));
    }
    ISTHMUS_TRY(check(cards, me));
    ISTHMUS_TRY(checkReach(cards));
    return cards;
}

}  // namespace isthmus
