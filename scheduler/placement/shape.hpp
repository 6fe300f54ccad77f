#pragma once

#include "scheduler/axis.hpp"

namespace isthmus::scheduler {

/// Where the ranks of a job stand on the axes: rank 0 has coordinate 0 everywhere, tensor changes
/// from rank to rank, pipe slowest.
class Shape {
public:
    explicit Shape(const Degrees& degrees) : degrees_(degrees) {
        int stride = 1;
        for (const Axis axis : kAxes) {
            strides_[axis] = stride;
            stride *= degrees[axis];
        }
        ranks_ = stride;
    }

    int ranks() const { return ranks_; }
    const Degrees& degrees() const { return degrees_; }
    int degree(Axis axis) const { return degrees_[axis]; }
    /// How far apart neighbours on the axis are.
    int stride(Axis axis) const { return strides_[axis]; }
    int coordinate(int rank, Axis axis) const { return rank / strides_[axis] % degrees_[axis]; }
    /// The member of the rank's group on the axis that has coordinate 0: it stands for the group.
    int firstOf(int rank, Axis axis) const {
        return rank - coordinate(rank, axis) * strides_[axis];
    }

private:
    Degrees degrees_;
    Degrees strides_;
    int ranks_ = 1;
};

}  // namespace isthmus::scheduler
