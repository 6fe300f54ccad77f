#include "scheduler/axis.hpp"

namespace isthmus::scheduler {

std::string_view nameOf(Axis axis) {
    constexpr std::array<std::string_view, kAxes.size()> kNames = {"tensor", "context", "expert",
                                                                   "data", "pipe"};
    return kNames[static_cast<std::size_t>(axis)];
}

Result<Axis> axisNamed(std::string_view name) {
    constexpr std::array<std::string_view, kAxes.size()> kShort = {"tp", "cp", "ep", "dp", "pp"};
    std::string known;
    for (const Axis axis : kAxes) {
        if (nameOf(axis) == name || kShort[static_cast<std::size_t>(axis)] == name) return axis;
        known.append(known.empty() ? "" : ", ").append(nameOf(axis));
    }
    return Status::invalidArgument("unknown axis \"" + std::string(name) + "\"; known: " + known);
}

std::int64_t ranksOf(const Degrees& degrees) {
    std::int64_t ranks = 1;
    for (const Axis axis : kAxes) ranks *= degrees[axis];
    return ranks;
}

std::string textOf(const Degrees& degrees) {
    std::string text;
    for (const Axis axis : kAxes) {
        if (degrees[axis] == 1) continue;
        text.append(text.empty() ? "" : ", ").append(nameOf(axis));
        text += " " + std::to_string(degrees[axis]);
    }
    return text.empty() ? "one rank" : text;
}

}  // namespace isthmus::scheduler
