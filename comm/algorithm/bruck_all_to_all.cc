#include "comm/algorithm/bruck_all_to_all.hpp"

#include "comm/algorithm/chunks.hpp"

namespace isthmus {
namespace {

/// Blocks on their way, by the positions that they have to go in all.
class Travellers {
public:
    Travellers(PlanBuilder& plan, const Group& group)
        : plan_(plan), group_(group), at_(static_cast<std::size_t>(group.size())) {
        std::vector<Slice> inputs;
        for (int distance = 1; distance < group.size(); ++distance) {
            inputs.push_back(plan.input()(block(plan, group[group.me() + distance])));
            at_[static_cast<std::size_t>(distance)] = scratchLike(plan, inputs.back());
        }
        plan.copy(joined(at_), joined(inputs));
    }

    /// Moves on, by `digit` times `unit` positions, all blocks whose distance has this digit there.
    void pass(int unit, int digit, int radix) {
        const int step = digit * unit;
        std::vector<Slice> leaving;
        std::vector<Slice> coming;
        for (int distance = step; distance < group_.size(); ++distance) {
            if (distance / unit % radix != digit) continue;
            Slice& at = at_[static_cast<std::size_t>(distance)];
            leaving.push_back(at);
            at = landing(distance, unit * radix);
            coming.push_back(at);
        }
        plan_.send(group_[group_.me() + step], joined(leaving));
        plan_.recv(group_[group_.me() - step], joined(coming));
    }

private:
    /// Room for the block that has come distance % done positions to me: my output when that is
    /// all of its way.
    Slice landing(int distance, int done) {
        const int source = group_.me() - distance % done;
        if (distance < done) return plan_.output()(block(plan_, group_[source]));
        std::vector<ChunkName> names;
        const int pair = group_[source] * plan_.ranks() + group_[source + distance];
        for (int chunk = 0; chunk < plan_.chunksPerBlock(); ++chunk) names.push_back({pair, chunk});
        return plan_.grabScratch(names);
    }

    PlanBuilder& plan_;
    const Group& group_;
    std::vector<Slice> at_;
};

}  // namespace

void bruckAllToAll(PlanBuilder& plan, const Group& group, int radix) {
    Travellers travellers(plan, group);
    for (int unit = 1; unit < group.size(); unit *= radix) {
        for (int digit = 1; digit < radix && digit * unit < group.size(); ++digit) {
            travellers.pass(unit, digit, radix);
        }
    }
}

}  // namespace isthmus
