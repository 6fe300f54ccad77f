#pragma once

#include <isthmus/isthmus.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

#include "comm/algorithm/catalogue.hpp"
#include "tools/cli/bench_format.hpp"
#include "tools/cli/bench_options.hpp"
#include "tools/cli/bench_shape.hpp"
#include "tools/cli/bench_uneven.hpp"

namespace isthmus::cli {

/// One kind of call, at one size.
struct BenchCall {
    Collective collective = Collective::kBarrier;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Rank root = 0;
    BenchShape shape;
};

enum class Placing : std::uint8_t { kOutOfPlace, kInPlace };

/// A rank of the benchmark: its communicator and its buffers. Speaks the C API only.
class BenchSession {
public:
    /// Collective: joins by the environment. Buffers hold `bytes` each.
    static Result<std::unique_ptr<BenchSession>> join(const BenchOptions& options,
                                                      std::uint64_t bytes);
    BenchSession(const BenchSession&) = delete;
    BenchSession& operator=(const BenchSession&) = delete;
    ~BenchSession();

    Rank rank() const { return rank_; }
    int ranks() const { return ranks_; }
    const Layout& layout() const { return layout_; }

    /// What measure() does from now on: the algorithm ("": chosen by the selector), the timed
    /// iterations and the untimed ones before them. The same on every rank.
    void use(const std::string& algorithm, int iterations, int warmups);

    /// Collective: who is where.
    Result<std::vector<BenchRankInfo>> rankInfos();

    /// Collective: warm-up, timed iterations, one checked call. `rate` is the goodput of a node's
    /// card in bytes per second; 0: not known.
    Result<HalfResult> measure(const BenchCall& call, Placing placing, double rate);

private:
    struct Places {
        std::byte* send = nullptr;
        std::byte* recv = nullptr;
    };
    struct Timed {
        double mean = 0;
        std::vector<double> seconds;
        std::uint64_t sent = 0;
        std::uint64_t received = 0;
    };

    explicit BenchSession(const BenchOptions& options) : options_(options) {}

    Status start(std::uint64_t bytes);
    Status allocate(std::uint64_t bytes);
    Places placesOf(const BenchCall& call, Placing placing) const;
    void fill(const BenchCall& call, const Places& places) const;
    std::uint64_t wrongOf(const BenchCall& call, const Places& places) const;
    Status issue(const BenchCall& call, const Places& places);
    Status issueUneven(const BenchCall& call, const Places& places);
    std::uint64_t wrongUneven(const BenchCall& call, const Places& places) const;
    Result<isthmusWireCounters_t> countWire();
    Result<Timed> time(const BenchCall& call, const Places& places);
    Result<std::vector<std::uint64_t>> gather(const std::vector<std::uint64_t>& mine);
    Result<HalfResult> combine(const BenchCall& call, const Timed& timed, std::uint64_t wrong,
                               double rate);
    WireResult wireOf(const BenchCall& call, const std::vector<std::uint64_t>& facts,
                      double rate) const;

    BenchOptions options_;
    isthmusComm_t comm_ = nullptr;
    isthmusCallOptions_t callOptions_ = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    Rank rank_ = 0;
    int ranks_ = 1;
    Layout layout_;
    UnevenBlocks uneven_;  ///< of `unevenFor_` elements in an even block
    std::uint64_t unevenFor_ = 0;
    std::byte* sendBuffer_ = nullptr;
    std::byte* recvBuffer_ = nullptr;
};

/// A result of the C API with its text.
Status statusOf(isthmusResult_t result);

}  // namespace isthmus::cli
