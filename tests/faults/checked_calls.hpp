#pragma once

#include <cstddef>
#include <vector>

#include <isthmus/isthmus.h>

namespace rank {

/// The value of one element of a rank's input in one turn.
float valueOf(int rank, std::size_t index, int turn);

/// One call of a kind, root and size that follow from its turn, with inputs that no two ranks and
/// turns share, and the result that it must have.
class CheckedCall {
public:
    /// The same for equal arguments on every rank of `comm`; up to `most` elements a block.
    CheckedCall(isthmusComm_t comm, int me, int ranks, int turn, unsigned seed, std::size_t most);

    /// With a request when `isAsync`.
    isthmusResult_t begin(bool isAsync);
    isthmusRequest_t* request() { return &request_; }
    bool isUnderWay() const { return request_ != nullptr; }
    /// Once it has succeeded.
    bool isRight() const;

private:
    std::vector<float> wanted() const;

    isthmusComm_t comm_;
    int me_;
    int ranks_;
    int turn_;
    unsigned kind_ = 0;
    int root_ = 0;
    std::size_t elements_ = 0;
    std::vector<float> input_;
    std::vector<float> output_;
    isthmusRequest_t request_ = nullptr;
};

}  // namespace rank
