#include "scheduler/prediction/model_search.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "scheduler/memory/fit.hpp"

namespace isthmus::scheduler {

namespace {

using Key = std::array<int, kAxes.size()>;

Key keyOf(const Degrees& degrees) {
    Key key{};
    for (const Axis axis : kAxes) key[static_cast<std::size_t>(axis)] = degrees[axis];
    return key;
}

/// Of the device that has least; 0 when one does not say.
std::int64_t leastMemory(const Cluster& cluster) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Node& node : cluster.nodes) {
        for (const Device& device : node.devices) least = std::min(least, device.memoryBytes);
    }
    return least;
}

StageDevices alike(std::int64_t memoryBytes, int stages) {
    StageDevices devices;
    if (memoryBytes > 0) devices.memoryBytes.assign(static_cast<std::size_t>(stages), memoryBytes);
    return devices;
}

/// Degrees with their cut, before they have a place.
struct Choice {
    Degrees degrees;
    ModelCut cut;
    AxisBytes bytes;
    std::int64_t mostMemory = 0;  ///< of the fullest stage
};

/// What the search wants to know of degrees, found once.
class Choices {
public:
    explicit Choices(const ModelQuestion& question)
        : question_(question), memory_(leastMemory(question.cluster)) {}

    /// Nothing when they are not possible.
    const Choice* at(const Degrees& degrees) {
        const auto [known, isNew] = known_.try_emplace(keyOf(degrees));
        if (isNew) {
            Result<Choice> choice = of(degrees);
            if (choice.ok()) known->second = std::move(*choice);
        }
        return known->second ? &*known->second : nullptr;
    }

    /// Why they are not possible, or what they are.
    Result<Choice> of(const Degrees& degrees) const {
        const ModelQuestion& asked = question_;
        ISTHMUS_TRY(checkDegrees(asked.model, asked.job, degrees));
        const int stages = degrees[Axis::kPipe];
        Result<ModelCut> cut =
            cutModel(asked.model, asked.job, degrees, asked.cut, alike(memory_, stages));
        if (!cut.ok()) return cut.status();
        const Result<AxisVolumes> volumes = volumesOf(asked.model, asked.job, degrees, cut->cut);
        if (!volumes.ok()) return volumes.status();
        const Result<std::vector<StageMemory>> memory =
            memoryOf(asked.model, asked.job, degrees, cut->cut);
        if (!memory.ok()) return memory.status();
        Choice choice{degrees, std::move(*cut), mostOfStages(*volumes), 0};
        for (const StageMemory& stage : *memory) {
            choice.mostMemory = std::max(choice.mostMemory, stage.total());
        }
        if (memory_ > 0 && choice.mostMemory > memory_) return Status::resource("too large");
        return choice;
    }

    std::int64_t memory() const { return memory_; }

private:
    const ModelQuestion& question_;
    std::int64_t memory_;
    std::map<Key, std::optional<Choice>> known_;
};

/// What is missing at degrees that the layers allow, and how much.
std::optional<FitAnswer> fitAt(const ModelQuestion& question, std::int64_t memory,
                               const Degrees& degrees) {
    if (memory == 0 || !checkDegrees(question.model, question.job, degrees).ok()) return {};
    Result<ModelCut> cut = cutModel(question.model, question.job, degrees, "memory");
    if (!cut.ok()) cut = cutModel(question.model, question.job, degrees, "uniform");
    if (!cut.ok()) return {};
    const Result<FitAnswer> fit =
        fitModel(question.model, question.job, degrees, cut->cut,
                 std::vector<std::int64_t>(static_cast<std::size_t>(degrees[Axis::kPipe]), memory));
    if (!fit.ok() || fit->fits) return {};
    return *fit;
}

/// Calls `visit` for every choice of the free degrees with `rest` ranks.
void everyDegrees(int rest, std::size_t at, const Degrees& wanted, Degrees& degrees,
                  const std::function<void(const Degrees&)>& visit) {
    if (at == kAxes.size()) {
        if (rest == 1) visit(degrees);
        return;
    }
    const int fixed = wanted[kAxes[at]];
    for (int degree = rest; degree >= 1; --degree) {
        if (rest % degree != 0 || (fixed != 0 && degree != fixed)) continue;
        degrees[kAxes[at]] = degree;
        everyDegrees(rest / degree, at + 1, wanted, degrees, visit);
    }
}

/// Of the degrees that lack least, why they do not fit.
Status whyNothing(const ModelQuestion& question, const Choices& choices) {
    std::optional<FitAnswer> least;
    Degrees degrees(1);
    Degrees ofLeast(1);
    everyDegrees(question.cluster.ranks(), 0, question.wanted, degrees, [&](const Degrees& each) {
        std::optional<FitAnswer> fit = fitAt(question, choices.memory(), each);
        if (!fit || (least && least->missingBytes <= fit->missingBytes)) return;
        least = std::move(fit);
        ofLeast = each;
    });
    const std::string what = "no degrees fit " + std::to_string(question.cluster.ranks()) +
                             " devices and what is wanted of them";
    if (!least) return Status::unsupported(what);
    return Status::unsupported(what + "; " + textOf(ofLeast) + " lack least: " + least->text());
}

