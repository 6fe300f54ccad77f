#include "comm/proof/repeat.hpp"

namespace isthmus {
namespace {

class Repeater {
public:
    Repeater(const Plan& plan, int segments, int window)
        : plan_(plan), segments_(segments), window_(window) {}

    Plan run() {
        Plan whole = plan_;
        whole.steps.clear();
        whole.chunking = finer();
        whole.scratch = slots(plan_.scratch);
        whole.shared = slots(plan_.shared);
        for (int segment = 0; segment < segments_; ++segment) {
            for (const Step& step : plan_.steps) whole.steps.push_back(moved(step, segment));
        }
        return whole;
    }

private:
    int chunks() const { return plan_.chunking.chunksPerBlock(); }
    int steps() const { return static_cast<int>(plan_.steps.size()); }

    Chunking finer() const {
        Chunking chunking;
        chunking.cuts = {{0, 1}};
        for (int segment = 0; segment < segments_; ++segment) {
            for (std::size_t j = 1; j < plan_.chunking.cuts.size(); ++j) {
                const Fraction& cut = plan_.chunking.cuts[j];
                chunking.cuts.push_back(
                    {segment * cut.denominator + cut.numerator, segments_ * cut.denominator});
            }
        }
        return chunking;
    }

    /// One set of slots for each place in the window, named after the first segment there.
    std::vector<ChunkName> slots(const std::vector<ChunkName>& names) const {
        std::vector<ChunkName> all;
        for (int place = 0; place < window_; ++place) {
            const int segment = place < segments_ ? place : 0;
            for (const ChunkName& name : names) {
                all.push_back({name.block, segment * chunks() + name.chunk});
            }
        }
        return all;
    }

    Location moved(const Location& location, int segment) const {
        const int place = segment % window_;
        const int chunk = location.chunk;
        switch (location.buffer) {
        case Buffer::kScratch:
            return {location.rank, location.buffer,
                    place * static_cast<int>(plan_.scratch.size()) + chunk};
        case Buffer::kShared:
            return {location.rank, location.buffer,
                    place * static_cast<int>(plan_.shared.size()) + chunk};
        default:
            break;
        }
        const int block = chunk / chunks();
        const int within = segment * chunks() + chunk % chunks();
        return {location.rank, location.buffer, block * chunks() * segments_ + within};
    }

    Step moved(const Step& step, int segment) const {
        Step copy = step;
        for (Location& location : copy.target) location = moved(location, segment);
        for (Slice& source : copy.sources) {
            for (Location& location : source) location = moved(location, segment);
        }
        const bool isSync = step.verb == Verb::kSignal || step.verb == Verb::kWait;
        copy.channel = isSync ? segment % window_ : step.channel * segments_ + segment;
        for (int& before : copy.after) before += segment * steps();
        if (step.after.empty() && segment >= window_) {
            for (int before = 0; before < steps(); ++before) {
                copy.after.push_back((segment - window_) * steps() + before);
            }
        }
        return copy;
    }

    const Plan& plan_;
    const int segments_;
    const int window_;
};

}  // namespace

std::vector<Plan> repeat(const std::vector<Plan>& plans, int segments, int window) {
    std::vector<Plan> whole;
    for (const Plan& plan : plans) whole.push_back(Repeater(plan, segments, window).run());
    return whole;
}

}  // namespace isthmus
