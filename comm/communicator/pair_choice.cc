#include "comm/communicator/pair_choice.hpp"

#include <algorithm>
#include <cstdio>

#include "comm/bootstrap/exchange.hpp"

namespace isthmus {

namespace {

const TransportVerdict* verdictOn(const std::vector<TransportVerdict>& verdicts,
                                  std::string_view transport) {
    const auto found =
        std::find_if(verdicts.begin(), verdicts.end(),
                     [&](const TransportVerdict& each) { return each.transport == transport; });
    return found == verdicts.end() ? nullptr : &*found;
}

/// Empty: both have proved it.
std::string whyNot(std::string_view transport, const std::vector<TransportVerdict>& byOne,
                   const std::vector<TransportVerdict>& byOther) {
    for (const auto* verdicts : {&byOne, &byOther}) {
        const TransportVerdict* const verdict = verdictOn(*verdicts, transport);
        if (verdict == nullptr) return "only one end has tried it";
        if (!verdict->why.empty()) return verdict->why;
    }
    return {};
}

std::string whyMissing(const CallingCard& card, Rank rank, std::string_view transport) {
    const std::string who = "rank " + std::to_string(rank) + " (" + card.place + ")";
    for (const MissingTransport& missing : card.missing) {
        if (missing.name == transport) return who + " cannot: " + missing.why;
    }
    return who + " does not name it in ISTHMUS_TRANSPORTS";
}

/// Everything that either end has or asked for, in order.
std::vector<std::string> namedTransports(const std::vector<const CallingCard*>& cards) {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const CallingCard* card : cards) {
        for (const MissingTransport& missing : card->missing) add(missing.name);
        for (const TransportOffer& offer : card->between) add(offer.name);
    }
    return names;
}

std::string listed(const CallingCard& card) {
    std::string names;
    for (const TransportOffer& offer : card.between)
        names += (names.empty() ? "" : ",") + offer.name;
    return names.empty() ? "none" : names;
}

std::string rangeText(const char* format, double least, double most) {
    char text[64];
    std::snprintf(text, sizeof(text), format, least);
    std::string range = text;
    std::snprintf(text, sizeof(text), format, most);
    return range == text ? range : range + "-" + text;
}

}  // namespace

bool PairChoice::operator==(const PairChoice& other) const {
    const auto isSame = [](const TransportVerdict& left, const TransportVerdict& right) {
        return left.transport == right.transport && left.why == right.why;
    };
    return transport == other.transport &&
           std::equal(rejected.begin(), rejected.end(), other.rejected.begin(),
                      other.rejected.end(), isSame);
}

std::vector<std::string> commonTransports(const std::vector<CallingCard>& cards, Rank one,
                                          Rank other) {
    const CallingCard& lower = cards[std::min(one, other)];
    const CallingCard& higher = cards[std::max(one, other)];
    std::vector<std::string> names;
    for (const TransportOffer& offer : lower.between) {
        if (higher.offer(offer.name) != nullptr) names.push_back(offer.name);
    }
    return names;
}

PairChoice choosePair(const std::vector<CallingCard>& cards, Rank one, Rank other,
                      const std::vector<TransportVerdict>& byOne,
                      const std::vector<TransportVerdict>& byOther) {
    const std::vector<std::string> common = commonTransports(cards, one, other);
    PairChoice choice;
    const auto proven = std::find_if(common.begin(), common.end(), [&](const std::string& name) {
        return whyNot(name, byOne, byOther).empty();
    });
    if (!common.empty()) choice.transport = proven == common.end() ? common.back() : *proven;
    const Rank low = std::min(one, other);
    const Rank high = std::max(one, other);
    for (const std::string& name : namedTransports({&cards[low], &cards[high]})) {
        if (name == choice.transport) continue;
        const auto at = std::find(common.begin(), common.end(), name);
        if (at != common.end() && at > proven) continue;  // it only comes later
        const Rank lacking = cards[low].offer(name) == nullptr ? low : high;
        choice.rejected.push_back({name, at == common.end()
                                             ? whyMissing(cards[lacking], lacking, name)
                                             : whyNot(name, byOne, byOther)});
    }
    return choice;
}