class ModelSearch {
public:
    ModelSearch(const ModelQuestion& question, const Watch& watch)
        : question_(question), watch_(watch), choices_(question) {}

    Result<ModelAnswer> byBytes();
    Result<ModelAnswer> byRank(const std::function<double(const Choice&)>& promise, bool isTime);

    /// If no card and no link of the cluster made it wait.
    double optimisticSeconds(const Choice& choice) const;

private:
    struct Found {
        SearchAnswer search;
        Prediction prediction;
        double score = 0;
    };

    VolumesOf volumes() {
        return [this](const Degrees& degrees) -> std::optional<AxisBytes> {
            const Choice* choice = choices_.at(degrees);
            if (choice == nullptr) return std::nullopt;
            return choice->bytes;
        };
    }
    Result<SearchAnswer> searchFixed(const Degrees& degrees, const AxisBytes& bytes) const {
        return search({question_.cluster, degrees,
                       [bytes](const Degrees&) { return std::optional(bytes); }, 1},
                      watch_);
    }
    Status finish(ModelAnswer& answer);
    Result<Prediction> predictAt(Candidate& candidate);
    Result<Found> foundAt(const Choice& choice);

    const ModelQuestion& question_;
    const Watch& watch_;
    Choices choices_;
};

/// Devices of stages that are not alike change the cut, and that may change what is sent.
Result<Prediction> ModelSearch::predictAt(Candidate& candidate) {
    const ModelQuestion& asked = question_;
    const Choice* choice = choices_.at(candidate.degrees);
    ModelCut cut = choice->cut;
    const int stages = candidate.degrees[Axis::kPipe];
    const auto devices = devicesOfStages(asked.cluster, candidate.nodeOfRank, stages);
    const bool areAlike = std::all_of(devices.begin(), devices.end(), [&](const StageDevice& each) {
        return each == devices.front();
    });
    if (!areAlike) {
        StageDevices known = alike(choices_.memory(), stages);
        for (std::size_t stage = 0; stage < devices.size(); ++stage) {
            if (!known.memoryBytes.empty()) known.memoryBytes[stage] = devices[stage].memoryBytes;
            known.speed.push_back(devices[stage].flopsPerSecond);
        }
        if (*std::min_element(known.speed.begin(), known.speed.end()) <= 0) known.speed.clear();
        Result<ModelCut> better =
            cutModel(asked.model, asked.job, candidate.degrees, asked.cut, known);
        if (!better.ok()) return better.status();
        const Result<AxisVolumes> volumes =
            volumesOf(asked.model, asked.job, candidate.degrees, better->cut);
        if (!volumes.ok()) return volumes.status();
        const AxisBytes bytes = mostOfStages(*volumes);
        if (bytes == candidate.bytes) {
            cut = std::move(*better);
        } else {
            Result<SearchAnswer> again = searchFixed(candidate.degrees, bytes);
            if (!again.ok()) return again.status();
            const auto now = devicesOfStages(asked.cluster, again->best.front().nodeOfRank, stages);
            // Other bytes, other seats, other devices: then the even speed's cut stays.
            if (now == devices) {
                candidate = std::move(again->best.front());
                cut = std::move(*better);
            }
        }
    }
    Result<Prediction> answer = predict(asked.model, asked.job, candidate.degrees, cut,
                                        asked.cluster, candidate.nodeOfRank);
    if (answer.ok()) answer->cutMethod = asked.cut;
    return answer;
}

Status ModelSearch::finish(ModelAnswer& answer) {
    SearchAnswer& search = answer.search;
    for (Candidate& candidate : search.best) {
        Result<Prediction> prediction = predictAt(candidate);
        if (!prediction.ok()) return prediction.status();
        answer.predictions.push_back(std::move(*prediction));
    }
    // Devices that differ may have moved the cut, and with it what is sent.
    search.lowerBound = std::min(search.lowerBound, search.best.front().bound.most);
    search.isOptimal = search.isOptimal && search.lowerBound == search.best.front().cost.most;
    return {};
}

Result<ModelAnswer> ModelSearch::byBytes() {
    Result<SearchAnswer> found =
        search({question_.cluster, question_.wanted, volumes(), question_.keep}, watch_);
    if (!found.ok()) {
        const bool isMisfit = found.status().code() == Status::Code::kUnsupported;
        const bool hasAny = ranksOf(question_.wanted) == 0;
        return isMisfit && hasAny ? whyNothing(question_, choices_) : found.status();
    }
    ModelAnswer answer{std::move(*found), {}};
    ISTHMUS_TRY(finish(answer));
    return answer;
}

