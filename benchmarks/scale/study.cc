#include "benchmarks/scale/study.hpp"

#include <algorithm>
#include <map>

#include "comm/cost/bounds.hpp"
#include "comm/cost/simulate.hpp"

namespace isthmus::scale {
namespace {

constexpr std::string_view kOtherSizes = "serves other sizes";

// Steps of a rank for each message of its closed form: sends, receives, a sum or a copy.
constexpr double kStepsOfMessage = 3;
// Plans with more steps than this take gigabytes while their edges are found.
constexpr double kMostStepsOfRank = 100'000;

// Pipelines of the catalogue run evenly after fewer passes than this.
constexpr int kWarmPasses = 8;

bool isWhole(Collective collective) {
    return collective == Collective::kAllReduce || collective == Collective::kBroadcast ||
           collective == Collective::kReduce;
}

/// All sizes and topologies of one algorithm over one layout.
class Part {
public:
    Part(const Question& question, const std::vector<Topology>& topologies, Collective collective,
         const Algorithm& algorithm)
        : question_(question),
          topologies_(topologies),
          collective_(collective),
          algorithm_(algorithm),
          ranks_(topologies.front().layout.ranks()),
          ranksOfNode_(static_cast<int>(topologies.front().layout.nodes.front().size())) {}

    Status run(const std::function<void(const Row&)>& found, const std::function<bool()>& isEnough);

private:
    PlanRequest request() const;
    std::string choiceFor(const Topology& topology, std::uint64_t bytes) const;
    bool isEverChosen() const;
    std::string objection() const;
    Status build();
    Result<Row> rowOf(const Topology& topology, std::uint64_t bytes);
    Status simulate(const Topology& topology, const PlanCall& call, Row& row);
    Status compare(const Topology& topology, PlanCall call, Row& row);
    double bytesPerCard(const Topology& topology, std::uint64_t bytes) const;
    double blockOf(std::uint64_t bytes) const {
        return static_cast<double>(bytes) / (isWhole(collective_) ? 1 : ranks_);
    }

