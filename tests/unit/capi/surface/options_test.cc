// Each field of each structure that a program hands in: it takes effect, or is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <isthmus/isthmus.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "tests/unit/capi/surface/alone.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

int copyOwn(const void* send, void* receive, size_t bytes, void*) {
    std::memcpy(receive, send, bytes);
    return 0;
}

int setNothing(void*, const char*, const void*, size_t) {
    return 0;
}
int getNothing(void*, const char*, int64_t, isthmusBytesSink, void*) {
    return 1;
}

isthmusComm_t aloneWith(const isthmusConfig_t& config) {
    isthmusComm_t made = nullptr;
    EXPECT_EQ(isthmusCommInitAllGather(&made, 1, 0, copyOwn, nullptr, &config), isthmusSuccess)
        << lastError();
    return made;
}

isthmusResult_t receiveFromMyself(isthmusComm_t comm, const isthmusCallOptions_t* options) {
    int into = 0;
    return isthmusRecv(&into, 1, isthmusInt, 0, 0, nullptr, comm, options, nullptr);
}

void expectRefused(isthmusResult_t result, const char* text) {
    EXPECT_EQ(result, isthmusInvalidArgument);
    EXPECT_THAT(lastError(), HasSubstr(text));
}

class Options : public Alone {};

TEST_F(Options, ConfigWithoutASizeIsRefusedByWhoeverTakesOne) {
    const isthmusConfig_t unset{};
    isthmusComm_t made = nullptr;
    isthmusUniqueId id;
    ASSERT_EQ(isthmusGetUniqueId(&id), isthmusSuccess);
    const isthmusStoreCallbacks_t store{sizeof(store), setNothing, getNothing, nullptr,
                                        nullptr,       nullptr,    nullptr};
    expectRefused(isthmusCommInitRankConfig(&made, 1, id, 0, &unset),
                  "isthmusConfig_t: its size is 0");
    expectRefused(isthmusCommInitEnv(&made, &unset), "isthmusConfig_t: its size is 0");
    expectRefused(isthmusCommInitAllGather(&made, 1, 0, copyOwn, nullptr, &unset),
                  "isthmusConfig_t: its size is 0");
    expectRefused(isthmusCommInitStore(&made, 1, 0, &store, nullptr, &unset),
                  "isthmusConfig_t: its size is 0");
    expectRefused(isthmusCommSplit(comm(), 0, 0, &made, &unset), "isthmusConfig_t: its size is 0");
    EXPECT_EQ(made, nullptr);
}

TEST_F(Options, StoreWithoutASizeIsRefused) {
    isthmusComm_t made = nullptr;
    const isthmusStoreCallbacks_t store{0,       setNothing, getNothing, nullptr,
                                        nullptr, nullptr,    nullptr};
    expectRefused(isthmusCommInitStore(&made, 1, 0, &store, nullptr, nullptr),
                  "isthmusStoreCallbacks_t: its size is 0");
}

TEST_F(Options, ConfigOfAnEarlierVersionHasItsFields) {
    isthmusConfig_t config = ISTHMUS_CONFIG_INITIALIZER;
    config.size = offsetof(isthmusConfig_t, timeout_ms);
    config.name = "early";
    config.timeout_ms = 1;  // beyond its end: must not be looked at
    isthmusComm_t made = aloneWith(config);
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.timeout_ms = 50;
    EXPECT_EQ(receiveFromMyself(made, &options), isthmusTimeout);
    EXPECT_THAT(lastError(), HasSubstr("on \"early\""));
    EXPECT_EQ(isthmusCommDestroy(made), isthmusSuccess);
}

TEST_F(Options, ConfigSaysNameAndTimeout) {
    isthmusConfig_t config = ISTHMUS_CONFIG_INITIALIZER;
    config.name = "brief";
    config.timeout_ms = 60;
    isthmusComm_t made = aloneWith(config);
    const auto start = steady_clock::now();
    EXPECT_EQ(receiveFromMyself(made, nullptr), isthmusTimeout);
    EXPECT_LT(steady_clock::now() - start, milliseconds(3000));
    EXPECT_THAT(lastError(), HasSubstr("on \"brief\""));
    EXPECT_THAT(lastError(), HasSubstr("60 ms"));
    EXPECT_EQ(isthmusCommDestroy(made), isthmusSuccess);
}

TEST_F(Options, ConfigSaysRanksOfTheWholeJob) {
    const std::array<int, 1> globals{17};
    isthmusConfig_t config = ISTHMUS_CONFIG_INITIALIZER;
    config.timeout_ms = 60;
    config.globalRanks = globals.data();
    isthmusComm_t made = aloneWith(config);
    EXPECT_EQ(receiveFromMyself(made, nullptr), isthmusTimeout);
    EXPECT_THAT(lastError(), HasSubstr("rank 17 ("));
    EXPECT_EQ(isthmusCommDestroy(made), isthmusSuccess);
}

