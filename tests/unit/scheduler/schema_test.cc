// The published schemas speak of what is written and read.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "scheduler/placement/placement.hpp"
#include "tests/unit/scheduler/brute_force.hpp"
#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

nlohmann::json schemaOf(const std::string& name) {
    std::ifstream file(std::string(ISTHMUS_SCHEMAS) + "/" + name);
    EXPECT_TRUE(file.good()) << name;
    return nlohmann::json::parse(file);
}

void expectKnown(const nlohmann::json& written, const nlohmann::json& schema) {
    for (const auto& [name, value] : written.items()) {
        EXPECT_TRUE(schema["properties"].contains(name)) << name;
    }
    for (const nlohmann::json& name : schema.value("required", nlohmann::json::array())) {
        EXPECT_TRUE(written.contains(name.get<std::string>())) << name;
    }
}

TEST(Schema, OfTopologies) {
    const nlohmann::json schema = schemaOf("topology.schema.json");
    const Cluster cluster = *without(*clusterOf("2x2x3"), "node1:0");
    const auto written = nlohmann::json::parse(toJson(cluster));
    expectKnown(written, schema);
    const nlohmann::json& node = schema["properties"]["nodes"]["items"];
    for (const nlohmann::json& each : written["nodes"]) {
        expectKnown(each, node);
        expectKnown(each["cards"][0], node["properties"]["cards"]["items"]);
    }
    expectKnown(written["nodes"][1]["devices"][0],
                node["properties"]["devices"]["oneOf"][1]["items"]);
    expectKnown(written["levels"][0], schema["properties"]["levels"]["items"]);
}

TEST(Schema, OfPlacements) {
    const nlohmann::json schema = schemaOf("placement.schema.json");
    const Cluster cluster = *clusterOf("2x2x2");
    const Degrees degrees = test::perAxis(2, 1, 1, 4, 1);
    const AxisBytes bytes = test::perAxis<std::int64_t>(9, 0, 0, 1, 0);
    const Result<Candidate> candidate = searchAt(cluster, degrees, bytes, nullptr, {});
    ASSERT_TRUE(candidate.ok());
    Placement placement = placementOf(cluster, *candidate, PerAxis<bool>(true));
    placement.orders = costsOfOrders(cluster, degrees, bytes);
    const Model model = gptModel(transformer(2, 64, 4, 100, 32));
    Job job;
    job.globalBatch = 4;
    const Result<ModelCut> cut = cutModel(model, job, degrees, "time");
    ASSERT_TRUE(cut.ok());
    const auto predicted = predict(model, job, degrees, *cut, cluster, candidate->nodeOfRank);
    ASSERT_TRUE(predicted.ok()) << predicted.status().what();
    placement.predicted = *predicted;
    SearchAnswer answer;
    const auto written = nlohmann::json::parse(toJson(placement, {*candidate}, &answer));
    expectKnown(written, schema);
    EXPECT_EQ(written.size() + 1, schema["properties"].size());  // "programs" is of compare
    for (const char* list : {"traffic", "levels", "orders", "alternatives", "stages", "ranks"}) {
        expectKnown(written[list][0], schema["properties"][list]["items"]);
    }
    expectKnown(written["predicted"], schema["properties"]["predicted"]);
    expectKnown(written["search"], schema["properties"]["search"]);
    expectKnown(written["degrees"], schema["$defs"]["axes"]);
}

}  // namespace
}  // namespace isthmus::scheduler
