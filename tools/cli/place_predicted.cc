#include "tools/cli/place_predicted.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace isthmus::cli {
namespace {

using scheduler::kSpans;
using scheduler::NodeBytes;
using scheduler::NodeTraffic;
using scheduler::Placement;
using scheduler::Prediction;
using scheduler::Span;

// More would scroll away what matters; --json has them all.
constexpr std::size_t kMostRows = 40;

std::string memoryText(const Prediction& prediction) {
    const int fullest = prediction.fullestStage();
    const Prediction::Stage& stage = prediction.stages[static_cast<std::size_t>(fullest)];
    const std::string has = fmt::format("stage {} is the fullest with {} a device", fullest,
                                        gibText(stage.memory.total()));
    if (stage.deviceBytes == 0) return has + "; the devices do not say what they have";
    const std::int64_t spare = stage.deviceBytes - stage.memory.total();
    return fmt::format("{}: {} {} of {}", has, gibText(std::abs(spare)),
                       spare < 0 ? "are missing" : "are left", gibText(stage.deviceBytes));
}

std::string stagesText(const Prediction& prediction) {
    std::string text =
        fmt::format("\n{:<5} {:>6}  {:<34} {:>10} {:>10} {:>10} {:>12} {:>12}\n", "stage", "layers",
                    "", "forward ms", "backward", "exposed", "sums ms", "memory");
    for (std::size_t at = 0; at < std::min(prediction.stages.size(), kMostRows); ++at) {
        const Prediction::Stage& stage = prediction.stages[at];
        const scheduler::StageTime& time = stage.time;
        const double exposed =
            time.exposedTensor + time.exposedContext + time.exposedExpert + time.exposedShard;
        text += fmt::format("{:<5} {:>6}  {:<34} {:>10.3f} {:>10.3f} {:>10.3f} {:>12.3f} {:>12}\n",
                            at, stage.layers.size(), stage.firstLayer + " .. " + stage.lastLayer,
                            1e3 * time.forward, 1e3 * time.backward, 1e3 * exposed,
                            1e3 * time.stepData, gibText(stage.memory.total()));
    }
    if (prediction.stages.size() > kMostRows) {
        text += fmt::format("... {} stages more\n", prediction.stages.size() - kMostRows);
    }
    return text;
}

}  // namespace

std::string gibText(std::int64_t bytes) {
    return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string predictedText(const Placement& placement) {
    if (!placement.predicted) return "";
    const Prediction& prediction = *placement.predicted;
    const scheduler::StepTime& step = prediction.step;
    std::string text = fmt::format(
        "objective     {}\n"
        "step          {:.4f} s predicted, {:.1f} % of what the devices could do; most goes to {}; "
        "bubble {:.1f} %\n"
        "memory        {}\n"
        "cut           by {}: {}{}\n",
        nameOf(prediction.objective), step.seconds, 100 * step.utilization, step.limit,
        100 * step.bubble, memoryText(prediction), prediction.cutMethod, prediction.cutHow,
        prediction.isCutExact ? ", no other is better" : "");
    if (!prediction.megatronLayout.empty() && prediction.stages.size() > 1) {
        text += "layout        " + prediction.megatronLayout + "\n";
    }
    for (const std::string& each : prediction.assumed) text += "assumed       " + each + "\n";
    return text + stagesText(prediction);
}

std::string exactNodesText(const Placement& placement) {
    if (!placement.predicted) return "";
    const std::vector<NodeBytes>& nodes = placement.predicted->nodes;
    std::vector<Span> used;
    for (const Span span : kSpans) {
        if (std::any_of(nodes.begin(), nodes.end(),
                        [&](const NodeBytes& node) { return node[span] != NodeTraffic(); })) {
            used.push_back(span);
        }
    }
    std::string text = fmt::format("\n{:<16}", "out, exact");
    for (const Span span : used) text += fmt::format(" {:>14}", nameOf(span));
    text += fmt::format(" {:>14} {:>14} {:>14}\n", "pipe", "out", "in");
    for (std::size_t node = 0; node < std::min(nodes.size(), kMostRows); ++node) {
        text += fmt::format("{:<16}", placement.cluster.nodes[node].name);
        for (const Span span : used) text += fmt::format(" {:>14}", nodes[node][span].egress);
        const NodeTraffic all = nodes[node].all();
        text += fmt::format(" {:>14} {:>14} {:>14}\n", nodes[node].pipe.egress, all.egress,
                            all.ingress);
    }
    if (nodes.size() > kMostRows)
        text += fmt::format("... {} nodes more\n", nodes.size() - kMostRows);
    return text;
}

}  // namespace isthmus::cli
