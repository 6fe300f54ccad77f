#include "tools/cli/probe_session.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>

#include "comm/base/knobs.hpp"
#include "comm/bootstrap/launch_environment.hpp"
#include "tools/cli/bench_session.hpp"
#include "tools/cli/probe_flops.hpp"
#include "tools/cli/probe_link.hpp"
#include "topology/discover/select_interface.hpp"
#include "topology/model/snapshot.hpp"

namespace isthmus::cli {
namespace {

// Many slices of the processor's when all ranks share it.
constexpr std::chrono::milliseconds kFlopsWindow{300};
constexpr std::size_t kNameBytes = 80;

/// A rank's facts as they travel.
struct Block {
    std::array<char, kNameBytes> host{};
    std::array<char, kNameBytes> card{};
    std::array<char, kNameBytes> rack{};
    std::int64_t unitBytes = 0;
    std::int64_t memoryBytes = 0;
    Flops flops;
    std::int64_t processors = 1;
    std::int64_t hasAccelerator = 0;
};

void put(std::array<char, kNameBytes>& to, const std::string& text) {
    std::memcpy(to.data(), text.data(), std::min(text.size(), kNameBytes - 1));
}

/// The part of "host:port" before the port, without the brackets of an IPv6 address.
std::string hostOf(const std::string& store) {
    std::string host = store.substr(0, store.rfind(':'));
    if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
    return host;
}

/// The device that messages between nodes take.
NetDevice cardOf(const NodeSnapshot& node) {
    const auto environment = readLaunchEnvironment(launchFacts());
    std::string towards;
    if (environment.ok() && !environment->store.empty()) {
        const auto address = addressTowards(hostOf(environment->store));
        if (address.ok()) towards = *address;
    }
    const auto chosen = selectInterfaces(
        node.netDevices, environmentVariable("ISTHMUS_INTERFACE").value_or(""), {towards, false});
    if (!chosen.ok()) return {};
    const auto device =
        std::find_if(node.netDevices.begin(), node.netDevices.end(),
                     [&](const NetDevice& each) { return each.name == chosen->front().device; });
    return device == node.netDevices.end() ? NetDevice{} : *device;
}

Result<Block> ownBlock(bool isMultiNode) {
    const Result<NodeSnapshot> node = discoverNode();
    if (!node.ok()) return node.status();
    Block block;
    put(block.host, node->hostName);
    if (isMultiNode) {
        const NetDevice card = cardOf(*node);
        put(block.card, card.name);
        block.unitBytes = card.largestUnitBytes.value;
    }
    put(block.rack, environmentVariable("ISTHMUS_RACK").value_or(""));
    block.memoryBytes = node->machine.memoryBytes.value;
    const Fact<std::int64_t>& limit = node->limits.memoryBytes;
    if (limit.isKnown()) block.memoryBytes = std::min(block.memoryBytes, limit.value);
    block.processors = std::max(node->machine.allowedProcessors.value, 1);
    std::error_code ignored;
    block.hasAccelerator =
        static_cast<std::int64_t>(std::filesystem::exists("/proc/driver/nvidia/gpus", ignored) ||
                                  std::filesystem::exists("/dev/kfd", ignored));
    return block;
}

class Session {
public:
    Session() = default;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session() {
        link_.reset();
        if (comm_ != nullptr) static_cast<void>(isthmusCommDestroy(comm_));
    }

    Status join() {
        ISTHMUS_TRY(statusOf(isthmusCommInitEnv(&comm_, nullptr)));
        int ranks = 0;
        ISTHMUS_TRY(statusOf(isthmusCommCount(comm_, &ranks)));
        ISTHMUS_TRY(statusOf(isthmusCommUserRank(comm_, &rank_)));
        nodeOf_.resize(static_cast<std::size_t>(ranks));
        ISTHMUS_TRY(statusOf(isthmusCommNodes(comm_, nodeOf_.data())));
        ranksOf_.resize(
            static_cast<std::size_t>(*std::max_element(nodeOf_.begin(), nodeOf_.end())) + 1);
        for (Rank rank = 0; rank < ranks; ++rank) {
            ranksOf_[static_cast<std::size_t>(nodeOf_[static_cast<std::size_t>(rank)])].push_back(
                rank);
        }
        link_ = std::make_unique<ProbeLink>(comm_, rank_, ranks);
        return link_->start();
    }

    Rank rank() const { return rank_; }
    int nodes() const { return static_cast<int>(ranksOf_.size()); }

    Status look(ProbeReadings& readings) {
        Result<Block> block = ownBlock(nodes() > 1);
        if (!block.ok()) return block.status();
        ISTHMUS_TRY(statusOf(isthmusBarrier(comm_, nullptr, nullptr)));
        block->flops = measureFlops(kFlopsWindow);
        std::vector<Block> all(nodeOf_.size());
        ISTHMUS_TRY(statusOf(isthmusAllGather(&*block, all.data(), sizeof(Block), isthmusUint8,
                                              comm_, nullptr, nullptr)));
        std::vector<int> seen(ranksOf_.size(), 0);
        for (std::size_t at = 0; at < all.size(); ++at) {
            const int node = nodeOf_[at];
            readings.ranks.push_back(
                {node, seen[static_cast<std::size_t>(node)]++, all[at].host.data(),
                 all[at].card.data(), all[at].unitBytes, all[at].rack.data(), all[at].memoryBytes,
                 all[at].flops.ofProcessor, all[at].flops.share,
                 static_cast<int>(all[at].processors), all[at].hasAccelerator != 0});
        }
        return {};
    }

