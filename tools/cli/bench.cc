#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <memory>

#include "comm/cost/link_model.hpp"
#include "comm/reduce/reducer.hpp"
#include "tools/cli/bench_json.hpp"
#include "tools/cli/bench_options.hpp"
#include "tools/cli/bench_session.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/own_ranks.hpp"
#include "tools/cli/subcommands.hpp"

namespace isthmus::cli {
namespace {

std::string timeText() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    std::array<char, 32> text{};
    if (::localtime_r(&now, &parts) == nullptr) return "";
    std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
    return text.data();
}

Result<BenchRow> measureRow(BenchSession& session, const BenchCall& call, double rate,
                            int iterations) {
    BenchRow row;
    row.sizeBytes = call.shape.sizeBytes;
    row.blockBytes = call.shape.elements * bytesOf(call.type);
    row.elements = call.shape.elements;
    row.type = ncclNameOf(call.type);
    row.op = reduces(call.collective) ? nameOf(call.op) : "none";
    row.root = hasRoot(call.collective) ? call.root : -1;
    row.iterations = iterations;
    const Result<HalfResult> apart = session.measure(call, Placing::kOutOfPlace, rate);
    if (!apart.ok()) return apart.status();
    row.outOfPlace = *apart;
    const Result<HalfResult> same = session.measure(call, Placing::kInPlace, rate);
    if (!same.ok()) return same.status();
    row.inPlace = *same;
    return row;
}

std::vector<BenchCall> callsOf(const BenchTask& task, const BenchOptions& options, int ranks) {
    std::vector<BenchCall> calls;
    for (const DataType type : task.types) {
        for (const ReduceOp op : task.ops) {
            if (reduces(task.collective) && !isReducible(type, op)) continue;
            for (const std::uint64_t size : task.sizes) {
                calls.push_back({task.collective, type, op, options.root,
                                 benchShape(task.collective, type, ranks, size)});
            }
        }
    }
    return calls;
}

void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

Result<std::vector<BenchRow>> measureAll(BenchSession& session, const BenchTask& task,
                                         const BenchOptions& options) {
    const bool speaks = session.rank() == 0;
    const double rate = goodputOf(task.lineBitsPerSecond);
    std::vector<BenchRow> rows;
    for (const BenchCall& call : callsOf(task, options, session.ranks())) {
        Result<BenchRow> row = measureRow(session, call, rate, options.iterations);
        if (!row.ok()) return row.status();
        if (speaks) print(rowText(task.format, task.head, *row));
        rows.push_back(std::move(*row));
    }
    return rows;
}

int take(const BenchOptions& options, BenchTask task) {
    const std::uint64_t largest = *std::max_element(task.sizes.begin(), task.sizes.end());
    Result<std::unique_ptr<BenchSession>> session = BenchSession::join(options, largest);
    if (!session.ok()) return report("bench", session.status());
    const bool speaks = (*session)->rank() == 0;
    Result<std::vector<BenchRankInfo>> infos = (*session)->rankInfos();
    if (!infos.ok()) return report("bench", infos.status());
    task.head.ranks = std::move(*infos);
    task.head.startTime = timeText();
    if (speaks) print(headText(task.format, task.head));
    const Result<std::vector<BenchRow>> rows = measureAll(**session, task, options);
    if (!rows.ok()) return report("bench", rows.status());
    if (speaks) {
        print(footText(task.format, task.head, *rows, timeText()));
        if (!options.jsonFile.empty()) {
            const Status written =
                writeFile(options.jsonFile, jsonText(task.head, *rows, timeText()));
            if (!written.ok()) return report("bench", written);
        }
    }
    const std::uint64_t wrong = wrongOf(*rows);
    if (wrong == 0) return asInt(ExitCode::kOk);
    if (speaks) fmt::print(stderr, "isthmus bench: {} wrong values\n", wrong);
    return asInt(ExitCode::kUnhealthy);
}

int bench(const CLI::App& sub, const BenchOptions& options) {
    Result<BenchTask> task = benchTask(options);
    if (!task.ok()) return report("bench", task.status());
    if (options.ranks > 0 || !options.nodes.empty())
        return startOwnRanks(sub, {"bench", options.collective}, options);
    task->head.version = ISTHMUS_VERSION;
    task->head.arguments = {"isthmus", "bench", options.collective};
    for (std::string& given : givenOptions(sub, {})) {
        task->head.arguments.push_back(std::move(given));
    }
    return take(options, std::move(*task));
}

}  // namespace

void addBench(CLI::App& app, Action& chosen) {
    CLI::App* sub = app.add_subcommand("bench", "time a collective, with nccl-tests' columns");
    auto options = std::make_shared<BenchOptions>();
    addBenchOptions(*sub, *options);
    sub->footer(
        "-b and -e are of the whole operand, as nccl-tests counts; OSU's own size is one rank's "
        "block,\nso all-gather of 1M there is ranks x 1M here.\nRuns under isthmus run, torchrun, "
        "mpirun and srun; alone it starts its own ranks "
        "with --ranks or --nodes.");
    sub->callback(
        [sub, options, &chosen] { chosen = [sub, options] { return bench(*sub, *options); }; });
}

}  // namespace isthmus::cli
