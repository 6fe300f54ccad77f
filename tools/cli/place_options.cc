#include "tools/cli/place_options.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "comm/base/bit_rate.hpp"
#include "comm/base/knobs.hpp"
#include "tools/cli/place_model.hpp"
#include "tools/import/import.hpp"

namespace isthmus::cli {

using scheduler::Axis;
using scheduler::AxisBytes;
using scheduler::Cluster;
using scheduler::Degrees;
using scheduler::kAxes;
using scheduler::PerAxis;

void addPlaceOptions(CLI::App& app, PlaceOptions& options) {
    app.add_option("--axes", options.axes,
                   "degrees: tensor=2,data=2,pipe=2 (tensor, context, expert, data, pipe; also tp, "
                   "cp, ep, dp, pp); an axis without a number is free");
    CLI::Option* bytes = app.add_option(
        "--bytes", options.bytes,
        "what one rank sends a step on each axis: tensor=3200,data=800,pipe=200; round a "
        "flat ring of its group, for pipe to each neighbour, for expert in all to the "
        "others; 25M is 25 x 2^20");
    CLI::Option* model = app.add_option("--model", options.model,
                                        "a file of isthmus_model, or gpt-13b: it says the bytes");
    model->excludes(bytes);
    app.add_option("--job", options.job, "a file of isthmus_job: batch, precision, ZeRO, ...")
        ->needs(model);
    app.add_option("--cut", options.cut,
                   "layers to stages: time (memory where that is the objective), alpa, memory, "
                   "uniform, parameters, "
                   "type:<regex>, tree, manual:<first layers>")
        ->needs(model);
    app.add_option("--objective", options.objective,
                   "what free degrees are chosen by: cross_node_bytes, step_time, memory; "
                   "otherwise the job says it")
        ->needs(model);
    CLI::Option* nodes = app.add_option("--nodes", options.nodes,
                                        "4x8 (4 nodes of 8), 3+3+2, 2x4+1, 8x16x128 (8 racks of 16 "
                                        "nodes of 128)");
    app.add_option(
           "--topology", options.topology,
           "a file of isthmus_topology instead, Slurm's topology.conf or topology.yaml, XML of "
           "hwloc or NCCL, or what nvidia-smi topo -m printed; files of one node each may be "
           "repeated")
        ->allow_extra_args(false)
        ->excludes(nodes);
    app.add_option("--devices", options.devices,
                   "of each node of a --topology that knows nodes only (Slurm)")
        ->check(CLI::Range(1, 1024));
    app.add_option("--rate", options.rate,
                   "of each node's cards together: 100gbit; instead of what --topology says");
    app.add_option("--memory", options.memory,
                   "of each device, for the job alone: 30G; degrees that need more are left out");
    app.add_option("--top-k", options.topK, "how many choices of free degrees are answered")
        ->check(CLI::Range(1, 1000));
    app.add_flag("--spare", options.mayLeaveSpare, "devices may be left over");
    app.add_flag("--json", options.isJson, "print JSON");
}

Result<PerAxis<std::optional<std::int64_t>>> axisList(const std::string& text, const char* option,
                                                      bool mayBeFree) {
    PerAxis<std::optional<std::int64_t>> values;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string entry = text.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t equals = entry.find('=');
        const Result<Axis> axis = scheduler::axisNamed(entry.substr(0, equals));
        if (!axis.ok()) return axis.status().within(option);
        if (values[*axis]) {
            return Status::invalidArgument(
                fmt::format("{}: {} is there twice", option, nameOf(*axis)));
        }
        if (equals == entry.npos) {
            if (!mayBeFree) {
                return Status::invalidArgument(
                    fmt::format("{}: {} has no number", option, nameOf(*axis)));
            }
            values[*axis] = 0;
            continue;
        }
        const Result<std::int64_t> value = parseBytes(entry.substr(equals + 1));
        if (!value.ok()) {
            return Status::invalidArgument(
                fmt::format("{}: {}: {}", option, nameOf(*axis), value.status().what()));
        }
        if (mayBeFree && *value < 1) {
            return Status::invalidArgument(
                fmt::format("{}: {} of {} ways; leave the number out for a free one", option,
                            nameOf(*axis), *value));
        }
        values[*axis] = *value;
    }
    return values;
}

namespace {

/// With what the options say of cards and devices instead of what the cluster says.
Result<Cluster> withRates(const PlaceOptions& options, Cluster cluster) {
    if (!options.rate.empty()) {
        const std::optional<double> rate =
            options.rate == "none" ? 0 : bitsPerSecondOf(options.rate);
        if (!rate) {
            return Status::invalidArgument(
                "--rate: \"" + options.rate +
                "\" is neither a number with gbit, mbit or kbit nor none");
        }
        for (scheduler::Node& node : cluster.nodes) {
            if (node.cards.empty()) node.cards.push_back({.name = "card0"});
            for (scheduler::Card& card : node.cards) {
                card.bitsPerSecond = *rate / static_cast<double>(node.cards.size());
            }
        }
    }
    if (options.memory.empty()) return cluster;
    const Result<std::int64_t> memory = parseBytes(options.memory);
    if (!memory.ok()) return Status::invalidArgument("--memory: " + memory.status().what());
    for (scheduler::Node& node : cluster.nodes) {
        for (scheduler::Device& device : node.devices) device.memoryBytes = *memory;
    }
    return cluster;
}

}  // namespace

