#include "tools/cli/usage.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <string_view>
#include <utility>

#include "comm/base/knobs.hpp"

namespace isthmus::cli {
namespace {

std::vector<std::string> subcommandNames(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(each->get_name());
    }
    return names;
}

std::vector<std::string> optionNames(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* each : app.get_options()) {
        for (const std::string& name : each->get_lnames()) names.push_back("--" + name);
        for (const std::string& name : each->get_snames()) names.push_back("-" + name);
    }
    return names;
}

bool hasSubcommands(const CLI::App& app) {
    return !subcommandNames(app).empty();
}

/// "-n4" and "--rate=1gbit" name the options -n and --rate.
std::string optionOf(const std::string& word) {
    if (word.rfind("--", 0) == 0) return word.substr(0, word.find('='));
    return word.substr(0, 2);
}

bool isOptionLike(const std::string& word) {
    return word.size() > 1 && word[0] == '-';
}

}  // namespace

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
    const std::vector<std::string_view> views(known.begin(), known.end());
    const std::string nearest = nearestName(word, views);
    if (!nearest.empty()) return fmt::format("; did you mean {}?", nearest);
    std::string all;
    for (const std::string& each : known) all += (all.empty() ? "; known: " : ", ") + each;
    return all;
}

std::string explainUnknown(const CLI::App& app, const std::vector<std::string>& arguments) {
    const CLI::App* current = &app;
    bool isValue = false;  // of the option before it
    for (const std::string& word : arguments) {
        if (word == "--") return {};
        if (std::exchange(isValue, false)) continue;
        const bool isNumber = isOptionLike(word) && word[1] >= '0' && word[1] <= '9';
        if (isOptionLike(word) && !isNumber) {
            const CLI::Option* option = current->get_option_no_throw(optionOf(word));
            isValue =
                option != nullptr && option->get_items_expected_min() > 0 && word == optionOf(word);
            if (option == nullptr) {
                return fmt::format("unknown option {} of {}{}", word, current->get_name(),
                                   suggestion(optionOf(word), optionNames(*current)));
            }
        } else if (hasSubcommands(*current)) {
            const CLI::App* next = nullptr;
            for (const CLI::App* each :
                 current->get_subcommands([](const CLI::App*) { return true; })) {
                if (each->check_name(word)) next = each;
            }
            if (next == nullptr) {
                return fmt::format("unknown subcommand {} of {}{}", word, current->get_name(),
                                   suggestion(word, subcommandNames(*current)));
            }
            current = next;
        }
    }
    return {};
}

}  // namespace isthmus::cli
