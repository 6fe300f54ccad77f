#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "comm/base/knobs.hpp"
#include "comm/communicator/runtime.hpp"
#include "comm/plan/print.hpp"
#include "tools/cli/bench_shape.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/explain_measured.hpp"
#include "tools/cli/explain_report.hpp"
#include "tools/cli/node_spec.hpp"
#include "tools/cli/subcommands.hpp"
#include "tools/cluster/rate.hpp"

namespace isthmus::cli {
namespace {

struct ExplainOptions {
    std::string collective;
    std::string bytes = "32M";
    std::string nodes = "1x2";
    std::string order = "block";
    std::string rate;
    std::string rackRate;
    std::string summing;
    std::string type = "f32";
    int root = 0;
    std::string algorithm;
    bool usesMalloc = false;
    bool isDeterministic = false;
    bool roundsOnce = false;
    bool isJson = false;
    bool isDot = false;
    std::string measured;
};

// "": nothing; "2gbit": one for all; "2gbit,2gbit,1gbit": one for each node.
Result<std::vector<double>> linesOf(const std::string& text) {
    std::vector<double> lines;
    if (text.empty() || text == "none") return lines;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
        const Result<cluster::Rate> rate = cluster::Rate::parse(word);
        if (!rate.ok()) return rate.status();
        if (!rate->isLimited())
            return Status::invalidArgument("--rate " + text + ": none is no rate of one node");
        lines.push_back(static_cast<double>(rate->bitsPerSecond));
    }
    return lines;
}

/// Says where racks are, and which ranks only add ("4,5").
Status arrange(Layout& layout, const NodeSpec& nodes, NodeSpec::Order order,
               const std::string& summing) {
    if (!nodes.racks().empty()) {
        std::vector<int> racks(layout.nodes.size());
        const std::vector<int> nodeOfRank = nodes.nodeOfRank(order);
        for (std::size_t node = 0; node < racks.size(); ++node) {
            const auto first = static_cast<std::size_t>(layout.nodes[node].front());
            racks[node] = nodes.racks()[static_cast<std::size_t>(nodeOfRank[first])];
        }
        layout.racks = {std::move(racks)};
    }
    for (std::size_t at = 0; at < summing.size();) {
        const std::size_t comma = std::min(summing.find(',', at), summing.size());
        const Result<std::int64_t> rank = parseBytes(summing.substr(at, comma - at));
        if (!rank.ok() || *rank < 0 || *rank >= layout.ranks()) {
            return Status::invalidArgument("--summing " + summing + ": ranks such as 4,5 of " +
                                           std::to_string(layout.ranks()));
        }
        layout.summing.push_back(static_cast<Rank>(*rank));
        at = comma + 1;
    }
    std::sort(layout.summing.begin(), layout.summing.end());
    return {};
}

Result<ExplainQuestion> questionOf(const ExplainOptions& options) {
    const Result<Collective> collective = collectiveNamed(options.collective);
    if (!collective.ok()) return collective.status();
    const Result<std::int64_t> bytes = parseBytes(options.bytes);
    if (!bytes.ok()) return Status::invalidArgument("--bytes: " + bytes.status().what());
    const Result<NodeSpec> nodes = NodeSpec::parse(options.nodes);
    if (!nodes.ok()) return nodes.status();
    const Result<NodeSpec::Order> order = NodeSpec::parseOrder(options.order);
    if (!order.ok()) return order.status();
    const Result<DataType> type = benchType(options.type);
    if (!type.ok()) return type.status();
    Result<std::vector<double>> lines = linesOf(options.rate);
    if (!lines.ok()) return lines.status();
    const Result<cluster::Rate> rackRate =
        cluster::Rate::parse(options.rackRate.empty() ? "none" : options.rackRate);
    if (!rackRate.ok()) return rackRate.status().within("--rack-rate");
    if (options.root < 0 || options.root >= nodes->ranks()) {
        return Status::invalidArgument(
            fmt::format("--root {}: there are {} ranks", options.root, nodes->ranks()));
    }
    const Result<Options> environment = Options::fromEnvironment(allKnobs());
    if (!environment.ok()) return environment.status();
    Result<SelectorOptions> selector = SelectorOptions::from(*environment);
    if (!selector.ok()) return selector.status();
    ExplainQuestion question;
    question.options = std::move(*selector);
    question.options.isDeterministic |= options.isDeterministic;
    question.options.roundsOnce |= options.roundsOnce;
    question.collective = *collective;
    question.type = *type;
    const bool isBarrier = *collective == Collective::kBarrier;
    question.bytes = isBarrier ? 0 : static_cast<std::uint64_t>(*bytes);
    question.root = options.root;
    question.layout = Layout::of(nodes->nodeOfRank(*order));
    ISTHMUS_TRY(arrange(question.layout, *nodes, *order, options.summing));
    question.rackBitsPerSecond = static_cast<double>(rackRate->bitsPerSecond);
    question.layoutText = nodes->text();
    question.isMapped = !options.usesMalloc;
    question.lineBitsPerSecond = std::move(*lines);
    question.algorithm = options.algorithm;
    return question;
}

// A row takes a few hundred bytes and a rank as many: this is no file of bench any more.
constexpr std::size_t kMostOfFile = std::size_t{64} << 20;

Result<std::string> textOf(const std::string& path) {
    const auto failed = [&](const char* why) {
        return Status::invalidArgument("--measured: cannot read " + path + ": " + why);
    };
    std::ifstream file(path);
    if (!file) return failed(std::strerror(errno));
    std::string text;
    std::vector<char> piece(64 << 10);
    do {
        file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
        if (file.bad()) return failed(std::strerror(errno));  // a folder opens, and then fails here
        text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
        if (text.size() > kMostOfFile) return failed("it has no end, or more than 64 MiB");
    } while (file);
    return text;
}

Result<Measurement> readMeasurement(const ExplainOptions& options) {
    const Result<std::string> text = textOf(options.measured);
    if (!text.ok()) return text.status();
    Result<Measurement> measurement = measurementOf(*text);
    if (!measurement.ok()) return measurement.status().within(options.measured);
    const Result<Collective> measured = collectiveNamed(measurement->collective);
    if (!measured.ok()) return measured.status().within(options.measured);
    if (options.collective.empty()) return measurement;
    const Result<Collective> asked = collectiveNamed(options.collective);
    if (!asked.ok()) return asked.status();
    if (*asked == *measured) return measurement;
    return Status::invalidArgument(options.measured + " holds " + measurement->collective +
                                   ", asked for is " + options.collective);
}

int explainMeasured(ExplainOptions options) {
    const Result<Measurement> measurement = readMeasurement(options);
    if (!measurement.ok()) return report("explain", measurement.status());
    options.collective = measurement->collective;
    Result<ExplainQuestion> question = questionOf(options);
    if (!question.ok()) return report("explain", question.status());
    const Result<std::vector<Comparison>> all = compare(*measurement, std::move(*question));
    if (!all.ok()) return report("explain", all.status());
    fmt::print("{}", options.isJson ? comparisonJson(*measurement, *all)
                                    : comparisonText(*measurement, *all));
    return asInt(ExitCode::kOk);
}

int explain(const ExplainOptions& options) {
    if (!options.measured.empty()) return explainMeasured(options);
    if (options.collective.empty()) {
        return report("explain",
                      Status::invalidArgument("a collective is wanted, or --measured FILE"));
    }
    const Result<ExplainQuestion> question = questionOf(options);
    if (!question.ok()) return report("explain", question.status());
    const Result<ExplainAnswer> answer = answerOf(*question);
    if (!answer.ok()) return report("explain", answer.status());
    if (options.isDot) {
        fmt::print("{}", dotOf(answer->chosenPlans));
    } else {
        fmt::print(
            "{}", options.isJson ? answerJson(*question, *answer) : answerText(*question, *answer));
    }
    return asInt(ExitCode::kOk);
}

}  // namespace

