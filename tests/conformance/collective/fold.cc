#include "tests/conformance/collective/fold.hpp"

#include <cmath>
#include <random>

namespace isthmus::conformance {

namespace {

template <typename T>
double foldAt(DataType type, ReduceOp op, const std::vector<Buffer>& operands, std::size_t at) {
    const auto number = [&](std::size_t rank) {
        return static_cast<T>(decode(type, operands[rank].data() + at * bytesOf(type)));
    };
    T sum = number(0);
    for (std::size_t rank = 1; rank < operands.size(); ++rank) {
        // Stored in between, so that nothing is kept wider than T.
        volatile const T next =
            op == ReduceOp::kProd ? sum * number(rank) : static_cast<T>(sum + number(rank));
        sum = next;
    }
    return op == ReduceOp::kAvg ? sum * static_cast<T>(1.0 / static_cast<double>(operands.size()))
                                : sum;
}

}  // namespace

Buffer unevenOperand(DataType type, ReduceOp op, Rank rank, std::size_t elements) {
    Buffer operand(elements * bytesOf(type));
    std::minstd_rand random(static_cast<unsigned>(rank + 1));
    std::uniform_real_distribution<double> mantissa(1, 2);
    for (std::size_t i = 0; i < elements; ++i) {
        const int exponent = op == ReduceOp::kProd ? 0 : static_cast<int>(random() % 9);
        const double sign = random() % 2 == 0 ? 1 : -1;
        encode(type, sign * std::ldexp(mantissa(random), exponent),
               operand.data() + i * bytesOf(type));
    }
    return operand;
}

Buffer foldOf(DataType type, ReduceOp op, int ranks, std::size_t elements) {
    std::vector<Buffer> operands;
    for (Rank rank = 0; rank < ranks; ++rank)
        operands.push_back(unevenOperand(type, op, rank, elements));
    Buffer wanted(elements * bytesOf(type));
    for (std::size_t i = 0; i < elements; ++i) {
        encode(type,
               type == DataType::kFloat64 ? foldAt<double>(type, op, operands, i)
                                          : foldAt<float>(type, op, operands, i),
               wanted.data() + i * bytesOf(type));
    }
    return wanted;
}

}  // namespace isthmus::conformance
