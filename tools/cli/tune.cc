#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "comm/base/knobs.hpp"
#include "comm/communicator/runtime.hpp"
#include "comm/selector/select.hpp"
#include "tools/cli/bench_json.hpp"
#include "tools/cli/bench_session.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/own_ranks.hpp"
#include "tools/cli/subcommands.hpp"
#include "tools/cli/tune_report.hpp"

namespace isthmus::cli {
namespace {

struct TuneOptions {
    std::vector<std::string> collectives;
    BenchOptions bench;  ///< sizes, type, root, ranks; one collective at a time
    int rounds = 3;
    std::string file;
};

/// An algorithm that takes more than this many times the best one's time is not measured again.
constexpr double kHopeless = 2;
/// Calls of the first look, before which there are as many that open connections and fill caches.
constexpr int kLookCalls = 3;
/// Calls of one timing: enough to fill this time, so that a small call is not measured once.
constexpr double kTimingSeconds = 0.03;

double medianOf(std::vector<double> seconds) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
}

/// All ranks do the same, since all see the same times.
class Tuner {
public:
    Tuner(BenchSession& session, const TuneOptions& options, SelectorOptions settings)
        : session_(session), options_(options), settings_(std::move(settings)) {}

    Result<TunedPoint> measure(const BenchCall& call) {
        const CallShape shape{call.collective, call.type, call.shape.sizeBytes, call.root};
        const auto chosen = select(shape, session_.layout(), settings_);
        if (!chosen.ok()) return chosen.status();
        const auto alone = select(shape, session_.layout(), {});
        if (!alone.ok()) return alone.status();
        times_.clear();
        ISTHMUS_TRY(firstRound(call, shape));
        for (int round = 0; round < options_.rounds; ++round) ISTHMUS_TRY(nextRound(call));
        TunedPoint point{
            call.collective, call.shape.sizeBytes, chosen->algorithm, {}, alone->algorithm};
        for (auto& [name, seconds] : times_) {
            if (seconds.size() > 1) seconds.erase(seconds.begin());  // the first look
            point.seconds.emplace_back(name, medianOf(seconds));
        }
        std::sort(point.seconds.begin(), point.seconds.end(),
                  [](const auto& one, const auto& other) { return one.second < other.second; });
        return point;
    }

private:
    Status firstRound(const BenchCall& call, const CallShape& shape) {
        for (const Algorithm& entry : catalogue()) {
            if (entry.collective != call.collective) continue;
            SelectorOptions alone;
            alone.algorithm = entry.name;
            if (!select(shape, session_.layout(), alone).ok()) continue;  // of other calls
            ISTHMUS_TRY(time(call, std::string(entry.name), kLookCalls));
        }
        return {};
    }

    Status nextRound(const BenchCall& call) {
        double best = INFINITY;
        for (const auto& [name, seconds] : times_)
            best = std::min(best, *std::min_element(seconds.begin(), seconds.end()));
        const double calls = std::clamp(kTimingSeconds / std::max(best, 1e-9), 1.0,
                                        static_cast<double>(options_.bench.iterations));
        for (auto& [name, seconds] : times_) {
            if (seconds.back() > kHopeless * best) continue;
            ISTHMUS_TRY(time(call, name, static_cast<int>(calls)));
        }
        return {};
    }

    Status time(const BenchCall& call, const std::string& algorithm, int calls) {
        session_.use(algorithm, calls);
        const Result<HalfResult> half = session_.measure(call, Placing::kOutOfPlace, 0);
        if (!half.ok()) return half.status().within(algorithm);
        if (half->wrong.value_or(0) != 0) {
            return Status::internal(algorithm + " computed wrong values");
        }
        times_[algorithm].push_back(medianOf(half->iterationSeconds));
        return {};
    }

