#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "comm/plan/print.hpp"

namespace isthmus {
namespace {

using Json = nlohmann::ordered_json;

Json jsonOf(const Slice& slice) {
    Json list = Json::array();
    for (const Location& location : slice) {
        list.push_back(Json::array({location.rank, nameOf(location.buffer), location.chunk}));
    }
    return list;
}

Json jsonOf(const std::vector<ChunkName>& names) {
    Json list = Json::array();
    for (const ChunkName& name : names) list.push_back(Json::array({name.block, name.chunk}));
    return list;
}

Json jsonOf(const Step& step) {
    Json object = {{"verb", nameOf(step.verb)}};
    if (!step.target.empty()) object["target"] = jsonOf(step.target);
    if (!step.sources.empty()) {
        Json sources = Json::array();
        for (const Slice& source : step.sources) sources.push_back(jsonOf(source));
        object["sources"] = sources;
    }
    if (!step.peers.empty()) object["peers"] = step.peers;
    if (step.channel != 0) object["channel"] = step.channel;
    if (step.completes) object["completes"] = true;
    object["after"] = step.after;
    return object;
}

/// Draws the steps and what orders them; the n-th send (signal) meets the n-th recv (wait).
class Drawing {
public:
    std::string draw(const std::vector<Plan>& plans) {
        text_ << "digraph plan {\n  rankdir=TB;\n  node [shape=box, fontname=monospace];\n";
        for (const Plan& plan : plans) drawRank(plan);
        for (const auto& [lane, outs] : outs_) {
            const auto ins = ins_.find(lane);
            if (ins == ins_.end()) continue;
            const char* style = std::get<3>(lane) ? "dotted" : "bold";
            for (std::size_t i = 0; i < std::min(outs.size(), ins->second.size()); ++i) {
                text_ << "  " << outs[i] << " -> " << ins->second[i] << " [style=" << style
                      << "];\n";
            }
        }
        text_ << "}\n";
        return text_.str();
    }

private:
    using Lane = std::tuple<Rank, Rank, int, bool>;  // from, to, channel, is a signal

    void drawRank(const Plan& plan) {
        text_ << "  subgraph cluster_" << plan.me << " {\n    label=\"rank " << plan.me << "\";\n";
        for (std::size_t i = 0; i < plan.steps.size(); ++i) {
            text_ << "    " << nodeOf(plan, i) << " [label=\"" << i << " " << textOf(plan.steps[i])
                  << "\"];\n";
            note(plan, i);
        }
        text_ << "  }\n";
        for (std::size_t i = 0; i < plan.steps.size(); ++i) {
            for (const int before : plan.steps[i].after) {
                text_ << "  " << nodeOf(plan, static_cast<std::size_t>(before)) << " -> "
                      << nodeOf(plan, i) << ";\n";
            }
        }
    }

    static std::string nodeOf(const Plan& plan, std::size_t step) {
        std::ostringstream name;
        name << "r" << plan.me << "s" << step;
        return name.str();
    }

    void note(const Plan& plan, std::size_t index) {
        const Step& step = plan.steps[index];
        const bool isSync = step.verb == Verb::kSignal || step.verb == Verb::kWait;
        const bool isOut = step.verb == Verb::kSend || step.verb == Verb::kSignal;
        for (const Rank peer : step.peers) {
            if (isOut) {
                outs_[{plan.me, peer, step.channel, isSync}].push_back(nodeOf(plan, index));
            } else {
                ins_[{peer, plan.me, step.channel, isSync}].push_back(nodeOf(plan, index));
            }
        }
    }

    std::ostringstream text_;
    std::map<Lane, std::vector<std::string>> outs_;
    std::map<Lane, std::vector<std::string>> ins_;
};

}  // namespace

std::string dotOf(const std::vector<Plan>& plans) {
    return Drawing().draw(plans);
}

std::string jsonOf(const Plan& plan) {
    Json cuts = Json::array();
    for (const Fraction& cut : plan.chunking.cuts) {
        cuts.push_back(Json::array({cut.numerator, cut.denominator}));
    }
    Json steps = Json::array();
    for (const Step& step : plan.steps) steps.push_back(jsonOf(step));
    const Json object = {{"collective", nameOf(plan.collective)},
                         {"algorithm", plan.algorithm},
                         {"rank", plan.me},
                         {"ranks", plan.ranks},
                         {"root", plan.root},
                         {"mapping", nameOf(plan.mapping)},
                         {"in_place_safe", plan.inPlaceSafe},
                         {"cuts", cuts},
                         {"scratch", jsonOf(plan.scratch)},
                         {"shared", jsonOf(plan.shared)},
                         {"steps", steps}};
    return object.dump();
}

}  // namespace isthmus
