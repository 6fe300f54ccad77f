#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "comm/engine/call.hpp"
#include "comm/selector/select.hpp"

namespace isthmus {

/// The plans of one communicator, by what they depend on: never by pointer. One thread at a time.
class PlanCache {
public:
    PlanCache(Layout layout, Rank me, SelectorOptions options);

    /// How `call` will run; `algorithm` forces one (empty: chosen). Selections are remembered for
    /// the latest shapes, plans for ever (there are few: collective x algorithm x root). Errors:
    /// those of select() and makePlan().
    Result<std::shared_ptr<const PreparedPlans>> prepare(const CallRequest& call,
                                                         const std::string& algorithm);

    std::size_t plans() const { return plans_.size(); }

private:
    /// The last: not compiled as a meeting in the lane.
    using PlanKey = std::tuple<Collective, std::string, Rank, Mapping, bool>;
    using ShapeKey =
        std::tuple<Collective, DataType, std::uint64_t, Rank, std::uint64_t, bool, std::string>;

    Result<std::shared_ptr<const CompiledPlan>> planOf(const PlanKey& key);
    Result<std::shared_ptr<const PreparedPlans>> make(const CallShape& shape,
                                                      const std::string& algorithm,
                                                      std::uint64_t countsDigest);

    Layout layout_;
    Rank me_;
    SelectorOptions options_;
    std::vector<int> positionInNode_;
    int nodeRanks_ = 1;
    std::map<PlanKey, std::shared_ptr<const CompiledPlan>> plans_;
    std::map<ShapeKey, std::shared_ptr<const PreparedPlans>> shapes_;
    ShapeKey latestKey_;  ///< of latest_: loops repeat one call
    std::shared_ptr<const PreparedPlans> latest_;
};

}  // namespace isthmus
