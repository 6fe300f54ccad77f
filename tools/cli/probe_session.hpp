#pragma once

#include <isthmus/types.hpp>
#include "tools/cli/probe_result.hpp"

namespace isthmus::cli {

/// The ranks of the job that this process is one of measure their nodes and what joins them.
/// Collective; every rank gets the same. Seconds for a few nodes; with the logarithm of their
/// number for many.
struct Probed {
    Rank rank = 0;
    ProbeReadings readings;
};

Result<Probed> probe();

}  // namespace isthmus::cli
