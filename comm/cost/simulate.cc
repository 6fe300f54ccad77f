#include "comm/cost/simulate.hpp"

#include <algorithm>

#include "comm/cost/simulation.hpp"

namespace isthmus {
namespace {

// Segments until a pipeline runs evenly: its depth is at most a few times the ranks of a rail.
constexpr int kWarmSegments = 24;

Result<double> timeOf(std::span<const Plan> plans, const Layout& layout, PlanCall call,
                      const LinkModel& model, int segments) {
    // Keep the segment's size while there are fewer of them.
    call.blockElements = (call.blockElements + call.segments - 1) / call.segments * segments;
    call.segments = segments;
    call.window = std::min(call.window, segments);
    return Simulation(plans, layout, call, model).run();
}

}  // namespace

Result<double> simulateSeconds(std::span<const Plan> plans, const Layout& layout,
                               const PlanCall& call, const LinkModel& model) {
    if (static_cast<int>(plans.size()) != layout.ranks()) {
        return Status::invalidArgument("one plan per rank is needed");
    }
    if (call.segments < 1 || call.window < 1) {
        return Status::invalidArgument("segments and window start at 1");
    }
    if (call.segments <= 2 * kWarmSegments) return Simulation(plans, layout, call, model).run();
    const Result<double> half = timeOf(plans, layout, call, model, kWarmSegments);
    const Result<double> whole = timeOf(plans, layout, call, model, 2 * kWarmSegments);
    if (!half.ok()) return half;
    if (!whole.ok()) return whole;
    const double perSegment = (*whole - *half) / kWarmSegments;
    return *whole + perSegment * (call.segments - 2 * kWarmSegments);
}

}  // namespace isthmus
