#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/algorithm/catalogue.hpp"
#include "comm/base/clock.hpp"
#include "comm/bootstrap/store_memory.hpp"
#include "comm/communicator/communicator.hpp"
#include "comm/transport/inproc/inproc_transport.hpp"

namespace isthmus {

/// Ranks that are threads of this process, each with a Runtime of its own, spread over nodes as
/// asked: ranks of one node map each other's arenas, ranks of different nodes have messages only.
class LocalJob {
public:
    /// What carries bytes: function calls, or what a real job has (shared memory inside a node, TCP
    /// over loopback between nodes), or one of these two with calls for the other. kTcp makes of
    /// one node as many as there are ranks, as a job without shared memory does. kCards: the same
    /// over devices, by which messages go from 1 KiB on without a copy.
    enum class Wires : std::uint8_t { kInproc, kReal, kShm, kTcp, kCards };

    /// `nodeOfRank[r]`: any numbers. `device`: one of deviceKinds, for kCards.
    explicit LocalJob(std::vector<int> nodeOfRank,
                      const std::vector<std::pair<std::string, std::string>>& options = {},
                      Wires wires = Wires::kInproc, std::string device = {});
    ~LocalJob();

    const std::vector<int>& nodeOfRank() const { return nodeOfRank_; }
    int ranks() const { return static_cast<int>(nodeOfRank_.size()); }
    Runtime& runtime(Rank rank) { return *runtimes_[rank]; }

    /// Runs `body` in a thread per rank, with a communicator over all; joins them. Failures to make
    /// it are test failures.
    void run(const std::function<void(Rank, Communicator&)>& body, CommunicatorConfig config = {});

private:
    Status addTransports(Runtime& runtime, Rank rank, Wires wires);
    Status addShm(Runtime& runtime, Rank rank);
    Status addTcp(Runtime& runtime);
    Status addCard(Runtime& runtime, Rank rank);

    std::vector<int> nodeOfRank_;
    const std::string device_;
    SteadyClock clock_;
    std::vector<std::unique_ptr<InprocFabric>> inside_;
    InprocFabric between_;
    std::vector<std::unique_ptr<Runtime>> runtimes_;
    int made_ = 0;
};

}  // namespace isthmus
