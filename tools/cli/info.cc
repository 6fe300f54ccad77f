#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "comm/base/knobs.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/subcommands.hpp"

namespace isthmus::cli {
namespace {

struct InfoOptions {
    bool isJson = false;
    bool showsOptions = false;
};

int info(const InfoOptions& asked) {
    nlohmann::json facts;
    facts["version"] = ISTHMUS_VERSION;
    if (asked.isJson) {
        fmt::print("{}\n", facts.dump(2));
    } else {
        fmt::print("isthmus {}\n", ISTHMUS_VERSION);
    }
    return asInt(ExitCode::kOk);
}

}  // namespace

void addInfo(CLI::App& app, Action& chosen) {
    CLI::App* sub = app.add_subcommand("info", "what this machine and this build can do");
    auto asked = std::make_shared<InfoOptions>();
    sub->add_flag("--json", asked->isJson, "print JSON");
    sub->add_flag("--options", asked->showsOptions, "list every ISTHMUS_ option");
    sub->callback([asked, &chosen] { chosen = [asked] { return info(*asked); }; });
}

}  // namespace isthmus::cli
