#include "scheduler/cut/model_cut.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "scheduler/cut/megatron_layout.hpp"
#include "scheduler/memory/stage_memory.hpp"
#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Job jobWith(std::int64_t globalBatch, int virtualStages = 1) {
    Job job;
    job.globalBatch = globalBatch;
    job.virtualStages = virtualStages;
    if (virtualStages > 1) job.order = PipelineOrder::kInterleaved;
    return job;
}

ModelCut cutBy(const std::string& method, const Model& model, int pipe, const Job& job,
               const StageDevices& devices = {}) {
    const Result<ModelCut> cut = cutModel(model, job, ways(1, pipe, 1), method, devices);
    EXPECT_TRUE(cut.ok()) << method << ": " << cut.status().what();
    return cut.ok() ? *cut : ModelCut();
}

std::vector<int> layersByChunk(const StageCut& cut) {
    std::vector<int> layers;
    for (int chunk = 0; chunk < cut.chunks; ++chunk) {
        layers.push_back(static_cast<int>(cut.layersOfChunk(chunk).size()));
    }
    return layers;
}

// Megatron-LM #1304: 30 layers on 4 stages; two were dropped in silence.
TEST(ModelCut, ThirtyLayersOnFourStagesLoseNone) {
    const Model model = gptModel(transformer(30, 64, 4, 0, 32));
    for (const char* method : {"uniform", "time", "parameters", "type:transformer", "memory"}) {
        const StageCut cut = cutBy(method, model, 4, jobWith(8)).cut;
        EXPECT_EQ(cut.chunkOf.size(), 30u) << method;
        const std::vector<int> layers = layersByChunk(cut);
        EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 30) << method;
    }
    EXPECT_THAT(layersByChunk(cutBy("uniform", model, 4, jobWith(8)).cut), ElementsAre(8, 8, 7, 7));
    EXPECT_EQ(cutBy("time", model, 4, jobWith(8)).slowest,
              8 * operationsOf(model.layers[0], jobWith(8)));
}

// Megatron-LM #1303: 40 layers on 16 stages are twos and threes.
TEST(ModelCut, FortyLayersOnSixteenStagesAreTwosAndThrees) {
    const Model model = gptModel(transformer(40, 64, 4, 0, 32));
    for (const char* method : {"uniform", "time", "parameters"}) {
        std::vector<int> layers = layersByChunk(cutBy(method, model, 16, jobWith(16)).cut);
        EXPECT_LE(*std::max_element(layers.begin(), layers.end()), 3) << method;
        EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 40) << method;
    }
    std::vector<int> layers = layersByChunk(cutBy("uniform", model, 16, jobWith(16)).cut);
    EXPECT_EQ(std::count(layers.begin(), layers.end(), 3), 8);
    EXPECT_EQ(std::count(layers.begin(), layers.end(), 2), 8);
}

// DeepSpeed #1378: with layers dealt evenly the embedding and the head make the first and the last
// stage a quarter fuller. Weighed, they get fewer layers, and no stage is that full.
TEST(ModelCut, EmbeddingAndHeadWeighOnMemory) {
    Job job = jobWith(8);
    job.recompute = Recompute::kFull;
    Model model = gptModel(transformer(24, 512, 8, 50257, 256));
    const auto fullest = [&](const StageCut& cut) {
        const Result<std::vector<StageMemory>> stages = memoryOf(model, job, ways(1, 3, 1), cut);
        EXPECT_TRUE(stages.ok());
        std::vector<std::int64_t> bytes;
        for (const StageMemory& stage : *stages) bytes.push_back(stage.state() + stage.activations);
        return bytes;
    };
    const std::vector<std::int64_t> even = fullest(cutBy("type:transformer", model, 3, job).cut);
    EXPECT_GT(even[0], even[1] * 5 / 4);
    EXPECT_GT(even[2], even[1] * 5 / 4);
    const ModelCut weighed = cutBy("memory", model, 3, job);
    const std::vector<std::int64_t> bytes = fullest(weighed.cut);
    const std::int64_t most = *std::max_element(bytes.begin(), bytes.end());
    EXPECT_LT(most, *std::max_element(even.begin(), even.end()));
    EXPECT_GT(weighed.cut.layersOfStage(1).size(), weighed.cut.layersOfStage(0).size());
    EXPECT_TRUE(weighed.isExact);
    EXPECT_EQ(static_cast<std::int64_t>(weighed.slowest), most);
    // Every cut, tried: none is emptier.
    for (int second = 1; second < 25; ++second) {
        for (int third = second + 1; third < 26; ++third) {
            const std::vector<std::int64_t> other =
                fullest(contiguousCut(3, 26, {0, second, third}));
            EXPECT_GE(*std::max_element(other.begin(), other.end()), most);
        }
    }
}

// Megatron-LM #1757, exo #957: devices of two speeds get layers by what they were measured to do,
// not by their memory.
TEST(ModelCut, SpeedDecidesNotCapacity) {
    const Model model = gptModel(transformer(32, 64, 4, 0, 32));
    StageDevices devices;
    devices.speed = {3e12, 1e12};
    devices.memoryBytes = {std::int64_t{1} << 32, std::int64_t{1} << 34};
    EXPECT_THAT(layersByChunk(cutBy("time", model, 2, jobWith(8), devices).cut),
                ElementsAre(24, 8));
    // Unless the fast one cannot hold them.
    const std::int64_t layer = 18 * (12 * 64 * 64 + 13 * 64) + 2 * (32 * 64 * 34 + 5 * 4 * 32 * 32);
    devices.memoryBytes[0] = 20 * layer + 4 * 32 * 64 * 2;  // and the messages on their way
    EXPECT_THAT(layersByChunk(cutBy("time", model, 2, jobWith(8), devices).cut),
                ElementsAre(20, 12));
    devices.memoryBytes = {layer, layer};
    const Result<ModelCut> none = cutModel(model, jobWith(8), ways(1, 2, 1), "time", devices);
    EXPECT_EQ(none.status().code(), Status::Code::kResource);
    EXPECT_THAT(none.status().what(), HasSubstr("stage 0 is over its capacity"));
}

