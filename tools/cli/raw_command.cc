#include "tools/cli/raw_command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tools/cli/usage.hpp"

namespace isthmus::cli {

CommandLine CommandLine::of(int argc, char** argv) {
    CommandLine line;
    line.ours.assign(argv + 1, argv + argc);
    const auto is = [&](std::size_t at, const char* word) {
        return at < line.ours.size() && line.ours[at] == word;
    };
    if (!is(0, "run") && !(is(0, "cluster") && is(1, "exec"))) return line;
    const auto cut = std::find(line.ours.begin(), line.ours.end(), "--");
    if (cut == line.ours.end()) return line;
    line.program.assign(cut + 1, line.ours.end());
    line.ours.erase(cut, line.ours.end());
    line.isCut = true;
    return line;
}

Result<std::vector<std::string>> rawCommand(const CLI::App& sub, const CommandLine& line) {
    std::vector<std::string> command = sub.remaining();
    if (!command.empty() && command[0].starts_with("-")) {
        return Status::invalidArgument(explainUnknown(sub, {command[0]}));
    }
    if (line.isCut && !command.empty()) command.emplace_back("--");  // it was the program's own
    command.insert(command.end(), line.program.begin(), line.program.end());
    if (command.empty()) return Status::invalidArgument("no program was named");
    return command;
}

}  // namespace isthmus::cli
