#include "tests/faults/checked_calls.hpp"

#include <random>

namespace rank {

float valueOf(int rank, std::size_t index, int turn) {
    const int start = rank * 3 + turn;
    return static_cast<float>((index * 7 + static_cast<std::size_t>(start)) % 11);
}

CheckedCall::CheckedCall(isthmusComm_t comm, int me, int ranks, int turn, unsigned seed,
                         std::size_t most)
    : comm_(comm), me_(me), ranks_(ranks), turn_(turn) {
    std::mt19937 random(seed * 7919 + static_cast<unsigned>(turn));
    const auto size = static_cast<std::size_t>(ranks);
    kind_ = random() % 7;
    root_ = static_cast<int>(random() % size);
    const std::size_t sizes[] = {1, 3, 64, 4096, most};
    elements_ = sizes[random() % 5];
    input_.resize(elements_ * size);
    output_.assign(elements_ * size, -1);
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = valueOf(me, i, turn);
}

isthmusResult_t CheckedCall::begin(bool isAsync) {
    isthmusRequest_t* const request = isAsync ? &request_ : nullptr;
    const void* const in = input_.data();
    void* const out = output_.data();
    const isthmusDataType_t type = isthmusFloat32;
    switch (kind_) {
    case 0:
        return isthmusBroadcast(in, out, elements_, type, root_, comm_, nullptr, request);
    case 1:
        return isthmusAllReduce(in, out, elements_, type, isthmusSum, comm_, nullptr, request);
    case 2:
        return isthmusReduce(in, out, elements_, type, isthmusSum, root_, comm_, nullptr, request);
    case 3:
        return isthmusBarrier(comm_, nullptr, request);
    case 4:
        return isthmusAllGather(in, out, elements_, type, comm_, nullptr, request);
    case 5:
        return isthmusReduceScatter(in, out, elements_, type, isthmusSum, comm_, nullptr, request);
    default:
        return isthmusAlltoAll(in, out, elements_, type, comm_, nullptr, request);
    }
}

std::vector<float> CheckedCall::wanted() const {
    const std::size_t n = elements_;
    const auto mine = static_cast<std::size_t>(me_);
    const auto sum = [&](std::size_t i) {
        float total = 0;
        for (int rank = 0; rank < ranks_; ++rank) total += valueOf(rank, i, turn_);
        return total;
    };
    std::vector<float> result;
    const bool isRoot = me_ == root_;
    for (std::size_t i = 0; i < n && kind_ == 0; ++i) result.push_back(valueOf(root_, i, turn_));
    const bool sums = kind_ == 1 || (kind_ == 2 && isRoot);
    for (std::size_t i = 0; i < n && sums; ++i) result.push_back(sum(i));
    for (std::size_t i = 0; i < n && kind_ == 5; ++i) result.push_back(sum(mine * n + i));
    for (std::size_t i = 0; i < output_.size() && (kind_ == 4 || kind_ == 6); ++i) {
        const std::size_t at = kind_ == 4 ? i % n : mine * n + i % n;
        result.push_back(valueOf(static_cast<int>(i / n), at, turn_));
    }
    result.resize(output_.size(), -1);  // nothing else was written
    return result;
}

bool CheckedCall::isRight() const {
    return output_ == wanted();
}

}  // namespace rank