TEST(ModelCut, HandMadeAndCountedCuts) {
    const Model model = gptModel(transformer(6, 64, 4, 1000, 32));  // 8 with embedding and head
    const auto chunks = [&](const std::string& method) {
        return layersByChunk(cutBy(method, model, 3, jobWith(8)).cut);
    };
    EXPECT_THAT(chunks("manual:0,2,7"), ElementsAre(2, 5, 1));
    EXPECT_THAT(chunks("manual:2,7"), ElementsAre(2, 5, 1));
    EXPECT_THAT(chunks("manual:8:0,2,7,8"), ElementsAre(2, 5, 1));
    EXPECT_THAT(chunks("uniform"), ElementsAre(3, 3, 2));
    const StageCut typed = cutBy("type:TRANSF", model, 3, jobWith(8)).cut;
    for (int stage = 0; stage < 3; ++stage) {
        int transformers = 0;
        for (const int layer : typed.layersOfStage(stage)) {
            transformers += model.layers[static_cast<std::size_t>(layer)].type == "transformer";
        }
        EXPECT_EQ(transformers, 2);
    }
    const auto complaint = [&](const std::string& method) {
        return cutModel(model, jobWith(8), ways(1, 3, 1), method).status().what();
    };
    EXPECT_THAT(complaint("manual:9:0,2,7"), HasSubstr("meant for 9 layers, the model has 8"));
    EXPECT_THAT(complaint("manual:0,2"), HasSubstr("2 chunks, the pipeline has 3"));
    EXPECT_THAT(complaint("manual:0,7,2"), HasSubstr("2 does not follow 7"));
    EXPECT_THAT(complaint("manual:0,2,x"), HasSubstr("\"x\" is no number"));
    EXPECT_THAT(complaint("manual:"), HasSubstr("no number"));
    EXPECT_THAT(complaint("type:("), HasSubstr("no expression"));
    EXPECT_THAT(complaint("type:conv"), HasSubstr("found in no layer"));
    EXPECT_THAT(complaint("best"), HasSubstr("none of time, alpa"));
}

TEST(ModelCut, InterleavedChunksEvenTheirStages) {
    // 34 items on 4 stages x 2: the head is dear. No stage is above what the bound or one layer
    // asks.
    const Model model = gptModel(transformer(32, 256, 4, 8000, 64));
    const Job job = jobWith(16, 2);
    const ModelCut cut = cutBy("time", model, 4, job);
    EXPECT_EQ(cut.cut.chunks, 8);
    EXPECT_TRUE(checkCut(model, cut.cut).ok());
    double all = 0;
    double dearest = 0;
    for (const Layer& layer : model.layers) {
        all += operationsOf(layer, job);
        dearest = std::max(dearest, operationsOf(layer, job));
    }
    EXPECT_GE(cut.slowest, all / 4);
    EXPECT_LE(cut.slowest, all / 4 + dearest);
    const Model equal = gptModel(transformer(32, 64, 4, 0, 32));
    EXPECT_TRUE(cutBy("time", equal, 4, job).isExact);
    EXPECT_THAT(layersByChunk(cutBy("time", equal, 4, job).cut),
                ElementsAre(4, 4, 4, 4, 4, 4, 4, 4));
}

TEST(ModelCut, DagsAndTrees) {
    RecommenderShape shape;
    shape.tableRows = {1000, 2000, 3000};
    shape.bottom = {64, 16};
    shape.top = {64, 1};
    const ModelCut dag = cutBy("time", recommenderModel(shape), 2, jobWith(8));
    EXPECT_TRUE(dag.isExact);
    EXPECT_THAT(dag.how, HasSubstr("down-sets"));
    const ModelCut tree = cutBy("tree", gptModel(transformer(8, 64, 4, 0, 32)), 4, jobWith(8));
    EXPECT_THAT(layersByChunk(tree.cut), ElementsAre(2, 2, 2, 2));
}

TEST(Layout, IsMegatronsString) {
    // Its own documentation's example: "Et*3|(tt|)*29,m|L".
    Model model = gptModel(transformer(61, 64, 4, 100, 32));
    Layer prediction;
    prediction.name = "prediction";
    prediction.type = "prediction";
    model.layers.insert(model.layers.end() - 1, prediction);
    std::vector<int> firsts = {0};
    for (int stage = 0; stage < 30; ++stage) firsts.push_back(4 + 2 * stage);
    firsts.push_back(63);
    const Result<std::string> text = megatronLayout(model, contiguousCut(32, 64, firsts));
    ASSERT_TRUE(text.ok()) << text.status().what();
    EXPECT_EQ(*text, "Ettt|(tt|)*29m|L");
    const Model plain = gptModel(transformer(24, 64, 4, 100, 32));
    EXPECT_EQ(*megatronLayout(plain, contiguousCut(4, 26, {0, 6, 13, 20})), "Et*5|(t*7|)*2t*5L");
    EXPECT_EQ(*megatronLayout(gptModel(transformer(4, 64, 4, 0, 32)), evenCut(2, 2, 4)), "(t|)*3t");
    RecommenderShape tables;
    tables.tableRows = {10};
    tables.top = {1};
    EXPECT_FALSE(megatronLayout(recommenderModel(tables), evenCut(1, 1, 3)).ok());
}

}  // namespace
}  // namespace isthmus::scheduler
