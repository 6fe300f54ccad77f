#include "tests/support/mutant_study.hpp"

#include <algorithm>
#include <sstream>

#include "comm/plan/print.hpp"
#include "comm/proof/prove.hpp"
#include "tests/support/interpreter.hpp"

namespace isthmus::test {
namespace {

constexpr int kRunsOfSurvivor = 24;

enum class Verdict { kCaught, kEqual, kHarmless, kHole };

Verdict judge(const std::vector<Plan>& plans, const std::vector<Plan>& mutant,
              const MutationSite& site, std::span<const int> nodeOfRank, std::uint64_t seed,
              std::string& why) {
    if (!proveBothModels(plans.front().collective, mutant, nodeOfRank)) return Verdict::kCaught;
    why = interpretOften(mutant, seed, kRunsOfSurvivor);
    if (!why.empty()) return Verdict::kHole;
    if (site.damage == Damage::kEdge && isEdgeImplied(plans, site)) return Verdict::kEqual;
    if (haveSameShape(plans, mutant)) return Verdict::kEqual;
    if (areConflictsOrdered(mutant)) return Verdict::kHarmless;
    why = "a conflict is not ordered";
    return Verdict::kHole;
}

std::string textOf(const std::vector<Plan>& plans, const MutationSite& site) {
    const Plan& plan = plans[static_cast<std::size_t>(site.rank)];
    std::ostringstream text;
    text << nameOf(plan.collective) << " " << plan.algorithm << " rank " << site.rank << " step "
         << site.step << " (" << isthmus::textOf(plan.steps[static_cast<std::size_t>(site.step)])
         << ") " << nameOf(site.damage) << " " << site.source << " " << site.index;
    return text.str();
}

}  // namespace

Tally& Tally::operator+=(const Tally& other) {
    total += other.total;
    caught += other.caught;
    equal += other.equal;
    harmless += other.harmless;
    return *this;
}

MutantStudy& MutantStudy::operator+=(const MutantStudy& other) {
    for (std::size_t i = 0; i < byDamage.size(); ++i) byDamage[i] += other.byDamage[i];
    holes.insert(holes.end(), other.holes.begin(), other.holes.end());
    return *this;
}

Tally MutantStudy::sum() const {
    Tally sum;
    for (const Tally& tally : byDamage) sum += tally;
    return sum;
}

std::string MutantStudy::text() const {
    const Tally all = sum();
    std::ostringstream text;
    text << "mutants caught " << all.caught << "/" << all.total - all.equal - all.harmless << " ("
         << all.total << " made, " << all.equal << " equal, " << all.harmless
         << " order nothing that conflicts; caught of made: ";
    for (int i = 0; i < kDamages; ++i) {
        const Tally& tally = byDamage[static_cast<std::size_t>(i)];
        text << (i > 0 ? ", " : "") << nameOf(static_cast<Damage>(i)) << " " << tally.caught << "/"
             << tally.total;
    }
    text << ")";
    return text.str();
}

MutantStudy studyMutants(const std::vector<Plan>& plans, std::span<const int> nodeOfRank,
                         std::uint64_t seed, int cap) {
    MutantStudy study;
    std::mt19937_64 random(seed);
    std::vector<MutationSite> sites = mutationSites(plans);
    std::shuffle(sites.begin(), sites.end(), random);
    for (const MutationSite& site : sites) {
        Tally& tally = study.byDamage[static_cast<std::size_t>(site.damage)];
        if (tally.total >= cap) continue;
        const auto mutant = mutated(plans, site, random);
        if (!mutant) continue;
        std::string why;
        ++tally.total;
        switch (judge(plans, *mutant, site, nodeOfRank, random(), why)) {
        case Verdict::kCaught:
            ++tally.caught;
            break;
        case Verdict::kEqual:
            ++tally.equal;
            break;
        case Verdict::kHarmless:
            ++tally.harmless;
            break;
        case Verdict::kHole:
            study.holes.push_back(textOf(plans, site) + ": " + why);
            break;
        }
    }
    return study;
}

std::string interpretOften(const std::vector<Plan>& plans, std::uint64_t seed, int runs) {
    const std::vector<bool> may = mayRunInPlace(plans);
    std::mt19937_64 random(seed);
    for (int run = 0; run < runs; ++run) {
        Choices choices;
        choices.seed = random();
        choices.sendsWait = random() % 2 == 0;
        const auto mode = run % 3;  // nobody, everybody, some
        for (std::size_t rank = 0; rank < plans.size(); ++rank) {
            const bool isWanted = mode == 1 || (mode == 2 && random() % 2 == 0);
            choices.isInPlace.push_back(isWanted && may[rank]);
        }
        if (std::string what = interpret(plans, choices); !what.empty()) {
            return what + " (run " + std::to_string(run) + ")";
        }
    }
    return {};
}

}  // namespace isthmus::test
