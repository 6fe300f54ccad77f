#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/store.hpp>
#include <isthmus/types.hpp>

#include "comm/bootstrap/socket.hpp"

namespace isthmus {

/// The one thing that making a communicator asks of a bootstrap: all-gather of a small blob per
/// rank. Collective; `label` is the same on all ranks and new for each call.
class Exchanger {
public:
    virtual ~Exchanger() = default;
    virtual Result<std::vector<Bytes>> allGather(std::string_view label, const Bytes& mine,
                                                 Deadline deadline) = 0;
};

/// Through a key-value store, under a prefix that this communicator alone uses.
class StoreExchanger final : public Exchanger {
public:
    StoreExchanger(std::shared_ptr<Store> store, std::string prefix, Rank rank, int ranks)
        : store_(std::move(store)), prefix_(std::move(prefix)), rank_(rank), ranks_(ranks) {}

    Result<std::vector<Bytes>> allGather(std::string_view label, const Bytes& mine,
                                         Deadline deadline) override;

private:
    std::shared_ptr<Store> store_;
    std::string prefix_;
    Rank rank_;
    int ranks_;
};

/// Through something that moves equal numbers of bytes (MPI_Allgather, or a parent communicator):
/// lengths first.
class FixedSizeExchanger final : public Exchanger {
public:
    /// Moves `bytes` bytes of each rank into receive[ranks * bytes].
    using AllGather =
        std::function<Status(const std::byte* send, std::byte* receive, std::size_t bytes)>;

    FixedSizeExchanger(int ranks, AllGather allGather)
        : ranks_(ranks), allGather_(std::move(allGather)) {}

    Result<std::vector<Bytes>> allGather(std::string_view label, const Bytes& mine,
                                         Deadline deadline) override;

private:
    int ranks_;
    AllGather allGather_;
};

/// Those of another Exchanger's ranks that form this communicator, in this order.
class SubsetExchanger final : public Exchanger {
public:
    SubsetExchanger(std::unique_ptr<Exchanger> whole, std::vector<Rank> members)
        : whole_(std::move(whole)), members_(std::move(members)) {}

    Result<std::vector<Bytes>> allGather(std::string_view label, const Bytes& mine,
                                         Deadline deadline) override;

private:
    std::unique_ptr<Exchanger> whole_;
    std::vector<Rank> members_;
};

}  // namespace isthmus
