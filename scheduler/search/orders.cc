#include "scheduler/search/orders.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

#include "comm/base/assert.hpp"

namespace isthmus::scheduler {
namespace {

constexpr Axis kT = Axis::kTensor;
constexpr Axis kC = Axis::kContext;
constexpr Axis kE = Axis::kExpert;
constexpr Axis kD = Axis::kData;
constexpr Axis kP = Axis::kPipe;

/// A SageMaker order; the axes that it does not know stay where Megatron has them, next to T or D.
NamedOrder lettersOrder(const std::string& letters, const std::string& name) {
    NamedOrder order{name, {}};
    for (auto letter = letters.rbegin(); letter != letters.rend(); ++letter) {
        if (*letter == 'T') order.fastestFirst.insert(order.fastestFirst.end(), {kT, kC});
        if (*letter == 'D') order.fastestFirst.insert(order.fastestFirst.end(), {kE, kD});
        if (*letter == 'P') order.fastestFirst.push_back(kP);
    }
    return order;
}

}  // namespace

std::vector<NamedOrder> namedOrders() {
    std::vector<NamedOrder> orders = {{"megatron tp-cp-ep-dp-pp", {kT, kC, kE, kD, kP}},
                                      {"megatron tp-cp-ep-pp-dp", {kT, kC, kE, kP, kD}}};
    for (const char* letters : {"DPT", "TPD", "PDT", "PTD", "TDP", "DTP"}) {
        std::string name = "sagemaker " + std::string(letters);
        if (letters == std::string("DPT")) name += " (cluster)";
        if (letters == std::string("TPD")) name += " (spread)";
        orders.push_back(lettersOrder(letters, name));
    }
    return orders;
}

std::vector<NamedOrder> everyOrder(const Degrees& degrees) {
    std::vector<Axis> split;
    std::vector<Axis> whole;
    for (const Axis axis : kAxes) (degrees[axis] > 1 ? split : whole).push_back(axis);
    std::vector<NamedOrder> orders;
    do {
        NamedOrder order{"", split};
        for (const Axis axis : split) {
            order.name.append(order.name.empty() ? "" : "-").append(nameOf(axis));
        }
        order.fastestFirst.insert(order.fastestFirst.end(), whole.begin(), whole.end());
        orders.push_back(std::move(order));
    } while (std::next_permutation(split.begin(), split.end()));
    return orders;
}

std::vector<int> sequenceOf(const Shape& shape, const std::vector<Axis>& fastestFirst) {
    std::vector<int> sequence = {0};
    sequence.reserve(static_cast<std::size_t>(shape.ranks()));
    for (const Axis axis : fastestFirst) {
        const std::size_t block = sequence.size();
        for (int at = 1; at < shape.degree(axis); ++at) {
            for (std::size_t inner = 0; inner < block; ++inner) {
                sequence.push_back(sequence[inner] + at * shape.stride(axis));
            }
        }
    }
    ISTHMUS_ASSERT(sequence.size() == static_cast<std::size_t>(shape.ranks()));
    return sequence;
}

std::vector<int> fillInTurn(const std::vector<int>& sequence, const std::vector<int>& sizes) {
    std::vector<int> nodeOfRank(sequence.size());
    std::size_t next = 0;
    for (std::size_t node = 0; node < sizes.size(); ++node) {
        for (int seat = 0; seat < sizes[node]; ++seat) {
            nodeOfRank[static_cast<std::size_t>(sequence[next++])] = static_cast<int>(node);
        }
    }
    ISTHMUS_ASSERT(next == sequence.size());
    return nodeOfRank;
}

std::vector<int> packBlocks(const Shape& shape, const std::vector<Axis>& fastestFirst,
                            const std::vector<int>& sizes) {
    const std::vector<int> sequence = sequenceOf(shape, fastestFirst);
    std::vector<int> nodeOfRank(sequence.size());
    std::vector<int> room = sizes;
    std::vector<int> largestFirst(sizes.size());
    std::iota(largestFirst.begin(), largestFirst.end(), 0);
    std::stable_sort(largestFirst.begin(), largestFirst.end(), [&](int left, int right) {
        return sizes[static_cast<std::size_t>(left)] > sizes[static_cast<std::size_t>(right)];
    });
    std::vector<int> blockSizes = {1};
    for (const Axis axis : fastestFirst) {
        if (shape.degree(axis) > 1) blockSizes.push_back(blockSizes.back() * shape.degree(axis));
    }
    std::deque<int> free = {0};  // where in the sequence a block begins
    for (std::size_t size = blockSizes.size(); size-- > 0;) {
        const int block = blockSizes[size];
        for (const int node : largestFirst) {
            int& left = room[static_cast<std::size_t>(node)];
            for (; left >= block && !free.empty(); left -= block) {
                for (int at = free.front(); at < free.front() + block; ++at) {
                    const int rank = sequence[static_cast<std::size_t>(at)];
                    nodeOfRank[static_cast<std::size_t>(rank)] = node;
                }
                free.pop_front();
            }
        }
        if (size == 0) break;
        std::deque<int> broken;
        for (const int begin : free) {
            for (int at = begin; at < begin + block; at += blockSizes[size - 1]) {
                broken.push_back(at);
            }
        }
        free = std::move(broken);
    }
    ISTHMUS_ASSERT(free.empty());
    return nodeOfRank;
}

std::vector<int> textSorted(const Cluster& cluster) {
    std::vector<int> nodes(cluster.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    std::sort(nodes.begin(), nodes.end(), [&](int left, int right) {
        return cluster.nodes[static_cast<std::size_t>(left)].name <
               cluster.nodes[static_cast<std::size_t>(right)].name;
    });
    return nodes;
}

}  // namespace isthmus::scheduler
