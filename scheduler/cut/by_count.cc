#include "scheduler/cut/by_count.hpp"

#include <algorithm>
#include <charconv>
#include <regex>

namespace isthmus::scheduler {

namespace {

constexpr std::string_view kType = "type:";
constexpr std::string_view kManual = "manual:";

Result<std::vector<int>> integersOf(std::string_view text) {
    std::vector<int> list;
    while (true) {
        const std::size_t comma = text.find(',');
        const std::string_view one = text.substr(0, comma);
        int value = 0;
        const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), value);
        if (error != std::errc() || end != one.data() + one.size() || value < 0) {
            return Status::invalidArgument("manual: \"" + std::string(one) +
                                           "\" is no number of a layer");
        }
        list.push_back(value);
        if (comma == std::string_view::npos) return list;
        text.remove_prefix(comma + 1);
    }
}

}  // namespace

Result<std::vector<double>> numbersOf(const Model& model, const std::string& method) {
    std::vector<double> numbers;
    if (method == "parameters") {
        for (const Layer& layer : model.layers) {
            numbers.push_back(static_cast<double>(layer.parameters + layer.expertParameters));
        }
        return numbers;
    }
    const std::string expression = method.substr(kType.size());
    // The library's matcher takes stack and time by what it is given: a type's name is short.
    constexpr std::size_t kMostText = 256;
    if (expression.empty() || expression.size() > kMostText) {
        return Status::invalidArgument("type: an expression has 1 to 256 characters");
    }
    try {  // std::regex reports by exceptions; they end here
        const std::regex regex(expression, std::regex::ECMAScript | std::regex::icase);
        for (const Layer& layer : model.layers) {
            const bool isFound = std::regex_search(layer.type.substr(0, kMostText), regex) ||
                                 std::regex_search(layer.name.substr(0, kMostText), regex);
            numbers.push_back(isFound ? 1 : 0);
        }
    } catch (const std::regex_error& cause) {
        return Status::invalidArgument("type: \"" + expression +
                                       "\" is no expression: " + cause.what());
    }
    if (std::count(numbers.begin(), numbers.end(), 1.0) == 0) {
        return Status::invalidArgument("type: \"" + expression + "\" is found in no layer");
    }
    return numbers;
}

Result<std::vector<int>> firstLayersOf(const std::string& method, int chunks, int layers) {
    std::string_view text = std::string_view(method).substr(kManual.size());
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos) {
        const Result<std::vector<int>> meant = integersOf(text.substr(0, colon));
        if (!meant.ok()) return meant.status();
        if (meant->size() != 1 || meant->front() != layers) {
            return Status::invalidArgument("manual: meant for " +
                                           std::string(text.substr(0, colon)) +
                                           " layers, the model has " + std::to_string(layers));
        }
        text.remove_prefix(colon + 1);
    }
    Result<std::vector<int>> list = integersOf(text);
    if (!list.ok()) return list;
    std::vector<int>& firsts = *list;
    if (firsts.front() != 0) firsts.insert(firsts.begin(), 0);
    if (firsts.back() == layers) firsts.pop_back();
    if (static_cast<int>(firsts.size()) != chunks) {
        return Status::invalidArgument("manual: first layers of " + std::to_string(firsts.size()) +
                                       " chunks, the pipeline has " + std::to_string(chunks));
    }
    for (std::size_t chunk = 1; chunk < firsts.size(); ++chunk) {
        if (firsts[chunk] > firsts[chunk - 1] && firsts[chunk] < layers) continue;
        return Status::invalidArgument("manual: " + std::to_string(firsts[chunk]) +
                                       " does not follow " + std::to_string(firsts[chunk - 1]) +
                                       " within " + std::to_string(layers) + " layers");
    }
    return list;
}

}  // namespace isthmus::scheduler
