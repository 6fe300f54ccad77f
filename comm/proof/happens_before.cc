#include "comm/proof/happens_before.hpp"

#include <algorithm>

namespace isthmus {

HappensBefore::HappensBefore(const Matching& matching, int ranks)
    : matching_(matching),
      ranks_(ranks),
      words_((static_cast<std::size_t>(ranks) + matching.steps.size() + 63) / 64) {
    Edges edges = eagerEdges();
    addRendezvous(edges);
    order_ = sorted(edges);
    isFreeOfDeadlock_ = order_.size() == 2 * matching_.steps.size();
    if (isFreeOfDeadlock_) {
        fillRows();  // an order under the stricter rules is one under the eager rules too
        return;
    }
    std::vector<bool> isSorted(2 * matching_.steps.size(), false);
    for (const int event : order_) isSorted[static_cast<std::size_t>(event)] = true;
    const auto stuck = std::find(isSorted.begin(), isSorted.end(), false);
    stepOnCircle_ = static_cast<int>(stuck - isSorted.begin()) / 2;
}

bool HappensBefore::isFreeOfDeadlockInLaneOrder() const {
    Edges edges = eagerEdges();
    addRendezvous(edges);
    for (const std::vector<int>& lane : matching_.lanes) {
        for (std::size_t i = 1; i < lane.size(); ++i) {
            edges.emplace_back(doneOf(lane[i - 1]), postedOf(lane[i]));
        }
    }
    return sorted(edges).size() == 2 * matching_.steps.size();
}

HappensBefore::Edges HappensBefore::eagerEdges() const {
    Edges edges;
    edges.reserve(matching_.steps.size() * 4);
    for (int step = 0; step < matching_.size(); ++step) {
        const auto index = static_cast<std::size_t>(step);
        const int first = matching_.firstOf[static_cast<std::size_t>(matching_.rankOf[index])];
        edges.emplace_back(postedOf(step), doneOf(step));
        for (const int before : matching_.steps[index]->after) {
            edges.emplace_back(doneOf(first + before), postedOf(step));
        }
        if (matching_.steps[index]->verb == Verb::kRecv) {
            edges.emplace_back(postedOf(matching_.partner[index]), doneOf(step));
        }
        for (const int signal : matching_.raisedBy[index]) {
            edges.emplace_back(doneOf(signal), doneOf(step));
        }
    }
    return edges;
}

void HappensBefore::addRendezvous(Edges& edges) const {
    for (int step = 0; step < matching_.size(); ++step) {
        const auto index = static_cast<std::size_t>(step);
        if (matching_.steps[index]->verb == Verb::kSend) {
            edges.emplace_back(postedOf(matching_.partner[index]), doneOf(step));
        }
    }
}

/// Kahn, CACM 5(11), 1962. Shorter than all events when there is a circle.
std::vector<int> HappensBefore::sorted(const Edges& edges) const {
    const std::size_t events = 2 * matching_.steps.size();
    std::vector<int> begin(events + 1, 0);
    std::vector<int> missing(events, 0);
    for (const auto& [from, to] : edges) {
        ++begin[static_cast<std::size_t>(from) + 1];
        ++missing[static_cast<std::size_t>(to)];
    }
    for (std::size_t i = 0; i < events; ++i) begin[i + 1] += begin[i];
    std::vector<int> next(begin.begin(), begin.end() - 1);
    std::vector<int> targets(edges.size());
    for (const auto& [from, to] : edges) {
        targets[static_cast<std::size_t>(next[static_cast<std::size_t>(from)]++)] = to;
    }
    std::vector<int> order;
    order.reserve(events);
    for (std::size_t i = 0; i < events; ++i) {
        if (missing[i] == 0) order.push_back(static_cast<int>(i));
    }
    for (std::size_t head = 0; head < order.size(); ++head) {
        const auto event = static_cast<std::size_t>(order[head]);
        for (int i = begin[event]; i < begin[event + 1]; ++i) {
            const int target = targets[static_cast<std::size_t>(i)];
            if (--missing[static_cast<std::size_t>(target)] == 0) order.push_back(target);
        }
    }
    return order;
}

void HappensBefore::merge(int event, int earlier) {
    std::uint64_t* into = row(event);
    const std::uint64_t* from = row(earlier);
    for (std::size_t i = 0; i < words_; ++i) into[i] |= from[i];
}

void HappensBefore::fillRows() {
    rows_.assign(2 * matching_.steps.size() * words_, 0);
    ends_.assign(static_cast<std::size_t>(ranks_) * words_, 0);
    const auto set = [](std::uint64_t* words, int column) {
        words[column / 64] |= std::uint64_t{1} << (column % 64);
    };
    for (const int event : order_) {
        const int step = event / 2;
        const auto index = static_cast<std::size_t>(step);
        const Rank rank = matching_.rankOf[index];
        if (event == postedOf(step)) {
            set(row(event), rank);
            const int first = matching_.firstOf[static_cast<std::size_t>(rank)];
            for (const int before : matching_.steps[index]->after) {
                merge(event, doneOf(first + before));
            }
            continue;
        }
        merge(event, postedOf(step));
        set(row(event), ranks_ + step);
        if (matching_.steps[index]->verb == Verb::kRecv) {
            merge(event, postedOf(matching_.partner[index]));
        }
        for (const int signal : matching_.raisedBy[index]) merge(event, doneOf(signal));
        std::uint64_t* end = ends_.data() + static_cast<std::size_t>(rank) * words_;
        for (std::size_t i = 0; i < words_; ++i) end[i] |= row(event)[i];
    }
    for (Rank rank = 0; rank < ranks_; ++rank) {
        set(ends_.data() + static_cast<std::size_t>(rank) * words_, rank);
    }
}

}  // namespace isthmus