    /// From the first rank of a node to its second, in a few nodes at a time.
    Status measureInside(ProbeReadings& readings) {
        for (const std::vector<Rank>& ranks : ranksOf_) {
            if (ranks.size() < 2) continue;
            const std::vector<ProbeLink::Pair> pair = {{ranks[0], ranks[1]}};
            const auto seconds = link_->latencySeconds(pair);
            if (!seconds.ok()) return seconds.status();
            const auto arrivals = link_->stream(pair);
            if (!arrivals.ok()) return arrivals.status();
            readings.insideLatencySeconds.push_back(seconds->front());
            readings.insideBytesPerSecond.push_back(rateOf(*arrivals));
            if (readings.insideLatencySeconds.size() >= kMostNodesInside) break;
        }
        return {};
    }

    Status measureAcross(ProbeReadings& readings) {
        for (const auto& step : meetingsOf(nodes())) {
            const auto seconds = link_->latencySeconds(pairsOf(step));
            if (!seconds.ok()) return seconds.status();
            readings.acrossLatencySeconds.insert(readings.acrossLatencySeconds.end(),
                                                 seconds->begin(), seconds->end());
            ISTHMUS_TRY(streams(step, false, readings.alone));
            if (maySpeakTogether()) ISTHMUS_TRY(streams(step, true, readings.ofNodes));
        }
        std::vector<double> rates = cardsOf(readings.alone, nodes());
        const auto fastest = std::max_element(rates.begin(), rates.end()) - rates.begin();
        for (const int node : uncertainNodes(rates, readings.alone)) {
            ISTHMUS_TRY(streams({{node, static_cast<int>(fastest)}}, false, readings.alone));
        }
        std::vector<std::pair<int, int>> round;
        for (int node = 0; node < nodes(); ++node) round.emplace_back(node, (node + 1) % nodes());
        return streams(round, false, readings.together);
    }

private:
    static constexpr std::size_t kMostNodesInside =
        8;  // they are mostly alike, and take 0.2 s each

    bool maySpeakTogether() const {
        return std::any_of(ranksOf_.begin(), ranksOf_.end(),
                           [](const std::vector<Rank>& ranks) { return ranks.size() > 1; });
    }

    std::vector<ProbeLink::Pair> pairsOf(const std::vector<std::pair<int, int>>& nodes) const {
        std::vector<ProbeLink::Pair> pairs;
        for (const auto& [from, to] : nodes) {
            pairs.emplace_back(ranksOf_[static_cast<std::size_t>(from)].front(),
                               ranksOf_[static_cast<std::size_t>(to)].front());
        }
        return pairs;
    }

    /// All that came to one node, from the first message's end to the last's.
    static double rateOf(const std::vector<ProbeLink::Arrival>& arrivals) {
        double bytes = 0;
        double first = arrivals.front().firstSeconds;
        double last = arrivals.front().lastSeconds;
        for (const ProbeLink::Arrival& arrival : arrivals) {
            bytes += arrival.bytes;
            first = std::min(first, arrival.firstSeconds);
            last = std::max(last, arrival.lastSeconds);
        }
        return last > first ? bytes / (last - first) : 0;
    }

    /// Between the first ranks of two nodes, or between as many as both have.
    Status streams(const std::vector<std::pair<int, int>>& nodes, bool isOfAllRanks,
                   std::vector<ProbeStream>& found) {
        std::vector<ProbeLink::Pair> pairs;
        std::vector<std::size_t> ends;
        for (const auto& [from, to] : nodes) {
            const std::vector<Rank>& senders = ranksOf_[static_cast<std::size_t>(from)];
            const std::vector<Rank>& receivers = ranksOf_[static_cast<std::size_t>(to)];
            const std::size_t ranks = isOfAllRanks ? std::min(senders.size(), receivers.size()) : 1;
            for (std::size_t at = 0; at < ranks; ++at) {
                pairs.emplace_back(senders[at], receivers[at]);
            }
            ends.push_back(pairs.size());
        }
        const auto arrivals = link_->stream(pairs);
        if (!arrivals.ok()) return arrivals.status();
        auto begin = arrivals->begin();
        for (std::size_t at = 0; at < nodes.size(); ++at) {
            const auto end = arrivals->begin() + static_cast<std::ptrdiff_t>(ends[at]);
            found.push_back({nodes[at].first, nodes[at].second, rateOf({begin, end})});
            begin = end;
        }
        return {};
    }

    isthmusComm_t comm_ = nullptr;
    Rank rank_ = 0;
    std::vector<int> nodeOf_;
    std::vector<std::vector<Rank>> ranksOf_;
    std::unique_ptr<ProbeLink> link_;
};

}  // namespace

Result<Probed> probe() {
    Session session;
    ISTHMUS_TRY(session.join());
    Probed probed;
    probed.rank = session.rank();
    ISTHMUS_TRY(session.look(probed.readings));
    ISTHMUS_TRY(session.measureInside(probed.readings));
    if (session.nodes() > 1) ISTHMUS_TRY(session.measureAcross(probed.readings));
    return probed;
}

}  // namespace isthmus::cli
