#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace isthmus::cli {

/// The first word of `arguments` (without the program's name) that `app` or the subcommand it is in
/// does not know, as a sentence with the nearest known word; empty when nothing is recognisably
/// wrong.
std::string explainUnknown(const CLI::App& app, const std::vector<std::string>& arguments);

/// "; did you mean X?", or what is known when nothing is near.
std::string suggestion(const std::string& word, const std::vector<std::string>& known);

}  // namespace isthmus::cli
