#include "comm/selector/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace isthmus {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();
const Layout kTwoByTwo = Layout::of({0, 0, 1, 1});

AlgorithmRule ruleOf(const std::string& text) {
    const auto rules = readAlgorithmRules(text);
    EXPECT_TRUE(rules.ok()) << rules.status().what();
    EXPECT_EQ(rules->size(), 1U);
    return rules->front();
}

std::string errorOf(const std::string& value) {
    const auto rules = readAlgorithmRules(value);
    EXPECT_FALSE(rules.ok()) << value;
    EXPECT_EQ(rules.status().code(), Status::Code::kConfiguration);
    return rules.status().what();
}

TEST(AlgorithmRules, SayCallsLayoutAndSizes) {
    const AlgorithmRule all = ruleOf("ring");
    EXPECT_FALSE(all.collective.has_value());
    const AlgorithmRule rule = ruleOf("allreduce@2+2:64K-1M=two_level_ring");
    EXPECT_EQ(rule.collective, Collective::kAllReduce);
    EXPECT_EQ(rule.nodes, (std::vector<int>{2, 2}));
    EXPECT_EQ(rule.leastBytes, 65536U);
    EXPECT_EQ(rule.mostBytes, 1048576U);
    EXPECT_EQ(rule.algorithm, "two_level_ring");
    EXPECT_EQ(ruleOf("all_reduce:1M-=ring").mostBytes, kNoEnd);
    EXPECT_EQ(ruleOf("all_reduce:-4K=ring").leastBytes, 0U);
}

TEST(AlgorithmRules, HoldAtBothEndsOfARangeAndNotBeyond) {
    const AlgorithmRule rule = ruleOf("all_reduce@2+2:8-16=ring");
    const auto holds = [&](std::uint64_t bytes, Collective collective = Collective::kAllReduce) {
        return rule.isFor(collective, bytes, kTwoByTwo);
    };
    EXPECT_FALSE(holds(7));
    EXPECT_TRUE(holds(8));
    EXPECT_TRUE(holds(16));
    EXPECT_FALSE(holds(17));
    EXPECT_FALSE(holds(8, Collective::kAllGather));
    EXPECT_FALSE(rule.isFor(Collective::kAllReduce, 8, Layout::of({0, 0, 0, 1})));
}

TEST(AlgorithmRules, AreWrittenAsTheyAreRead) {
    const std::string line =
        "bruck,all_reduce=ring,all_gather@3+2+1=ring,broadcast:8-=binomial,reduce@1+1:0-4096=chain";
    const auto rules = readAlgorithmRules(line);
    ASSERT_TRUE(rules.ok()) << rules.status().what();
    EXPECT_EQ(textOf(*rules), line);
    EXPECT_EQ(*readAlgorithmRules(textOf(*rules)), *rules);
    EXPECT_TRUE(readAlgorithmRules("")->empty());
}

TEST(AlgorithmRules, NameWhatIsWrong) {
    EXPECT_THAT(errorOf("all_reduce=rong"), HasSubstr("two_level_ring"));
    EXPECT_THAT(errorOf("rong"), HasSubstr("bruck"));
    EXPECT_THAT(errorOf("al_reduce=ring"), HasSubstr("reduce_scatter"));
    EXPECT_THAT(errorOf("all_reduce:64K=ring"), HasSubstr(":64K-1M"));
    EXPECT_THAT(errorOf("all_reduce:2-1=ring"), HasSubstr("ends before it begins"));
    EXPECT_THAT(errorOf("all_reduce:x-1=ring"), HasSubstr("x"));
    EXPECT_THAT(errorOf("all_reduce@2x2=ring"), HasSubstr("@2+2"));
    EXPECT_THAT(errorOf("all_reduce@0+2=ring"), HasSubstr("@2+2"));
}

class RulesFile : public testing::Test {
protected:
    void SetUp() override {
        char pattern[] = "/tmp/isthmus-rules-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string write(const std::string& text) const {
        std::ofstream(folder_ + "/rules.json") << text;
        return folder_ + "/rules.json";
    }
    std::string folder_;
};

TEST_F(RulesFile, SaysTheSameAsALine) {
    const std::string path = write(R"({"isthmus_algorithms": 1, "made_by": "hand", "rules": [
        {"collective": "all_reduce", "nodes": [2, 2], "min_bytes": 9, "max_bytes": 64,
         "algorithm": "ring"},
        {"collective": "broadcast", "algorithm": "chain"}]})");
    const auto rules = readAlgorithmRules(path);
    ASSERT_TRUE(rules.ok()) << rules.status().what();
    EXPECT_EQ(textOf(*rules), "all_reduce@2+2:9-64=ring,broadcast=chain");
}

TEST_F(RulesFile, IsNamedWithWhatIsWrongInIt) {
    const auto error = [&](const std::string& text) { return errorOf(write(text)); };
    EXPECT_THAT(errorOf(folder_ + "/none.json"), HasSubstr("none.json: No such file"));
    EXPECT_THAT(error(""), HasSubstr("rules.json"));
    EXPECT_THAT(error("{}"), HasSubstr("isthmus tune"));
    EXPECT_THAT(error("[1]"), HasSubstr("isthmus tune"));
    EXPECT_THAT(error(R"({"isthmus_algorithms": 2, "rules": []})"), HasSubstr("format 2"));
    EXPECT_THAT(error(R"({"isthmus_algorithms": 1})"), HasSubstr("rules"));
    EXPECT_THAT(error(R"({"isthmus_algorithms": 1, "rules": [{"collective": "all_reduce"}]})"),
                HasSubstr("algorithm"));
    EXPECT_THAT(error(R"({"isthmus_algorithms": 1, "rules": [
        {"collective": "all_reduce", "algorithm": "ring", "max": 3}]})"),
                HasSubstr("rule 1: unknown field \"max\""));
    EXPECT_THAT(error(R"({"isthmus_algorithms": 1, "rules": [
        {"collective": "all_reduce", "algorithm": "rong"}]})"),
                HasSubstr("two_level_ring"));
    EXPECT_THAT(error(R"({"isthmus_algorithms": 1, "rules": [
        {"collective": "all_reduce", "algorithm": "ring", "min_bytes": 2, "max_bytes": 1}]})"),
                HasSubstr("min_bytes is above max_bytes"));
    EXPECT_THAT(error(R"({"isthmus_algorithms": 1, "rules": [
        {"collective": "all_reduce", "algorithm": "ring", "min_bytes": -2}]})"),
                HasSubstr("min_bytes is no count of bytes"));
    EXPECT_THAT(error(R"({"isthmus_algorithms": 1, "rules": [
        {"collective": "all_reduce", "algorithm": "ring", "nodes": [2, 0]}]})"),
                HasSubstr("nodes are counts of ranks"));
    for (const char* nodes : {"[4294967298]", "[2.9]", "[true]", "[-1]", "2"}) {
        EXPECT_THAT(error(std::string(R"({"isthmus_algorithms": 1, "rules": [
            {"collective": "all_reduce", "algorithm": "ring", "nodes": )") +
                          nodes + "}]}"),
                    HasSubstr("nodes are counts of ranks"))
            << nodes;
    }
}

TEST_F(RulesFile, IsAPlainFile) {
    EXPECT_THAT(errorOf(folder_ + "/"), HasSubstr("is not a plain file"));
    const std::string pipe = folder_ + "/pipe";  // nobody writes: opening it would wait for ever
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THAT(errorOf(pipe), HasSubstr("is not a plain file"));
}

}  // namespace
}  // namespace isthmus
