#include "comm/transport/transport_choice.hpp"

#include <algorithm>
#include <array>

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

TransportChoice automatic() {
    return {true, {{"tcp", ""}}};
}

Result<TransportChoice> without(std::string_view text, std::string_view list) {
    TransportChoice choice = automatic();
    for (const std::string_view item : itemsOf(list)) {
        if (item == "shm") {
            choice.sharesMemory = false;
        } else if (!isBetween(item)) {
            return wrong(text, "no transport is called \"" + std::string(item) + "\"");
        }
        std::erase_if(choice.between, [&](const auto& each) { return each.name == item; });
    }
    if (choice.sharesMemory || !choice.between.empty()) return choice;
    return wrong(text, "nothing is left");
}

}  // namespace

Result<TransportChoice> parseTransports(std::string_view text) {
    if (text == "auto") return automatic();
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
            return wrong(text, "no transport is called \"" + std::string(item) +
                                   "\"; expected auto, or a list of shm, tcp, ucx and ofi");
        }
        if (std::any_of(choice.between.begin(), choice.between.end(),
                        [&](const auto& each) { return each.name == name; })) {
            return wrong(text, std::string(name) + " stands there twice");
        }
        TransportChoice::Between between{std::string(name), ""};
        if (at != std::string_view::npos) between.device = item.substr(at + 1);
        if (at != std::string_view::npos && between.device.empty()) {
            return wrong(text, "nothing stands behind the @ of " + between.name);
        }
        choice.between.push_back(std::move(between));
    }
    return choice;
}

}  // namespace isthmus
