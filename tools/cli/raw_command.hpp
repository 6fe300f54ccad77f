#pragma once

#include <string>
#include <vector>

#include <isthmus/status.hpp>

namespace CLI {
class App;
}  // namespace CLI

namespace isthmus::cli {

/// The command line, cut where a program to run begins after "--". CLI11's own reading of "--" puts
/// the words of a prefix command in disorder (2.1.2), so it never sees it.
struct CommandLine {
    std::vector<std::string> ours;     ///< without the name of the program
    std::vector<std::string> program;  ///< after the "--"
    bool isCut = false;

    /// Cuts only where the subcommand takes a program: `run`, `cluster exec`.
    static CommandLine of(int argc, char** argv);
};

/// The program and arguments that `sub` was given, before or after the "--".
/// kInvalidArgument: there is none, or it begins like an option, which is a slip, not a program.
Result<std::vector<std::string>> rawCommand(const CLI::App& sub, const CommandLine& line);

}  // namespace isthmus::cli
