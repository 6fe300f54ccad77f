#include "comm/plan/plan_digest.hpp"

#include "comm/base/digest.hpp"

namespace isthmus {
namespace {

void add(Digest& digest, const Slice& slice) {
    digest.add(static_cast<std::uint64_t>(slice.size()));
    for (const Location& location : slice) {
        digest.add(location.rank).add(location.buffer).add(location.chunk);
    }
}

void add(Digest& digest, const std::vector<ChunkName>& names) {
    digest.add(static_cast<std::uint64_t>(names.size()));
    for (const ChunkName& name : names) digest.add(name.block).add(name.chunk);
}

void add(Digest& digest, const std::vector<int>& numbers) {
    digest.add(static_cast<std::uint64_t>(numbers.size()));
    for (const int number : numbers) digest.add(number);
}

void add(Digest& digest, const Step& step) {
    digest.add(step.verb).add(step.channel).add(step.completes);
    add(digest, step.target);
    digest.add(static_cast<std::uint64_t>(step.sources.size()));
    for (const Slice& source : step.sources) add(digest, source);
    add(digest, step.peers);
    add(digest, step.after);
}

void addAgreement(Digest& digest, const Plan& plan) {
    digest.add(plan.collective).add(plan.ranks).add(plan.root);
    add(digest, plan.summing);
    digest.add(static_cast<std::uint64_t>(plan.algorithm.size())).add(plan.algorithm);
    digest.add(static_cast<std::uint64_t>(plan.chunking.cuts.size()));
    for (const Fraction& cut : plan.chunking.cuts) digest.add(cut.numerator).add(cut.denominator);
}

}  // namespace

std::uint64_t digestOf(const Plan& plan) {
    Digest digest;
    addAgreement(digest, plan);
    digest.add(plan.me).add(plan.mapping).add(plan.inPlaceSafe).add(plan.sharedOutlivesCall);
    add(digest, plan.scratch);
    add(digest, plan.shared);
    digest.add(static_cast<std::uint64_t>(plan.steps.size()));
    for (const Step& step : plan.steps) add(digest, step);
    return digest.value();
}

std::uint64_t digestOfAgreement(const Plan& plan) {
    Digest digest;
    addAgreement(digest, plan);
    return digest.value();
}

}  // namespace isthmus