double ModelSearch::optimisticSeconds(const Choice& choice) const {
    Rates rates = ratesOf(question_.cluster).rates;
    // One node, links of which are at least as fast as a card that nobody shares.
    rates.insideBytesPerSecond =
        std::max(rates.insideBytesPerSecond, rates.cardBytesPerSecond / rates.bytesReached);
    rates.insideLatencySeconds = 0;
    JobPlace place;
    double slowest = std::numeric_limits<double>::max();
    double fastest = 0;
    for (const Node& node : question_.cluster.nodes) {
        for (const Device& device : node.devices) {
            slowest = std::min(slowest, device.flopsPerSecond);
            fastest = std::max(fastest, device.flopsPerSecond);
        }
    }
    if (slowest > 0) {
        place.stageSpeed.assign(static_cast<std::size_t>(choice.degrees[Axis::kPipe]),
                                fastest / slowest);
    }
    const Result<StepTime> step =
        stepTime(question_.model, question_.job, choice.degrees, choice.cut.cut, place, rates);
    return step.ok() ? step->seconds : std::numeric_limits<double>::infinity();
}

Result<ModelSearch::Found> ModelSearch::foundAt(const Choice& choice) {
    Result<SearchAnswer> found = searchFixed(choice.degrees, choice.bytes);
    if (!found.ok()) return found.status();
    Result<Prediction> prediction = predictAt(found->best.front());
    if (!prediction.ok()) return prediction.status();
    return Found{std::move(*found), std::move(*prediction), 0};
}

Result<ModelAnswer> ModelSearch::byRank(const std::function<double(const Choice&)>& promise,
                                        bool isTime) {
    std::vector<std::pair<double, const Choice*>> all;
    Degrees degrees(1);
    bool isComplete = true;
    everyDegrees(question_.cluster.ranks(), 0, question_.wanted, degrees, [&](const Degrees& each) {
        if (watch_.stops() && !all.empty()) {
            isComplete = false;
            return;
        }
        const Choice* choice = choices_.at(each);
        if (choice == nullptr) return;
        all.emplace_back(promise(*choice), choice);
        watch_.tell("degrees", all.size());
    });
    if (all.empty()) return whyNothing(question_, choices_);
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    std::vector<Found> best;
    const auto wanted = static_cast<std::size_t>(question_.keep);
    std::uint64_t placed = 0;
    for (const auto& [promised, choice] : all) {
        const bool isEnough = best.size() >= wanted;
        if (isEnough && promised > best.back().score) break;
        if (isEnough && watch_.stops()) {
            isComplete = false;
            break;
        }
        Result<Found> found = foundAt(*choice);
        if (!found.ok()) return found.status();
        found->score = isTime ? found->prediction.step.seconds : promised;
        watch_.tell("placements of degrees", ++placed);
        const auto isBefore = [](const Found& one, const Found& other) {
            if (one.score != other.score) return one.score < other.score;
            return one.search.best.front().cost < other.search.best.front().cost;
        };
        best.insert(std::upper_bound(best.begin(), best.end(), *found, isBefore),
                    std::move(*found));
        if (best.size() > wanted) best.resize(wanted);
    }
    ModelAnswer answer;
    answer.search = best.front().search;
    answer.search.best.clear();
    answer.search.degreesTried = all.size();
    answer.search.isComplete = isComplete && !watch_.stops();
    for (Found& each : best) {
        answer.search.best.push_back(std::move(each.search.best.front()));
        answer.predictions.push_back(std::move(each.prediction));
    }
    return answer;
}

}  // namespace

Result<ModelAnswer> searchModel(const ModelQuestion& question, const Watch& watch) {
    ModelSearch run(question, watch);
    const bool isFixed = ranksOf(question.wanted) != 0;
    // What is fixed has one answer, and search() says why it has none.
    if (isFixed) ISTHMUS_TRY(whyNot(question, question.wanted));
    if (isFixed || question.job.objective == Objective::kCrossNodeBytes) return run.byBytes();
    if (question.job.objective == Objective::kMemory) {
        return run.byRank(
            [](const Choice& choice) { return static_cast<double>(choice.mostMemory); }, false);
    }
    return run.byRank([&](const Choice& choice) { return run.optimisticSeconds(choice); }, true);
}

Status whyNot(const ModelQuestion& question, const Degrees& degrees) {
    const Choices choices(question);
    const Result<Choice> choice = choices.of(degrees);
    if (choice.ok()) return {};
    if (choice.status().code() != Status::Code::kResource) return choice.status();
    const std::optional<FitAnswer> fit = fitAt(question, choices.memory(), degrees);
    if (fit) return Status::unsupported(fit->text());
    return Status::unsupported("cut \"" + question.cut + "\" puts more than " +
                               std::to_string(choices.memory()) +
                               " bytes on a device; \"memory\" would fit");
}

}  // namespace isthmus::scheduler
