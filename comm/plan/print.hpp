#pragma once

#include <string>
#include <string_view>

#include "comm/plan/plan.hpp"

namespace isthmus {

std::string_view nameOf(Verb verb);
std::string_view nameOf(Buffer buffer);
std::string_view nameOf(Mapping mapping);

/// "input(3)@2": chunk 3 of the input of rank 2.
std::string textOf(const Location& location);

/// Runs are shortened: "input(0-3)@2 output(1)@0".
std::string textOf(const Slice& slice);

/// One line: verb, target, sources, peers, channel.
std::string textOf(const Step& step);

/// A head line, then one line for each step: "  4 reduce output(0)@1 <- ... after 1 2".
std::string textOf(const Plan& plan);

/// Graphviz: one cluster for each rank, local edges, messages and signals between the ranks that
/// are given (one plan or all of them).
std::string dotOf(const std::vector<Plan>& plans);

/// One object; locations as [rank, buffer, chunk].
std::string jsonOf(const Plan& plan);

}  // namespace isthmus
