#include <algorithm>
#include <vector>

#include "comm/selector/select.hpp"

namespace isthmus {
namespace {

std::string plain(std::string_view name) {
    std::string letters;
    for (const char letter : name) {
        if (letter != '_' && letter != '-') letters += letter;
    }
    return letters;
}

bool isKnownAnywhere(std::string_view name) {
    return std::any_of(catalogue().begin(), catalogue().end(),
                       [&](const Algorithm& entry) { return entry.name == name; });
}

std::string allAlgorithms() {
    std::vector<std::string_view> names;
    for (const Algorithm& entry : catalogue()) {
        if (std::find(names.begin(), names.end(), entry.name) == names.end()) {
            names.push_back(entry.name);
        }
    }
    std::string list;
    for (const std::string_view name : names) {
        list += (list.empty() ? "" : ", ") + std::string(name);
    }
    return list;
}

Status unknownAlgorithm(std::string_view name, const std::string& known) {
    return Status::configuration("ISTHMUS_ALGORITHM: unknown algorithm \"" + std::string(name) +
                                 "\": known are " + known);
}

Status apply(SelectorOptions& options, std::string_view part) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
        if (!isKnownAnywhere(part)) return unknownAlgorithm(part, allAlgorithms());
        for (std::string& algorithm : options.algorithms) algorithm = part;
        return {};
    }
    const Result<Collective> collective = collectiveNamed(part.substr(0, equals));
    if (!collective.ok()) {
        return Status::configuration("ISTHMUS_ALGORITHM: " + collective.status().what());
    }
    const std::string_view name = part.substr(equals + 1);
    if (findAlgorithm(*collective, name) == nullptr) {
        return unknownAlgorithm(name, knownAlgorithms(*collective));
    }
    options.algorithms[static_cast<std::size_t>(*collective)] = name;
    return {};
}

Status applyAll(SelectorOptions& options, std::string_view text) {
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view part = text.substr(0, comma);
        if (!part.empty()) ISTHMUS_TRY(apply(options, part));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return {};
}

}  // namespace

Result<Collective> collectiveNamed(std::string_view name) {
    std::string known;
    for (int index = 0; index < kCollectives; ++index) {
        const auto collective = static_cast<Collective>(index);
        if (plain(nameOf(collective)) == plain(name)) return collective;
        known += (known.empty() ? "" : ", ") + std::string(nameOf(collective));
    }
    return Status::invalidArgument("unknown collective \"" + std::string(name) + "\": known are " +
                                   known);
}

std::string knownAlgorithms(Collective collective) {
    std::string list;
    for (const Algorithm& entry : catalogue()) {
        if (entry.collective != collective) continue;
        list += (list.empty() ? "" : ", ") + std::string(entry.name);
    }
    return list;
}

Result<SelectorOptions> SelectorOptions::from(const Options& options) {
    SelectorOptions chosen;
    ISTHMUS_TRY(applyAll(chosen, options.text("ISTHMUS_ALGORITHM")));
    chosen.segmentBytes = std::max<std::int64_t>(options.integer("ISTHMUS_SEGMENT"), 4096);
    chosen.inlineBytes = std::max<std::int64_t>(options.integer("ISTHMUS_INLINE"), 0);
    chosen.window =
        static_cast<int>(std::clamp<std::int64_t>(options.integer("ISTHMUS_WINDOW"), 1, 16));
    return chosen;
}

}  // namespace isthmus
