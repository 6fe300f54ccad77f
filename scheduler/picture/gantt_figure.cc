#include <algorithm>

#include "scheduler/picture/parts.hpp"
#include "scheduler/picture/svg.hpp"
#include "scheduler/prediction/step_run.hpp"

namespace isthmus::scheduler {

namespace {

constexpr double kLeft = 70;
constexpr double kWidth = 1070;
constexpr double kRow = 34;
constexpr double kTop = 22;
// Rectangles that a browser still draws at once.
constexpr int kMostSlices = 8'000;
constexpr std::size_t kMostStages = 64;

struct Kind {
    PipelineStep::Kind kind;
    const char* name;
    const char* colour;
};

constexpr Kind kKinds[] = {
    {PipelineStep::Kind::kForward, "forward", "#5b8fd6"},
    {PipelineStep::Kind::kBackward, "backward", "#e2a03f"},
    {PipelineStep::Kind::kInput, "backward, inputs", "#e2a03f"},
    {PipelineStep::Kind::kWeight, "backward, weights", "#b98a5a"},
};
constexpr const char* kExposed = "#c0392b";
constexpr const char* kOptimizer = "#6c5b7b";

const Kind& kindOf(const PipelineStep& step) {
    return *std::find_if(std::begin(kKinds), std::end(kKinds),
                         [&](const Kind& each) { return each.kind == step.kind; });
}

/// A round number of seconds so that there are about ten ticks.
double tickOf(double seconds) {
    double tick = 1e-9;
    const double wanted = seconds / 14;
    for (int round = 0; tick < wanted; ++round) tick *= round % 3 == 1 ? 2.5 : 2;
    return tick;
}

void drawTicks(Svg& svg, double seconds, double height) {
    const double tick = tickOf(seconds);
    for (int at = 0; at * tick <= seconds; ++at) {
        const double x = kLeft + kWidth * at * tick / seconds;
        svg.line(x, kTop - 4, x, height, "tick");
        svg.text(x, 12, secondsText(at * tick), Svg::Anchor::kMiddle, "small faint");
    }
}

void drawSlices(Svg& svg, const StepRun& step) {
    const auto widthOf = [&](double seconds) { return kWidth * seconds / step.seconds; };
    for (const PipelineSlice& slice : step.run.slices) {
        if (slice.isMessage || slice.stage >= static_cast<int>(kMostStages)) continue;
        const double x = kLeft + widthOf(slice.begin);
        const double y = kTop + kRow * slice.stage;
        const double width = widthOf(slice.end - slice.begin);
        const Kind& kind = kindOf(slice.step);
        const std::string batch = std::to_string(slice.step.microBatch);
        std::string hint = kind.name + (" of micro-batch " + batch);
        if (step.shape.virtualStages > 1) hint += ", chunk " + std::to_string(slice.step.chunk);
        svg.box(x, y, std::max(width - 0.5, 0.3), kRow - 12, kind.colour,
                hint + ": " + secondsText(slice.end - slice.begin));
        if (width > 7.0 * static_cast<double>(batch.size()) + 3) {
            svg.text(x + width / 2, y + 15, batch, Svg::Anchor::kMiddle, "small light");
        }
    }
    for (const TraceExtra& extra : step.extras) {
        if (extra.stage >= static_cast<int>(kMostStages)) continue;
        const bool isOptimizer = extra.name == "optimizer";
        svg.box(kLeft + widthOf(extra.begin), kTop + kRow * extra.stage + kRow - 11,
                std::max(widthOf(extra.end - extra.begin), 0.3), 5,
                isOptimizer ? kOptimizer : kExposed,
                extra.name + ": " + secondsText(extra.end - extra.begin));
    }
}

std::string legend() {
    std::string text = "<p class=\"legend\">";
    const auto add = [&](const char* name, const char* colour) {
        text += std::string("<span><i style=\"background:") + colour + "\"></i>" + name + "</span>";
    };
    add("forward", kKinds[0].colour);
    add("backward", kKinds[1].colour);
    add("weights alone", kKinds[3].colour);
    add("communication that nothing hides", kExposed);
    add("optimizer", kOptimizer);
    return text + "</p>\n";
}

}  // namespace

std::string ganttFigure(const Placement& placement) {
    if (!placement.predicted) return "";
    const Prediction& prediction = *placement.predicted;
    const PipelineShape& whole = prediction.step.shape;
    const int most = std::clamp(kMostSlices / (2 * whole.chunks()), whole.stages,
                                std::max(12, 3 * whole.stages));
    const Result<StepRun> step = runStep(prediction, most);
    if (!step.ok() || step->seconds <= 0) return "";
    const std::size_t shown = std::min(prediction.stages.size(), kMostStages);
    const double height = kTop + kRow * static_cast<double>(shown);
    Svg svg(kLeft + kWidth + 20, height);
    drawTicks(svg, step->seconds, height);
    for (std::size_t stage = 0; stage < shown; ++stage) {
        svg.text(kLeft - 8, kTop + kRow * static_cast<double>(stage) + 15,
                 "stage " + std::to_string(stage), Svg::Anchor::kEnd);
    }
    drawSlices(svg, *step);
    std::string text =
        "<h2>The pipeline</h2>\n<p>A predicted step, " + std::string(nameOf(whole.order)) + ": ";
    if (step->shape.microBatches < whole.microBatches) {
        text += "only " + std::to_string(step->shape.microBatches) + " of " +
                std::to_string(whole.microBatches) + " micro-batches are drawn";
    } else {
        text += std::to_string(whole.microBatches) + " micro-batches";
    }
    text += "; numbers are micro-batches.";
    if (shown < prediction.stages.size()) {
        text +=
            " " + std::to_string(prediction.stages.size() - shown) + " stages more are not drawn.";
    }
    return text + "</p>\n" + legend() + svg.take();
}

}  // namespace isthmus::scheduler