TEST_F(Options, SplitTakesNameAndTimeoutAndRefusesRanksOfTheWholeJob) {
    const std::array<int, 1> globals{17};
    isthmusConfig_t config = ISTHMUS_CONFIG_INITIALIZER;
    config.globalRanks = globals.data();
    isthmusComm_t child = nullptr;
    expectRefused(isthmusCommSplit(comm(), 0, 0, &child, &config), "globalRanks");
    EXPECT_EQ(child, nullptr);
    config.globalRanks = nullptr;
    config.name = "child";
    config.timeout_ms = 60;
    config.lazy = 1;
    ASSERT_EQ(isthmusCommSplit(comm(), 0, 0, &child, &config), isthmusSuccess);
    EXPECT_EQ(receiveFromMyself(child, nullptr), isthmusTimeout);
    EXPECT_THAT(lastError(), HasSubstr("on \"child\""));
    EXPECT_THAT(lastError(), HasSubstr("60 ms"));
    EXPECT_EQ(isthmusCommDestroy(child), isthmusSuccess);
}

TEST_F(Options, OfACallAreRefusedOrTakeEffect) {
    int value = 5;
    const auto sum = [&](const isthmusCallOptions_t& options, isthmusRequest_t* request) {
        return isthmusAllReduce(&value, &value, 1, isthmusInt, isthmusSum, comm(), &options,
                                request);
    };
    isthmusCallOptions_t options{};
    expectRefused(sum(options, nullptr), "isthmusCallOptions_t: its size is 0");
    expectRefused(receiveFromMyself(comm(), &options), "isthmusCallOptions_t: its size is 0");
    options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.algorithm = "nobody's";
    expectRefused(sum(options, nullptr), "nobody's");
    expectRefused(receiveFromMyself(comm(), &options), "recv has no algorithms");
    expectRefused(isthmusSend(&value, 1, isthmusInt, 0, 0, comm(), &options, nullptr),
                  "send has no algorithms");
    options.algorithm = nullptr;
    options.persistent = 1;
    expectRefused(sum(options, nullptr), "needs a request");
    isthmusRequest_t request = nullptr;
    ASSERT_EQ(sum(options, &request), isthmusSuccess);
    int active = 1;
    EXPECT_EQ(isthmusRequestActive(request, &active), isthmusSuccess);
    EXPECT_EQ(active, 0) << "only prepared";
    EXPECT_EQ(isthmusRequestFree(&request), isthmusSuccess);
}

TEST_F(Options, OfACallNameItAndLimitIt) {
    isthmusComm_t made = aloneWith(ISTHMUS_CONFIG_INITIALIZER);
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.name = "bucket 12";
    options.timeout_ms = 70;
    options.priority = 7;
    EXPECT_EQ(receiveFromMyself(made, &options), isthmusTimeout);
    EXPECT_THAT(lastError(), HasSubstr("named \"bucket 12\""));
    EXPECT_THAT(lastError(), HasSubstr("70 ms"));
    EXPECT_EQ(isthmusCommDestroy(made), isthmusSuccess);
}

TEST_F(Options, CountersAreWrittenAsFarAsTheProgramKnowsThem) {
    isthmusWireCounters_t counters{offsetof(isthmusWireCounters_t, sent_total), 1, 1, 7, 7};
    EXPECT_EQ(isthmusWireCounters(comm(), &counters), isthmusSuccess);
    EXPECT_EQ(counters.sent_payload, 0U);
    EXPECT_EQ(counters.sent_total, 7U) << "beyond the end of what it knows";
    counters.size = 0;
    expectRefused(isthmusWireCounters(comm(), &counters), "isthmusWireCounters_t: its size is 0");
}

// Who gives a store gives it up, whatever comes of it: else a refused call would leak it.
TEST_F(Options, AStoreIsReleasedOnceByACallThatRefusesTheRest) {
    int released = 0;
    isthmusStoreCallbacks_t store{sizeof(store), setNothing, getNothing, nullptr,
                                  nullptr,       nullptr,    nullptr};
    store.release = [](void* context) { ++*static_cast<int*>(context); };
    isthmusComm_t made = nullptr;
    expectRefused(isthmusCommInitStore(&made, 1, 7, &store, &released, nullptr), "rank");
    EXPECT_EQ(released, 1);
    store.get = nullptr;
    expectRefused(isthmusCommInitStore(&made, 1, 0, &store, &released, nullptr), "get function");
    EXPECT_EQ(released, 2);
    EXPECT_EQ(made, nullptr);
}

}  // namespace
}  // namespace isthmus::test
