#include "comm/transport/transport_choice.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace isthmus {

namespace {

constexpr std::array<std::string_view, 3> kBetween = {"tcp", "ucx", "ofi"};

Status wrong(std::string_view text, const std::string& why) {
    return Status::configuration("ISTHMUS_TRANSPORTS is \"" + std::string(text) + "\": " + why);
}

std::vector<std::string_view> itemsOf(std::string_view list) {
    std::vector<std::string_view> items;
    while (true) {
        const std::size_t comma = list.find(',');
        items.push_back(list.substr(0, comma));
        if (comma == std::string_view::npos) return items;
        list.remove_prefix(comma + 1);
    }
}

bool isBetween(std::string_view name) {
    return std::find(kBetween.begin(), kBetween.end(), name) != kBetween.end();
}

Result<TransportChoice> without(std::string_view text, std::string_view list) {
    TransportChoice choice{true, "tcp", ""};
    for (const std::string_view item : itemsOf(list)) {
        if (item == "shm") {
            choice.sharesMemory = false;
        } else if (!isBetween(item)) {
            return wrong(text, "no transport is called \"" + std::string(item) + "\"");
        } else if (item == choice.between) {
            choice.between.clear();
        }
    }
    if (choice.sharesMemory || !choice.between.empty()) return choice;
    return wrong(text, "nothing is left");
}

}  // namespace

Result<TransportChoice> parseTransports(std::string_view text) {
    if (text == "auto") return TransportChoice{true, "tcp", ""};
    if (text.starts_with('^')) return without(text, text.substr(1));
    TransportChoice choice;
    for (const std::string_view item : itemsOf(text)) {
        const std::size_t at = item.find('@');
        const std::string_view name = item.substr(0, at);
        if (name == "shm" && at == std::string_view::npos) {
            choice.sharesMemory = true;
            continue;
        }
        if (!isBetween(name)) {
            return wrong(text,
                         "no transport is called \"" + std::string(item) +
                             "\"; expected auto, or a list of shm and one of tcp, ucx and ofi");
        }
        if (!choice.between.empty()) {
            return wrong(text, "one transport at a time goes between nodes, not " + choice.between +
                                   " and " + std::string(name));
        }
        if (name == "tcp" && at != std::string_view::npos) {
            return wrong(text, "the card of tcp is chosen by ISTHMUS_INTERFACE");
        }
        choice.between = name;
        if (at != std::string_view::npos) choice.device = item.substr(at + 1);
    }
    return choice;
}

}  // namespace isthmus
