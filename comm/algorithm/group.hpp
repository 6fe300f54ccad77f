#pragma once

#include <span>
#include <utility>
#include <vector>

#include <isthmus/types.hpp>

#include "comm/base/assert.hpp"

namespace isthmus {

/// Ordered ranks that an algorithm runs on, seen by one of them. A place in it is a position;
/// positions wrap around. A value.
class Group {
public:
    Group() = default;
    Group(std::vector<Rank> ranks, Rank me) : ranks_(std::move(ranks)) {
        while (me_ < size() && ranks_[static_cast<std::size_t>(me_)] != me) ++me_;
        ISTHMUS_ASSERT(me_ < size());
    }

    int size() const { return static_cast<int>(ranks_.size()); }
    int me() const { return me_; }  ///< my position
    std::span<const Rank> ranks() const { return ranks_; }

    int wrap(int position) const { return ((position % size()) + size()) % size(); }
    Rank operator[](int position) const { return ranks_[static_cast<std::size_t>(wrap(position))]; }
    Rank next() const { return (*this)[me_ + 1]; }
    Rank previous() const { return (*this)[me_ - 1]; }

    bool has(Rank rank) const {
        for (const Rank member : ranks_) {
            if (member == rank) return true;
        }
        return false;
    }

private:
    std::vector<Rank> ranks_;
    int me_ = 0;
};

}  // namespace isthmus
