#include "comm/base/knobs.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace isthmus {
namespace {

constexpr Knob kFirst[] = {
    {"ISTHMUS_TEST_TIMEOUT", "30000", Unit::kMilliseconds, "how long"},
    {"ISTHMUS_TEST_SEGMENT", "1M", Unit::kBytes, "how much"},
    {"ISTHMUS_TEST_LANES", "2", Unit::kCount, "how many"},
};
constexpr Knob kSecond[] = {
    {"ISTHMUS_TEST_EAGER", "0", Unit::kFlag, "whether"},
    {"ISTHMUS_TEST_SHARE", "0.25", Unit::kFraction, "what share"},
    {"ISTHMUS_TEST_NAME", "", Unit::kText, "which"},
};
constexpr std::span<const Knob> kTables[] = {kFirst, kSecond};

class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~Variable() { ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
};

TEST(Knobs, DefaultsAreReadInTheirUnits) {
    const Options options = Options::defaults(kTables);
    EXPECT_EQ(options.milliseconds("ISTHMUS_TEST_TIMEOUT"), std::chrono::seconds(30));
    EXPECT_EQ(options.integer("ISTHMUS_TEST_SEGMENT"), 1048576);
    EXPECT_EQ(options.integer("ISTHMUS_TEST_LANES"), 2);
    EXPECT_FALSE(options.flag("ISTHMUS_TEST_EAGER"));
    EXPECT_EQ(options.fraction("ISTHMUS_TEST_SHARE"), 0.25);
    EXPECT_EQ(options.text("ISTHMUS_TEST_NAME"), "");
    ASSERT_EQ(options.rows().size(), 6u);
    EXPECT_EQ(options.rows().front().setBy, "default");
}

TEST(Knobs, EnvironmentRulesAndIsNamedAsTheSource) {
    const Variable timeout("ISTHMUS_TEST_TIMEOUT", "2s");
    const Variable eager("ISTHMUS_TEST_EAGER", "Yes");
    const Variable empty("ISTHMUS_TEST_LANES", "");
    const auto options = Options::fromEnvironment(kTables);
    ASSERT_TRUE(options.ok()) << options.status().what();
    EXPECT_EQ(options->milliseconds("ISTHMUS_TEST_TIMEOUT"), std::chrono::seconds(2));
    EXPECT_TRUE(options->flag("ISTHMUS_TEST_EAGER"));
    EXPECT_EQ(options->integer("ISTHMUS_TEST_LANES"), 2) << "empty means not set";
    for (const auto& row : options->rows()) {
        const bool isSet =
            row.knob.name == "ISTHMUS_TEST_TIMEOUT" || row.knob.name == "ISTHMUS_TEST_EAGER";
        EXPECT_EQ(row.setBy, isSet ? "environment" : "default") << row.knob.name;
    }
}

TEST(Knobs, WrongFormNamesVariableValueAndExpectation) {
    const Variable segment("ISTHMUS_TEST_SEGMENT", "10XB");
    const auto options = Options::fromEnvironment(kTables);
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.status().code(), Status::Code::kConfiguration);
    EXPECT_EQ(options.status().what(),
              "ISTHMUS_TEST_SEGMENT (environment) says \"10XB\", expected bytes, such as 65536, "
              "64K or 1M");
}

TEST(Knobs, UnknownNameIsReportedWithTheNearest) {
    const Variable misspelt("ISTHMUS_TEST_SEGMNT", "1");
    const Variable distant("ISTHMUS_XYZZY_PLUGH_FROBOZZ", "1");
    const auto options = Options::fromEnvironment(kTables);
    ASSERT_TRUE(options.ok());
    ASSERT_EQ(options->unknown().size(), 2u);
    EXPECT_EQ(options->unknown()[0].name, "ISTHMUS_TEST_SEGMNT");
    EXPECT_EQ(options->unknown()[0].nearest, "ISTHMUS_TEST_SEGMENT");
    EXPECT_EQ(options->unknown()[1].nearest, "");
}

TEST(Knobs, SetChecksAsTheEnvironmentDoes) {
    Options options = Options::defaults(kTables);
    EXPECT_TRUE(options.set("ISTHMUS_TEST_LANES", "4", "test").ok());
    EXPECT_EQ(options.integer("ISTHMUS_TEST_LANES"), 4);
    EXPECT_EQ(options.set("ISTHMUS_TEST_LANES", "-4", "test").code(), Status::Code::kConfiguration);
    EXPECT_EQ(options.set("ISTHMUS_TEST_SHARE", "1e3", "test").code(),
              Status::Code::kConfiguration);
    EXPECT_EQ(options.set("ISTHMUS_TEST_LANE", "4", "test").what(),
              "there is no option ISTHMUS_TEST_LANE, the nearest is ISTHMUS_TEST_LANES");
}

TEST(Knobs, ByteSizesMeanTheSameInEverySpelling) {
    const std::pair<const char*, std::int64_t> good[] = {
        {"0", 0},        {"8", 8},          {"8B", 8},         {"8k", 8192},
        {"8K", 8192},    {"8KB", 8192},     {"8KiB", 8192},    {"1.5M", 1572864},
        {"1G", 1 << 30}, {"2T", 1LL << 41}, {"25m", 26214400}, {"0.5k", 512},
    };
    for (const auto& [text, bytes] : good) {
        const auto parsed = parseBytes(text);
        ASSERT_TRUE(parsed.ok()) << text;
        EXPECT_EQ(*parsed, bytes) << text;
    }
    for (const char* text : {"", "B", "K", "10XB", "-1", "+1", "1e", "1e3", "1.2.3M", "1.5", ".5K",
                             "9999999999999G", "99999999999999999999", "8 K", "8Kb i", "0x10"}) {
        EXPECT_FALSE(parseBytes(text).ok()) << text;
    }
}

TEST(Knobs, NearestNameStopsAtAThird) {
    const std::string_view known[] = {"all_reduce", "broadcast"};
    EXPECT_EQ(nearestName("all_redcue", known), "all_reduce");
    EXPECT_EQ(nearestName("allreduce", known), "all_reduce");
    EXPECT_EQ(nearestName("frob", known), "");
}

}  // namespace
}  // namespace isthmus
