#pragma once

#include <functional>
#include <string>
#include <vector>

#include <isthmus/isthmus.h>

namespace isthmus::test {

/// One rank that is about to call: its communicator, and buffers large enough for every kind.
struct Caller {
    isthmusComm_t comm = nullptr;
    int rank = 0;
    std::vector<double> input;
    std::vector<double> output;
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
};

using Call = std::function<isthmusResult_t(Caller&)>;

/// A way for ranks to mean different calls: one rank, the third of four, does as `odd` says and the
/// others as `usual` says.
struct Kind {
    std::string name;
    Call usual;
    Call odd;
    /// What the text says of the two calls.
    std::string usualText;
    std::string oddText;
};

/// Ranks of the job that the texts call the four ranks by.
inline constexpr int kGlobalRanks[] = {10, 13, 12, 11};
inline constexpr int kOdd = 2;

/// One after the other: collective, count, type, operation, root, order, sizes of blocks, forms,
/// options, messages.
std::vector<Kind> allKinds();

}  // namespace isthmus::test
