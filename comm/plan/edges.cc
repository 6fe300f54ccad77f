#include "comm/plan/edges.hpp"

#include <algorithm>
#include <bit>
#include <memory_resource>
#include <unordered_map>

#include "comm/plan/operand.hpp"

namespace isthmus {
namespace {

/// A set of earlier steps that grows by whole words.
class StepSet {
public:
    void add(int step) {
        const auto word = static_cast<std::size_t>(step) / 64;
        if (words_.size() <= word) words_.resize(word + 1, 0);
        words_[word] |= std::uint64_t{1} << (step % 64);
    }
    void add(const StepSet& other) {
        if (words_.size() < other.words_.size()) words_.resize(other.words_.size(), 0);
        for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
    }
    void remove(const StepSet& other) {
        const std::size_t common = std::min(words_.size(), other.words_.size());
        for (std::size_t i = 0; i < common; ++i) words_[i] &= ~other.words_[i];
    }
    /// -1 when empty. Forgets empty words at the top.
    int takeHighest() {
        while (!words_.empty() && words_.back() == 0) words_.pop_back();
        if (words_.empty()) return -1;
        const int bit = 63 - std::countl_zero(words_.back());
        return static_cast<int>(words_.size() - 1) * 64 + bit;
    }

private:
    std::vector<std::uint64_t> words_;
};

class EdgeWriter {
public:
    explicit EdgeWriter(Plan& plan) : plan_(plan), operand_(Operand::of(plan)) {
        lastSignalTo_.assign(static_cast<std::size_t>(plan.ranks), -1);
        ancestors_.reserve(plan.steps.size());
        const std::size_t locations = plan.locations();
        touched_.reserve(locations);
        readings_.reserve(locations);
    }

    void run() {
        for (int index = 0; index < static_cast<int>(plan_.steps.size()); ++index) {
            Step& step = plan_.steps[static_cast<std::size_t>(index)];
            finish(step, index, needs(step, index));
        }
    }

private:
    struct Touched {
        int writer = -1;
        int latestReading = -1;  // since the last write; into readings_
    };
    struct Reading {
        int reader;
        int earlier;  // of the same location; into readings_, -1: none
    };

    Touched& touched(const Location& location) {
        return touched_[plan_.inPlaceSafe ? operand_.inPlace(location) : location];
    }

    StepSet needs(const Step& step, int index) {
        if (step.verb == Verb::kSignal) return needsOfSignal(step, index);
        if (step.verb == Verb::kWait) {
            waits_.add(index);
            return {};
        }
        return needsOfData(step, index);
    }

    StepSet needsOfSignal(const Step& step, int index) {
        StepSet need = fenced_;
        need.add(waits_);
        for (const Rank peer : step.peers) {
            int& last = lastSignalTo_[static_cast<std::size_t>(peer)];
            if (last >= 0 && last != index) need.add(last);
            last = index;
        }
        return need;
    }

    StepSet needsOfData(const Step& step, int index) {
        const bool isPrivate = touchesPrivateScratchOnly(step);
        StepSet need;
        if (!isPrivate) need.add(waits_);
        for (const Slice& source : step.sources) {
            for (const Location& location : source) {
                if (const int writer = touched(location).writer; writer >= 0) need.add(writer);
            }
        }
        for (const Location& location : step.target) needsOfWrite(touched(location), need);
        for (const Slice& source : step.sources) {
            for (const Location& location : source) {
                int& latest = touched(location).latestReading;
                readings_.push_back({index, latest});
                latest = static_cast<int>(readings_.size()) - 1;
            }
        }
        for (const Location& location : step.target) touched(location) = {index, -1};
        if (!isPrivate) fenced_.add(index);
        return need;
    }

    void needsOfWrite(const Touched& seen, StepSet& need) const {
        if (seen.writer >= 0) need.add(seen.writer);
        for (int at = seen.latestReading; at >= 0; at = readings_[at].earlier)
            need.add(readings_[at].reader);
    }

    bool touchesPrivateScratchOnly(const Step& step) const {
        const auto isPrivate = [](const Location& l) { return l.buffer == Buffer::kScratch; };
        if (!std::all_of(step.target.begin(), step.target.end(), isPrivate)) return false;
        return std::all_of(step.sources.begin(), step.sources.end(), [&](const Slice& source) {
            return std::all_of(source.begin(), source.end(), isPrivate);
        });
    }

    /// Walks the candidates from the latest down and drops what an edge taken already implies.
    void finish(Step& step, int index, StepSet need) {
        StepSet all;
        all.add(index);
        step.after.clear();
        for (int next = need.takeHighest(); next >= 0; next = need.takeHighest()) {
            const StepSet& before = ancestors_[static_cast<std::size_t>(next)];
            step.after.push_back(next);
            need.remove(before);
            all.add(before);
        }
        std::reverse(step.after.begin(), step.after.end());
        ancestors_.push_back(std::move(all));
    }

    Plan& plan_;
    const Operand operand_;
    std::pmr::monotonic_buffer_resource memory_;
    std::pmr::unordered_map<Location, Touched, LocationHash> touched_{&memory_};
    std::vector<Reading> readings_;
    std::vector<int> lastSignalTo_;
    std::vector<StepSet> ancestors_;  // of each step, itself included
    StepSet waits_;
    StepSet fenced_;  // earlier data steps that a signal waits for
};

}  // namespace

void inferEdges(Plan& plan) {
    EdgeWriter(plan).run();
}

}  // namespace isthmus
