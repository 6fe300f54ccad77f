#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "comm/base/knobs.hpp"
#include "comm/communicator/runtime.hpp"
#include "comm/engine/control_block.hpp"
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
    int rounds = 5;
    std::string file;
};

/// An algorithm whose median is more than this many times the best one's is not measured again;
/// after the first look, which is short, it may be thrice.
constexpr double kHopeless = 2;
constexpr double kHopelessAtFirst = 3;
/// Calls of the first look, and those before any timing that open connections and fill caches.
constexpr int kLookCalls = 3;
/// Those before a small call, whose scratch of each lane is touched the first time: 32 KiB over two
/// nodes 190 to 330 us then, 55 us later.
constexpr int kSmallWarmups = 2 * kLanes;
constexpr std::uint64_t kSmallBytes = 1 << 20;
/// Calls of one timing: enough to fill this time, so that a small call is not measured once.
constexpr double kTimingSeconds = 0.03;

double medianOf(std::vector<double> seconds) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
}

/// One point on its way. All ranks do the same, since all see the same times.
class Tuning {
public:
    Tuning(const BenchCall& call, std::string chosen, std::string alone)
        : call_(call), chosen_(std::move(chosen)), alone_(std::move(alone)) {}

    Status look(BenchSession& session) {
        const CallShape shape{call_.collective, call_.type, call_.shape.sizeBytes, call_.root};
        for (const Algorithm& entry : catalogue()) {
            if (entry.collective != call_.collective) continue;
            SelectorOptions one;
            one.algorithm = entry.name;
            if (!select(shape, session.layout(), one).ok()) continue;  // of other calls
            ISTHMUS_TRY(time(session, one.algorithm, kLookCalls));
        }
        looked_ = std::exchange(times_, {});
        dropHopeless(looked_, kHopelessAtFirst);
        return {};
    }

    Status round(BenchSession& session, int mostCalls) {
        const double calls =
            std::clamp(kTimingSeconds / std::max(bestOf(looked_), 1e-9), 1.0, double(mostCalls));
        for (const std::string& name : running_)
            ISTHMUS_TRY(time(session, name, static_cast<int>(calls)));
        dropHopeless(times_, kHopeless);
        return {};
    }

    TunedPoint point() const {
        TunedPoint point{call_.collective, call_.shape.sizeBytes, chosen_, {}, alone_};
        for (const auto& [name, seconds] : looked_) {
            const auto timed = times_.find(name);
            point.seconds.emplace_back(name,
                                       medianOf(timed == times_.end() ? seconds : timed->second));
        }
        std::sort(point.seconds.begin(), point.seconds.end(),
                  [](const auto& one, const auto& other) { return one.second < other.second; });
        return point;
    }

private:
    using Times = std::map<std::string, std::vector<double>>;

    static double bestOf(const Times& times) {
        double best = INFINITY;
        for (const auto& [name, seconds] : times) best = std::min(best, medianOf(seconds));
        return best;
    }

    void dropHopeless(const Times& times, double factor) {
        running_.clear();
        for (const auto& [name, seconds] : times)
            if (medianOf(seconds) <= factor * bestOf(times)) running_.push_back(name);
    }

    Status time(BenchSession& session, const std::string& algorithm, int calls) {
        session.use(algorithm, calls,
                    call_.shape.sizeBytes <= kSmallBytes ? kSmallWarmups : kLookCalls);
        const Result<HalfResult> half = session.measure(call_, Placing::kOutOfPlace, 0);
        if (!half.ok()) return half.status().within(algorithm).within(nameOf(call_.collective));
        if (half->wrong.value_or(0) != 0) {
            return Status::internal(algorithm + " computed wrong values");
        }
        times_[algorithm].push_back(medianOf(half->iterationSeconds));
        return {};
    }

    BenchCall call_;
    std::string chosen_;
    std::string alone_;
    Times looked_;  ///< of the first look
    Times times_;   ///< of the rounds
    std::vector<std::string> running_;
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

Result<SelectorOptions> settingsOfJob() {
    const Result<Options> environment = Options::fromEnvironment(allKnobs());
    return environment.ok() ? SelectorOptions::from(*environment)
                            : Result<SelectorOptions>(environment.status());
}

/// Every point once: sizes too small for an element of each block are none.
Result<std::vector<Tuning>> tuningsOf(const BenchSession& session, const TuneOptions& options,
                                      const std::vector<BenchTask>& tasks) {
    const Result<SelectorOptions> settings = settingsOfJob();
    if (!settings.ok()) return settings.status();
    std::vector<Tuning> tunings;
    for (const BenchTask& task : tasks) {
        for (const std::uint64_t size : task.sizes) {
            const BenchCall call{
                task.collective, task.types.front(), task.ops.front(), options.bench.root,
                benchShape(task.collective, task.types.front(), session.ranks(), size)};
            if (call.shape.sizeBytes == 0 && call.collective != Collective::kBarrier) continue;
            const CallShape shape{call.collective, call.type, call.shape.sizeBytes, call.root};
            const auto chosen = select(shape, session.layout(), *settings);
            const auto alone = select(shape, session.layout(), {});
            if (!chosen.ok() || !alone.ok()) return (chosen.ok() ? alone : chosen).status();
            tunings.emplace_back(call, chosen->algorithm, alone->algorithm);
        }
    }
    return tunings;
}

/// Rounds go over all points, so that the timings of an algorithm are minutes apart: what lasts for
/// seconds (other guests, where the ranks happen to run) is in one of them only.
Result<std::vector<TunedPoint>> measureAll(BenchSession& session, const TuneOptions& options,
                                           const std::vector<BenchTask>& tasks) {
    auto tunings = tuningsOf(session, options, tasks);
    if (!tunings.ok()) return tunings.status();
    for (Tuning& tuning : *tunings) ISTHMUS_TRY(tuning.look(session));
    for (int round = 1; round <= options.rounds; ++round) {
        if (session.rank() == 0)
            fmt::print(stderr, "isthmus tune: round {} of {}, {} points\n", round, options.rounds,
                       tunings->size());
        for (Tuning& tuning : *tunings)
            ISTHMUS_TRY(tuning.round(session, options.bench.iterations));
    }
    std::vector<TunedPoint> points;
    for (const Tuning& tuning : *tunings) points.push_back(tuning.point());
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
    const auto points = measureAll(**session, options, tasks);
    if (!points.ok()) return report("tune", points.status());
    if (!speaks) return asInt(ExitCode::kOk);
    fmt::print("{}", tuneHead());
    for (const TunedPoint& point : *points) fmt::print("{}", tuneRow(point));
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
    bench.hasIterations = true;  // their median: a mean would be that of a few disturbed calls
    bench.meetsFirst = true;
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
        "Times are medians of the slowest rank's; calls with a root begin with an untimed "
        "barrier.\n"
        "With ISTHMUS_ALGORITHM set, \"chosen\" is what it makes of the call: so a file is "
        "checked.\n"
        "Runs under isthmus run, torchrun, mpirun and srun; alone it starts its own ranks "
        "with --ranks or --nodes.");
    sub->callback(
        [sub, options, &chosen] { chosen = [sub, options] { return tune(*sub, *options); }; });
}

}  // namespace isthmus::cli
