#pragma once

#include <vector>

namespace isthmus::scheduler {

/// Seats by d'Hondt's rule: one after the other to the largest cost / (seats + 1), the first of
/// equals. Costs are not negative.
std::vector<int> dhondtSeats(const std::vector<double>& costs, int seats);

}  // namespace isthmus::scheduler