Status checkTransports(const std::vector<CallingCard>& cards,
                       const std::vector<std::vector<Rank>>& nodes) {
    const auto isEverywhere = [&](const TransportOffer& offer) {
        return std::all_of(cards.begin(), cards.end(), [&](const CallingCard& card) {
            return card.offer(offer.name) != nullptr;
        });
    };
    const auto& first = cards.front().between;
    if (std::any_of(first.begin(), first.end(), isEverywhere)) return {};
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        for (std::size_t other = 0; other < node; ++other) {
            for (const Rank one : nodes[other]) {
                for (const Rank two : nodes[node]) {
                    if (!commonTransports(cards, one, two).empty()) continue;
                    const auto says = [&](Rank rank) {
                        return "rank " + std::to_string(rank) + " (" + cards[rank].place +
                               ") has " + listed(cards[rank]);
                    };
                    return Status::configuration(
                        "no transport leads from node to node: " + says(std::min(one, two)) + ", " +
                        says(std::max(one, two)) + " (ISTHMUS_TRANSPORTS)");
                }
            }
        }
    }
    return {};
}

std::optional<PairChoice> PairChoices::find(const ProcessId& peer) const {
    const std::lock_guard lock(mutex_);
    const auto found = choices_.find(peer);
    return found == choices_.end() ? std::nullopt : std::optional(found->second);
}

void PairChoices::keep(const ProcessId& peer, PairChoice choice) {
    const std::lock_guard lock(mutex_);
    choices_[peer] = std::move(choice);
}

std::string describeFigures(const std::vector<const WireUpTrial*>& trials) {
    if (trials.empty()) return {};
    const auto [least, most] = std::minmax_element(
        trials.begin(), trials.end(),
        [](const auto* a, const auto* b) { return a->latencySeconds < b->latencySeconds; });
    const auto [slow, fast] = std::minmax_element(
        trials.begin(), trials.end(),
        [](const auto* a, const auto* b) { return a->bytesPerSecond < b->bytesPerSecond; });
    return rangeText("%.2f", (*least)->latencySeconds * 1e6, (*most)->latencySeconds * 1e6) +
           " us, " +
           rangeText("%.3g", (*slow)->bytesPerSecond * 1e-9, (*fast)->bytesPerSecond * 1e-9) +
           " GB/s";
}

std::vector<ChoiceLine> describeChoices(const std::map<Rank, PairChoice>& choices,
                                        const std::vector<WireUpTrial>& trials) {
    std::vector<std::pair<PairChoice, std::vector<Rank>>> kinds;
    for (const auto& [rank, choice] : choices) {
        auto kind = std::find_if(kinds.begin(), kinds.end(), [&wanted = choice](const auto& each) {
            return each.first == wanted;
        });
        if (kind == kinds.end()) kind = kinds.insert(kind, {choice, {}});
        kind->second.push_back(rank);
    }
    std::vector<ChoiceLine> lines;
    for (const auto& [choice, ranks] : kinds) {
        std::vector<const WireUpTrial*> measured;
        for (const WireUpTrial& trial : trials) {
            const bool isOurs = std::find(ranks.begin(), ranks.end(), trial.peer) != ranks.end();
            if (isOurs && trial.transport == choice.transport && trial.outcome.ok())
                measured.push_back(&trial);
        }
        if (measured.empty() && choice.rejected.empty()) continue;
        ChoiceLine line{!choice.rejected.empty(),
                        choice.transport + (ranks.size() == 1 ? " with rank " : " with ranks ") +
                            rankList(ranks)};
        if (!measured.empty()) line.text += " (" + describeFigures(measured) + ")";
        for (const TransportVerdict& each : choice.rejected) {
            line.text += ", not " + each.transport + ": " + each.why;
        }
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace isthmus
