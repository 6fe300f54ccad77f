#include "tests/conformance/collective/matrix.hpp"

#include <algorithm>
#include <random>

#include "comm/reduce/reducer.hpp"

namespace isthmus::conformance {

namespace {

std::vector<Row> allRows() {
    std::vector<Row> rows;
    for (int cell = 0; cell < kCollectives * kDataTypes * kReduceOps * kSizes * 8; ++cell) {
        int rest = cell;
        const auto next = [&](int values) {
            const int value = rest % values;
            rest /= values;
            return value;
        };
        Row row{};
        row.isMapped = next(2) == 1;
        row.isInPlace = next(2) == 1;
        row.isLastRoot = next(2) == 1;
        row.size = Size(next(kSizes));
        row.op = ReduceOp(next(kReduceOps));
        row.type = DataType(next(kDataTypes));
        row.collective = Collective(next(kCollectives));
        if (row.collective == Collective::kBarrier) continue;
        if (reduces(row.collective) ? !isReducible(row.type, row.op) : row.op != ReduceOp::kSum)
            continue;
        if (!hasRoot(row.collective) && row.isLastRoot) continue;
        rows.push_back(row);
    }
    std::shuffle(rows.begin(), rows.end(), std::mt19937(1));
    return rows;
}

/// Calls `see` with a number for each combination of `strength` of the factors.
template <typename See>
void forEachCombination(const std::vector<int>& factors, int strength, const See& see) {
    const std::size_t count = factors.size();
    for (std::size_t a = 0; a < count; ++a) {
        for (std::size_t b = a + 1; b < count; ++b) {
            const int pair = factors[a] * kFactorValues + factors[b];
            if (strength == 2) {
                see(pair);
                continue;
            }
            for (std::size_t c = b + 1; c < count; ++c) see(pair * kFactorValues + factors[c]);
        }
    }
}

}  // namespace

std::vector<int> factorsOf(const Row& row) {
    int base = 0;
    std::vector<int> factors;
    const auto add = [&](int value, int values, bool counts) {
        if (counts) factors.push_back(base + value);
        base += values;
    };
    add(static_cast<int>(row.collective), kCollectives, true);
    add(static_cast<int>(row.type), kDataTypes, true);
    add(static_cast<int>(row.op), kReduceOps, reduces(row.collective));
    add(static_cast<int>(row.size), kSizes, true);
    add(row.isMapped ? 1 : 0, 2, true);
    add(row.isInPlace ? 1 : 0, 2, true);
    add(row.isLastRoot ? 1 : 0, 2, hasRoot(row.collective));
    return factors;
}

std::vector<Row> coveringRows(int strength) {
    const std::vector<Row> all = allRows();
    std::vector<bool> covered(static_cast<std::size_t>(kFactorValues) * kFactorValues *
                              kFactorValues);
    std::vector<Row> chosen;
    // At most 35 new combinations: 3 of 7 factors.
    for (int least = 35; least > 0; --least) {
        for (const Row& row : all) {
            const std::vector<int> factors = factorsOf(row);
            int fresh = 0;
            forEachCombination(factors, strength, [&](int which) { fresh += !covered[which]; });
            if (fresh < least) continue;
            forEachCombination(factors, strength, [&](int which) { covered[which] = true; });
            chosen.push_back(row);
        }
    }
    return chosen;
}

Trial trialOf(const Row& row, int ranks, std::size_t segmentBytes, std::uint64_t seed) {
    // A segment cuts the whole operand, which is one block here and a block per rank there.
    const bool isOneBlock = row.collective == Collective::kAllReduce ||
                            row.collective == Collective::kReduce ||
                            row.collective == Collective::kBroadcast;
    const std::size_t segment =
        segmentBytes / bytesOf(row.type) / (isOneBlock ? 1 : static_cast<std::size_t>(ranks));
    const std::size_t counts[kSizes] = {0,           1,       17,          4097,
                                        segment - 1, segment, segment + 1, 3 * segment + 5};
    return {.collective = row.collective,
            .type = row.type,
            .op = row.op,
            .root = row.isLastRoot ? ranks - 1 : 0,
            .count = counts[static_cast<int>(row.size)],
            .isMapped = row.isMapped,
            .isInPlace = row.isInPlace,
            .seed = seed};
}

}  // namespace isthmus::conformance
