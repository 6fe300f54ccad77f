#include "tools/cli/explain_measured.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/cli/bench_shape.hpp"
#include "tools/cli/node_spec.hpp"

namespace isthmus::cli {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// More than any machine has, and yet sums of it fit into 64 bits.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;
constexpr double kMostMicroseconds = 1e12;  // eleven days

// What follows `option` among bench's arguments: "--malloc", "--algorithm ring",
// "--algorithm=ring".
bool hasArgument(const Json& arguments, std::string_view option, std::string* value = nullptr) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto text = arguments[i].get<std::string>();
        if (text == option) {
            if (value != nullptr && i + 1 < arguments.size())
                *value = arguments[i + 1].get<std::string>();
            return true;
        }
        if (value == nullptr || text.rfind(std::string(option) + "=", 0) != 0) continue;
        *value = text.substr(option.size() + 1);
        return true;
    }
    return false;
}

[[noreturn]] void refuse(std::string_view field, const std::string& text, const char* wanted) {
    throw std::invalid_argument(fmt::format("{} \"{}\" is not {}", field, text, wanted));
}

// The last word of a text, which bench pads: a whole number of `least` or more.
int lastNumberOf(const Json& in, const char* field, int least, const char* wanted) {
    const auto text = in.at(field).get<std::string>();
    const std::size_t space = text.find_last_of(' ');
    const char* const begin = text.data() + (space == text.npos ? 0 : space + 1);
    const char* const end = text.data() + text.size();
    int value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || stop != end || value < least) refuse(field, text, wanted);
    return value;
}

// nlohmann's get() would make -8 and 1e30 into some other number of bytes.
std::uint64_t bytesOf(const Json& in, const char* field) {
    const Json& value = in.at(field);
    const bool isCount = value.is_number_unsigned() && value.get<std::uint64_t>() <= kMostBytes;
    if (!isCount) refuse(field, value.dump(), "a number of bytes");
    return value.get<std::uint64_t>();
}

MeasuredRow rowOf(const Json& json) {
    MeasuredRow row;
    row.bytes = bytesOf(json, "size");
    row.type = json.at("type").get<std::string>();
    row.root = std::max(lastNumberOf(json, "root", -1, "a rank, or -1 for none"), 0);
    const Json& half = json.at("out_of_place");
    const double microseconds = half.at("time").get<double>();
    if (!(microseconds > 0 && microseconds < kMostMicroseconds))
        refuse("time", half.at("time").dump(), "a time in us");
    row.seconds = microseconds / 1e6;
    if (half.contains("wire_bytes")) row.wireBytes = bytesOf(half, "wire_bytes");
    return row;
}

Measurement read(const Json& json) {
    Measurement measurement;
    const Json& arguments = json.at("args");
    measurement.isMapped = !hasArgument(arguments, "--malloc");
    hasArgument(arguments, "--algorithm", &measurement.algorithm);
    for (const Json& device : json.at("config").at("devices"))
        measurement.nodeOfRank.push_back(
            lastNumberOf(device, "device_info", 0, "the number of a node"));
    const std::size_t ranks = measurement.nodeOfRank.size();
    if (ranks > NodeSpec::kMaxRanks)
        refuse("devices", std::to_string(ranks), "a number of ranks that one job has");
    for (const Json& row : json.at("results")) {
        auto collective = row.at("experiment_name").get<std::string>();
        if (!measurement.rows.empty() && collective != measurement.collective)
            refuse("experiment_name", collective, measurement.collective.c_str());
        measurement.collective = std::move(collective);
        measurement.rows.push_back(rowOf(row));
        if (static_cast<std::size_t>(measurement.rows.back().root) >= ranks && ranks > 0)
            refuse("root", std::to_string(measurement.rows.back().root), "a rank of the job");
    }
    return measurement;
}

double medianRatio(const std::vector<Comparison>& all) {
    std::vector<double> ratios;
    for (const Comparison& one : all) ratios.push_back(one.ratio());
    std::sort(ratios.begin(), ratios.end());
    return ratios[ratios.size() / 2];
}

