#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>

#include "scheduler/json/field.hpp"
#include "scheduler/picture/page.hpp"
#include "scheduler/placement/emit.hpp"
#include "scheduler/prediction/step_run.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/place_compare.hpp"
#include "tools/cli/place_print.hpp"
#include "tools/cli/subcommands.hpp"

namespace isthmus::cli {
namespace {

/// What the subcommands of `place` need beside what is to be placed.
struct PlaceFiles {
    PlaceOptions options;
    std::string placement;  ///< a file of place --json; empty: searched for
    std::string target;
    std::string map;
    std::vector<std::string> lost;
    std::string output;               ///< file; empty: standard output
    std::vector<std::string> beside;  ///< degrees to compare with
};

int fail(const Status& status) {
    return report("place", status);
}

/// To the file, or to standard output where none is named.
int writeOut(const std::string& text, const std::string& path) {
    if (path.empty()) {
        fmt::print("{}", text);
        return asInt(ExitCode::kOk);
    }
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) return fail(Status::configuration("cannot write " + path));
    return asInt(ExitCode::kOk);
}

Result<Placed> searched(const PlaceOptions& options) {
    const Result<PlaceQuestion> question = placeQuestionOf(options);
    if (!question.ok()) return question.status();
    return place(*question);
}

/// From the file, or by a search.
Result<scheduler::Placement> placementOf(const PlaceFiles& files) {
    if (!files.placement.empty()) {
        Result<scheduler::Placement> placement = scheduler::placementFromFile(files.placement);
        if (!placement.ok()) return placement;
        placement->orders = scheduler::costsOfOrders(
            placement->cluster, placement->degrees, placement->bytes,
            placement->predicted ? &placement->predicted->volumes : nullptr);
        return placement;
    }
    Result<Placed> placed = searched(files.options);
    if (!placed.ok()) return placed.status();
    return std::move(placed->placement);
}

int placeNew(const PlaceOptions& options) {
    const Result<Placed> placed = searched(options);
    if (!placed.ok()) return fail(placed.status());
    fmt::print("{}", options.isJson ? toJson(placed->placement, placed->others, &placed->search)
                                    : placementText(*placed));
    return asInt(ExitCode::kOk);
}

int printPlacement(const PlaceFiles& files, std::string (*text)(const scheduler::Placement&)) {
    const Result<scheduler::Placement> placement = placementOf(files);
    if (!placement.ok()) return fail(placement.status());
    fmt::print("{}", files.options.isJson ? toJson(*placement, {}, nullptr) : text(*placement));
    return asInt(ExitCode::kOk);
}

int comparePlacement(const PlaceFiles& files) {
    const Result<std::vector<scheduler::Degrees>> beside = degreesBeside(files.beside);
    if (!beside.ok()) return fail(beside.status());
    Result<scheduler::Placement> placement = placementOf(files);
    if (!placement.ok()) return fail(placement.status());
    if (!files.options.model.empty()) {
        Result<PlaceQuestion> question = placeQuestionOf(files.options);
        if (!question.ok()) return fail(question.status());
        question->model->cluster = placement->cluster;
        placement->rivals = scheduler::rivalsOf(*question->model, *beside);
    }
    fmt::print("{}",
               files.options.isJson ? toJson(*placement, {}, nullptr) : comparedText(*placement));
    return asInt(ExitCode::kOk);
}

int simulatePlacement(const PlaceFiles& files) {
    const Result<scheduler::Placement> placement = placementOf(files);
    if (!placement.ok()) return fail(placement.status());
    if (!placement->predicted) {
        return fail(Status::invalidArgument(
            "simulate: bytes say nothing of a step; place with --model, or give a file made so"));
    }
    const Result<std::string> trace =
        stepTrace(*placement->predicted, placement->cluster, placement->nodeOfRank());
    if (!trace.ok()) return fail(trace.status());
    return writeOut(*trace + "\n", files.output);
}

int drawPlacement(const PlaceFiles& files) {
    const Result<scheduler::Placement> placement = placementOf(files);
    if (!placement.ok()) return fail(placement.status());
    return writeOut(scheduler::pageOf(*placement), files.output);
}

int validateJob(const PlaceFiles& files) {
    const Result<scheduler::Placement> placement = scheduler::placementFromFile(files.placement);
    if (!placement.ok()) return fail(placement.status());
    const Result<std::string> text = scheduler::textOfFile(files.map);
    if (!text.ok()) return fail(text.status());
    const Result<std::vector<scheduler::RealSeat>> real = scheduler::realSeatsOf(*text);
    if (!real.ok()) return fail(real.status().within(files.map));
    const scheduler::Verdict verdict = validate(*placement, *real);
    fmt::print("{}", files.options.isJson ? verdictJson(*placement, verdict)
                                          : verdictText(*placement, verdict));
    return asInt(verdict.holds() ? ExitCode::kOk : ExitCode::kMismatch);
}

int emitPlacement(const PlaceFiles& files) {
    const Result<scheduler::Target> target = scheduler::targetNamed(files.target);
    if (!target.ok()) return fail(target.status());
    const Result<scheduler::Placement> placement = placementOf(files);
    if (!placement.ok()) return fail(placement.status());
    fmt::print("{}", emit(*placement, *target));
    return asInt(ExitCode::kOk);
}

/// The degrees of the placement with as few replicas less as the devices that are left want.
Result<PlaceQuestion> questionAfter(const scheduler::Placement& before,
                                    scheduler::Cluster cluster) {
    using scheduler::Axis;
    PlaceQuestion asked;
    asked.mayLeaveSpare = true;
    asked.isNamed = before.isNamed;
    asked.question.wanted = before.degrees;
    const std::int64_t replica = ranksOf(before.degrees) / before.degrees[Axis::kData];
    const std::int64_t replicas =
        std::min<std::int64_t>(before.degrees[Axis::kData], cluster.ranks() / replica);
    if (replicas == 0) {
        return Status::unsupported(fmt::format("{} devices are left, one replica of {} wants {}",
                                               cluster.ranks(), textOf(before.degrees), replica));
    }
    asked.question.wanted[Axis::kData] = static_cast<int>(replicas);
    asked.question.cluster = std::move(cluster);
    asked.question.volumes = [bytes = before.bytes](const scheduler::Degrees&) {
        return std::optional<scheduler::AxisBytes>(bytes);
    };
    return asked;
}

int replan(const PlaceFiles& files) {
    const Result<scheduler::Placement> before = scheduler::placementFromFile(files.placement);
    if (!before.ok()) return fail(before.status());
    scheduler::Cluster cluster = before->cluster;
    for (const std::string& lost : files.lost) {
        Result<scheduler::Cluster> rest = scheduler::without(cluster, lost);
        if (!rest.ok()) return fail(rest.status());
        cluster = std::move(*rest);
    }
    const Result<PlaceQuestion> asked = questionAfter(*before, std::move(cluster));
    if (!asked.ok()) return fail(asked.status());
    Result<Placed> placed = place(*asked);
    if (!placed.ok()) return fail(placed.status());
    const int kept = keepSeats(*before, placed->placement);
    if (files.options.isJson) {
        fmt::print("{}", toJson(placed->placement, {}, &placed->search));
    } else {
        fmt::print("{}\n{} of {} ranks keep their node\n", placementText(*placed), kept,
                   placed->placement.seats.size());
    }
    return asInt(ExitCode::kOk);
}

using Files = std::shared_ptr<PlaceFiles>;

CLI::App* addSubcommand(CLI::App& group, const char* name, const char* what, const Files& files,
                        Action& chosen, int (*run)(const PlaceFiles&)) {
    CLI::App* sub = group.add_subcommand(name, what);
    sub->callback([files, &chosen, run] { chosen = [files, run] { return run(*files); }; });
    return sub;
}

/// A file of place --json in the first place, or what to search for.
CLI::Option* addFile(CLI::App& sub, const Files& files) {
    return sub.add_option("placement", files->placement, "a file of isthmus place --json");
}

}  // namespace

