#pragma once

#include <span>
#include <string>

#include "scheduler/placement/placement.hpp"

namespace isthmus::scheduler {

/// Pieces of the page: each a figure of inline SVG with what is to be said of it. More than some
/// tens of nodes or stages are left out, which the figure says.

/// Racks, nodes and devices; each device has a band for each axis, coloured by its group.
std::string treeFigure(const Placement& placement);

/// What each node sends to each other before and after, in the same colours.
std::string heatFigure(const Placement& placement, std::span<const int> before,
                       const std::string& beforeName);

/// What each node sends, by axis, and how long its cards take for that.
std::string loadFigure(const Placement& placement, std::span<const int> before,
                       const std::string& beforeName);

/// Stages over time. Empty without a prediction.
std::string ganttFigure(const Placement& placement);

/// A colour for an axis.
const char* colourOf(Axis axis);

/// Colour swatches and names of the axes that are split.
std::string axisLegend(const Placement& placement);

}  // namespace isthmus::scheduler
