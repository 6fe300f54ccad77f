#include "scheduler/search/matrices.hpp"

#include <algorithm>
#include <map>

namespace isthmus::scheduler {
namespace {

// 18 divisors of 2^17 to the power of four axes are 105,000; the fifth follows from them.
constexpr std::size_t kMostSlots = std::size_t{1} << 24;
constexpr std::uint32_t kUnknown = 0;
constexpr std::uint32_t kImpossible = 1;

void factorise(int rest, std::size_t axis, const Degrees& wanted, Degrees& factors,
               std::vector<Degrees>& all) {
    if (axis == kAxes.size()) {
        if (rest == 1) all.push_back(factors);
        return;
    }
    for (int factor = rest; factor >= 1; --factor) {
        const int fixed = wanted[kAxes[axis]];
        if (rest % factor != 0 || (fixed != 0 && fixed % factor != 0)) continue;
        factors[kAxes[axis]] = factor;
        factorise(rest / factor, axis + 1, wanted, factors, all);
    }
}

/// Part of a tree: the ranks below one group of a level.
struct Group {
    Degrees inside;           ///< how many ways each axis is split below it
    int members = 1;          ///< ranks
    std::int64_t groups = 1;  ///< of its kind
};

/// Pays for `edges` cut ends of each chain (0, 1 or 2).
std::int64_t unitsOf(const Group& group, const Degrees& degrees, const Weights& weights,
                     int edges) {
    std::int64_t units = 0;
    for (const Axis axis : kAxes) {
        const std::int64_t all = degrees[axis];
        const std::int64_t inside = group.inside[axis];
        if (all == inside || weights.of[axis] == 0) continue;
        const std::int64_t lines = group.members / inside;
        std::int64_t cuts = 1;
        if (axis == Axis::kExpert) cuts = inside * (all - inside);
        if (axis == Axis::kPipe) cuts = edges;
        units += weights.of[axis] * lines * cuts;
    }
    return units;
}

NodeCost costOfGroups(const Group& group, const Degrees& degrees, const Weights& weights) {
    const std::int64_t pieces = degrees[Axis::kPipe] / group.inside[Axis::kPipe];
    const std::int64_t ends = pieces == 1 ? group.groups : group.groups / pieces * 2;
    const std::int64_t middles = group.groups - ends;
    const std::int64_t atEnd = weights.bytes(unitsOf(group, degrees, weights, 1));
    if (middles == 0) return {atEnd, atEnd * ends};
    const std::int64_t inMiddle = weights.bytes(unitsOf(group, degrees, weights, 2));
    return {inMiddle, atEnd * ends + inMiddle * middles};
}

/// What is known of one choice of degrees.
struct Slot {
    MatrixPoint point;
    Weights weights;
    bool isFilled = false;
};

class Enumeration {
public:
    Enumeration(const std::vector<int>& shape, const Degrees& wanted, const VolumesOf& volumes,
                const Watch& watch);

    /// Puts the levels from `level` outwards into the matrix in every way.
    void place(std::size_t level);
    MatrixAnswer take(int keep);
    const Status& failure() const { return failure_; }

private:
    std::uint64_t keyOf(const Degrees& degrees) const;
    std::uint32_t slotOf(const Degrees& degrees);
    std::uint32_t makeSlot(const Degrees& degrees);
    void look();
    void compare(Slot& slot);

