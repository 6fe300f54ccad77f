#include <algorithm>

#include "comm/engine/call.hpp"
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

static_assert(kMaxWindow == 8, "what the knob ISTHMUS_WINDOW says of itself");

Result<SelectorOptions> SelectorOptions::from(const Options& options) {
    SelectorOptions chosen;
    Result<AlgorithmRules> rules = readAlgorithmRules(options.text("ISTHMUS_ALGORITHM"));
    if (!rules.ok()) return rules.status();
    chosen.rules = std::move(*rules);
    chosen.segmentBytes = std::max<std::int64_t>(options.integer("ISTHMUS_SEGMENT"), 4096);
    if (!options.text("ISTHMUS_INLINE").empty())
        chosen.inlineBytes = options.integer("ISTHMUS_INLINE");
    chosen.isDeterministic = options.flag("ISTHMUS_DETERMINISTIC");
    chosen.roundsOnce = options.flag("ISTHMUS_ONE_ROUNDING");
    chosen.window = static_cast<int>(
        std::clamp<std::int64_t>(options.integer("ISTHMUS_WINDOW"), 1, kMaxWindow));
    return chosen;
}

}  // namespace isthmus
