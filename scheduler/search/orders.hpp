#pragma once

#include <string>
#include <vector>

#include "scheduler/cluster/cluster.hpp"
#include "scheduler/placement/shape.hpp"

namespace isthmus::scheduler {

/// A fixed order: seats are taken node by node, and the first axis changes from seat to seat.
struct NamedOrder {
    std::string name;
    std::vector<Axis> fastestFirst;  ///< every axis once
};

/// What the usual frameworks do, whatever the cluster: Megatron-LM's `tp-cp-ep-dp-pp` and
/// `--use-tp-pp-dp-mapping`, SageMaker's `cluster` and `spread` and its other letter orders.
/// Source: Megatron-LM, parallel_state.py; SageMaker SDK, smd_model_parallel_general.rst: the
/// right-most letter changes fastest, `cluster` is DPT, `spread` is TPD.
std::vector<NamedOrder> namedOrders();

/// Every order of the axes that are split, named by them: "data-tensor".
std::vector<NamedOrder> everyOrder(const Degrees& degrees);

/// The ranks of a shape in the sequence in which an order gives them seats.
std::vector<int> sequenceOf(const Shape& shape, const std::vector<Axis>& fastestFirst);

/// Node of each rank when the sequence takes the seats of the nodes one after another. `sizes` sum
/// up to the ranks.
std::vector<int> fillInTurn(const std::vector<int>& sequence, const std::vector<int>& sizes);

/// The same, but the largest blocks of the order that fit into a node stay whole: what does not
/// divide is broken up for the seats that are left.
std::vector<int> packBlocks(const Shape& shape, const std::vector<Axis>& fastestFirst,
                            const std::vector<int>& sizes);

/// Nodes in the sequence in which a launcher that sorts host names as text puts them
/// (torchrun's c10d rendezvous, pytorch/pytorch#191190: node66 before node7).
std::vector<int> textSorted(const Cluster& cluster);

}  // namespace isthmus::scheduler
