#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/plan/plan.hpp"

namespace isthmus::test {

/// How one run of the interpreter goes. Everything else follows from the seed.
struct Choices {
    std::vector<bool> isInPlace;  ///< by rank
    std::uint64_t seed = 0;
    bool sendsWait = false;  ///< a send is done only after its recv is posted
};

/// Runs the plans of all ranks once, step by step in a random order, as unkindly as the rules
/// allow: ranks start late, steps read at any time between posted and done, what a step will write
/// holds junk until it is done, sends finish late, and a rank that is done checks its output and
/// scribbles over its memory. Values are integers, so that wrong is never close; `completes`
/// multiplies. Returns what went wrong, empty when nothing did. Bounded: each event happens once.
std::string interpret(const std::vector<Plan>& plans, const Choices& choices);

}  // namespace isthmus::test
