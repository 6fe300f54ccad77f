#include "tools/cli/place_compare.hpp"

#include <fmt/core.h>

#include "tools/cli/place_options.hpp"
#include "tools/cli/place_predicted.hpp"
#include "tools/cli/place_print.hpp"

namespace isthmus::cli {
namespace {

using scheduler::Placement;
using scheduler::Prediction;
using scheduler::Rival;

std::string programText(const std::string& name, const Prediction& prediction) {
    const scheduler::NodeCost cost = costOf(prediction.nodes);
    const auto fullest = static_cast<std::size_t>(prediction.fullestStage());
    const Prediction::Stage& stage = prediction.stages[fullest];
    return fmt::format("{:<40} {:>15} {:>15} {:>11} {:>10.3f} {:>12}  {}\n", name, cost.most,
                       cost.sum, prediction.step.shape.microBatches, prediction.step.seconds,
                       gibText(stage.memory.total()), stage.fits() ? "" : "does not fit");
}

std::string programsText(const Placement& placement) {
    if (placement.rivals.empty() || !placement.predicted) return "";
    std::string text = fmt::format("\n{:<40} {:>15} {:>15} {:>11} {:>10} {:>12}\n", "program",
                                   "dearest node", "all nodes", "micro-steps", "step s", "device");
    text += programText("placed: " + textOf(placement.degrees), *placement.predicted);
    for (const Rival& rival : placement.rivals) {
        if (rival.impossible.empty()) {
            text += programText(rival.name, rival.prediction);
        } else {
            text += fmt::format("{:<40} {}\n", rival.name, rival.impossible);
        }
    }
    text +=
        "bytes of a step, exact, rings that leave a node once; all with the job's batches, "
        "precision and recomputation, and all overlap alike\n";
    for (const std::string& each : placement.predicted->assumed) text += "assumed " + each + "\n";
    return text;
}

}  // namespace

std::string comparedText(const Placement& placement) {
    return fmt::format("{} on {}: dearest node {}, all nodes {} bytes a step\n",
                       textOf(placement.degrees), placement.cluster.text(), placement.cost.most,
                       placement.cost.sum) +
           comparisonText(placement) + programsText(placement);
}

Result<std::vector<scheduler::Degrees>> degreesBeside(const std::vector<std::string>& lists) {
    std::vector<scheduler::Degrees> all;
    for (const std::string& list : lists) {
        const auto axes = axisList(list, "--beside", false);
        if (!axes.ok()) return axes.status();
        all.emplace_back(1);
        for (const scheduler::Axis axis : scheduler::kAxes) {
            const std::int64_t degree = (*axes)[axis].value_or(1);
            if (degree < 1 || degree > scheduler::kMostRanks) {
                return Status::invalidArgument(
                    fmt::format("--beside: {} is {}", nameOf(axis), degree));
            }
            all.back()[axis] = static_cast<int>(degree);
        }
    }
    return all;
}

}  // namespace isthmus::cli