void addExplain(CLI::App& app, Action& chosen) {
    CLI::App* sub = app.add_subcommand(
        "explain", "candidates for a collective: predicted time, bytes per card, bound, choice");
    auto options = std::make_shared<ExplainOptions>();
    sub->add_option("collective", options->collective,
                    "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, "
                    "gather, scatter, barrier");
    sub->add_option("--bytes", options->bytes, "the whole operand, as nccl-tests counts: 25M")
        ->capture_default_str();
    sub->add_option("--nodes", options->nodes, "2x2, 3+2+1; a slash between racks: 2x4/2x4")
        ->capture_default_str();
    sub->add_option("--order", options->order, "rank order over nodes: block, round-robin")
        ->capture_default_str();
    sub->add_option("--rate", options->rate,
                    "line of a node: 1gbit (10gbit is assumed), or of each: 2gbit,1gbit");
    sub->add_option("--rack-rate", options->rackRate,
                    "link of one rack: 40gbit (that of one node is assumed)");
    sub->add_option("--summing", options->summing,
                    "ranks without data that only add in an all-reduce: 4,5 (ISTHMUS_ONLY_SUMS)");
    sub->add_option("--type", options->type, "element type")->capture_default_str();
    sub->add_option("--root", options->root, "root rank")->capture_default_str();
    sub->add_option("--algorithm", options->algorithm, "take this one instead of choosing");
    sub->add_flag("--malloc", options->usesMalloc, "ordinary buffers: nodes stage");
    sub->add_flag("--deterministic", options->isDeterministic,
                  "a sum whose bits depend on nothing (ISTHMUS_DETERMINISTIC)");
    sub->add_flag("--one-rounding", options->roundsOnce,
                  "a 16-bit sum that travels as f32 (ISTHMUS_ONE_ROUNDING)");
    CLI::Option* measured =
        sub->add_option("--measured", options->measured,
                        "a file of bench --format json: predicted and measured side by side");
    for (const char* own : {"--bytes", "--nodes", "--order", "--type", "--root", "--malloc",
                            "--summing", "--rack-rate"})
        measured->excludes(own);  // the file says it
    sub->add_flag("--json", options->isJson, "print JSON");
    sub->add_flag("--dot", options->isDot, "print the chosen plans for Graphviz")
        ->excludes(measured);
    sub->callback([options, &chosen] { chosen = [options] { return explain(*options); }; });
}

}  // namespace isthmus::cli
