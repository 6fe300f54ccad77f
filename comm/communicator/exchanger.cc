#include "comm/communicator/exchanger.hpp"

#include <algorithm>

#include "comm/bootstrap/exchange.hpp"

namespace isthmus {

namespace {
// Blobs hold addresses and a few numbers; more than this is not ours.
constexpr std::uint64_t kMostBlobBytes = std::uint64_t{1} << 20;
}  // namespace

Result<std::vector<Bytes>> StoreExchanger::allGather(std::string_view label, const Bytes& mine,
                                                     Deadline deadline) {
    return exchange(*store_, prefix_ + "/" + std::string(label), rank_, ranks_, mine, deadline);
}

Result<std::vector<Bytes>> FixedSizeExchanger::allGather(std::string_view, const Bytes& mine,
                                                         Deadline) {
    const std::uint64_t length = mine.size();
    std::vector<std::uint64_t> lengths(ranks_);
    ISTHMUS_TRY(allGather_(reinterpret_cast<const std::byte*>(&length),
                           reinterpret_cast<std::byte*>(lengths.data()), sizeof(length)));
    const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
    if (longest > kMostBlobBytes) {
        return Status::mismatch("the all-gather that was given for start-up returned a length of " +
                                std::to_string(longest) +
                                " bytes: it does not move bytes in rank order");
    }
    Bytes padded = mine;
    padded.resize(longest);
    Bytes all(longest * ranks_);
    ISTHMUS_TRY(allGather_(padded.data(), all.data(), longest));
    std::vector<Bytes> blobs;
    for (int rank = 0; rank < ranks_; ++rank) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(longest * rank);
        blobs.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(lengths[rank]));
    }
    return blobs;
}

Result<std::vector<Bytes>> SubsetExchanger::allGather(std::string_view label, const Bytes& mine,
                                                      Deadline deadline) {
    Result<std::vector<Bytes>> all = whole_->allGather(label, mine, deadline);
    if (!all.ok()) return all;
    std::vector<Bytes> blobs;
    for (const Rank member : members_) blobs.push_back(std::move((*all)[member]));
    return blobs;
}

}  // namespace isthmus
