// The `isthmus` program: one file per subcommand, see subcommands.hpp.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "tools/cli/exit_code.hpp"
#include "tools/cli/raw_command.hpp"
#include "tools/cli/standard_streams.hpp"
#include "tools/cli/subcommands.hpp"
#include "tools/cli/usage.hpp"

namespace isthmus::cli {
namespace {

/// CLI11 reports by exceptions; they end here.
int parse(CLI::App& app, const std::vector<std::string>& arguments) {
    try {
        app.parse(
            std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // last word first
    } catch (const CLI::Success& asked) {                                     // --help, --version
        return app.exit(asked);
    } catch (const CLI::ParseError& wrong) {
        const std::string unknown = explainUnknown(app, arguments);
        fmt::print(stderr, "isthmus: {}\n", unknown.empty() ? wrong.what() : unknown);
        const auto named = app.get_subcommands();
        fmt::print(stderr, "try: isthmus {}{}--help\n", named.empty() ? "" : named[0]->get_name(),
                   named.empty() ? "" : " ");
        return asInt(ExitCode::kUsage);
    }
    return asInt(ExitCode::kOk);
}

int reportPlainly(const Status& status) {
    fmt::print(stderr, "isthmus: {}\n", status.what());
    return asInt(exitCodeOf(status));
}

int run(int argc, char** argv) {
    const CommandLine line = CommandLine::of(argc, argv);
    Action chosen;
    CLI::App app("asynchronous topology-aware collective communication", "isthmus");
    app.set_version_flag("--version", "isthmus " ISTHMUS_VERSION);
    app.require_subcommand(1);
    addInfo(app, chosen);
    addRun(app, chosen, line);
    addCluster(app, chosen, line);
    addExplain(app, chosen);
    addBench(app, chosen);
    addTune(app, chosen);
    addPlace(app, chosen);
    addTopo(app, chosen);

    const int parsed = parse(app, line.ours);
    const int result = chosen ? chosen() : parsed;
    const Status written = flushOutput();
    if (written.ok() || result != asInt(ExitCode::kOk)) return result;
    return reportPlainly(written);
}

}  // namespace
}  // namespace isthmus::cli

int main(int argc, char** argv) {
    isthmus::cli::openStandardStreams();
    try {
        return isthmus::cli::run(argc, argv);
    } catch (const std::system_error& error) {  // fmt::print, when a file takes no more
        return isthmus::cli::reportPlainly(isthmus::cli::outputFailed(error.code().value()));
    } catch (const std::exception& unexpected) {
        fmt::print(stderr, "isthmus: internal error: {}\n", unexpected.what());
        return isthmus::cli::asInt(isthmus::cli::ExitCode::kInternal);
    }
}
