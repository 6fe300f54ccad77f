#pragma once

#include <span>

#include <isthmus/status.hpp>

#include "comm/algorithm/catalogue.hpp"
#include "comm/cost/link_model.hpp"
#include "comm/cost/plan_bytes.hpp"
#include "comm/cost/simulation.hpp"

namespace isthmus {

/// Predicts how long one call takes: every rank starts at 0, the last rank's end counts.
///
/// The plans' own edges, messages, signals, segments and window decide what may overlap. Copies
/// and reductions of a rank go one after another at its share of the node's rate; messages between
/// nodes queue at the sender's card, then in the order of arrival at the receiver's, at the model's
/// goodput; messages inside a node cost a meeting and a copy. A long call is simulated for some
/// dozens of segments and continued at the pace of the later ones.
///
/// `plans`: one per rank of `layout`, of one request.
/// Errors: kInvalidArgument (the plans do not fit together: somebody would wait for ever).
Result<double> simulateSeconds(std::span<const Plan> plans, const Layout& layout,
                               const PlanCall& call, const LinkModel& model);

/// Segments until a pipeline runs evenly: its depth is at most a few times the ranks of a rail.
inline constexpr int kWarmSegments = 24;

/// The same for one of several calls of the same plans. Calls of more than twice `warmSegments` are
/// simulated for as many and for twice as many.
Result<double> simulateSeconds(Simulation& simulation, const PlanCall& call,
                               int warmSegments = kWarmSegments);

}  // namespace isthmus
