#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/cost/symmetry.hpp"
#include "comm/plan/plan.hpp"

namespace isthmus {

/// One step as the simulator sees it: what it costs and whom it meets, no memory.
struct GraphStep {
    double share = 0;  ///< of a block: moved; by a reduction: read
    int needs = 0;     ///< own steps before it, plus signals of others
    Rank peer = -1;    ///< send, recv: as the plan names it
    int partner = -1;  ///< send: the peer's recv; recv: the peer's send
    Verb verb = Verb::kCopy;
};

/// A signal's end: a wait of `rank`, as the plan names it.
struct Wake {
    Rank rank = 0;
    int step = 0;
};

/// The steps of all ranks of a job, or of those that stand for all (Symmetry), without the plans:
/// 30 bytes a step instead of some hundreds.
class StepGraph {
public:
    StepGraph(int ranks, Symmetry symmetry);
    /// Of all ranks' plans.
    static Result<StepGraph> of(std::span<const Plan> plans);

    /// Every rank that stands for itself once, before connect().
    void add(const Plan& plan);
    /// Finds who meets whom. kInvalidArgument: the plans do not fit together.
    Status connect();

    int ranks() const { return ranks_; }
    /// Ranks whose steps there are: 0 and on.
    int actors() const { return static_cast<int>(ranksSteps_.size()); }
    std::size_t steps() const;
    const Symmetry& symmetry() const { return symmetry_; }

    const std::vector<GraphStep>& stepsOf(Rank rank) const { return of(rank).steps; }
    /// Own steps that come after this one.
    std::span<const int> after(Rank rank, int step) const;
    std::span<const Wake> wakes(Rank rank, int step) const;

private:
    struct RankSteps {
        std::vector<GraphStep> steps;
        std::vector<std::uint32_t> firstNext;  // by step, and one more
        std::vector<int> next;
        std::vector<std::uint32_t> firstWake;
        std::vector<Wake> wakes;
    };
    /// One end of a message or a signal, as the receiver's stand-in sees it.
    struct End {
        Rank from = 0;
        Rank to = 0;
        int channel = 0;
        int step = 0;
        Rank owner = 0;  // whose step it is
        Rank peer = 0;   // as the owner names it
    };
    using Ends = std::vector<End>;

    const RankSteps& of(Rank rank) const { return ranksSteps_[static_cast<std::size_t>(rank)]; }
    RankSteps& of(Rank rank) { return ranksSteps_[static_cast<std::size_t>(rank)]; }
    GraphStep& step(const End& end) {
        return of(end.owner).steps[static_cast<std::size_t>(end.step)];
    }
    void note(const Plan& plan, const Step& step, int index);
    void linkOwn(const Plan& plan);
    Status connectMessages();
    Status connectSignals();

    int ranks_;
    Symmetry symmetry_;
    std::vector<RankSteps> ranksSteps_;
    Ends sends_;
    Ends recvs_;
    Ends signals_;
    Ends waits_;
};

}  // namespace isthmus
