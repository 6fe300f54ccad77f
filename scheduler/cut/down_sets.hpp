#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/model/model.hpp"

namespace isthmus::scheduler {

/// All sets of layers that hold what each of their layers needs, smallest first.
class DownSets {
public:
    /// Nothing when there are more than `most`.
    static std::optional<DownSets> of(const Model& model, std::size_t most);

    std::size_t number() const { return layersIn_.size(); }
    int layersIn(std::size_t set) const { return layersIn_[set]; }
    bool has(std::size_t set, int layer) const {
        const auto place = static_cast<std::size_t>(layer);
        return (bits_[set * words_ + place / 64] >> (place % 64) & 1) != 0;
    }
    bool isWithin(std::size_t inner, std::size_t outer) const {
        for (std::size_t word = 0; word < words_; ++word) {
            if ((bits_[inner * words_ + word] & ~bits_[outer * words_ + word]) != 0) return false;
        }
        return true;
    }

private:
    std::size_t words_ = 1;
    std::vector<std::uint64_t> bits_;
    std::vector<int> layersIn_;
};

}  // namespace isthmus::scheduler
