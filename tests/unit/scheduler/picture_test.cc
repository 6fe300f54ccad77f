#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scheduler/picture/node_matrix.hpp"
#include "scheduler/picture/page.hpp"
#include "scheduler/picture/svg.hpp"
#include "scheduler/placement/shape.hpp"
#include "scheduler/prediction/step_run.hpp"
#include "tests/unit/scheduler/brute_force.hpp"
#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Placement placed(const std::string& nodes, const Degrees& degrees, const Model& model,
                 std::int64_t globalBatch) {
    ModelQuestion question;
    question.cluster = *clusterOf(nodes, 1e10);
    question.model = model;
    question.job.globalBatch = globalBatch;
    question.wanted = degrees;
    const Result<ModelAnswer> answer = searchModel(question, {});
    EXPECT_TRUE(answer.ok()) << answer.status().what();
    Placement placement =
        placementOf(question.cluster, answer->search.best[0], PerAxis<bool>(true));
    placement.predicted = answer->predictions[0];
    return placement;
}

std::size_t countOf(const std::string& text, const std::string& what) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
    return count;
}

// What leaves a node for others is what leaves it.
TEST(NodeMatrix, RowsAreWhatNodesSend) {
    const Degrees degrees = test::perAxis(2, 2, 3, 2, 2);
    const AxisBytes bytes = test::perAxis<std::int64_t>(70, 11, 26, 5, 100);
    const Shape shape(degrees);
    std::vector<int> nodes;
    for (int rank = 0; rank < 48; ++rank) nodes.push_back(rank * 7 % 48 / 13);
    const std::vector<AxisBytes> sent = bytesOfNodes(shape, bytes, nodes, 4);
    const std::vector<double> matrix = nodeMatrix(shape, bytes, nodes, 4);
    for (std::size_t from = 0; from < 4; ++from) {
        std::int64_t expected = 0;
        for (const Axis axis : kAxes) expected += sent[from][axis];
        double row = 0;
        double column = 0;
        for (std::size_t to = 0; to < 4; ++to) {
            row += matrix[from * 4 + to];
            column += matrix[to * 4 + from];
        }
        EXPECT_DOUBLE_EQ(row, static_cast<double>(expected));
        EXPECT_DOUBLE_EQ(column, row);
        EXPECT_EQ(matrix[from * 5], 0);
    }
}

TEST(Page, NeedsNothingElseAndEscapesNames) {
    Placement placement = placed("2x4", ways(2, 2, 2), gptModel(transformer(4, 64, 4, 100, 32)), 8);
    placement.cluster.nodes[0].name = "<script>alert(\"1\")</script>";
    const std::string page = pageOf(placement);
    EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&quot;1&quot;)"));
    for (const char* outside : {"<script", "http:", "https:", "src=", "url(", "@import", "<link"}) {
        EXPECT_THAT(page, Not(HasSubstr(outside)));
    }
    // Eight devices of three bands each, two matrices of two by two, and a pipeline.
    EXPECT_EQ(countOf(page, " of group "), 8U * 3);
    EXPECT_EQ(countOf(page, " to node1: "), 2U * 2);
    EXPECT_EQ(countOf(page, ">forward of micro-batch "), 4U * 2);
    EXPECT_EQ(countOf(page, ">optimizer: "), 2U);
    placement.predicted.reset();
    EXPECT_THAT(pageOf(placement), Not(HasSubstr("The pipeline")));
}

TEST(Page, LeavesOutWhatIsTooMuch) {
    const Degrees degrees = test::perAxis(8, 1, 1, 512, 1);
    const Cluster cluster = *clusterOf("512x8");
    const AxisBytes bytes = test::perAxis<std::int64_t>(100, 0, 0, 10, 0);
    const Result<Candidate> candidate = searchAt(cluster, degrees, bytes, nullptr, {});
    ASSERT_TRUE(candidate.ok());
    const std::string page = pageOf(placementOf(cluster, *candidate, PerAxis<bool>(true)));
    EXPECT_THAT(page, HasSubstr("384 nodes more are not drawn"));
    EXPECT_LT(page.size(), 3U << 20);
}

// The trace's end is the predicted step's.
TEST(StepTrace, HasEveryPassMessageAndSum) {
    const Placement placement =
        placed("4x2", ways(2, 4, 1), gptModel(transformer(8, 256, 4, 1000, 64)), 6);
    const Result<std::string> trace =
        stepTrace(*placement.predicted, placement.cluster, placement.nodeOfRank());
    ASSERT_TRUE(trace.ok()) << trace.status().what();
    const auto document = nlohmann::json::parse(*trace);
    std::map<std::string, int> kinds;
    double end = 0;
    for (const auto& event : document["traceEvents"]) {
        if (event["ph"] != "X") continue;
        ++kinds[event["cat"]];
        EXPECT_GE(event["dur"], 0);
        end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
    }
    EXPECT_EQ(kinds["forward"], 4 * 6);
    EXPECT_EQ(kinds["backward"], 4 * 6);
    EXPECT_EQ(kinds["message"], 3 * 6 * 2);
    // Tensor groups in each pass; the embedding is shared by the first and last stage; 4
    // optimizers.
    EXPECT_EQ(kinds["collective"], 4 * 6 * 2 + 2 + 4);
    EXPECT_NEAR(end, 1e6 * placement.predicted->step.seconds, 1e-3);
    EXPECT_THAT(*trace, HasSubstr("stage 3: "));
}

TEST(Svg, NumbersAreShort) {
    EXPECT_EQ(numberText(1.5), "1.5");
    EXPECT_EQ(numberText(-0.001), "0");
    EXPECT_EQ(numberText(100), "100");
    EXPECT_EQ(bytesText(8'053'063'680.0), "8.05 GB");
    EXPECT_EQ(bytesText(999), "999 B");
    EXPECT_EQ(secondsText(0.0032), "3.2 ms");
    EXPECT_EQ(secondsText(0), "0 s");
}

}  // namespace
}  // namespace isthmus::scheduler
