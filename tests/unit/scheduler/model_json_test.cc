#include "scheduler/model/model_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "scheduler/model/job_json.hpp"
#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

using ::testing::HasSubstr;

TEST(ModelJson, FamiliesAreTheGeneratorsModels) {
    const std::string text = R"({"isthmus_model": 1, "name": "small", "generate": {"family": "gpt",
        "layers": 12, "hidden": 768, "heads": 12, "vocabulary": 50257, "sequence": 1024}})";
    Result<Model> model = modelFromJson(text, Job());
    ASSERT_TRUE(model.ok()) << model.status().what();
    EXPECT_EQ(model->parameters(), 124'439'808);
    EXPECT_EQ(model->name, "small");

    Job job;  // the job's sequence and precision win
    job.sequence = 512;
    job.precision = Precision::kFloat32;
    model = modelFromJson(text, job);
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model->sequence, 512);
    EXPECT_EQ(model->layers[1].boundaryBytes, 512 * 768 * 4);
}

TEST(ModelJson, WritesWhatItReads) {
    TransformerShape shape = transformer(3, 64, 4, 100, 16);
    shape.experts = 4;
    RecommenderShape tables;
    tables.tableRows = {10, 20};
    tables.bottom = {16};
    tables.top = {8, 1};
    for (const Model& model : {gptModel(transformer(3, 64, 4, 100, 16)), mixtureModel(shape),
                               recommenderModel(tables)}) {
        const Result<Model> back = modelFromJson(toJson(model), Job());
        ASSERT_TRUE(back.ok()) << back.status().what();
        EXPECT_EQ(*back, model);
    }
    Job job;
    job.globalBatch = 64;
    job.fixed[Axis::kPipe] = 4;
    job.order = PipelineOrder::kInterleaved;
    job.virtualStages = 3;
    job.recompute = Recompute::kSelective;
    job.objective = Objective::kStepTime;
    job.shard = 8;
    const Result<Job> back = jobFromJson(toJson(job));
    ASSERT_TRUE(back.ok()) << back.status().what();
    EXPECT_EQ(*back, job);
}

TEST(ModelJson, LayersMayBeRepeatedAndJoined) {
    const Result<Model> model = modelFromJson(R"({"isthmus_model": 1, "layers": [
        {"name": "a", "parameters": 7, "forward_flops": 5, "boundary_bytes": 3},
        {"name": "b", "repeat": 3, "parameters": 1},
        {"name": "c", "backward_flops": 0, "forward_flops": 4}],
        "edges": [["a", "b0"], ["a", "b2"], ["b2", "c"]]})",
                                              Job());
    ASSERT_TRUE(model.ok()) << model.status().what();
    EXPECT_EQ(model->parameters(), 10);
    EXPECT_EQ(model->layers[0].backwardFlops, 10);  // twice forward unless said
    EXPECT_EQ(model->layers[4].backwardFlops, 0);
    EXPECT_EQ(model->edges, (std::vector<Edge>{{0, 1}, {0, 3}, {3, 4}}));
}

TEST(ModelJson, RefusesWithAPathAndAReason) {
    const auto complaint = [](const std::string& text) {
        return modelFromJson(text, Job()).status().what();
    };
    EXPECT_THAT(complaint("[]"), HasSubstr("no object"));
    EXPECT_THAT(complaint("{"), HasSubstr("parse error"));
    EXPECT_THAT(complaint(R"({"isthmus_model": 2})"), HasSubstr("isthmus_model"));
    EXPECT_THAT(complaint(R"({"isthmus_model": 1})"), HasSubstr("layers: is missing"));
    const auto layer = [&](const std::string& body) {
        return complaint(R"({"isthmus_model": 1, "layers": [{"name": "a"}, {)" + body + "}]}");
    };
    EXPECT_THAT(layer(R"("name": "b", "parameters": -1)"), HasSubstr("layers[1].parameters"));
    EXPECT_THAT(layer(R"("name": "b", "parameters": 1.5)"), HasSubstr("layers[1].parameters"));
    EXPECT_THAT(layer(R"("name": "b", "paramters": 1)"), HasSubstr("layers[1]: unknown field"));
    EXPECT_THAT(layer(R"("name": "a")"), HasSubstr("layers[1].name is wrong: an earlier layer"));
    EXPECT_THAT(layer(R"("parameters": 1)"), HasSubstr("layers[1].name: is missing"));
    EXPECT_THAT(layer(R"("name": "b", "repeat": 1e9)"), HasSubstr("layers[1].repeat"));
    EXPECT_THAT(layer(R"("name": "b", "tied_to": "z", "tied_parameters": 1)"),
                HasSubstr("no earlier layer is named z"));
    EXPECT_THAT(complaint(R"({"isthmus_model": 1, "layers": [{"name": "a"}], "edges": [["a"]]})"),
                HasSubstr("edges[0]: is no pair"));
    EXPECT_THAT(
        complaint(R"({"isthmus_model": 1, "layers": [{"name": "a"}], "edges": [["a", "q"]]})"),
        HasSubstr("edges[0][1]: names no layer"));
    const auto family = [&](const std::string& body) {
        return complaint(R"({"isthmus_model": 1, "generate": {"family": )" + body + "}}");
    };
    EXPECT_THAT(family(R"("rnn")"), HasSubstr("generate.family: is none of gpt"));
    EXPECT_THAT(family(R"("gpt", "layers": 2, "hidden": 100, "heads": 3, "sequence": 8)"),
                HasSubstr("generate.heads: does not divide hidden"));
    EXPECT_THAT(family(R"("gpt", "layers": 2, "hidden": 64, "heads": 4, "sequence": 8, "x": 1)"),
                HasSubstr("generate: unknown field"));
    EXPECT_THAT(family(R"("mixture", "layers": 2, "hidden": 64, "heads": 4, "sequence": 8)"),
                HasSubstr("generate.experts"));
    EXPECT_THAT(family(R"("gpt", "layers": 9, "hidden": 16000000, "heads": 1, "sequence": 9000000,
                          "vocabulary": 16000000)"),
                HasSubstr("64 bits"));
    EXPECT_THAT(complaint(R"({"isthmus_model": 1, "layers": [], "generate": {"family": "gpt"}})"),
                HasSubstr("beside generate"));
}

