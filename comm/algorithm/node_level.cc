#include "comm/algorithm/node_level.hpp"

#include "comm/algorithm/chunks.hpp"

namespace isthmus {

std::vector<ChunkName> blockNames(const PlanBuilder& plan, int blocks) {
    std::vector<ChunkName> names;
    names.reserve(static_cast<std::size_t>(blocks) *
                  static_cast<std::size_t>(plan.chunksPerBlock()));
    for (int block = 0; block < blocks; ++block) {
        for (int chunk = 0; chunk < plan.chunksPerBlock(); ++chunk) names.push_back({block, chunk});
    }
    return names;
}

std::vector<ChunkName> allToAllNames(const PlanBuilder& plan, const Group& destinations) {
    return plan.like(plan.input()(chunksOf(plan, destinations.ranks())));
}

NodeLevel::NodeLevel(PlanBuilder& plan, const Group& node, const std::vector<ChunkName>& slots)
    : plan_(plan),
      node_(node),
      canRead_(node_.size() > 1 && plan.mapping() == Mapping::kRead),
      isStaged_(canRead_ || (node_.size() > 1 && plan.mapping() == Mapping::kShared)) {
    if (isStaged_) plan_.grabShared(slots);
}

void NodeLevel::offerInput(const Chunks& forOthers) {
    if (copiesInputs() && !forOthers.empty()) {
        plan_.copy(plan_.at(plan_.me()).shared(forOthers), plan_.input()(forOthers));
    }
    signalAll();
}

void NodeLevel::signalAll() {
    plan_.signal(node_.ranks());
}

void NodeLevel::waitForAll() {
    plan_.wait(node_.ranks());
}

void NodeLevel::meet() {
    plan_.meet(node_.ranks());
}

Slice NodeLevel::inputOf(Rank rank, const Chunks& chunks) const {
    const bool isInput = !copiesInputs() || rank == plan_.me();
    return isInput ? plan_.at(rank).input(chunks) : plan_.at(rank).shared(chunks);
}

void NodeLevel::sumInputs(const Slice& target, const Chunks& chunks, Completes completes) {
    if (chunks.empty()) return;
    std::vector<Slice> terms;
    terms.reserve(node_.ranks().size());
    for (const Rank rank : node_.ranks()) {
        terms.push_back(inputOf(rank, chunks));
        if (!canRead_ || rank == plan_.me()) continue;
        const Slice read = scratchLike(plan_, terms.back());
        plan_.copy(read, terms.back());
        terms.back() = read;
    }
    combine(plan_, target, terms, completes);
}

Slice NodeLevel::heldBy(Rank rank, const Chunks& chunks) const {
    return isStaged_ ? plan_.at(rank).shared(chunks) : plan_.at(rank).output(chunks);
}

Place NodeLevel::heldPlace() const {
    return isStaged_ ? plan_.shared() : plan_.output();
}

void NodeLevel::push(const Chunks& chunks, const Slice& from) {
    std::vector<Slice> targets;
    for (int hops = 1; hops < node_.size(); ++hops) {  // not all to the same peer first
        targets.push_back(plan_.at(node_[node_.me() + hops]).output(chunks));
    }
    const std::vector<Slice> sources(targets.size(), from);
    plan_.copy(joined(targets), joined(sources));
}

void NodeLevel::pull(const std::vector<Chunks>& of, int nearest) {
    for (int hops = nearest; hops < node_.size(); ++hops) {
        const int position = node_.wrap(node_.me() + hops);
        const Chunks& chunks = of[static_cast<std::size_t>(position)];
        plan_.copy(plan_.output()(chunks), heldBy(node_[position], chunks));
    }
}

void NodeLevel::spread(const std::vector<Chunks>& of) {
    const Chunks& mine = of[static_cast<std::size_t>(node_.me())];
    if (isStaged_) {
        plan_.copy(plan_.output()(mine), held(mine));
        meet();
        pull(of, 1);
    } else {
        push(mine, plan_.output()(mine));
    }
    meet();
}

}  // namespace isthmus
