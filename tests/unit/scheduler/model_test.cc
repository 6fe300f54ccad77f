#include "scheduler/model/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/model/job.hpp"
#include "scheduler/model/stage_cut.hpp"
#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Model, GptHasThePublishedFormulasParameters) {
    for (const PublishedModel& published : kPublished) {
        const TransformerShape shape = shapeOf(published);
        const double h = static_cast<double>(shape.hidden);
        const double layers = shape.layers;
        const double formula =
            12 * layers * h * h * (1 + 13 / (12 * h) + (51200 + 2048) / (12 * layers * h));
        const auto ours = static_cast<double>(gptModel(shape).parameters());
        EXPECT_NEAR(ours, formula, 0.05e9) << published.name;
        EXPECT_NEAR(ours, formula, 2 * h + formula * 1e-12) << published.name;  // the last norm
    }
}

TEST(Model, FamiliesHaveTheParametersOfWellKnownCheckpoints) {
    EXPECT_EQ(gptModel(transformer(12, 768, 12, 50257, 1024)).parameters(), 124'439'808);
    EXPECT_EQ(gptModel(transformer(48, 1600, 25, 50257, 1024)).parameters(), 1'557'611'200);

    TransformerShape llama = transformer(32, 4096, 32, 32000, 4096);
    llama.feedForward = 11008;
    EXPECT_EQ(llamaModel(llama).parameters(), 6'738'415'616);  // Llama 2 7B
    llama = transformer(32, 4096, 32, 128256, 8192);
    llama.feedForward = 14336;
    llama.keyValueHeads = 8;
    EXPECT_EQ(llamaModel(llama).parameters(), 8'030'261'248);  // Llama 3 8B

    TransformerShape mixture = transformer(32, 4096, 32, 32000, 4096);
    mixture.feedForward = 14336;
    mixture.keyValueHeads = 8;
    mixture.experts = 8;
    const Model mixtral = mixtureModel(mixture);
    EXPECT_EQ(mixtral.parameters(), 46'702'792'704);  // Mixtral 8x7B
    EXPECT_NEAR(static_cast<double>(mixtral.activeParameters()), 12.9e9, 0.05e9);

    TransformerShape bert = transformer(12, 768, 12, 30522, 512);
    bert.tokenTypes = 2;
    EXPECT_EQ(bertModel(bert).parameters(), 109'482'240);  // bert-base-uncased
    bert = transformer(24, 1024, 16, 50265, 512);
    bert.positions = 514;
    bert.tokenTypes = 1;
    EXPECT_EQ(bertModel(bert).parameters(), 355'359'744);  // roberta-large
}

// arXiv 2205.05198, appendix A: 72 B L s h^2 (1 + s/6h + V/12hL) operations of a step.
TEST(Model, GptHasThePublishedFormulasOperations) {
    for (const PublishedModel& published : kPublished) {
        const Model model = gptModel(shapeOf(published));
        std::int64_t ours = 0;
        for (const Layer& layer : model.layers) ours += layer.forwardFlops + layer.backwardFlops;
        const double h = static_cast<double>(published.hidden);
        const double layers = published.layers;
        const double formula =
            72 * layers * 2048 * h * h * (1 + 2048 / (6 * h) + 51200 / (12 * h * layers));
        EXPECT_NEAR(static_cast<double>(ours), formula, formula * 1e-12) << published.name;
    }
}

// The cardinalities of the Criteo Kaggle data, as DLRM's reference runs them with dimension 16.
TEST(Model, RecommenderIsItsTables) {
    RecommenderShape shape;
    shape.tableRows = {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
                       93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
                       2173,  4,    7046547,  18,      15,  286181, 105,     142572};
    shape.bottom = {512, 256, 64, 16};
    shape.top = {512, 256, 1};
    const Model model = recommenderModel(shape);
    const std::int64_t bottom = 14 * 512 + 513 * 256 + 257 * 64 + 65 * 16;
    const std::int64_t top = (27 * 26 / 2 + 16 + 1) * 512 + 513 * 256 + 257;
    EXPECT_EQ(model.parameters(), 33'762'577 * std::int64_t{16} + bottom + top);
    EXPECT_TRUE(checkModel(model).ok());
    EXPECT_EQ(model.edges.size(), 3u + 27u + 3u);
}

TEST(Model, SaysWhatIsWrongAndWhere) {
    const Model good = gptModel(transformer(2, 64, 4, 100, 16));
    ASSERT_TRUE(checkModel(good).ok()) << checkModel(good).what();
    const auto complaint = [&](auto change) {
        Model model = good;
        change(model);
        return checkModel(model).what();
    };
    EXPECT_THAT(complaint([](Model& m) { m.layers.clear(); }), HasSubstr("layers"));
    EXPECT_THAT(complaint([](Model& m) { m.layers[1].forwardFlops = -1; }),
                HasSubstr("layers[1].forward_flops is wrong: it is negative"));
    EXPECT_THAT(complaint([](Model& m) { m.layers[2].name = m.layers[1].name; }),
                HasSubstr("layers[2].name"));
    EXPECT_THAT(complaint([](Model& m) { m.layers[3].tiedTo = "nobody"; }),
                HasSubstr("no earlier layer is named nobody"));
    EXPECT_THAT(complaint([](Model& m) { m.layers[3].tiedParameters = 1 << 20; }),
                HasSubstr("that layer has fewer"));
    EXPECT_THAT(complaint([](Model& m) {
                    m.edges = {{2, 1}};
                }),
                HasSubstr("layer 2 does not come before layer 1"));
    EXPECT_THAT(complaint([](Model& m) { m.edges = {{0, 9}}; }), HasSubstr("layers 0 to 3"));
    EXPECT_THAT(complaint([](Model& m) {
                    m.layers[0].boundaryBytes = m.layers[1].boundaryBytes = std::int64_t{1} << 61;
                }),
                HasSubstr("more than 2^62"));
    EXPECT_THAT(complaint([](Model& m) { m.layers[1].experts = 3; }), HasSubstr("go together"));
}

TEST(Model, BytesOfOtherPrecisionsAreRoundedUpAndNeverWrap) {
    Model model;
    EXPECT_EQ(scaledBytes(model, 10, 2), 10);
    EXPECT_EQ(scaledBytes(model, 10, 4), 20);
    EXPECT_EQ(scaledBytes(model, 5, 1), 3);
    EXPECT_EQ(scaledBytes(model, kMostBytes - 1, 8), kMostBytes);
    EXPECT_EQ(productOrMost(std::int64_t{1} << 32, std::int64_t{1} << 31), kMostBytes);
    EXPECT_EQ(productOrMost(3, 5), 15);
}

TEST(Job, SaysWhichNumberDoesNotDivide) {
    TransformerShape shape = transformer(8, 64, 6, 100, 16);
    shape.experts = 4;
    const Model model = mixtureModel(shape);
    Job job;
    job.globalBatch = 24;
    job.microBatch = 2;
    const auto complaint = [&](const Degrees& degrees) {
        return checkDegrees(model, job, degrees).what();
    };
    EXPECT_EQ(complaint(ways(2, 2, 3, 4, 4)), "");
    EXPECT_THAT(complaint(ways(4, 1, 1)), HasSubstr("heads 6 does not divide by tensor 4"));
    EXPECT_THAT(complaint(ways(1, 1, 5)),
                HasSubstr("global_batch / micro_batch 12 does not divide by data 5"));
    EXPECT_THAT(complaint(ways(1, 1, 1, 3)), HasSubstr("sequence 16 does not divide by context 3"));
    EXPECT_THAT(complaint(ways(1, 1, 1, 1, 3)), HasSubstr("4 does not divide by expert 3"));
    EXPECT_THAT(complaint(ways(1, 16, 1)), HasSubstr("layers 10 are fewer than the 16 chunks"));
    EXPECT_THAT(complaint(ways(1 << 13, 1 << 13, 1)), HasSubstr("2^24"));
    EXPECT_THAT(complaint(ways(0, 1, 1)), HasSubstr("tensor is wrong"));
    job.shard = 4;
    EXPECT_THAT(complaint(ways(1, 1, 6)), HasSubstr("data x expert 6 does not divide by shard 4"));
    job.contextMethod = ContextMethod::kAllToAll;
    EXPECT_THAT(complaint(ways(2, 1, 1, 2)),
                HasSubstr("heads 6 does not divide by tensor x context 4"));
}

// Zero redundancy's own table (arXiv 1910.02054, section 3): 12 bytes of Adam beside 2 + 2.
TEST(Job, BytesOfTheOptimizerFollowItsPrecision) {
    Job job;
    EXPECT_EQ(optimizerBytesPerParameter(job), 12);
    job.masterWeights = false;
    EXPECT_EQ(optimizerBytesPerParameter(job), 8);
    job.optimizerPrecision = Precision::kBfloat16;
    EXPECT_EQ(optimizerBytesPerParameter(job), 4);
    job.optimizerPrecision = Precision::kFloat32;
    job.masterWeights = true;
    job.precision = Precision::kFloat32;
    EXPECT_EQ(optimizerBytesPerParameter(job), 8);
    job.optimizer = Optimizer::kSgd;
    EXPECT_EQ(optimizerBytesPerParameter(job), 0);
}

TEST(StageCut, DealsLayersEvenlyAndCountsWhatCrosses) {
    const StageCut cut = evenCut(2, 2, 10);
    EXPECT_THAT(cut.chunkOf, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 3, 3));
    EXPECT_THAT(cut.layersOfStage(1), ElementsAre(3, 4, 5, 8, 9));

    // 0 -> 1 -> 3 and 0 -> 2 -> 3 with a skip 0 -> 3: what layer 0 made crosses each cut once.
    Model model;
    for (int layer = 0; layer < 4; ++layer) {
        Layer one;
        one.name = std::to_string(layer);
        one.boundaryBytes = std::int64_t{1} << (4 * layer);
        model.layers.push_back(one);
    }
    model.edges = {{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}};
    EXPECT_THAT(boundaryBytes(model, evenCut(4, 1, 4)), ElementsAre(0x1, 0x11, 0x111, 0));
    EXPECT_TRUE(checkCut(model, evenCut(4, 1, 4)).ok());
    EXPECT_THAT(checkCut(model, {2, 2, {0, 1, 0, 0}}).what(), HasSubstr("before its input 1"));
    EXPECT_THAT(checkCut(model, {2, 2, {0, 0, 0, 0}}).what(), HasSubstr("chunk 1 has no layer"));
}

}  // namespace
}  // namespace isthmus::scheduler