TEST(JobJson, RefusesWithAPathAndAReason) {
    const auto complaint = [](const std::string& body) {
        return jobFromJson(R"({"isthmus_job": 1, "global_batch": 8)" + body + "}").status().what();
    };
    EXPECT_EQ(complaint(""), "");
    EXPECT_THAT(complaint(R"(, "micro_batch": 3)"), HasSubstr("does not divide global_batch 8"));
    EXPECT_THAT(complaint(R"(, "precision": "int4")"),
                HasSubstr("precision: is none of f32, bf16, f16"));
    EXPECT_THAT(complaint(R"(, "recompute": "some")"), HasSubstr("none, selective, full"));
    EXPECT_THAT(complaint(R"(, "degrees": {"tensr": 2})"), HasSubstr("degrees: unknown field"));
    EXPECT_THAT(complaint(R"(, "degrees": {"tensor": -2})"), HasSubstr("degrees.tensor"));
    EXPECT_THAT(complaint(R"(, "zero_stage": 4)"), HasSubstr("zero_stage"));
    EXPECT_THAT(complaint(R"(, "virtual_stages": 2)"), HasSubstr("interleaved"));
    EXPECT_THAT(jobFromJson(R"({"isthmus_job": 1})").status().what(),
                HasSubstr("global_batch: is missing"));
}

/// Whatever a file says: an answer or a refusal with words.
TEST(ModelJson, SpoiledDocumentsAreReadOrRefused) {
    RecommenderShape tables;
    tables.tableRows = {10, 20};
    tables.bottom = {16};
    const std::vector<std::string> good = {
        toJson(gptModel(transformer(2, 64, 4, 100, 16))), toJson(recommenderModel(tables)),
        R"({"isthmus_model": 1, "generate": {"family": "mixture", "layers": 2, "hidden": 64,
            "heads": 4, "sequence": 8, "experts": 4, "vocabulary": 10}})",
        toJson(Job())};
    const std::string pieces = "0123456789-.eE{}[]\",:truefalsnl ";
    std::mt19937 random(1);
    int refused = 0;
    for (int turn = 0; turn < 2000; ++turn) {
        std::string text = good[static_cast<std::size_t>(turn) % good.size()];
        for (int change = 0; change <= turn % 3; ++change) {
            text[random() % text.size()] = pieces[random() % pieces.size()];
        }
        const Result<Model> model = modelFromJson(text, Job());
        const Result<Job> job = jobFromJson(text);
        EXPECT_NE(model.ok(), !model.status().what().empty());
        EXPECT_NE(job.ok(), !job.status().what().empty());
        EXPECT_TRUE(!model.ok() || checkModel(*model).ok());
        refused += !model.ok() && !job.ok();
    }
    EXPECT_GT(refused, 500);
    EXPECT_LT(refused, 2000);
}

/// Every member that a schema names, and no other, is one that the reader knows.
TEST(ModelJson, SchemasNameWhatIsRead) {
    const auto schemaOf = [](const std::string& name) {
        std::ifstream file(std::string(ISTHMUS_SCHEMAS) + "/" + name);
        EXPECT_TRUE(file.good()) << name;
        return nlohmann::json::parse(file);
    };
    const nlohmann::json model = schemaOf("model.schema.json");
    const auto& layer = model["$defs"]["layer"]["properties"];
    for (const LayerNumber& number : kLayerNumbers) {
        EXPECT_TRUE(layer.contains(std::string(number.name))) << number.name;
    }
    EXPECT_EQ(layer.size(),
              std::size(kLayerNumbers) + 5);  // name, type, tied_to, checkpointed, repeat
    const auto written = nlohmann::json::parse(toJson(gptModel(transformer(2, 64, 4, 100, 16))));
    for (const auto& [name, value] : written.items()) {
        EXPECT_TRUE(model["properties"].contains(name)) << name;
    }
    const nlohmann::json job = schemaOf("job.schema.json");
    const auto allOfJob = nlohmann::json::parse(toJson(Job()));
    EXPECT_EQ(job["properties"].size(), allOfJob.size());
    for (const auto& [name, value] : allOfJob.items()) {
        EXPECT_TRUE(job["properties"].contains(name)) << name;
    }
}

}  // namespace
}  // namespace isthmus::scheduler
