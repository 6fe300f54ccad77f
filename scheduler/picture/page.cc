#include "scheduler/picture/page.hpp"

#include "scheduler/picture/parts.hpp"
#include "scheduler/picture/svg.hpp"
#include "scheduler/placement/shape.hpp"
#include "scheduler/search/orders.hpp"

namespace isthmus::scheduler {

namespace {

constexpr const char* kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2430; background: #f6f7f9; margin: 0; }
main { max-width: 1200px; margin: 0 auto; padding: 24px; }
h1 { font-size: 22px; margin: 0 0 8px; } h2 { font-size: 17px; margin: 0 0 4px; }
section { background: #fff; border: 1px solid #dfe3e8; border-radius: 8px; padding: 16px 20px; margin: 16px 0; overflow-x: auto; }
p { margin: 4px 0 10px; color: #48525f; } svg { display: block; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 8px 0; }
dt { color: #6a7480; } dd { margin: 0; }
text { font: 12px system-ui, sans-serif; fill: #1c2430; } .faint { fill: #6a7480; } .light { fill: #fff; }
.small { font-size: 10px; } .frame { fill: #f6f7f9; stroke: #c5ccd4; } .rack { fill: none; stroke: #aeb7c1; stroke-dasharray: 4 3; }
.tick { stroke: #e3e7ec; } .axis { stroke: #aeb7c1; }
.legend span { display: inline-block; margin-right: 16px; } .legend i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 6px; vertical-align: -1px; }
.pair { display: flex; gap: 32px; flex-wrap: wrap; }
)";

struct Before {
    std::string name;
    std::vector<int> nodeOfRank;
};

/// The first usual order that costs something else; if there is none, as ranks are launched.
Before beforeOf(const Placement& placement) {
    const Shape shape(placement.degrees);
    const std::vector<int> sizes = placement.cluster.sizes();
    std::vector<Before> usual = {{"hosts sorted as text", {}}};
    for (const int node : textSorted(placement.cluster)) {
        usual[0].nodeOfRank.insert(usual[0].nodeOfRank.end(),
                                   static_cast<std::size_t>(sizes[static_cast<std::size_t>(node)]),
                                   node);
    }
    for (const NamedOrder& order : namedOrders()) {
        usual.push_back({order.name, fillInTurn(sequenceOf(shape, order.fastestFirst), sizes)});
    }
    const Result<Weights> weights = weightsOf(placement.degrees, placement.bytes);
    if (!weights.ok()) return usual.front();
    const auto nodes = static_cast<int>(sizes.size());
    const NodeCost placed = costOf(shape, *weights, placement.nodeOfRank(), nodes);
    for (Before& each : usual) {
        if (costOf(shape, *weights, each.nodeOfRank, nodes) != placed) return std::move(each);
    }
    return usual.front();
}

std::string row(const std::string& what, const std::string& value) {
    return "<dt>" + what + "</dt><dd>" + escaped(value) + "</dd>\n";
}

std::string summary(const Placement& placement) {
    std::string text = "<dl>\n";
    text += row("dearest node", bytesText(static_cast<double>(placement.cost.most)) +
                                    " a step; no assignment has less than " +
                                    bytesText(static_cast<double>(placement.bound.most)) +
                                    (placement.isOptimal ? ": optimal" : ""));
    text += row("all nodes", bytesText(static_cast<double>(placement.cost.sum)) + " a step");
    text += row("found by", placement.method);
    if (placement.predicted) {
        const Prediction& predicted = *placement.predicted;
        text += row("step", secondsText(predicted.step.seconds) + " predicted, bubble " +
                                numberText(100 * predicted.step.bubble) + " %, most goes to " +
                                predicted.step.limit);
        const auto fullest = static_cast<std::size_t>(predicted.fullestStage());
        const Prediction::Stage& stage = predicted.stages[fullest];
        text += row("memory", bytesText(static_cast<double>(stage.memory.total())) +
                                  " on a device of stage " + std::to_string(fullest) +
                                  (stage.fits() ? "" : ": does not fit"));
        for (const std::string& each : predicted.assumed) text += row("assumed", each);
    }
    return text + "</dl>\n";
}

}  // namespace

std::string pageOf(const Placement& placement) {
    const Before before = beforeOf(placement);
    const std::string title =
        escaped(textOf(placement.degrees) + " on " + placement.cluster.text());
    const auto section = [](const std::string& content) {
        return content.empty() ? "" : "<section>\n" + content + "</section>\n";
    };
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" +
           title + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<main>\n<h1>" +
           title + "</h1>\n" + summary(placement) + section(treeFigure(placement)) +
           section(heatFigure(placement, before.nodeOfRank, before.name)) +
           section(loadFigure(placement, before.nodeOfRank, before.name)) +
           section(ganttFigure(placement)) + "</main>\n</body>\n</html>\n";
}

}  // namespace isthmus::scheduler