void addPlace(CLI::App& app, Action& chosen) {
    CLI::App* group = app.add_subcommand(
        "place", "which rank runs where, so that the fewest bytes cross between nodes");
    group->require_subcommand(0, 1);
    auto files = std::make_shared<PlaceFiles>();
    addPlaceOptions(*group, files->options);
    group->callback([group, files, &chosen] {
        if (!group->get_subcommands().empty()) return;
        chosen = [files] { return placeNew(files->options); };
    });

    CLI::App* sub =
        addSubcommand(*group, "explain", "bytes by node and axis, and what decided", files, chosen,
                      [](const PlaceFiles& each) { return printPlacement(each, explanationText); });
    addFile(*sub, files);
    addPlaceOptions(*sub, files->options);
    sub = addSubcommand(*group, "compare", "the placement beside the usual orders", files, chosen,
                        comparePlacement);
    addFile(*sub, files);
    sub->add_option("--beside", files->beside,
                    "with a model: degrees to compare with, as Megatron starts them: "
                    "tensor=4,data=2,pipe=4; may be repeated");
    addPlaceOptions(*sub, files->options);
    sub = addSubcommand(*group, "emit", "what launchers and frameworks read", files, chosen,
                        emitPlacement);
    sub->add_option("target", files->target, scheduler::targetNames())->required();
    addFile(*sub, files);
    addPlaceOptions(*sub, files->options);
    sub = addSubcommand(*group, "simulate",
                        "a predicted step as a trace that Perfetto and chrome://tracing show",
                        files, chosen, simulatePlacement);
    sub->add_option("-o,--output", files->output, "file; otherwise standard output");
    addFile(*sub, files);
    addPlaceOptions(*sub, files->options);
    sub =
        addSubcommand(*group, "draw", "one HTML page: who is where, node to node, cards, pipeline",
                      files, chosen, drawPlacement);
    sub->add_option("-o,--output", files->output, "file; otherwise standard output");
    addFile(*sub, files);
    addPlaceOptions(*sub, files->options);
    sub = addSubcommand(*group, "validate", "a running job's ranks against a placement", files,
                        chosen, validateJob);
    addFile(*sub, files)->required();
    sub->add_option("map", files->map,
                    "where ranks are: lines of HOST, RANK HOST or RANK HOST DEVICE, or JSON")
        ->required();
    sub->add_flag("--json", files->options.isJson, "print JSON");
    sub =
        addSubcommand(*group, "replan", "a placement without what was lost", files, chosen, replan);
    addFile(*sub, files)->required();
    sub->add_option("--lost", files->lost, "node1, or node1:3 for its device 3; may be repeated")
        ->required();
    sub->add_flag("--json", files->options.isJson, "print JSON");
}

}  // namespace isthmus::cli
