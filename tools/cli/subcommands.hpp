#pragma once

#include <functional>

namespace CLI {
class App;
}  // namespace CLI

namespace isthmus::cli {

struct CommandLine;

/// What the command line asked for. A subcommand's CLI11 callback sets it, main() runs it after
/// parsing and exits with what it returns: nothing runs inside the parser.
using Action = std::function<int()>;

// One function per subcommand, one file per function. Each adds its subcommand and options to `app`
// and has `chosen` set when the subcommand was named. Both outlive the run.
void addInfo(CLI::App& app, Action& chosen);
void addRun(CLI::App& app, Action& chosen, const CommandLine& line);
void addCluster(CLI::App& app, Action& chosen, const CommandLine& line);
void addBench(CLI::App& app, Action& chosen);
void addExplain(CLI::App& app, Action& chosen);
void addPlace(CLI::App& app, Action& chosen);
void addTopo(CLI::App& app, Action& chosen);
void addTune(CLI::App& app, Action& chosen);

}  // namespace isthmus::cli
