#include "scheduler/search/search.hpp"

#include <algorithm>
#include <limits>

#include "scheduler/search/bound.hpp"
#include "scheduler/search/orders.hpp"

namespace isthmus::scheduler {
namespace {

/// Degrees that are worth a search, and what is known before it.
struct Choice {
    Degrees degrees;
    AxisBytes bytes;
    std::vector<int> start;  ///< empty: none
    NodeCost cost;           ///< of it, or of a quick look
    std::int64_t bound = 0;  ///< bytes
};

Status wrongProduct(const Degrees& wanted, int devices) {
    const std::int64_t ranks = ranksOf(wanted);
    const std::string says = textOf(wanted) + " is " + std::to_string(ranks) +
                             " ranks, the cluster has " + std::to_string(devices) + " devices: ";
    return Status::unsupported(says + (ranks < devices
                                           ? std::to_string(devices - ranks) + " ranks unused"
                                           : std::to_string(ranks - devices) + " devices missing"));
}

/// Every choice of the free degrees with `devices` ranks.
void everyDegrees(int rest, std::size_t at, const Degrees& wanted, Degrees& degrees,
                  std::vector<Degrees>& all) {
    if (at == kAxes.size()) {
        if (rest == 1) all.push_back(degrees);
        return;
    }
    const int fixed = wanted[kAxes[at]];
    for (int degree = rest; degree >= 1; --degree) {
        if (rest % degree != 0 || (fixed != 0 && degree != fixed)) continue;
        degrees[kAxes[at]] = degree;
        everyDegrees(rest / degree, at + 1, wanted, degrees, all);
    }
}

/// A quick look: blocks of the dearest axes first.
Result<Choice> quickLook(const Cluster& cluster, const Degrees& degrees, const AxisBytes& bytes) {
    Result<Weights> weights = weightsOf(degrees, bytes);
    if (!weights.ok()) return weights.status();
    const Shape shape(degrees);
    std::vector<Axis> axes(kAxes.begin(), kAxes.end());
    std::stable_sort(axes.begin(), axes.end(),
                     [&](Axis left, Axis right) { return weights->of[left] > weights->of[right]; });
    const std::vector<int> sizes = cluster.sizes();
    const std::vector<int> nodes = packBlocks(shape, axes, sizes);
    Choice choice{degrees, bytes, {}, {}, 0};
    choice.cost = costOf(shape, *weights, nodes, static_cast<int>(sizes.size()));
    choice.bound = weights->bytes(lowerBound(shape, *weights, sizes).most);
    return choice;
}

Result<std::vector<Choice>> choicesOfIrregular(const Question& question, SearchAnswer& answer,
                                               const Watch& watch) {
    std::vector<Degrees> all;
    Degrees degrees;
    everyDegrees(question.cluster.ranks(), 0, question.wanted, degrees, all);
    std::vector<Choice> choices;
    for (const Degrees& each : all) {
        if (watch.stops() && !choices.empty()) {
            answer.isComplete = false;
            break;
        }
        const std::optional<AxisBytes> bytes = question.volumes(each);
        if (!bytes) continue;
        Result<Choice> choice = quickLook(question.cluster, each, *bytes);
        if (!choice.ok()) return choice.status();
        choices.push_back(std::move(*choice));
        watch.tell("degrees", choices.size());
    }
    std::stable_sort(choices.begin(), choices.end(),
                     [](const Choice& one, const Choice& other) { return one.cost < other.cost; });
    return choices;
}

Result<std::vector<Choice>> choicesOfRegular(const Question& question,
                                             const std::vector<int>& shape, SearchAnswer& answer,
                                             const Watch& watch) {
    Result<MatrixAnswer> matrices = everyMatrix(shape, question.wanted, question.volumes,
                                                std::numeric_limits<int>::max(), watch);
    if (!matrices.ok()) return matrices.status();
    answer.matrices = matrices->points;
    answer.isComplete = matrices->isComplete;
    const std::vector<int> sizes = question.cluster.sizes();
    std::vector<Choice> choices;
    for (const MatrixPoint& point : matrices->best) {
        Choice choice{point.degrees, point.bytes, {}, point.costs.front(), 0};
        if (choices.size() < static_cast<std::size_t>(question.keep)) {
            choice.start = nodesOf(point.matrix);
        }
        const Result<Weights> weights = weightsOf(point.degrees, point.bytes);
        // Degrees that cannot beat the best need no sharper bound.
        const std::int64_t best = matrices->best.front().costs.front().most;
        const NodeCost bound =
            lowerBound(Shape(point.degrees), *weights, sizes,
                       best > kMostInUnits / weights->scale ? kMostInUnits : best * weights->scale);
        choice.bound = weights->bytes(bound.most);
        choices.push_back(std::move(choice));
        if (watch.stops()) answer.isComplete = false;
        if (!answer.isComplete && choices.size() >= static_cast<std::size_t>(question.keep)) break;
    }
    return choices;
}

/// The searches themselves: the choices that may be among the best.
Status searchChoices(const Question& question, std::vector<Choice>& choices, SearchAnswer& answer,
                     const Watch& watch) {
    // A choice whose quick look was poor may still win; a few are tried beyond those wanted.
    constexpr std::size_t kMore = 8;
    const auto wanted = static_cast<std::size_t>(question.keep);
    std::size_t tried = 0;
    for (std::size_t at = 0; at < choices.size() && tried < wanted + kMore; ++at) {
        Choice& choice = choices[at];
        const bool isMore = answer.best.size() == wanted;
        if (isMore && choice.bound >= answer.best[wanted - 1].cost.most) continue;
        if (isMore && watch.stops()) break;
        ++tried;
        Result<Candidate> found = searchAt(question.cluster, choice.degrees, choice.bytes,
                                           choice.start.empty() ? nullptr : &choice.start, watch);
        if (!found.ok()) return found.status();
        choice.bound = std::max(choice.bound, found->bound.most);
        answer.best.push_back(std::move(*found));
        std::stable_sort(
            answer.best.begin(), answer.best.end(),
            [](const Candidate& one, const Candidate& other) { return one.cost < other.cost; });
        if (answer.best.size() > wanted) answer.best.resize(wanted);
    }
    return {};
}

/// The bound over all degrees: those that were searched know more.
void boundAll(const std::vector<Choice>& choices, bool areFixed, SearchAnswer& answer) {
    answer.lowerBound = answer.best.front().cost.most;
    for (const Choice& choice : choices) {
        answer.lowerBound = std::min(answer.lowerBound, choice.bound);
    }
    // Degrees that an interrupted search has not met may be better.
    if (!answer.isComplete && !areFixed) answer.lowerBound = 0;
    answer.isOptimal = answer.isComplete && answer.lowerBound == answer.best.front().cost.most;
}

}  // namespace

Result<SearchAnswer> search(const Question& question, const Watch& watch) {
    const int devices = question.cluster.ranks();
    const bool isFixed = std::none_of(kAxes.begin(), kAxes.end(),
                                      [&](Axis axis) { return question.wanted[axis] == 0; });
    if (isFixed && ranksOf(question.wanted) != devices) {
        return wrongProduct(question.wanted, devices);
    }
    SearchAnswer answer;
    const std::vector<int> shape = regularShape(question.cluster);
    Result<std::vector<Choice>> choices = shape.empty()
                                              ? choicesOfIrregular(question, answer, watch)
                                              : choicesOfRegular(question, shape, answer, watch);
    if (!choices.ok()) return choices.status();
    if (choices->empty()) {
        return Status::unsupported("no degrees fit " + std::to_string(devices) +
                                   " devices and what is wanted of them");
    }
    answer.degreesTried = choices->size();
    ISTHMUS_TRY(searchChoices(question, *choices, answer, watch));
    boundAll(*choices, isFixed, answer);
    answer.isComplete = answer.isComplete && !watch.stops();
    return answer;
}

}  // namespace isthmus::scheduler
