#include "comm/engine/read_choice.hpp"

#include <bit>

namespace isthmus {

namespace {

// The first of each way pays for pages and caches, and is not looked at.
constexpr int kTries = 5;
// The load of the machine changes: then both are tried anew. Ten slow calls in so many cost less
// than a hundredth.
constexpr int kCallsUntilNextTrial = 4000;

}  // namespace

ReadChoice::Key ReadChoice::keyOf(Collective collective, std::uint64_t bytes) {
    return {collective, std::bit_width(bytes)};
}

bool ReadChoice::isSettled(Collective collective, std::uint64_t bytes) const {
    if (wish_ == Wish::kAlways) return true;
    const auto at = trials_.find(keyOf(collective, bytes));
    return at != trials_.end() && at->second.ways[0].tries >= kTries &&
           at->second.ways[1].tries >= kTries;
}

bool ReadChoice::prefersReading(Collective collective, std::uint64_t bytes) {
    if (wish_ == Wish::kAlways) return true;
    Trial& trial = trials_[keyOf(collective, bytes)];
    const auto& [staged, read] = trial.ways;
    if (!isSettled(collective, bytes)) return read.tries < staged.tries;
    const bool isQuicker = read.least < staged.least;
    if (++trial.calls > kCallsUntilNextTrial) trial = {};
    return isQuicker;
}

void ReadChoice::took(Collective collective, std::uint64_t bytes, bool wasRead, Time time) {
    if (isSettled(collective, bytes)) return;
    Way& way = trials_[keyOf(collective, bytes)].ways[wasRead ? 1 : 0];
    if (way.tries++ > 0 && time < way.least) way.least = time;
}

}  // namespace isthmus
