#include "comm/cost/simulate.hpp"

#include <algorithm>

namespace isthmus {
namespace {

Result<double> timeOf(Simulation& simulation, PlanCall call, int segments) {
    // Keep the segment's size while there are fewer of them.
    call.blockElements = (call.blockElements + call.segments - 1) / call.segments * segments;
    call.segments = segments;
    call.window = std::min(call.window, segments);
    return simulation.run(call);
}

}  // namespace

Result<double> simulateSeconds(std::span<const Plan> plans, const Layout& layout,
                               const PlanCall& call, const LinkModel& model) {
    if (static_cast<int>(plans.size()) != layout.ranks()) {
        return Status::invalidArgument("one plan per rank is needed");
    }
    const Result<StepGraph> graph = StepGraph::of(plans);
    if (!graph.ok()) return graph.status();
    Simulation simulation(*graph, layout, model);
    return simulateSeconds(simulation, call);
}

Result<double> simulateSeconds(Simulation& simulation, const PlanCall& call, int warmSegments) {
    if (call.segments < 1 || call.window < 1) {
        return Status::invalidArgument("segments and window start at 1");
    }
    if (call.segments <= 2 * warmSegments) return simulation.run(call);
    const Result<double> half = timeOf(simulation, call, warmSegments);
    const Result<double> whole = timeOf(simulation, call, 2 * warmSegments);
    if (!half.ok()) return half;
    if (!whole.ok()) return whole;
    const double perSegment = (*whole - *half) / warmSegments;
    return *whole + perSegment * (call.segments - 2 * warmSegments);
}

}  // namespace isthmus
