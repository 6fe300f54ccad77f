#include "scheduler/picture/node_matrix.hpp"

#include <map>

namespace isthmus::scheduler {

namespace {

class Matrix {
public:
    Matrix(std::span<const int> nodeOfRank, int nodes)
        : nodeOfRank_(nodeOfRank),
          nodes_(static_cast<std::size_t>(nodes)),
          bytes_(nodes_ * nodes_) {}

    void add(int from, int to, double bytes) {
        if (from != to)
            bytes_[static_cast<std::size_t>(from) * nodes_ + static_cast<std::size_t>(to)] += bytes;
    }
    int nodeOf(int rank) const { return nodeOfRank_[static_cast<std::size_t>(rank)]; }
    std::vector<double> take() { return std::move(bytes_); }

private:
    std::span<const int> nodeOfRank_;
    std::size_t nodes_;
    std::vector<double> bytes_;
};

void addChain(const Shape& shape, double bytes, int first, Matrix& matrix) {
    for (int stage = 0; stage + 1 < shape.degree(Axis::kPipe); ++stage) {
        const int here = matrix.nodeOf(first + stage * shape.stride(Axis::kPipe));
        const int there = matrix.nodeOf(first + (stage + 1) * shape.stride(Axis::kPipe));
        matrix.add(here, there, bytes);
        matrix.add(there, here, bytes);
    }
}

void addGroup(const Shape& shape, Axis axis, double bytes, int first, Matrix& matrix) {
    const int degree = shape.degree(axis);
    std::map<int, int> members;  // by node, in their order
    for (int at = 0; at < degree; ++at) ++members[matrix.nodeOf(first + at * shape.stride(axis))];
    if (axis == Axis::kExpert) {
        for (const auto& [from, some] : members) {
            for (const auto& [to, others] : members) {
                matrix.add(from, to, bytes * some * others / (degree - 1));
            }
        }
        return;
    }
    for (auto node = members.begin(); node != members.end(); ++node) {
        const auto next = std::next(node) == members.end() ? members.begin() : std::next(node);
        matrix.add(node->first, next->first, bytes);
    }
}

}  // namespace

std::vector<double> nodeMatrix(const Shape& shape, const AxisBytes& bytes,
                               std::span<const int> nodeOfRank, int nodes) {
    Matrix matrix(nodeOfRank, nodes);
    for (const Axis axis : kAxes) {
        if (shape.degree(axis) == 1 || bytes[axis] == 0) continue;
        for (int rank = 0; rank < shape.ranks(); ++rank) {
            if (shape.coordinate(rank, axis) != 0) continue;
            const auto sent = static_cast<double>(bytes[axis]);
            if (axis == Axis::kPipe) {
                addChain(shape, sent, rank, matrix);
            } else {
                addGroup(shape, axis, sent, rank, matrix);
            }
        }
    }
    return matrix.take();
}

}  // namespace isthmus::scheduler
