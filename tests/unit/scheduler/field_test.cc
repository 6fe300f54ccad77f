#include "scheduler/json/field.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace isthmus::scheduler {
namespace {

/// What reading `nodes[1].devices` of the document as 1 to 8 says.
std::string refusal(const char* document) {
    const Result<nlohmann::json> json = parseJson(document);
    EXPECT_TRUE(json.ok());
    Field::Reading reading;
    const Field root(*json, reading);
    for (const Field& node : root["nodes"].elements()) {
        node.hasOnly({"name", "devices"});
        node["name"].text("");
        node["devices"].integer(1, 8);
    }
    return reading.failure.what();
}

TEST(Field, NamesThePathOfTheFirstThingThatIsWrong) {
    EXPECT_EQ(refusal(R"({"nodes": [{"devices": 1}, {"name": "a", "devices": 8}]})"), "");
    EXPECT_EQ(refusal(R"({"nodes": [{"devices": 1}, {"devices": 9}, {"devices": 0}]})"),
              "nodes[1].devices: is no whole number of 1 to 8");
    EXPECT_EQ(refusal(R"({"nodes": [{"devices": 1.5}]})"),
              "nodes[0].devices: is no whole number of 1 to 8");
    EXPECT_EQ(refusal(R"({"nodes": [{"devices": 18446744073709551615}]})"),
              "nodes[0].devices: is no whole number of 1 to 8");
    EXPECT_EQ(refusal(R"({"nodes": [{}]})"), "nodes[0].devices: is missing");
    EXPECT_EQ(refusal(R"({"nodes": [{"device": 1}]})"),
              "nodes[0]: unknown field \"device\"; known: name, devices");
    EXPECT_EQ(refusal(R"({"nodes": [3]})"), "nodes[0]: is no object");
    EXPECT_EQ(refusal(R"({"nodes": 3})"), "nodes: is no list");
    EXPECT_EQ(refusal(R"({"nodes": [{"devices": 1, "name": 2}]})"), "nodes[0].name: is no text");
}

TEST(Field, TextThatIsNoJsonIsRefused) {
    EXPECT_FALSE(parseJson("{\"nodes\": [").ok());
    EXPECT_EQ(textOfFile("/").status().what(), "cannot read /: is not a plain file");
    EXPECT_FALSE(textOfFile("/nonexistent/topology.json").ok());
}

}  // namespace
}  // namespace isthmus::scheduler
