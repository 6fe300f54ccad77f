// What crosses between nodes: as a matrix, and as bars.
#include <algorithm>

#include "scheduler/picture/node_matrix.hpp"
#include "scheduler/picture/parts.hpp"
#include "scheduler/picture/svg.hpp"
#include "scheduler/placement/shape.hpp"

namespace isthmus::scheduler {

namespace {

constexpr std::size_t kMostNodes = 48;

/// From white to a dark blue; lightness falls with the square root, so that little is seen too.
std::string heatOf(double share) {
    if (share <= 0) return "#f3f5f7";
    double root = share;
    for (int round = 0; round < 20; ++round) root = (root + share / root) / 2;
    return "hsl(212 70% " + numberText(92 - 62 * root) + "%)";
}

void drawMatrix(Svg& svg, const Placement& placement, const std::vector<double>& bytes, double most,
                std::size_t shown, double cell) {
    constexpr double kLeft = 96;
    constexpr double kTop = 24;
    const std::size_t nodes = placement.cluster.nodes.size();
    for (std::size_t from = 0; from < shown; ++from) {
        const double y = kTop + cell * static_cast<double>(from);
        const std::string& name = placement.cluster.nodes[from].name;
        if (cell >= 12) {
            const std::string label = name.size() > 12 ? name.substr(0, 11) + "…" : name;
            svg.text(kLeft - 6, y + cell / 2 + 4, label, Svg::Anchor::kEnd);
        }
        for (std::size_t to = 0; to < shown; ++to) {
            const double x = kLeft + cell * static_cast<double>(to);
            const double sent = bytes[from * nodes + to];
            const double share = most > 0 ? sent / most : 0;
            svg.box(x, y, cell - 1, cell - 1, from == to ? "#e3e7ec" : heatOf(share),
                    name + " to " + placement.cluster.nodes[to].name + ": " + bytesText(sent));
            if (cell < 52 || sent <= 0) continue;
            svg.text(x + cell / 2, y + cell / 2 + 4, bytesText(sent), Svg::Anchor::kMiddle,
                     share > 0.25 ? "small light" : "small");
        }
    }
}

std::string matrixFigure(const Placement& placement, const std::vector<double>& bytes, double most,
                         std::size_t shown, const std::string& name) {
    const double cell = std::clamp(430 / static_cast<double>(shown), 8.0, 64.0);
    const double side = cell * static_cast<double>(shown);
    Svg svg(side + 100, side + 28);
    svg.text(96, 14, name, Svg::Anchor::kStart, "faint");
    drawMatrix(svg, placement, bytes, most, shown, cell);
    return "<div>" + svg.take() + "</div>\n";
}

std::vector<AxisBytes> loadsOf(const Placement& placement, std::span<const int> nodeOfRank) {
    return bytesOfNodes(Shape(placement.degrees), placement.bytes, nodeOfRank,
                        static_cast<int>(placement.cluster.nodes.size()));
}

std::int64_t sumOf(const AxisBytes& bytes) {
    std::int64_t sum = 0;
    for (const Axis axis : kAxes) sum += bytes[axis];
    return sum;
}

std::string restText(std::size_t nodes) {
    if (nodes <= kMostNodes) return "";
    return " " + std::to_string(nodes - kMostNodes) + " nodes more are not drawn.";
}

}  // namespace

const char* colourOf(Axis axis) {
    constexpr const char* kColours[] = {"#3b6fb6", "#2a9d8f", "#9b5de5", "#e9a23b", "#d1495b"};
    return kColours[static_cast<std::size_t>(axis)];
}

std::string axisLegend(const Placement& placement) {
    std::string text = "<p class=\"legend\">";
    for (const Axis axis : kAxes) {
        if (placement.degrees[axis] == 1) continue;
        text += std::string("<span><i style=\"background:") + colourOf(axis) + "\"></i>" +
                std::string(nameOf(axis)) + "</span>";
    }
    return text + "</p>\n";
}

std::string heatFigure(const Placement& placement, std::span<const int> before,
                       const std::string& beforeName) {
    const std::size_t nodes = placement.cluster.nodes.size();
    if (nodes < 2) return "";
    const Shape shape(placement.degrees);
    const auto count = static_cast<int>(nodes);
    const std::vector<int> seats = placement.nodeOfRank();
    const std::vector<double> was = nodeMatrix(shape, placement.bytes, before, count);
    const std::vector<double> is = nodeMatrix(shape, placement.bytes, seats, count);
    const double most = std::max(*std::max_element(was.begin(), was.end()),
                                 *std::max_element(is.begin(), is.end()));
    const std::size_t shown = std::min(nodes, kMostNodes);
    return "<h2>Node to node</h2>\n<p>Bytes of a step from the node of the row to that of the "
           "column; darkest is " +
           bytesText(most) + "." + restText(nodes) + "</p>\n<div class=\"pair\">\n" +
           matrixFigure(placement, was, most, shown, "before: " + beforeName) +
           matrixFigure(placement, is, most, shown, "placed") + "</div>\n";
}

std::string loadFigure(const Placement& placement, std::span<const int> before,
                       const std::string& beforeName) {
    const std::size_t nodes = placement.cluster.nodes.size();
    if (nodes < 2) return "";
    constexpr double kLeft = 110;
    constexpr double kWidth = 820;
    constexpr double kRow = 30;
    const std::vector<AxisBytes> was = loadsOf(placement, before);
    const std::vector<AxisBytes> is = loadsOf(placement, placement.nodeOfRank());
    std::int64_t most = 1;
    for (const auto* loads : {&was, &is}) {
        for (const AxisBytes& load : *loads) most = std::max(most, sumOf(load));
    }
    const auto widthOf = [&](std::int64_t bytes) {
        return kWidth * static_cast<double>(bytes) / static_cast<double>(most);
    };
    const std::size_t shown = std::min(nodes, kMostNodes);
    Svg svg(1150, kRow * static_cast<double>(shown) + 4);
    for (std::size_t at = 0; at < shown; ++at) {
        const Node& node = placement.cluster.nodes[at];
        const double y = kRow * static_cast<double>(at);
        svg.text(kLeft - 8, y + 18, node.name, Svg::Anchor::kEnd);
        double x = kLeft;
        for (const Axis axis : kAxes) {
            if (is[at][axis] == 0) continue;
            const double width = widthOf(is[at][axis]);
            svg.box(
                x, y + 4, width, 14, colourOf(axis),
                std::string(nameOf(axis)) + ": " + bytesText(static_cast<double>(is[at][axis])));
            x += width;
        }
        const auto wasSum = static_cast<double>(sumOf(was[at]));
        svg.box(kLeft, y + 20, widthOf(sumOf(was[at])), 4, "#b6bec8",
                beforeName + ": " + bytesText(wasSum));
        const auto sum = static_cast<double>(sumOf(is[at]));
        std::string label = bytesText(sum);
        if (node.bitsPerSecond() > 0) {
            label += ", " + secondsText(8 * sum / node.bitsPerSecond()) + " of its cards";
        }
        svg.text(kLeft + std::max(widthOf(sumOf(is[at])), 0.0) + 8, y + 16, label);
    }
    return "<h2>Load of cards</h2>\n<p>What leaves each node in a step, by axis; the thin grey bar "
           "is " +
           escaped(beforeName) + ". As much enters." + restText(nodes) + "</p>\n" +
           axisLegend(placement) + svg.take();
}

}  // namespace isthmus::scheduler
