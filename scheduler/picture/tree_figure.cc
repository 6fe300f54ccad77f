#include <algorithm>

#include "scheduler/picture/parts.hpp"
#include "scheduler/picture/svg.hpp"
#include "scheduler/placement/shape.hpp"

namespace isthmus::scheduler {

namespace {

// More would be a page that nobody scrolls through.
constexpr std::size_t kMostDevices = 1024;
constexpr double kPageWidth = 1150;
constexpr double kDeviceWidth = 44;
constexpr double kBand = 8;
constexpr int kDevicesOfRow = 8;

/// What is drawn of one device.
struct Cell {
    int rank = -1;
    int device = 0;
};

class Tree {
public:
    explicit Tree(const Placement& placement) : placement_(placement), shape_(placement.degrees) {
        for (const Axis axis : kAxes) {
            if (placement.degrees[axis] > 1) axes_.push_back(axis);
        }
        cells_.resize(placement.cluster.nodes.size());
        for (std::size_t rank = 0; rank < placement.seats.size(); ++rank) {
            const Seat& seat = placement.seats[rank];
            cells_[static_cast<std::size_t>(seat.node)].push_back(
                {static_cast<int>(rank), seat.device});
        }
        for (std::vector<Cell>& node : cells_) {
            std::sort(node.begin(), node.end(),
                      [](const Cell& one, const Cell& other) { return one.device < other.device; });
        }
    }

    std::string figure();

private:
    struct Spot {
        double x = 0;
        double y = 0;
    };

    std::string groupText(int rank, Axis axis) const;
    double widthOf(std::size_t node) const {
        const auto columns = std::min<std::size_t>(cells_[node].size(), kDevicesOfRow);
        return 16 + kDeviceWidth * static_cast<double>(std::max<std::size_t>(columns, 2));
    }
    double heightOf(std::size_t node) const {
        const std::size_t rows = (cells_[node].size() + kDevicesOfRow - 1) / kDevicesOfRow;
        return 30 + (deviceHeight() + 6) * static_cast<double>(rows);
    }
    double deviceHeight() const { return 18 + kBand * static_cast<double>(axes_.size()); }
    std::string rackOf(std::size_t node) const;
    void drawNode(Svg& svg, std::size_t node, Spot spot) const;

    const Placement& placement_;
    Shape shape_;
    std::vector<Axis> axes_;
    std::vector<std::vector<Cell>> cells_;
};

std::string Tree::rackOf(std::size_t node) const {
    std::string name;
    for (const std::string& group : placement_.cluster.nodes[node].at) {
        name += (name.empty() ? "" : " / ") + group;
    }
    return name;
}

std::string Tree::groupText(int rank, Axis axis) const {
    constexpr int kMostMembers = 16;
    const int first = shape_.firstOf(rank, axis);
    std::string text = std::string(nameOf(axis)) + " " +
                       std::to_string(shape_.coordinate(rank, axis)) + " of group";
    const int degree = shape_.degree(axis);
    for (int at = 0; at < std::min(degree, kMostMembers); ++at) {
        text += " " + std::to_string(first + at * shape_.stride(axis));
    }
    return text + (degree > kMostMembers ? " ..." : "");
}

void Tree::drawNode(Svg& svg, std::size_t node, Spot spot) const {
    svg.box(spot.x, spot.y, widthOf(node), heightOf(node), "", "", "frame");
    svg.text(spot.x + 8, spot.y + 18, placement_.cluster.nodes[node].name);
    for (std::size_t at = 0; at < cells_[node].size(); ++at) {
        const Cell& cell = cells_[node][at];
        const std::size_t row = at / kDevicesOfRow;
        const std::size_t column = at % kDevicesOfRow;
        const double x = spot.x + 8 + kDeviceWidth * static_cast<double>(column);
        const double y = spot.y + 26 + (deviceHeight() + 6) * static_cast<double>(row);
        svg.box(x, y, kDeviceWidth - 4, deviceHeight(), "#fff",
                "rank " + std::to_string(cell.rank) + ", device " + std::to_string(cell.device),
                "frame");
        svg.text(x + (kDeviceWidth - 4) / 2, y + 13, std::to_string(cell.rank),
                 Svg::Anchor::kMiddle);
        double top = y + 17;
        for (const Axis axis : axes_) {
            // Groups are numbered by their first members.
            const int first = shape_.firstOf(cell.rank, axis);
            const int group =
                first / (shape_.stride(axis) * shape_.degree(axis)) * shape_.stride(axis) +
                first % shape_.stride(axis);
            svg.box(x + 1, top, kDeviceWidth - 6, kBand - 1, hueOf(static_cast<std::size_t>(group)),
                    groupText(cell.rank, axis));
            top += kBand;
        }
    }
}

std::string Tree::figure() {
    std::vector<Spot> spots;
    Spot next{0, 0};
    double rowHeight = 0;
    std::string rack;
    std::size_t drawn = 0;
    for (std::size_t node = 0; node < cells_.size() && drawn < kMostDevices; ++node) {
        const std::string here = rackOf(node);
        const bool isNewRack = !here.empty() && here != rack;
        if (isNewRack || (next.x > 0 && next.x + widthOf(node) > kPageWidth)) {
            next = {0, next.y + rowHeight + (node > 0 ? 10 : 0) + (isNewRack ? 20 : 0)};
            rowHeight = 0;
        }
        rack = here;
        spots.push_back(next);
        next.x += widthOf(node) + 12;
        rowHeight = std::max(rowHeight, heightOf(node));
        drawn += cells_[node].size();
    }
    Svg svg(kPageWidth, next.y + rowHeight + 2);
    rack.clear();
    for (std::size_t node = 0; node < spots.size(); ++node) {
        const std::string here = rackOf(node);
        if (!here.empty() && here != rack) svg.text(0, spots[node].y - 6, here);
        rack = here;
        drawNode(svg, node, spots[node]);
    }
    std::string bands;
    for (const Axis axis : axes_) bands.append(bands.empty() ? "" : ", ").append(nameOf(axis));
    std::string text = "<h2>Who is where</h2>\n<p>Numbers are ranks. ";
    if (!bands.empty()) {
        text += "Bands, from the top: " + bands + "; in one band, equal colours are one group.";
    }
    if (spots.size() < cells_.size()) {
        text += " " + std::to_string(cells_.size() - spots.size()) + " nodes more are not drawn.";
    }
    return text + "</p>\n" + svg.take();
}

}  // namespace

std::string treeFigure(const Placement& placement) {
    return Tree(placement).figure();
}

}  // namespace isthmus::scheduler