    BenchSession& session_;
    const TuneOptions& options_;
    const SelectorOptions settings_;
    std::map<std::string, std::vector<double>> times_;
};

Result<std::vector<BenchTask>> tasksOf(const TuneOptions& options) {
    std::vector<BenchTask> tasks;
    for (const std::string& name : options.collectives) {
        BenchOptions one = options.bench;
        one.collective = name;
        Result<BenchTask> task = benchTask(one);
        if (!task.ok()) return task.status();
        tasks.push_back(std::move(*task));
    }
    return tasks;
}

Result<std::vector<TunedPoint>> measureAll(BenchSession& session, const TuneOptions& options,
                                           const std::vector<BenchTask>& tasks) {
    const Result<Options> environment = Options::fromEnvironment(allKnobs());
    if (!environment.ok()) return environment.status();
    Result<SelectorOptions> settings = SelectorOptions::from(*environment);
    if (!settings.ok()) return settings.status();
    Tuner tuner(session, options, std::move(*settings));
    std::vector<TunedPoint> points;
    for (const BenchTask& task : tasks) {
        for (const std::uint64_t size : task.sizes) {
            const BenchCall call{
                task.collective, task.types.front(), task.ops.front(), options.bench.root,
                benchShape(task.collective, task.types.front(), session.ranks(), size)};
            Result<TunedPoint> point = tuner.measure(call);
            if (!point.ok()) return point.status().within(nameOf(task.collective));
            if (session.rank() == 0) {
                fmt::print("{}", tuneRow(*point));
                std::fflush(stdout);
            }
            points.push_back(std::move(*point));
        }
    }
    return points;
}

// Before the measurements, whose minutes would be lost.
Status checkWritable(const std::string& path) {
    if (path.empty()) return {};
    std::FILE* const file = std::fopen(path.c_str(), "a");
    if (file == nullptr) {
        return Status::invalidArgument("-o " + path + ": " + std::strerror(errno));
    }
    std::fclose(file);
    return {};
}

int measure(const CLI::App& sub, const TuneOptions& options, const std::vector<BenchTask>& tasks) {
    std::uint64_t largest = 0;
    for (const BenchTask& task : tasks)
        largest = std::max(largest, *std::max_element(task.sizes.begin(), task.sizes.end()));
    auto session = BenchSession::join(options.bench, largest);
    if (!session.ok()) return report("tune", session.status());
    const bool speaks = (*session)->rank() == 0;
    if (speaks) fmt::print("{}", tuneHead());
    const auto points = measureAll(**session, options, tasks);
    if (!points.ok()) return report("tune", points.status());
    if (!speaks) return asInt(ExitCode::kOk);
    fmt::print("{}", tuneFoot(*points));
    if (options.file.empty()) return asInt(ExitCode::kOk);
    std::string command = "isthmus tune";
    for (const std::string& name : options.collectives) command += " " + name;
    for (const std::string& given : givenOptions(sub, {"-o"})) command += " " + given;
    const std::vector<int> nodes = ranksOfNodes((*session)->layout());
    const Status written = writeFile(options.file, tuneDocument(*points, nodes, command));
    if (!written.ok()) return report("tune", written);
    fmt::print("wrote {}: use it with ISTHMUS_ALGORITHM={}\n", options.file,
               options.file.find('/') == std::string::npos ? "./" + options.file : options.file);
    return asInt(ExitCode::kOk);
}

int tune(const CLI::App& sub, TuneOptions options) {
    if (options.rounds < 1) {
        return report("tune", Status::invalidArgument("--rounds is 1 or more"));
    }
    if (options.bench.stepFactor < 2) {
        return report("tune", Status::invalidArgument("-f is 2 or more"));
    }
    const auto tasks = tasksOf(options);
    if (!tasks.ok()) return report("tune", tasks.status());
    if (const Status writable = checkWritable(options.file); !writable.ok()) {
        return report("tune", writable);
    }
    if (options.bench.ranks > 0 || !options.bench.nodes.empty()) {
        std::vector<std::string> words = {"tune"};
        words.insert(words.end(), options.collectives.begin(), options.collectives.end());
        return startOwnRanks(sub, words, options.bench);
    }
    return measure(sub, options, *tasks);
}

}  // namespace

void addTune(CLI::App& app, Action& chosen) {
    CLI::App* sub = app.add_subcommand(
        "tune", "time every algorithm, say how good the choices are, write a file of better ones");
    auto options = std::make_shared<TuneOptions>();
    BenchOptions& bench = options->bench;
    bench.minBytes = "8";
    bench.maxBytes = "64M";
    bench.stepFactor = 8;
    bench.iterations = 1000;
    bench.warmups = kLookCalls;
    bench.hasIterations = true;  // their median: a mean would be that of a few disturbed calls
    sub->add_option("collectives", options->collectives, "all_reduce, all_gather, ...")->required();
    sub->add_option("-b", bench.minBytes, "least size: the whole operand")->capture_default_str();
    sub->add_option("-e", bench.maxBytes, "largest size")->capture_default_str();
    sub->add_option("-f", bench.stepFactor, "factor from size to size")->capture_default_str();
    sub->add_option("-n", bench.iterations, "most calls of one timing")->capture_default_str();
    sub->add_option("-d", bench.type, "element type")->capture_default_str();
    sub->add_option("-r", bench.root, "root rank")->capture_default_str();
    sub->add_option("-T", bench.timeoutSeconds, "seconds one call may take (0: ISTHMUS_TIMEOUT)");
    sub->add_flag("--malloc", bench.usesMalloc, "ordinary buffers");
    sub->add_option("--rounds", options->rounds, "timings of an algorithm; their median counts")
        ->capture_default_str();
    sub->add_option("-o", options->file, "write what ISTHMUS_ALGORITHM reads");
    addRankOptions(*sub, bench);
    sub->footer(
        "With ISTHMUS_ALGORITHM set, \"chosen\" is what it makes of the call: so a file is "
        "checked.\n"
        "Runs under isthmus run, torchrun, mpirun and srun; alone it starts its own ranks "
        "with --ranks or --nodes.");
    sub->callback(
        [sub, options, &chosen] { chosen = [sub, options] { return tune(*sub, *options); }; });
}

}  // namespace isthmus::cli
