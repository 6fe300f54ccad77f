#pragma once

#include <vector>

#include <isthmus/status.hpp>

#include "comm/proof/happens_before.hpp"
#include "comm/proof/symbolic_state.hpp"

namespace isthmus {

/// One pass over all events in order: races, values and the final state, for one choice of ranks
/// that run in place. kMismatch says what is wrong.
class Walk {
public:
    Walk(const std::vector<Plan>& plans, const Matching& matching, const HappensBefore& before,
         std::vector<bool> isInPlace);

    Status run();

private:
    /// Last writer, and readers since, of one name.
    struct Seen {
        int writer = -1;
        std::vector<int> readers;
        int ownWriter = -1;        // step that has this name as a target ...
        std::size_t ownIndex = 0;  // ... at this place
    };

    void fillInputs();
    Status post(int step);
    Status finish(int step);
    Status checkOverlap(int step);
    Status noteRead(int step, const Location& location);
    Status noteWrite(int step, const Location& location);
    Status read(int step, const Location& location, Value& value) const;
    Status write(int step, const Location& location, Value value);
    Status finishReduce(int step);
    Status complete(int step, Value& value) const;
    Status checkOutputs();
    Status checkOutput(const Location& location, const Value& value);
    Status wrong(int step, std::string_view what, const Location& location) const;

    const Step& stepAt(int step) const { return *matching_.steps[static_cast<std::size_t>(step)]; }
    bool isSameMemory(const Location& a, const Location& b) const {
        return names_.of(a) == names_.of(b);
    }
    bool isOntoItself(const Step& step, std::size_t index) const {
        return step.verb == Verb::kCopy && isSameMemory(step.target[index], step.sources[0][index]);
    }
    ChunkName nameOfIdentity(int identity) const;
    int identityOf(const Location& location) const;

    const std::vector<Plan>& plans_;
    const Matching& matching_;
    const HappensBefore& before_;
    const std::vector<bool> isInPlace_;
    const Operand operand_;
    const LocationNames names_;
    Expressions expressions_;
    std::vector<Value> memory_;                 // by name
    std::vector<bool> isWritten_;               // by name: through output or scratch
    std::vector<Seen> seen_;                    // by name
    std::vector<std::vector<Value>> payloads_;  // by step, sends only
    std::vector<int> bitsOf_;  // all-reduce: expression of each chunk at the first rank
};

}  // namespace isthmus
