#include "scheduler/cut/down_sets.hpp"

#include <set>

namespace isthmus::scheduler {

std::optional<DownSets> DownSets::of(const Model& model, std::size_t most) {
    const std::size_t layers = model.layers.size();
    if (layers >= most) return std::nullopt;  // a chain has one set more than layers
    DownSets sets;
    sets.words_ = (layers + 63) / 64;
    using Bits = std::vector<std::uint64_t>;
    std::vector<Bits> needs;
    for (std::size_t layer = 0; layer < layers; ++layer) needs.emplace_back(sets.words_, 0);
    for (const Edge& edge : model.dependencies()) {
        const auto from = static_cast<std::size_t>(edge.from);
        needs[static_cast<std::size_t>(edge.to)][from / 64] |= std::uint64_t{1} << (from % 64);
    }
    const auto mayJoin = [&](const Bits& set, std::size_t layer) {
        if ((set[layer / 64] >> (layer % 64) & 1) != 0) return false;
        for (std::size_t word = 0; word < sets.words_; ++word) {
            if ((needs[layer][word] & ~set[word]) != 0) return false;
        }
        return true;
    };
    std::set<Bits> level = {Bits(sets.words_, 0)};
    for (std::size_t taken = 0; !level.empty(); ++taken) {
        if (sets.number() + level.size() > most) return std::nullopt;
        std::set<Bits> next;
        for (const Bits& set : level) {
            sets.bits_.insert(sets.bits_.end(), set.begin(), set.end());
            sets.layersIn_.push_back(static_cast<int>(taken));
            for (std::size_t layer = 0; layer < layers; ++layer) {
                if (!mayJoin(set, layer)) continue;
                Bits larger = set;
                larger[layer / 64] |= std::uint64_t{1} << (layer % 64);
                next.insert(std::move(larger));
                if (next.size() > most) return std::nullopt;
            }
        }
        level = std::move(next);
    }
    return sets;
}

}  // namespace isthmus::scheduler
