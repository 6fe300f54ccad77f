#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/cli/bench_options.hpp"

namespace isthmus::cli {

/// The options on the command line with their values; those named in `without` left out.
std::vector<std::string> givenOptions(const CLI::App& sub, const std::set<std::string>& without);

/// The arguments of `isthmus run` that start the ranks of a subcommand: `words`, its name and what
/// it is given without a name, and the command line with --ranks, --nodes and --order taken out.
/// `program`: path of this program.
std::vector<std::string> launchArguments(const CLI::App& sub, const std::vector<std::string>& words,
                                         const BenchOptions& options, const std::string& program);

/// Becomes `isthmus run`, which starts this subcommand again as each rank. Returns only when that
/// fails, with the exit code; the failure has been told.
int startOwnRanks(const CLI::App& sub, const std::vector<std::string>& words,
                  const BenchOptions& options);

}  // namespace isthmus::cli
