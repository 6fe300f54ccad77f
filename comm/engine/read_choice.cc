#include "comm/engine/read_choice.hpp"

#include <algorithm>
#include <bit>

namespace isthmus {

namespace {

// The first of each way pays for pages and caches, and is not looked at.
constexpr int kTries = 5;
// Fewer where the ways differ by more than calls do.
constexpr int kLeastTries = 2;
constexpr double kClearly = 1.3;
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
    if (at == trials_.end()) return false;
    const auto& [staged, read] = at->second.ways;
    const int tries = std::min(staged.tries, read.tries);
    if (tries < kLeastTries || tries >= kTries) return tries >= kTries;
    const auto [quicker, slower] = std::minmax(staged.least, read.least);
    return static_cast<double>(slower.count()) > kClearly * static_cast<double>(quicker.count());
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

void ReadChoice::couldNotRead(Collective collective, std::uint64_t bytes) {
    if (!isSettled(collective, bytes)) ++trials_[keyOf(collective, bytes)].ways[1].tries;
}

}  // namespace isthmus
