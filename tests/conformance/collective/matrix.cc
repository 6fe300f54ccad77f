#include "tests/conformance/collective/matrix.hpp"

#include <algorithm>
#include <random>

#include "comm/reduce/reducer.hpp"

namespace isthmus::conformance {

namespace {

Brought broughtOf(int op) {
    return op < kReduceOps ? Brought::kNothing : Brought(op - kReduceOps + 1);
}

bool isDefined(DataType type, int op) {
    if (broughtOf(op) == Brought::kFactor) return isFloating(type) && !isComplex(type);
    return broughtOf(op) != Brought::kNothing || isReducible(type, ReduceOp(op));
}

bool hasForm(Collective collective, Form form) {
    const bool isWhole =
        collective == Collective::kAllReduce || collective == Collective::kBroadcast;
    switch (form) {
    case Form::kUnequal:
        return !isWhole && collective != Collective::kReduce;
    case Form::kCoalesced:
        return isWhole || !(hasRoot(collective) || collective == Collective::kBarrier);
    case Form::kDeterministic:
    case Form::kRoundedOnce:
        return reduces(collective);
    default:
        return true;
    }
}

std::vector<Row> allRows() {
    std::vector<Row> rows;
    for (int cell = 0; cell < kCollectives * kForms * kDataTypes * kOperators * kSizes * 8;
         ++cell) {
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
        row.op = next(kOperators);
        row.type = DataType(next(kDataTypes));
        row.form = Form(next(kForms));
        row.collective = Collective(next(kCollectives));
        if (row.collective == Collective::kBarrier || !hasForm(row.collective, row.form)) continue;
        if (reduces(row.collective) ? !isDefined(row.type, row.op) : row.op != 0) continue;
        // What arrives from a rank in place is as much as goes to it.
        if (row.collective == Collective::kAllToAll && row.form == Form::kUnequal && row.isInPlace)
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
    add(static_cast<int>(row.form), kForms, true);
    add(static_cast<int>(row.type), kDataTypes, true);
    add(row.op, kOperators, reduces(row.collective));
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
    // At most 56 new combinations: 3 of 8 factors.
    for (const int least : {56, 48, 40, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1}) {
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
    const std::size_t count = counts[static_cast<int>(row.size)];
    Trial trial = {.collective = row.collective,
                   .type = row.type,
                   .op = row.op < kReduceOps ? ReduceOp(row.op) : ReduceOp::kSum,
                   .brought = broughtOf(row.op),
                   .root = row.isLastRoot ? ranks - 1 : 0,
                   .count = count,
                   .isMapped = row.isMapped,
                   .isInPlace = row.isInPlace,
                   .isPrepared = row.form == Form::kPrepared,
                   .isDeterministic = row.form == Form::kDeterministic,
                   .roundsOnce = row.form == Form::kRoundedOnce,
                   .seed = seed};
    if (row.form != Form::kUnequal) return trial;
    const auto unequal = [&](int from, int to) {
        const int kind = (from + 2 * to + static_cast<int>(seed)) % 3;
        return kind == 0 ? 0 : kind == 1 ? count : count / 2 + std::size_t(to);
    };
    for (int from = 0; from < ranks; ++from) {
        trial.each.push_back(unequal(0, from));
        std::vector<std::size_t>& sent = trial.exchange.emplace_back();
        for (int to = 0; to < ranks; ++to) sent.push_back(unequal(from, to));
    }
    if (row.collective == Collective::kAllToAll) {
        trial.each.clear();
    } else {
        trial.exchange.clear();
    }
    return trial;
}

testing::AssertionResult runRow(const Row& row, std::size_t segmentBytes, std::uint64_t seed,
                                Communicator& communicator, std::vector<std::uint64_t>& digests) {
    const Trial first = trialOf(row, communicator.ranks(), segmentBytes, seed);
    std::vector<std::unique_ptr<RunningTrial>> trials;
    trials.push_back(std::make_unique<RunningTrial>(first, communicator));
    const bool isOne = row.form != Form::kCoalesced && row.form != Form::kTogether;
    for (const std::size_t count : {3, 0, 1001}) {
        if (isOne) break;
        Trial next = first;
        next.count = count;
        next.seed += 100'000 * count;
        trials.push_back(std::make_unique<RunningTrial>(next, communicator));
    }
    if (row.form == Form::kCoalesced) {
        RunningTrial::startCoalesced(trials);
    } else {
        for (const auto& trial : trials) trial->start(isOne);
    }
    testing::AssertionResult result = testing::AssertionSuccess();
    for (const auto& trial : trials) {
        const testing::AssertionResult one = trial->finish();
        if (!one && result)
            result = testing::AssertionFailure()
                     << "form " << static_cast<int>(row.form) << ": " << one.message();
        if (row.collective == Collective::kAllReduce) digests.push_back(trial->digest());
    }
    return result;
}

}  // namespace isthmus::conformance