std::string layoutText(const Measurement& measurement) {
    const Layout layout = Layout::of(measurement.nodeOfRank);
    std::string text;
    for (const auto& node : layout.nodes)
        text += (text.empty() ? "" : "+") + std::to_string(node.size());
    return text;
}

}  // namespace

Result<Measurement> measurementOf(std::string_view json) {
    constexpr std::string_view kWanted = "not a file of `isthmus bench --format json`: ";
    try {
        Measurement measurement = read(Json::parse(json));
        if (!measurement.rows.empty() && !measurement.nodeOfRank.empty()) return measurement;
        return Status::invalidArgument(std::string(kWanted) + "it holds no results");
    } catch (const std::exception& wrong) {  // of the parser, or of a field that is not there
        return Status::invalidArgument(std::string(kWanted) + wrong.what());
    }
}

Result<std::vector<Comparison>> compare(const Measurement& measurement, ExplainQuestion question) {
    question.layout = Layout::of(measurement.nodeOfRank);
    question.isMapped = measurement.isMapped;
    if (!measurement.algorithm.empty()) question.algorithm = measurement.algorithm;
    std::vector<Comparison> all;
    for (const MeasuredRow& row : measurement.rows) {
        const Result<DataType> type = benchType(row.type);
        if (!type.ok()) return type.status();
        question.type = *type;
        question.bytes = row.bytes;
        question.root = row.root;
        const Result<ExplainAnswer> answer = answerOf(question);
        if (!answer.ok()) return answer.status();
        const auto chosen = std::find_if(
            answer->candidates.begin(), answer->candidates.end(),
            [&](const auto& candidate) { return candidate.algorithm.name == answer->chosen; });
        if (chosen == answer->candidates.end())
            return Status::internal("the chosen algorithm is no candidate");
        all.push_back({row, answer->chosen, chosen->seconds, chosen->busiest});
    }
    return all;
}

std::string comparisonText(const Measurement& measurement, const std::vector<Comparison>& all) {
    std::string text = fmt::format("{} over {}, predicted and measured\n\n", measurement.collective,
                                   layoutText(measurement));
    text += fmt::format("{:>12}  {:<28} {:>14} {:>14} {:>7} {:>14} {:>14}\n", "bytes", "algorithm",
                        "predicted us", "measured us", "ratio", "bytes/card", "measured");
    for (const Comparison& one : all) {
        text += fmt::format("{:>12}  {:<28} {:>14.1f} {:>14.1f} {:>7.2f} {:>14} {:>14}\n",
                            one.measured.bytes, one.algorithm, one.predictedSeconds * 1e6,
                            one.measured.seconds * 1e6, one.ratio(), one.predictedWireBytes,
                            one.measured.wireBytes ? std::to_string(*one.measured.wireBytes) : "-");
    }
    return text + fmt::format("\nmedian of measured / predicted: {:.2f}\n", medianRatio(all));
}

std::string comparisonJson(const Measurement& measurement, const std::vector<Comparison>& all) {
    OrderedJson json = {{"collective", measurement.collective},
                        {"nodes", Layout::of(measurement.nodeOfRank).nodes},
                        {"mapped", measurement.isMapped},
                        {"median_ratio", medianRatio(all)},
                        {"sizes", OrderedJson::array()}};
    for (const Comparison& one : all) {
        OrderedJson row = {{"bytes", one.measured.bytes},
                           {"type", one.measured.type},
                           {"algorithm", one.algorithm},
                           {"predicted_us", one.predictedSeconds * 1e6},
                           {"measured_us", one.measured.seconds * 1e6},
                           {"ratio", one.ratio()},
                           {"predicted_wire_bytes", one.predictedWireBytes}};
        row["measured_wire_bytes"] =
            one.measured.wireBytes ? OrderedJson(*one.measured.wireBytes) : OrderedJson();
        json["sizes"].push_back(row);
    }
    return json.dump(2) + "\n";
}

}  // namespace isthmus::cli