    const std::vector<int>& shape_;
    const Degrees& wanted_;
    const VolumesOf& volumes_;
    const Watch& watch_;
    std::vector<std::vector<Degrees>> factors_;  ///< by level
    std::vector<std::uint32_t> divisorIndex_;    ///< of a degree; 0 for what divides not
    std::uint64_t divisors_ = 0;
    std::vector<std::uint32_t> slotOfKey_;
    std::map<std::uint64_t, std::uint32_t> slotOfSparseKey_;
    std::vector<Slot> slots_;
    LevelMatrix matrix_;
    std::vector<Group> groups_;  ///< by level: what is below one group of it
    std::uint64_t points_ = 0;
    bool isStopped_ = false;
    Status failure_;
};

Enumeration::Enumeration(const std::vector<int>& shape, const Degrees& wanted,
                         const VolumesOf& volumes, const Watch& watch)
    : shape_(shape),
      wanted_(wanted),
      volumes_(volumes),
      watch_(watch),
      slots_(2),
      matrix_(shape.size()),
      groups_(shape.size()) {
    int ranks = 1;
    for (const int members : shape) {
        std::vector<Degrees> all;
        Degrees factors(1);
        factorise(members, 0, wanted, factors, all);
        factors_.push_back(std::move(all));
        ranks *= members;
    }
    divisorIndex_.resize(static_cast<std::size_t>(ranks) + 1);
    for (int degree = 1; degree <= ranks; ++degree) {
        if (ranks % degree != 0) continue;
        divisorIndex_[static_cast<std::size_t>(degree)] = static_cast<std::uint32_t>(divisors_++);
    }
    std::uint64_t keys = 1;
    for (std::size_t axis = 1; axis < kAxes.size() && keys <= kMostSlots; ++axis) keys *= divisors_;
    if (keys <= kMostSlots) slotOfKey_.resize(keys, kUnknown);
    // Below a group of level l are the levels after it; outside it are those up to it.
    for (std::size_t level = 0; level < shape.size(); ++level) {
        for (std::size_t other = 0; other < shape.size(); ++other) {
            if (other >= level) groups_[level].members *= shape[other];
            if (other < level) groups_[level].groups *= shape[other];
        }
    }
}

std::uint64_t Enumeration::keyOf(const Degrees& degrees) const {
    std::uint64_t key = 0;
    for (const Axis axis : {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData}) {
        key = key * divisors_ + divisorIndex_[static_cast<std::size_t>(degrees[axis])];
    }
    return key;
}

std::uint32_t Enumeration::makeSlot(const Degrees& degrees) {
    for (const Axis axis : kAxes) {
        if (wanted_[axis] != 0 && wanted_[axis] != degrees[axis]) return kImpossible;
    }
    const std::optional<AxisBytes> bytes = volumes_(degrees);
    if (!bytes) return kImpossible;
    const Result<Weights> weights = weightsOf(degrees, *bytes);
    if (!weights.ok()) {
        if (failure_.ok()) failure_ = weights.status().within(textOf(degrees));
        return kImpossible;
    }
    slots_.push_back({{degrees, {}, *bytes, {}}, *weights});
    return static_cast<std::uint32_t>(slots_.size() - 1);
}

std::uint32_t Enumeration::slotOf(const Degrees& degrees) {
    const std::uint64_t key = keyOf(degrees);
    std::uint32_t& slot = slotOfKey_.empty() ? slotOfSparseKey_[key] : slotOfKey_[key];
    if (slot == kUnknown) slot = makeSlot(degrees);
    return slot;
}

void Enumeration::compare(Slot& slot) {
    const Degrees& degrees = slot.point.degrees;
    const NodeCost node = costOfGroups(groups_.back(), degrees, slot.weights);
    if (slot.isFilled && node > slot.point.costs.front()) return;
    std::vector<NodeCost> costs = {node};
    for (std::size_t level = groups_.size() - 1; level-- > 1;) {
        costs.push_back(costOfGroups(groups_[level], degrees, slot.weights));
    }
    if (slot.isFilled && costs >= slot.point.costs) return;
    slot.isFilled = true;
    slot.point.costs = std::move(costs);
    slot.point.matrix = matrix_;
}

void Enumeration::look() {
    Degrees degrees;
    for (const Axis axis : kAxes) degrees[axis] = groups_[0].inside[axis];
    const std::uint32_t slot = slotOf(degrees);
    if (slot == kImpossible) return;
    compare(slots_[slot]);
    if (++points_ % (1 << 20) != 0) return;
    watch_.tell("level matrices", points_);
    isStopped_ = isStopped_ || watch_.stops();
}

void Enumeration::place(std::size_t level) {
    for (const Degrees& factors : factors_[level]) {
        bool fits = true;
        for (const Axis axis : kAxes) {
            const int below = level + 1 < shape_.size() ? groups_[level + 1].inside[axis] : 1;
            const int inside = below * factors[axis];
            fits = fits && (wanted_[axis] == 0 || wanted_[axis] % inside == 0);
            groups_[level].inside[axis] = inside;
        }
        if (!fits) continue;
        matrix_[level] = factors;
        if (level == 0) {
            look();
        } else {
            place(level - 1);
        }
        if (isStopped_ || !failure_.ok()) return;
    }
}

MatrixAnswer Enumeration::take(int keep) {
    MatrixAnswer answer;
    answer.points = points_;
    answer.isComplete = !isStopped_;
    for (Slot& slot : slots_) {
        if (slot.isFilled) answer.best.push_back(std::move(slot.point));
    }
    const auto isBetter = [](const MatrixPoint& one, const MatrixPoint& other) {
        return one.costs < other.costs;
    };
    std::stable_sort(answer.best.begin(), answer.best.end(), isBetter);
    if (answer.best.size() > static_cast<std::size_t>(keep)) {
        answer.best.resize(static_cast<std::size_t>(keep));
    }
    return answer;
}

}  // namespace

Result<MatrixAnswer> everyMatrix(const std::vector<int>& shape, const Degrees& wanted,
                                 const VolumesOf& volumes, int keep, const Watch& watch) {
    Enumeration enumeration(shape, wanted, volumes, watch);
    enumeration.place(shape.size() - 1);
    if (!enumeration.failure().ok()) return enumeration.failure();
    return enumeration.take(keep);
}

std::vector<int> nodesOf(const LevelMatrix& matrix) {
    Degrees degrees(1);
    for (const Degrees& level : matrix) {
        for (const Axis axis : kAxes) degrees[axis] *= level[axis];
    }
    const Shape shape(degrees);
    std::vector<int> nodeOfRank(static_cast<std::size_t>(shape.ranks()));
    for (int rank = 0; rank < shape.ranks(); ++rank) {
        int node = 0;
        Degrees below = degrees;  // what one step of a digit of the level is worth
        for (std::size_t level = 0; level + 1 < matrix.size(); ++level) {
            for (const Axis axis : kAxes) {
                below[axis] /= matrix[level][axis];
                const int digit = shape.coordinate(rank, axis) / below[axis] % matrix[level][axis];
                node = node * matrix[level][axis] + digit;
            }
        }
        nodeOfRank[static_cast<std::size_t>(rank)] = node;
    }
    return nodeOfRank;
}

}  // namespace isthmus::scheduler
