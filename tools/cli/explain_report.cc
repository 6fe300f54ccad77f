#include "tools/cli/explain_report.hpp"

#include <algorithm>

#include "comm/algorithm/summing.hpp"
#include "comm/algorithm/water_fill.hpp"
#include "comm/cost/simulate.hpp"

namespace isthmus::cli {
namespace {

Mapping mappingFor(const Algorithm& algorithm, bool isMapped) {
    const auto has = [&](Mapping mapping) {
        return std::find(algorithm.mappings.begin(), algorithm.mappings.end(), mapping) !=
               algorithm.mappings.end();
    };
    if (isMapped && has(Mapping::kAll)) return Mapping::kAll;
    if (has(Mapping::kShared)) return Mapping::kShared;
    return has(Mapping::kAll) ? Mapping::kAll : Mapping::kNone;
}

Result<std::vector<Plan>> plansOf(const ExplainQuestion& question, const Algorithm& algorithm) {
    std::vector<Plan> plans;
    PlanRequest request;
    request.collective = question.collective;
    request.root = question.root;
    request.mapping = mappingFor(algorithm, question.isMapped);
    request.algorithm = algorithm.name;
    for (Rank rank = 0; rank < question.layout.ranks(); ++rank) {
        request.me = rank;
        Result<Plan> plan = makePlan(question.layout, request);
        if (!plan.ok()) return plan.status();
        plans.push_back(std::move(*plan));
    }
    return plans;
}

// Cards that differ are told apart by node; the slowest one speaks for all where one number must.
LinkModel modelOf(const ExplainQuestion& question) {
    LinkModel model = question.options.model;
    const std::vector<double>& lines = question.lineBitsPerSecond;
    if (!lines.empty()) {
        model.wireBytesPerSecond = goodputOf(*std::min_element(lines.begin(), lines.end()));
    }
    if (lines.size() > 1) {
        for (const double line : lines) model.cardBytesPerSecond.push_back(goodputOf(line));
    }
    if (question.layout.racks.empty()) return model;
    model.rackBytesPerSecond = question.rackBitsPerSecond > 0
                                   ? goodputOf(question.rackBitsPerSecond)
                                   : model.wireBytesPerSecond;
    return model;
}

CallShape shapeOf(const ExplainQuestion& question) {
    const bool isInRankOrder = question.options.isDeterministic &&
                               dependsOnOrder(question.collective, question.type, ReduceOp::kSum);
    return {question.collective, question.type, question.bytes,
            question.root,       false,         isInRankOrder};
}

/// What travels for it: sums of 16-bit floats as f32 where that saves roundings.
ExplainQuestion carriedFor(const ExplainQuestion& question) {
    ExplainQuestion carried = question;
    const bool isWished = question.options.roundsOnce || question.options.isDeterministic;
    if (isWished && question.layout.nodes.size() > 1 &&
        roundsInHops(question.collective, question.type, ReduceOp::kSum)) {
        carried.type = DataType::kFloat32;
        carried.bytes *= 2;
    }
    return carried;
}

Result<ExplainCandidate> candidateOf(const ExplainQuestion& question, const Algorithm& algorithm,
                                     const std::vector<Plan>& plans, SelectorOptions options) {
    options.algorithm = algorithm.name;
    const Result<Selection> selection = select(shapeOf(question), question.layout, options);
    if (!selection.ok()) return selection.status();
    ExplainCandidate candidate;
    candidate.algorithm = algorithm;
    candidate.selection = *selection;
    candidate.steps = plans.front().steps.size();
    PlanCall call =
        PlanCall::of(question.collective, question.type, question.bytes, question.layout.ranks());
    const bool nothingStaged = mappingFor(algorithm, question.isMapped) == Mapping::kAll;
    call.segments = nothingStaged ? selection->segmentsWhenMapped : selection->segments;
    call.window = std::min(selection->window, call.segments);
    candidate.selection.segments = call.segments;
    candidate.wireBytes = wireBytesOfNodes(plans, question.layout, call);
    for (const WireBytes& node : candidate.wireBytes) {
        candidate.busiest = std::max(candidate.busiest, node.larger());
    }
    if (!question.layout.racks.empty()) {
        const Layout racks = question.layout.byRack();
        for (const WireBytes& rack : wireBytesOfNodes(plans, racks, call)) {
            candidate.busiestRack = std::max(candidate.busiestRack, rack.larger());
        }
    }
    const Result<double> seconds = simulateSeconds(plans, question.layout, call, options.model);
    if (!seconds.ok()) return seconds.status();
    candidate.seconds = *seconds;
    return candidate;
}

}  // namespace

Result<ExplainAnswer> answerOf(const ExplainQuestion& asked) {
    ExplainQuestion question = asked;
    const std::size_t lines = question.lineBitsPerSecond.size();
    const std::size_t nodes = question.layout.nodes.size();
    if (lines > 1 && lines != nodes) {
        return Status::invalidArgument(std::to_string(lines) + " rates of cards for " +
                                       std::to_string(nodes) +
                                       " nodes: give one, or one for each node");
    }
    question.layout.shares =
        unequalShares(question.lineBitsPerSecond, nodesWithData(question.layout));
    ExplainAnswer answer;
    const ExplainQuestion carried = carriedFor(question);
    SelectorOptions options = question.options;
    options.model = modelOf(question);
    options.algorithm = question.algorithm;
    const Result<Selection> chosen = select(shapeOf(carried), question.layout, options);
    if (!chosen.ok()) return chosen.status();
    answer.chosen = chosen->algorithm;
    answer.why = reasonOf(*chosen, shapeOf(carried), question.layout, options);
    if (carried.type != question.type)
        answer.why += "; travels as f32, rounded once: twice the bytes";
    answer.model = options.model;
    const PlanCall call =
        PlanCall::of(question.collective, question.type, question.bytes, question.layout.ranks());
    const auto blocks = question.collective == Collective::kAllReduce ||
                                question.collective == Collective::kBroadcast ||
                                question.collective == Collective::kReduce
                            ? 1u
                            : static_cast<unsigned>(question.layout.ranks());
    answer.operandBytes =
        static_cast<std::uint64_t>(call.blockElements) * blocks * bytesOf(question.type);
    answer.bound =
        wireBound(question.collective, question.layout, answer.operandBytes, question.root);
    if (!question.layout.racks.empty()) {
        answer.rackBound = wireBound(question.collective, question.layout.byRack(),
                                     answer.operandBytes, question.root);
    }
    answer.boundSeconds = boundSeconds(question.collective, question.layout, answer.operandBytes,
                                       question.root, answer.model);
    for (const Algorithm& algorithm : catalogue()) {
        if (algorithm.collective != question.collective || !algorithm.fits(question.layout)) {
            continue;
        }
        SelectorOptions alone = options;
        alone.algorithm = algorithm.name;
        if (!select(shapeOf(carried), question.layout, alone).ok()) continue;  // of other calls
        Result<std::vector<Plan>> plans = plansOf(carried, algorithm);
        if (!plans.ok()) return plans.status().within(algorithm.name);
        Result<ExplainCandidate> candidate = candidateOf(carried, algorithm, *plans, options);
        if (!candidate.ok()) return candidate.status().within(algorithm.name);
        answer.candidates.push_back(std::move(*candidate));
        if (algorithm.name == answer.chosen) answer.chosenPlans = std::move(*plans);
    }
    std::stable_sort(answer.candidates.begin(), answer.candidates.end(),
                     [](const ExplainCandidate& one, const ExplainCandidate& other) {
                         return one.seconds < other.seconds;
                     });
    return answer;
}

}  // namespace isthmus::cli
