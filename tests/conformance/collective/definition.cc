#include "tests/conformance/collective/definition.hpp"

#include "tests/conformance/collective/data.hpp"

namespace isthmus::conformance {

namespace {

std::vector<std::size_t> countsOfRanks(const Trial& trial, int ranks) {
    if (!trial.each.empty()) return trial.each;
    return std::vector<std::size_t>(static_cast<std::size_t>(ranks), trial.count);
}

}  // namespace

std::vector<std::size_t> inputCounts(const Trial& trial, Rank me, int ranks) {
    const auto each = countsOfRanks(trial, ranks);
    switch (trial.collective) {
    case Collective::kReduceScatter:
        return each;
    case Collective::kAllToAll:
        return trial.exchange.empty() ? each : trial.exchange[me];
    case Collective::kScatter:
        return me == trial.root ? each : std::vector<std::size_t>();
    case Collective::kBroadcast:
        return me == trial.root ? std::vector{trial.count} : std::vector<std::size_t>();
    case Collective::kAllReduce:
    case Collective::kReduce:
        return {trial.count};
    case Collective::kAllGather:
    case Collective::kGather:
        return {each[me]};
    case Collective::kBarrier:
        break;
    }
    return {};
}

std::vector<std::size_t> outputCounts(const Trial& trial, Rank me, int ranks) {
    const auto each = countsOfRanks(trial, ranks);
    switch (trial.collective) {
    case Collective::kAllGather:
        return each;
    case Collective::kAllToAll: {
        if (trial.exchange.empty()) return each;
        std::vector<std::size_t> column;
        for (const auto& row : trial.exchange) column.push_back(row[me]);
        return column;
    }
    case Collective::kGather:
        return me == trial.root ? each : std::vector<std::size_t>();
    case Collective::kReduce:
        return me == trial.root ? std::vector{trial.count} : std::vector<std::size_t>();
    case Collective::kAllReduce:
    case Collective::kBroadcast:
        return {trial.count};
    case Collective::kReduceScatter:
    case Collective::kScatter:
        return {each[me]};
    case Collective::kBarrier:
        break;
    }
    return {};
}

Buffer operandOf(const Trial& trial, Rank rank, std::size_t block, std::size_t elements) {
    const Origin origin{trial.seed, rank, block};
    const bool isAny = !reduces(trial.collective) || trial.brought == Brought::kXor ||
                       trial.brought == Brought::kLeft;
    return isAny ? anyBits(trial.type, origin, elements)
                 : exactOperand(trial.type, trial.op, origin, elements);
}

double factorOf(Rank rank) {
    constexpr double kFactors[] = {2, -1, 1, 0};
    return kFactors[rank % 4];
}

namespace {

Buffer averageOf(DataType whole, const std::vector<Buffer>& operands) {
    const DataType type = partOf(whole);
    Buffer result(operands.front().size());
    for (std::size_t at = 0; at < result.size(); at += bytesOf(type)) {
        double sum = 0;
        for (const Buffer& operand : operands) sum += decode(type, operand.data() + at);
        encode(type, sum / static_cast<double>(operands.size()), result.data() + at);
    }
    return result;
}

void multiply(DataType type, Buffer& operand, double factor) {
    for (std::size_t at = 0; at < operand.size(); at += bytesOf(type))
        encode(type, decode(type, operand.data() + at) * factor, operand.data() + at);
}

Buffer combinationOf(const Trial& trial, std::vector<Buffer> operands, std::size_t elements) {
    switch (trial.brought) {
    case Brought::kLeft:
        return operands.front();
    case Brought::kXor:
        for (std::size_t rank = 1; rank < operands.size(); ++rank) {
            for (std::size_t at = 0; at < operands[0].size(); ++at)
                operands[0][at] ^= operands[rank][at];
        }
        return operands.front();
    case Brought::kFactor:
        for (std::size_t rank = 0; rank < operands.size(); ++rank)
            multiply(trial.type, operands[rank], factorOf(static_cast<Rank>(rank)));
        break;
    case Brought::kNothing:
        break;
    }
    if (trial.op == ReduceOp::kAvg) return averageOf(trial.type, operands);
    return test::expectedResult(trial.type, trial.op, operands, elements, 1.0);
}

}  // namespace

Buffer resultOf(const Trial& trial, Rank me, int ranks, std::size_t block, std::size_t elements) {
    const auto mine = static_cast<std::size_t>(me);
    switch (trial.collective) {
    case Collective::kBroadcast:
        return operandOf(trial, trial.root, 0, elements);
    case Collective::kAllGather:
    case Collective::kGather:
        return operandOf(trial, static_cast<Rank>(block), 0, elements);
    case Collective::kScatter:
        return operandOf(trial, trial.root, mine, elements);
    case Collective::kAllToAll:
        return operandOf(trial, static_cast<Rank>(block), mine, elements);
    default:
        break;
    }
    const std::size_t from = trial.collective == Collective::kReduceScatter ? mine : 0;
    std::vector<Buffer> operands;
    for (Rank rank = 0; rank < ranks; ++rank)
        operands.push_back(operandOf(trial, rank, from, elements));
    return combinationOf(trial, std::move(operands), elements);
}

}  // namespace isthmus::conformance
