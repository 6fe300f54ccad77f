#include "tools/cli/own_ranks.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "tools/cli/exit_code.hpp"

namespace isthmus::cli {
namespace {

Result<std::string> programPath() {
    std::array<char, PATH_MAX> path{};
    const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
    if (length < 0) return Status::internal("cannot read /proc/self/exe");
    return std::string(path.data(), static_cast<std::size_t>(length));
}

}  // namespace

std::vector<std::string> givenOptions(const CLI::App& sub, const std::set<std::string>& without) {
    std::vector<std::string> given;
    for (const CLI::Option* option : sub.get_options()) {
        const std::string name = option->get_name();
        if (option->count() == 0 || !name.starts_with("-") || without.contains(name)) continue;
        given.push_back(name);
        if (option->get_expected_max() > 0) given.push_back(option->results().back());
    }
    return given;
}

std::vector<std::string> launchArguments(const CLI::App& sub, const std::vector<std::string>& words,
                                         const BenchOptions& options, const std::string& program) {
    std::vector<std::string> arguments = {program, "run", "--no-prefix"};
    const auto add = [&](const char* name, const std::string& value) {
        if (value.empty()) return;
        arguments.emplace_back(name);
        arguments.push_back(value);
    };
    add("-n", options.ranks > 0 ? std::to_string(options.ranks) : "");
    add("--nodes", options.nodes);
    add("--order", options.order);
    if (!options.nodes.empty()) add("--rate", options.rate);
    arguments.insert(arguments.end(), {"--", program});
    arguments.insert(arguments.end(), words.begin(), words.end());
    for (std::string& given : givenOptions(sub, {"--ranks", "--nodes", "--order"})) {
        arguments.push_back(std::move(given));
    }
    return arguments;
}

int startOwnRanks(const CLI::App& sub, const std::vector<std::string>& words,
                  const BenchOptions& options) {
    const std::string& who = words.front();
    const Result<std::string> program = programPath();
    if (!program.ok()) return report(who.c_str(), program.status());
    std::vector<std::string> arguments = launchArguments(sub, words, options, *program);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    std::fflush(nullptr);
    ::execv(program->c_str(), pointers.data());
    return report(who.c_str(), Status::internal(fmt::format("cannot start {}: {}", *program,
                                                            std::strerror(errno))));
}

}  // namespace isthmus::cli