Result<Cluster> clusterOf(const PlaceOptions& options) {
    if (!options.topology.empty()) {
        Result<Cluster> cluster = foreign::clusterFromFiles(options.topology, options.devices);
        return cluster.ok() ? withRates(options, std::move(*cluster)) : cluster;
    }
    if (options.nodes.empty()) {
        return Status::invalidArgument("--nodes or --topology is wanted");
    }
    Result<Cluster> cluster = scheduler::clusterOf(options.nodes);
    return cluster.ok() ? withRates(options, std::move(*cluster)) : cluster;
}

namespace {

using AxisList = PerAxis<std::optional<std::int64_t>>;

/// Degrees that were given or left free; axes that nobody spoke of are not split.
Status readAxes(const AxisList& axes, PlaceQuestion& asked) {
    for (const Axis axis : kAxes) {
        asked.isNamed[axis] = axes[axis].has_value();
        const std::int64_t degree = axes[axis].value_or(1);
        if (degree > scheduler::kMostRanks) {
            return Status::invalidArgument(fmt::format("--axes: {} is {}, more than {} ranks",
                                                       nameOf(axis), degree,
                                                       scheduler::kMostRanks));
        }
        asked.question.wanted[axis] = static_cast<int>(degree);
    }
    return {};
}

Status readBytes(const PlaceOptions& options, const AxisList& axes, PlaceQuestion& asked) {
    const Result<AxisList> bytes = axisList(options.bytes, "--bytes", false);
    if (!bytes.ok()) return bytes.status();
    AxisBytes sent;
    for (const Axis axis : kAxes) {
        const bool isSaid = (*bytes)[axis].has_value();
        if (isSaid && !axes[axis]) {
            return Status::invalidArgument(
                fmt::format("--bytes: {} is no axis of --axes", nameOf(axis)));
        }
        if (asked.question.wanted[axis] != 1 && !isSaid) {
            return Status::invalidArgument(fmt::format("--bytes says nothing of {}", nameOf(axis)));
        }
        sent[axis] = (*bytes)[axis].value_or(0);
    }
    asked.question.volumes = [sent](const Degrees&) { return std::optional<AxisBytes>(sent); };
    return {};
}

Status readObjective(const std::string& name, scheduler::Objective& objective) {
    using scheduler::Objective;
    if (name.empty()) return {};
    for (const Objective each :
         {Objective::kCrossNodeBytes, Objective::kStepTime, Objective::kMemory}) {
        if (nameOf(each) != name) continue;
        objective = each;
        return {};
    }
    return Status::invalidArgument("--objective: \"" + name +
                                   "\" is none of cross_node_bytes, step_time, memory");
}

/// A model's axes are free unless its job or the command line fixes them.
Status readModel(const PlaceOptions& options, PlaceQuestion& asked) {
    Result<ModelAndJob> what = modelAndJobOf(options.model, options.job);
    if (!what.ok()) return what.status();
    for (const Axis axis : kAxes) {
        int& wanted = asked.question.wanted[axis];
        const int fixed = what->job.fixed[axis];
        if (options.axes.empty()) wanted = fixed;
        if (fixed != 0 && wanted != 0 && wanted != fixed) {
            return Status::invalidArgument(fmt::format("--axes: {} is {}, the job fixes it at {}",
                                                       nameOf(axis), wanted, fixed));
        }
        if (wanted == 0) wanted = fixed;
        asked.isNamed[axis] = asked.isNamed[axis] || wanted != 1;
    }
    ISTHMUS_TRY(readObjective(options.objective, what->job.objective));
    std::string cut = options.cut;
    if (cut.empty()) {
        const bool isByMemory =
            what->job.objective == scheduler::Objective::kMemory && what->job.virtualStages == 1;
        cut = isByMemory ? "memory" : "time";
    }
    asked.model = scheduler::ModelQuestion{.cluster = {},
                                           .model = std::move(what->model),
                                           .job = what->job,
                                           .cut = std::move(cut),
                                           .wanted = asked.question.wanted,
                                           .keep = options.topK};
    return {};
}

}  // namespace

Result<PlaceQuestion> placeQuestionOf(const PlaceOptions& options) {
    const bool hasModel = !options.model.empty();
    if (options.axes.empty() && !hasModel) {
        return Status::invalidArgument(
            "--axes is wanted: tensor=2,data=2; or --model: gpt-13b or a file");
    }
    if (options.bytes.empty() && !hasModel) {
        return Status::invalidArgument("--bytes or --model is wanted: tensor=3200,data=800");
    }
    PlaceQuestion asked;
    AxisList axes;
    if (!options.axes.empty()) {
        const Result<AxisList> list = axisList(options.axes, "--axes", true);
        if (!list.ok()) return list.status();
        axes = *list;
    }
    ISTHMUS_TRY(readAxes(axes, asked));
    Result<Cluster> cluster = clusterOf(options);
    if (!cluster.ok()) return cluster.status();
    asked.mayLeaveSpare = options.mayLeaveSpare;
    asked.question.keep = options.topK;
    asked.question.cluster = std::move(*cluster);
    ISTHMUS_TRY(hasModel ? readModel(options, asked) : readBytes(options, axes, asked));
    return asked;
}

}  // namespace isthmus::cli
