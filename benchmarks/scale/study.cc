#include "benchmarks/scale/study.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

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

/// What the selector chooses for one collective over one layout, by topology and size.
class Choices {
public:
    Choices(const Question& question, const std::vector<Topology>& topologies,
            Collective collective) {
        for (const Topology& topology : topologies) {
            for (const std::uint64_t bytes : question.sizes) {
                const Result<Selection> chosen =
                    select({collective, DataType::kFloat32, bytes}, topology.known, {});
                if (chosen.ok()) names_[{topology.name, bytes}] = chosen->algorithm;
            }
        }
    }

    bool isChosen(std::string_view algorithm, const Topology& topology, std::uint64_t bytes) const {
        const auto found = names_.find({topology.name, bytes});
        return found != names_.end() && found->second == algorithm;
    }
    bool isEverChosen(std::string_view algorithm) const {
        return std::any_of(names_.begin(), names_.end(),
                           [&](const auto& name) { return name.second == algorithm; });
    }

private:
    std::map<std::pair<std::string, std::uint64_t>, std::string> names_;
};

/// All sizes and topologies of one algorithm over one layout.
class Part {
public:
    Part(const Question& question, const std::vector<Topology>& topologies, const Choices& choices,
         Collective collective, const Algorithm& algorithm)
        : question_(question),
          topologies_(topologies),
          choices_(choices),
          collective_(collective),
          algorithm_(algorithm),
          ranks_(topologies.front().layout.ranks()),
          ranksOfNode_(static_cast<int>(topologies.front().layout.nodes.front().size())) {}

    Status run(const std::function<void(const Row&)>& found);

private:
    PlanRequest request() const;
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
    const Choices& choices_;
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
    row.isChosen = choices_.isChosen(row.algorithm, topology, bytes);
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

Status Part::run(const std::function<void(const Row&)>& found) {
    if (question_.isChosenOnly && !choices_.isEverChosen(algorithm_.name)) return {};
    leftOut_ = objection();
    if (leftOut_.empty()) ISTHMUS_TRY(build());
    for (const Topology& topology : topologies_) {
        if (!algorithm_.fits(topology.known)) continue;
        for (const std::uint64_t bytes : question_.sizes) {
            const bool isChosen = choices_.isChosen(algorithm_.name, topology, bytes);
            if (question_.isChosenOnly && !isChosen) continue;
            if (blockOf(bytes) < 4) continue;  // blocks of less than an element
            const Result<Row> row = rowOf(topology, bytes);
            if (!row.ok()) return row.status().within(std::string(algorithm_.name));
            if (row->leftOut != kOtherSizes) found(*row);
        }
    }
    return {};
}

/// One layout's topologies, and what is chosen on them for one collective.
struct Scene {
    int ranks;
    int ranksOfNode;
    std::shared_ptr<const std::vector<Topology>> topologies;
    Collective collective;
    Choices choices;
};

/// The parts of a study, which threads take in turn.
class Parts {
public:
    explicit Parts(const Question& question) : question_(question) {
        for (const int ranks : question.ranks) {
            for (const int ranksOfNode : question.ranksOfNodes) addLayout(ranks, ranksOfNode);
        }
    }

    Status run(const std::function<void(const Row&)>& found,
               const std::function<void(const std::string&)>& say);

private:
    void addLayout(int ranks, int ranksOfNode);
    void work(const std::function<void(const Row&)>& found,
              const std::function<void(const std::string&)>& say);

    const Question& question_;
    std::vector<std::pair<std::shared_ptr<const Scene>, const Algorithm*>> all_;
    std::atomic<std::size_t> next_ = 0;
    std::mutex mutex_;  // guards what is told, and failure_
    Status failure_;
};

void Parts::addLayout(int ranks, int ranksOfNode) {
    auto topologies = std::make_shared<std::vector<Topology>>();
    for (const std::string& name : question_.topologies) {
        if (ranksOfNode == 1 && name.starts_with("rails")) continue;
        topologies->push_back(topologyOf(name, ranks, ranksOfNode, question_.machines));
    }
    if (topologies->empty()) return;
    for (const Collective collective : question_.collectives) {
        const auto scene =
            std::make_shared<const Scene>(Scene{ranks, ranksOfNode, topologies, collective,
                                                Choices(question_, *topologies, collective)});
        for (const Algorithm& algorithm : catalogue()) {
            // What is wanted for its order of operands only is chosen for no other reason.
            if (algorithm.collective != collective || algorithm.isInRankOrder) continue;
            if (algorithm.fits(topologies->front().layout)) all_.emplace_back(scene, &algorithm);
        }
    }
}

void Parts::work(const std::function<void(const Row&)>& found,
                 const std::function<void(const std::string&)>& say) {
    for (std::size_t mine = next_++; mine < all_.size(); mine = next_++) {
        const auto& [scene, algorithm] = all_[mine];
        {
            const std::lock_guard lock(mutex_);
            if (!failure_.ok()) return;
            say(std::to_string(scene->ranks) + " ranks, nodes of " +
                std::to_string(scene->ranksOfNode) + ": " + std::string(nameOf(scene->collective)) +
                " " + std::string(algorithm->name));
        }
        Part part(question_, *scene->topologies, scene->choices, scene->collective, *algorithm);
        const Status status = part.run([&](const Row& row) {
            const std::lock_guard lock(mutex_);
            found(row);
        });
        const std::lock_guard lock(mutex_);
        if (failure_.ok()) failure_ = status;
    }
}

Status Parts::run(const std::function<void(const Row&)>& found,
                  const std::function<void(const std::string&)>& say) {
    std::vector<std::jthread> threads;
    for (unsigned thread = 1; thread < question_.threads; ++thread)
        threads.emplace_back([&] { work(found, say); });
    work(found, say);
    threads.clear();
    return failure_;
}

}  // namespace

Status study(const Question& question, const std::function<void(const Row&)>& found,
             const std::function<void(const std::string&)>& say) {
    return Parts(question).run(found, say);
}

}  // namespace isthmus::scale
