#include "comm/plan/print.hpp"

#include <array>
#include <type_traits>

namespace isthmus {
namespace {

template <typename Part>
void appendOne(std::string& text, const Part& part) {
    if constexpr (std::is_arithmetic_v<Part>) {
        text += std::to_string(part);
    } else {
        text += part;
    }
}

template <typename... Parts>
void append(std::string& text, const Parts&... parts) {
    (appendOne(text, parts), ...);
}

}  // namespace

std::string_view nameOf(Verb verb) {
    constexpr std::array<std::string_view, 6> kNames = {"copy", "reduce", "send",
                                                        "recv", "signal", "wait"};
    return kNames[static_cast<std::size_t>(verb)];
}

std::string_view nameOf(Buffer buffer) {
    constexpr std::array<std::string_view, 4> kNames = {"input", "output", "scratch", "shared"};
    return kNames[static_cast<std::size_t>(buffer)];
}

std::string_view nameOf(Mapping mapping) {
    constexpr std::array<std::string_view, kMappings> kNames = {"none", "shared", "all", "read"};
    return kNames[static_cast<std::size_t>(mapping)];
}

std::string textOf(const Location& location) {
    return textOf(Slice{location});
}

std::string textOf(const Slice& slice) {
    std::string text;
    for (std::size_t from = 0; from < slice.size();) {
        std::size_t to = from + 1;
        while (to < slice.size() && slice[to].rank == slice[from].rank &&
               slice[to].buffer == slice[from].buffer &&
               slice[to].chunk == slice[to - 1].chunk + 1) {
            ++to;
        }
        if (from > 0) text += ' ';
        append(text, nameOf(slice[from].buffer), "(", slice[from].chunk);
        if (to - from > 1) append(text, "-", slice[to - 1].chunk);
        append(text, ")@", slice[from].rank);
        from = to;
    }
    return text;
}

std::string textOf(const Step& step) {
    std::string text(nameOf(step.verb));
    if (!step.target.empty()) append(text, " ", textOf(step.target));
    for (std::size_t i = 0; i < step.sources.size(); ++i) {
        append(text, i > 0 ? " + " : step.verb == Verb::kSend ? " " : " <- ");
        text += textOf(step.sources[i]);
    }
    const bool isOut = step.verb == Verb::kSend || step.verb == Verb::kSignal;
    if (!step.peers.empty()) text += isOut ? " to" : " from";
    for (const Rank peer : step.peers) append(text, " ", peer);
    if (step.channel != 0) append(text, " channel ", step.channel);
    if (step.completes) text += " completes";
    return text;
}

std::string textOf(const Plan& plan) {
    std::string text;
    append(text, nameOf(plan.collective), " ", plan.algorithm, " rank ", plan.me, " of ",
           plan.ranks);
    if (hasRoot(plan.collective)) append(text, " root ", plan.root);
    append(text, " mapped ", nameOf(plan.mapping), " chunks ", plan.chunking.chunksPerBlock(),
           " scratch ", plan.scratch.size(), " shared ", plan.shared.size(), "\n");
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        append(text, "  ", i, " ", textOf(plan.steps[i]));
        if (!plan.steps[i].after.empty()) text += " after";
        for (const int before : plan.steps[i].after) append(text, " ", before);
        text += '\n';
    }
    return text;
}

}  // namespace isthmus
