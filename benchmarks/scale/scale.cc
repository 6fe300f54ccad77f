// Simulates the plans of the library at 64 to 16,384 ranks and prints time and bytes of each card
// against the bound, and growth with ranks against the closed forms.
//
// scale [--ranks 64,256] [--sizes 8,64K,64M] [--json FILE]; --help names the rest. Exit status 0:
// all grows as the forms say; 1: some call departs from its form by more than the tolerance; 2:
// wrong arguments.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <mutex>
#include <thread>

#include "benchmarks/scale/report.hpp"
#include "comm/base/knobs.hpp"

namespace {

using namespace isthmus;
using namespace isthmus::scale;

volatile std::sig_atomic_t isInterrupted = 0;

void interrupt(int) {
    if (isInterrupted != 0) std::_Exit(130);
    isInterrupted = 1;
}

struct Arguments {
    std::vector<int> ranks = {64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
    std::vector<int> ranksOfNodes = {8, 1};
    std::vector<std::string> topologies = topologyNames();
    std::vector<std::string> collectives = {"all_reduce", "all_gather", "reduce_scatter",
                                            "all_to_all", "broadcast"};
    std::vector<std::string> sizes = {"8", "64K", "1M", "64M"};
    double tolerance = 0.1;
    unsigned threads = std::max(std::thread::hardware_concurrency(), 1U);
    bool isChosenOnly = false;
    std::string json;
    Machines machines;
};

Status checkShapes(const Arguments& arguments) {
    for (const int ranks : arguments.ranks) {
        for (const int ranksOfNode : arguments.ranksOfNodes) {
            const int rack = ranksOfNode < 1 ? 0 : ranksOfRack(ranksOfNode, arguments.machines);
            if (rack > 0 && ranks >= 2 * rack && ranks % rack == 0) continue;
            return Status::invalidArgument(
                fmt::format("{} ranks in nodes of {}: give at least two whole racks of {} ranks",
                            ranks, ranksOfNode, rack));
        }
    }
    return {};
}

Result<Question> questionOf(const Arguments& arguments) {
    ISTHMUS_TRY(checkShapes(arguments));
    Question question;
    question.ranks = arguments.ranks;
    question.ranksOfNodes = arguments.ranksOfNodes;
    question.isChosenOnly = arguments.isChosenOnly;
    question.machines = arguments.machines;
    question.threads = arguments.threads;
    for (const std::string& name : arguments.topologies) {
        const std::vector<std::string> known = topologyNames();
        if (std::find(known.begin(), known.end(), name) == known.end())
            return Status::invalidArgument(fmt::format("no topology \"{}\"", name));
        question.topologies.push_back(name);
    }
    for (const std::string& name : arguments.collectives) {
        const Result<Collective> collective = collectiveNamed(name);
        if (!collective.ok()) return collective.status();
        question.collectives.push_back(*collective);
    }
    for (const std::string& text : arguments.sizes) {
        const Result<std::int64_t> bytes = parseBytes(text);
        if (!bytes.ok()) return bytes.status().within("--sizes");
        question.sizes.push_back(static_cast<std::uint64_t>(*bytes));
    }
    return question;
}

void declare(CLI::App& app, Arguments& arguments) {
    app.add_option("--ranks", arguments.ranks, "how many ranks")->delimiter(',');
    app.add_option("--nodes", arguments.ranksOfNodes, "ranks of each node")->delimiter(',');
    app.add_option("--topologies", arguments.topologies,
                   "fat_tree, fat_tree_narrow, rails, rails_narrow")
        ->delimiter(',');
    app.add_option("--collectives", arguments.collectives, "as isthmus bench names them")
        ->delimiter(',');
    app.add_option("--sizes", arguments.sizes, "the whole operand, as nccl-tests counts")
        ->delimiter(',');
    app.add_flag("--chosen", arguments.isChosenOnly, "only what the selector chooses");
    app.add_option("--gbit", arguments.machines.gigabits, "line rate of a card")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--oversubscription", arguments.machines.oversubscription,
                   "of narrow links: their cards together over the link")
        ->capture_default_str()
        ->check(CLI::Range(1.0, 1e6));
    app.add_option("--tolerance", arguments.tolerance,
                   "share by which one pass may lie outside its closed form")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    app.add_option("--threads", arguments.threads, "simulations at once; each takes up to 1 GB")
        ->capture_default_str()
        ->check(CLI::Range(1, 64));
    app.add_option("--json", arguments.json, "write every row there");
}

int fail(const Status& why) {
    fmt::print(stderr, "scale: {}\n", why.what());
    return 2;
}

/// A study on threads of its own, which nobody has to wait for: one row may take a minute.
class Studying {
public:
    explicit Studying(const Question& question) {
        thread_ = std::thread([this, &question] {
            const Status status = study(
                question,
                [this](const Row& row) {
                    const std::lock_guard lock(mutex_);
                    rows_.push_back(row);
                },
                [](const std::string& what) { fmt::print(stderr, "scale: {}\n", what); });
            const std::lock_guard lock(mutex_);
            status_ = status;
            hasEnded_ = true;
            changed_.notify_one();
        });
    }

    /// Until it ends or somebody presses Ctrl-C; whether it ended.
    bool wait() {
        std::unique_lock lock(mutex_);
        while (!hasEnded_ && isInterrupted == 0)
            changed_.wait_for(lock, std::chrono::milliseconds(50));
        if (hasEnded_) thread_.join();
        return hasEnded_;
    }

    Status status() {
        const std::lock_guard lock(mutex_);
        return status_;
    }
    /// So far.
    std::vector<Row> rows() {
        const std::lock_guard lock(mutex_);
        return rows_;
    }

private:
    std::mutex mutex_;  // guards the four below
    std::condition_variable changed_;
    std::vector<Row> rows_;
    Status status_;
    bool hasEnded_ = false;
    std::thread thread_;
};

Status report(const Arguments& arguments, const Question& question, std::vector<Row> rows) {
    sort(rows);
    fmt::print("{}{}{}", heading(question), table(rows), summary(rows, arguments.tolerance));
    if (arguments.json.empty()) return {};
    std::ofstream file(arguments.json);
    file << json(question, rows, arguments.tolerance);
    return file.flush() ? Status() : Status::invalidArgument("cannot write " + arguments.json);
}

int answer(const Arguments& arguments) {
    const Result<Question> question = questionOf(arguments);
    if (!question.ok()) return fail(question.status());
    for (const int number : {SIGINT, SIGTERM}) std::signal(number, interrupt);
    Studying studying(*question);
    if (!studying.wait()) {
        fmt::print(stderr, "scale: interrupted; this far it is\n");
        const Status reported = report(arguments, *question, studying.rows());
        std::fflush(stdout);
        std::_Exit(reported.ok() ? 130 : fail(reported));
    }
    if (!studying.status().ok()) return fail(studying.status());
    const Status reported = report(arguments, *question, studying.rows());
    if (!reported.ok()) return fail(reported);
    return departures(studying.rows(), arguments.tolerance).empty() ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    CLI::App app("time and bytes of the library's plans at many ranks, simulated", "scale");
    Arguments arguments;
    declare(app, arguments);
    try {
        app.parse(count, words);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    return answer(arguments);
}
