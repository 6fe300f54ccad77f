#include <algorithm>

#include "comm/base/bytes.hpp"
#include "comm/communicator/communicator.hpp"

namespace isthmus {

namespace {

// The start-up messages of all new groups go through their parent: a rank that has none of its own
// to send takes part in both rounds all the same.
Status keepPace(Exchanger& exchanger, Deadline deadline) {
    for (const auto* label : {"cards", "proofs"}) {
        if (auto others = exchanger.allGather(label, {}, deadline); !others.ok())
            return others.status();
    }
    return {};
}

}  // namespace

std::unique_ptr<Exchanger> Communicator::exchangerOverThis() {
    return std::make_unique<FixedSizeExchanger>(
        ranks_, [this](const std::byte* send, std::byte* receive, std::size_t bytes) {
            CallRequest request;
            request.collective = Collective::kAllGather;
            request.input = send;
            request.output = receive;
            request.counts.uniform = bytes;
            CallOptions options;
            options.name = "split";
            options.isBlocking = true;
            return call(std::move(request), options)->status();
        });
}

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key,
                                                          CommunicatorConfig config) {
    ISTHMUS_TRY(connect());
    const auto deadline = deadlineIn(config_.timeout);
    auto exchanger = exchangerOverThis();
    ByteWriter writer;
    writer.put(static_cast<std::int32_t>(color)).put(static_cast<std::int32_t>(key));
    const auto wishes = exchanger->allGather("split", writer.take(), deadline);
    if (!wishes.ok()) return wishes.status();
    std::vector<std::pair<int, Rank>> members;  // (key, rank)
    for (Rank rank = 0; rank < ranks_; ++rank) {
        ByteReader reader((*wishes)[rank]);
        const auto theirs = reader.get<std::int32_t>();
        if (theirs == color) members.emplace_back(reader.get<std::int32_t>(), rank);
    }
    std::sort(members.begin(), members.end());
    std::vector<Rank> ranks;
    for (const auto& [theirKey, rank] : members) ranks.push_back(rank);
    if (color < 0) {
        ISTHMUS_TRY(keepPace(*exchanger, deadline));
        return std::unique_ptr<Communicator>();
    }
    if (config.globalRanks.empty()) {
        for (const Rank rank : ranks) {
            config.globalRanks.push_back(config_.globalRanks.empty() ? rank
                                                                     : config_.globalRanks[rank]);
        }
    }
    const auto me = static_cast<Rank>(std::find(ranks.begin(), ranks.end(), me_) - ranks.begin());
    const int count = static_cast<int>(ranks.size());
    config.isLazy = false;
    // A group of one exchanges nothing by itself.
    if (count == 1) ISTHMUS_TRY(keepPace(*exchanger, deadline));
    return make(runtime_, std::make_unique<SubsetExchanger>(std::move(exchanger), std::move(ranks)),
                me, count, std::move(config));
}

}  // namespace isthmus
