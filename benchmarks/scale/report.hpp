#pragma once

#include <string>
#include <vector>

#include "benchmarks/scale/study.hpp"

namespace isthmus::scale {

/// What is said of the machines and the model before the rows.
std::string heading(const Question& question);

/// By call, then by name: whatever the order in which threads found them.
void sort(std::vector<Row>& rows);

/// One line for each call: what the selector chose, what else is quicker, how both grew.
std::string table(const std::vector<Row>& rows);

/// Rows whose one pass departs from its closed form by more than `tolerance`.
std::vector<Row> departures(const std::vector<Row>& rows, double tolerance);

/// What was left out, what departs, in how many calls the choice is not the quickest.
std::string summary(const std::vector<Row>& rows, double tolerance);

std::string json(const Question& question, const std::vector<Row>& rows, double tolerance);

}  // namespace isthmus::scale