    const Question& question_;
    const std::vector<Topology>& topologies_;
    const Collective collective_;
    const Algorithm& algorithm_;
    const int ranks_;
    const int ranksOfNode_;
    std::optional<StepGraph> graph_;
    std::string leftOut_;
};

PlanRequest Part::request() const {
    PlanRequest request{collective_, 0, 0, Mapping::kNone, std::string(algorithm_.name)};
    request.mapping = algorithm_.mappings.front();
    return request;
}

std::string Part::choiceFor(const Topology& topology, std::uint64_t bytes) const {
    const Result<Selection> chosen =
        select({collective_, DataType::kFloat32, bytes}, topology.known, SelectorOptions{});
    return chosen.ok() ? chosen->algorithm : "";
}

bool Part::isEverChosen() const {
    for (const Topology& topology : topologies_) {
        for (const std::uint64_t bytes : question_.sizes) {
            if (choiceFor(topology, bytes) == algorithm_.name) return true;
        }
    }
    return false;
}

// What is too much to be made, before it is.
std::string Part::objection() const {
    const auto form =
        formOf(collective_, algorithm_.name, topologies_.front(), std::uint64_t{1} << 20);
    double messages = form ? form->messages : 0;
    if (!form && !hasRoot(collective_) && algorithm_.name.find("tree") == std::string_view::npos)
        messages = 2.0 * ranks_;
    const double steps = kStepsOfMessage * messages;
    if (steps > kMostStepsOfRank)
        return "a plan of some " + std::to_string(steps / 1e3) + "k steps";
    const int actors = hasRoot(collective_)
                           ? ranks_
                           : std::min(ranks_, ranksOfRack(ranksOfNode_, question_.machines));
    if (steps * actors > static_cast<double>(question_.mostSteps))
        return "some " + std::to_string(steps * actors / 1e6) + " million steps";
    return "";
}

// Plans are kept no longer than their steps take to be read.
Status Part::build() {
    const Layout& layout = topologies_.back().layout;
    PlanRequest request = this->request();
    const Result<Symmetry> symmetry =
        symmetryOf(layout, request, ranksOfRack(ranksOfNode_, question_.machines));
    if (!symmetry.ok()) return symmetry.status();
    StepGraph graph(ranks_, *symmetry);
    for (request.me = 0; request.me < graph.actors(); ++request.me) {
        const Result<Plan> plan = makePlan(layout, request);
        if (!plan.ok()) return plan.status();
        graph.add(*plan);
        const std::size_t all = graph.steps() / (static_cast<std::size_t>(request.me) + 1) *
                                static_cast<std::size_t>(graph.actors());
        if (all > question_.mostSteps) {
            leftOut_ = std::to_string(all / 1'000'000) + " million steps";
            return {};
        }
    }
    ISTHMUS_TRY(graph.connect());
    graph_.emplace(std::move(graph));
    return {};
}

double Part::bytesPerCard(const Topology& topology, std::uint64_t bytes) const {
    const int cards = topology.model.cardsPerNode;
    const auto cardOf = [&](Rank rank) {
        return rank / ranksOfNode_ * cards + rank % ranksOfNode_ % cards;
    };
    std::map<int, double> out;
    std::map<int, double> in;
    for (Rank rank = 0; rank < graph_->actors(); ++rank) {
        for (const GraphStep& step : graph_->stepsOf(rank)) {
            if (step.peer < 0 || step.peer / ranksOfNode_ == rank / ranksOfNode_) continue;
            if (step.verb == Verb::kSend) out[cardOf(rank)] += step.share;
            if (step.verb == Verb::kRecv) in[cardOf(rank)] += step.share;
        }
    }
    double most = 0;
    for (const auto* way : {&out, &in}) {
        for (const auto& [card, share] : *way) most = std::max(most, share);
    }
    return most * blockOf(bytes);
}

Status Part::simulate(const Topology& topology, const PlanCall& call, Row& row) {
    const std::size_t steps = std::max<std::size_t>(graph_->steps(), 1);
    const auto passes = static_cast<int>(std::min<std::size_t>(question_.mostServed / steps, 1000));
    const int warm = std::min(kWarmPasses, passes / 3);
    if (passes < 1 || (call.segments > passes && warm < call.window)) {
        row.leftOut = std::to_string(steps / 1000) + "k steps in each pass";
        return {};
    }
    Simulation simulation(*graph_, topology.layout, topology.model);
    const Result<double> seconds = simulateSeconds(simulation, call, std::max(warm, 1));
    if (!seconds.ok()) return seconds.status();
    row.seconds = *seconds;
    return {};
}

// One pass beside its closed form; the part inside nodes is what is left when wires cost nothing.
Status Part::compare(const Topology& topology, PlanCall call, Row& row) {
    if (!topology.isFree || !row.form) return {};
    call.segments = call.window = 1;
    LinkModel inside = topology.model;
    inside.wireBytesPerSecond = 1e30;
    inside.rackBytesPerSecond = inside.railBytesPerSecond = 0;
    inside.wireLatencySeconds = inside.messageSeconds = 0;
    const Result<double> all = Simulation(*graph_, topology.layout, topology.model).run(call);
    const Result<double> free = Simulation(*graph_, topology.layout, inside).run(call);
    if (!all.ok()) return all.status();
    if (!free.ok()) return free.status();
    row.onePassSeconds = *all;
    row.insideSeconds = *free;
    const double most = row.form->most + *free;
    if (*all < row.form->least) row.departure = *all / row.form->least - 1;
    if (*all > most) row.departure = *all / most - 1;
    return {};
}

Result<Row> Part::rowOf(const Topology& topology, std::uint64_t bytes) {
    Row row{topology.name, ranksOfNode_, ranks_, collective_, bytes, std::string(algorithm_.name)};
    SelectorOptions options;
    const CallShape shape{collective_, DataType::kFloat32, bytes};
    row.isChosen = choiceFor(topology, bytes) == row.algorithm;
    options.algorithm = row.algorithm;
    const Result<Selection> selection = select(shape, topology.known, options);
    if (!selection.ok()) {
        row.leftOut = kOtherSizes;
        return row;
    }
    row.segments = selection->segments;
    row.form = formOf(collective_, row.algorithm, topology, bytes);
    row.boundBytesPerCard =
        static_cast<double>(wireBound(collective_, topology.layout, bytes).busiest) /
        topology.model.cardsPerNode;
    row.boundSeconds = boundSeconds(collective_, topology.layout, bytes, 0, topology.model);
    row.leftOut = leftOut_;
    if (!row.leftOut.empty()) return row;
    row.bytesPerCard = bytesPerCard(topology, bytes);
    PlanCall call = PlanCall::of(collective_, DataType::kFloat32, bytes, ranks_);
    call.segments = selection->segments;
    call.window = selection->window;
    ISTHMUS_TRY(simulate(topology, call, row));
    ISTHMUS_TRY(compare(topology, call, row));
    return row;
}

Status Part::run(const std::function<void(const Row&)>& found,
                 const std::function<bool()>& isEnough) {
    if (question_.isChosenOnly && !isEverChosen()) return {};
    leftOut_ = objection();
    if (leftOut_.empty()) ISTHMUS_TRY(build());
    for (const Topology& topology : topologies_) {
        if (!algorithm_.fits(topology.known)) continue;
        for (const std::uint64_t bytes : question_.sizes) {
            if (isEnough()) return {};
            if (question_.isChosenOnly && choiceFor(topology, bytes) != algorithm_.name) continue;
            if (blockOf(bytes) < 4) continue;  // blocks of less than an element
            const Result<Row> row = rowOf(topology, bytes);
            if (!row.ok()) return row.status().within(std::string(algorithm_.name));
            if (row->leftOut != kOtherSizes) found(*row);
        }
    }
    return {};
}

Status studyLayout(const Question& question, int ranks, int ranksOfNode,
                   const std::function<void(const Row&)>& found,
                   const std::function<void(const std::string&)>& say,
                   const std::function<bool()>& isEnough) {
    std::vector<Topology> topologies;
    for (const std::string& name : question.topologies) {
        if (ranksOfNode == 1 && name.starts_with("rails")) continue;
        topologies.push_back(topologyOf(name, ranks, ranksOfNode, question.machines));
    }
    if (topologies.empty()) return {};
    for (const Collective collective : question.collectives) {
        for (const Algorithm& algorithm : catalogue()) {
            if (algorithm.collective != collective || isEnough()) continue;
            // What is wanted for its order of operands only is chosen for no other reason.
            if (!algorithm.fits(topologies.front().layout) || algorithm.isInRankOrder) continue;
            say(std::to_string(ranks) + " ranks, nodes of " + std::to_string(ranksOfNode) + ": " +
                std::string(nameOf(collective)) + " " + std::string(algorithm.name));
            ISTHMUS_TRY(Part(question, topologies, collective, algorithm).run(found, isEnough));
        }
    }
    return {};
}

}  // namespace

Status study(const Question& question, const std::function<void(const Row&)>& found,
             const std::function<void(const std::string&)>& say,
             const std::function<bool()>& isEnough) {
    for (const int ranks : question.ranks) {
        for (const int ranksOfNode : question.ranksOfNodes) {
            ISTHMUS_TRY(studyLayout(question, ranks, ranksOfNode, found, say, isEnough));
        }
    }
    return {};
}

}  // namespace isthmus::scale
