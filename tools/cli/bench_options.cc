#include "tools/cli/bench_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "comm/base/knobs.hpp"
#include "comm/reduce/reducer.hpp"
#include "comm/selector/select.hpp"
#include "tools/cli/bench_shape.hpp"
#include "tools/cluster/rate.hpp"

namespace isthmus::cli {
namespace {

// A mistyped step must not print for ever.
constexpr std::size_t kMostSizes = 4096;

Result<std::vector<DataType>> typesOf(const std::string& name) {
    std::vector<DataType> types;
    if (name == "all") {
        for (int index = 0; index < kDataTypes; ++index) {
            types.push_back(static_cast<DataType>(index));
        }
        return types;
    }
    const Result<DataType> type = benchType(name);
    if (!type.ok()) return type.status();
    types.push_back(*type);
    return types;
}

Result<std::vector<ReduceOp>> opsOf(const std::string& name) {
    std::vector<ReduceOp> ops;
    if (name == "all") {
        for (int index = 0; index < kReduceOps; ++index) {
            ops.push_back(static_cast<ReduceOp>(index));
        }
        return ops;
    }
    const Result<ReduceOp> op = benchOp(name);
    if (!op.ok()) return op.status();
    ops.push_back(*op);
    return ops;
}

/// An error when no operation is defined on any type: the table would be empty.
Status checkDefined(Collective collective, const std::vector<DataType>& types,
                    const std::vector<ReduceOp>& ops) {
    if (!reduces(collective)) return {};
    for (const DataType type : types) {
        for (const ReduceOp op : ops) {
            if (isReducible(type, op)) return {};
        }
    }
    const std::string_view op = ops.size() == 1 ? nameOf(ops.front()) : "no operation";
    return Status::invalidArgument(std::string(nameOf(collective)) + ": " + std::string(op) +
                                   (ops.size() == 1 ? " is not defined on " : " is defined on ") +
                                   std::string(ncclNameOf(types.front())));
}

Result<std::uint64_t> sizeOf(const char* option, const std::string& text) {
    const Result<std::int64_t> bytes = parseBytes(text);
    if (!bytes.ok()) {
        return Status::invalidArgument(std::string(option) + ": " + bytes.status().what());
    }
    return static_cast<std::uint64_t>(*bytes);
}

Status readSizes(const BenchOptions& options, BenchHead& head) {
    const bool endsAtDefault = options.maxBytes.empty() && options.stepFactor > 1;
    const std::string& last = options.maxBytes.empty() ? options.minBytes : options.maxBytes;
    const Result<std::uint64_t> least = sizeOf("-b", options.minBytes);
    const Result<std::uint64_t> most = sizeOf("-e", endsAtDefault ? "32M" : last);
    const Result<std::uint64_t> step = sizeOf("-i", options.stepBytes);
    if (!least.ok()) return least.status();
    if (!most.ok()) return most.status();
    if (!step.ok()) return step.status();
    head.minBytes = *least;
    head.maxBytes = endsAtDefault ? std::max(*most, *least) : *most;
    head.stepBytes = *step;
    head.stepFactor = options.stepFactor;
    if (head.maxBytes < head.minBytes) {
        return Status::invalidArgument("-e " + last + " is below -b " + options.minBytes);
    }
    if (options.stepFactor == 1 || (options.stepFactor == 0 && *step == 0)) {
        return Status::invalidArgument("sizes would never grow: -f is 2 or more, -i 1 or more");
    }
    return {};
}

Result<std::vector<std::uint64_t>> sizesOf(const BenchHead& head) {
    std::vector<std::uint64_t> sizes;
    std::uint64_t size = head.minBytes;
    while (size <= head.maxBytes) {
        if (sizes.size() == kMostSizes) {
            return Status::invalidArgument("more than 4096 sizes: use -f, or a larger -i");
        }
        sizes.push_back(size);
        const bool growsByFactor = head.stepFactor > 1;
        // Nothing times a factor stays nothing: nccl-tests' loop would not end.
        size = growsByFactor ? std::max(size * head.stepFactor, size + 1) : size + head.stepBytes;
    }
    return sizes;
}

Status checkNumbers(const BenchOptions& options) {
    const auto least = [](const char* name, int value, int limit) {
        return value >= limit
                   ? Status()
                   : Status::invalidArgument(std::string(name) + " " + std::to_string(value) +
                                             " is below " + std::to_string(limit));
    };
    ISTHMUS_TRY(least("-n", options.iterations, 1));
    ISTHMUS_TRY(least("-w", options.warmups, 0));
    ISTHMUS_TRY(least("-m", options.aggregated, 1));
    ISTHMUS_TRY(least("-r", options.root, 0));
    ISTHMUS_TRY(least("-T", options.timeoutSeconds, 0));
    if (options.average < 0 || options.average > 3) {
        return Status::invalidArgument("-a is 0 (rank 0), 1 (mean), 2 (least) or 3 (most)");
    }
    if (options.ranks > 0 && !options.nodes.empty()) {
        return Status::invalidArgument("--ranks and --nodes exclude each other");
    }
    if (options.usesArena && options.usesMalloc) {
        return Status::invalidArgument("--arena and --malloc exclude each other");
    }
    return {};
}

BenchHead headOf(const BenchOptions& options, Collective collective) {
    BenchHead head;
    head.collective = nameOf(collective);
    head.warmups = options.warmups;
    head.iterations = options.iterations;
    head.aggregated = options.aggregated;
    head.checks = options.checks;
    head.hasWire = options.hasWire;
    head.hasIterations = options.hasIterations;
    return head;
}

}  // namespace

void addBenchOptions(CLI::App& sub, BenchOptions& options) {
    sub.add_option("collective", options.collective,
                   "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, "
                   "scatter, barrier")
        ->required();
    sub.add_option("-b", options.minBytes, "least size: the whole operand, as nccl-tests counts")
        ->capture_default_str();
    sub.add_option("-e", options.maxBytes, "largest size (32M with -f, else as -b)");
    sub.add_option("-i", options.stepBytes, "bytes from size to size")->capture_default_str();
    sub.add_option("-f", options.stepFactor, "factor from size to size, instead of -i");
    sub.add_option("-n", options.iterations, "timed iterations")->capture_default_str();
    sub.add_option("-w", options.warmups, "untimed iterations first")->capture_default_str();
    sub.add_option("-m", options.aggregated, "calls in one iteration")->capture_default_str();
    sub.add_option("-c", options.checks, "check results (0: no)")->capture_default_str();
    sub.add_option("-o", options.op, "sum prod min max avg band bor bxor all")
        ->capture_default_str();
    sub.add_option("-d", options.type,
                   "int8 uint8 ... half bfloat16 float double bool complex64 f8e4m3 ... all")
        ->capture_default_str();
    sub.add_option("-r", options.root, "root rank")->capture_default_str();
    sub.add_option("-a", options.average, "time of: 0 rank 0, 1 mean, 2 least, 3 most of the ranks")
        ->capture_default_str();
    sub.add_option("-T", options.timeoutSeconds, "seconds one call may take (0: ISTHMUS_TIMEOUT)");
    sub.add_option("-J", options.jsonFile, "also write the JSON document to this file");
    sub.add_flag("-I", options.hasIterations, "add the times of single iterations");
    sub.add_option("--format", options.format,
                   "nccl, osu (its size column is one rank's block), json, csv")
        ->capture_default_str();
    sub.add_flag("--wire", options.hasWire,
                 "add bytes of the busiest card, their lower bound, its time, share reached");
    sub.add_flag("--uneven", options.isUneven,
                 "all_to_all with blocks from 1/P to (2P-1)/P of the even one, of P ranks");
    sub.add_flag("--arena", options.usesArena, "buffers that node peers map (default)");
    sub.add_flag("--malloc", options.usesMalloc, "ordinary buffers");
    sub.add_option("--algorithm", options.algorithm, "a name that `isthmus explain` lists");
    addRankOptions(sub, options);
}

void addRankOptions(CLI::App& sub, BenchOptions& options) {
    sub.add_option("--ranks", options.ranks, "start this many ranks here")
        ->check(CLI::Range(1, 4096));
    sub.add_option("--nodes", options.nodes, "start ranks in emulated nodes: 2x2, 3+2+1");
    sub.add_option("--order", options.order, "rank order over nodes: block, round-robin");
    sub.add_option(
        "--rate", options.rate,
        "line of one node, 5gbit, or of its cards, 4gbit+1gbit: shaped so with --nodes; for "
        "the bound's time");
}

Result<BenchTask> benchTask(const BenchOptions& options) {
    const Result<Collective> collective = collectiveNamed(options.collective);
    if (!collective.ok()) return collective.status();
    const Result<std::vector<DataType>> types = typesOf(options.type);
    if (!types.ok()) return types.status();
    const Result<std::vector<ReduceOp>> ops = opsOf(options.op);
    if (!ops.ok()) return ops.status();
    ISTHMUS_TRY(checkDefined(*collective, *types, *ops));
    const Result<BenchFormat> format = benchFormatNamed(options.format);
    if (!format.ok()) return format.status();
    const Result<cluster::CardRates> rate =
        cluster::CardRates::parse(options.rate.empty() ? "none" : options.rate);
    if (!rate.ok()) return rate.status();
    ISTHMUS_TRY(checkNumbers(options));
    if (options.isUneven && *collective != Collective::kAllToAll) {
        return Status::invalidArgument("--uneven is for all_to_all, not for " + options.collective);
    }
    if (!options.algorithm.empty() && findAlgorithm(*collective, options.algorithm) == nullptr) {
        return Status::invalidArgument("unknown algorithm \"" + options.algorithm +
                                       "\": known are " + knownAlgorithms(*collective));
    }
    BenchTask task;
    task.head = headOf(options, *collective);
    ISTHMUS_TRY(readSizes(options, task.head));
    const Result<std::vector<std::uint64_t>> sizes = sizesOf(task.head);
    if (!sizes.ok()) return sizes.status();
    task.collective = *collective;
    task.sizes = *collective == Collective::kBarrier ? std::vector<std::uint64_t>{0} : *sizes;
    task.types = *types;
    task.ops = reduces(*collective) ? *ops : std::vector<ReduceOp>{ReduceOp::kSum};
    task.format = *format;
    task.lineBitsPerSecond = static_cast<double>(rate->bitsPerSecond());
    return task;
}

}  // namespace isthmus::cli
