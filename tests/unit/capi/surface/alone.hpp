#pragma once

#include <gtest/gtest.h>
#include <isthmus/isthmus.h>

#include <cstring>
#include <string>

namespace isthmus::test {

/// What isthmusGetLastError() says on this thread.
inline std::string lastError() {
    return isthmusGetLastError(nullptr);
}

/// A communicator of this process alone, as a program without a launcher gets it. One for all tests
/// of a suite; tests that break theirs make another.
class Alone : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        ASSERT_EQ(isthmusCommInitEnv(&comm_, nullptr), isthmusSuccess) << lastError();
    }
    static void TearDownTestSuite() {
        EXPECT_EQ(isthmusCommDestroy(comm_), isthmusSuccess) << lastError();
        comm_ = nullptr;
    }
    static isthmusComm_t comm() { return comm_; }

    /// No wrong argument may fail the communicator.
    void TearDown() override {
        isthmusResult_t cause = isthmusInternalError;
        EXPECT_EQ(isthmusCommGetAsyncError(comm_, &cause), isthmusSuccess);
        EXPECT_EQ(cause, isthmusSuccess) << lastError();
    }

private:
    inline static isthmusComm_t comm_ = nullptr;
};

/// A C caller can pass any int as an enum.
template <typename Enum>
Enum wild(int value) {
    static_assert(sizeof(Enum) == sizeof(value));
    Enum result;
    std::memcpy(&result, &value, sizeof(result));
    return result;
}

}  // namespace isthmus::test
