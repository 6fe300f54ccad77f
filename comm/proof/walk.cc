#include "comm/proof/walk.hpp"

#include <string>

#include "comm/plan/chunking.hpp"
#include "comm/plan/print.hpp"

namespace isthmus {

Walk::Walk(const std::vector<Plan>& plans, const Matching& matching, const HappensBefore& before,
           std::vector<bool> isInPlace)
    : plans_(plans),
      matching_(matching),
      before_(before),
      isInPlace_(std::move(isInPlace)),
      operand_(Operand::of(plans.front())),
      names_(plans, isInPlace_),
      expressions_(static_cast<int>(plans.size()), plans.front().contributors()),
      memory_(names_.count()),
      isWritten_(names_.count(), false),
      seen_(names_.count()),
      payloads_(matching.steps.size()) {}

Status Walk::run() {
    fillInputs();
    for (const int event : before_.order()) {
        const int step = event / 2;
        ISTHMUS_TRY(event == postedOf(step) ? post(step) : finish(step));
    }
    return checkOutputs();
}

ChunkName Walk::nameOfIdentity(int identity) const {
    return {identity / operand_.chunksPerBlock, identity % operand_.chunksPerBlock};
}

int Walk::identityOf(const Location& location) const {
    const ChunkName name = operand_.meaning(location);
    return name.block * operand_.chunksPerBlock + name.chunk;
}

void Walk::fillInputs() {
    for (const Plan& plan : plans_) {
        for (int chunk = 0; chunk < operand_.inputChunks(plan.me); ++chunk) {
            const Location location{plan.me, Buffer::kInput, chunk};
            memory_[names_.of(location)] = {identityOf(location), expressions_.leaf(plan.me),
                                            false};
        }
    }
}

Status Walk::wrong(int step, std::string_view what, const Location& location) const {
    const auto rank = static_cast<std::size_t>(matching_.rankOf[static_cast<std::size_t>(step)]);
    std::string text = "rank ";
    text += std::to_string(rank);
    text += " step ";
    text += std::to_string(step - matching_.firstOf[rank]);
    text += " (";
    text += textOf(stepAt(step));
    text += ") ";
    text += what;
    text += " ";
    text += textOf(location);
    return Status::mismatch(std::move(text));
}

/// target[i] may be one of the sources at i, never of another place, and no location comes twice.
Status Walk::checkOverlap(int step) {
    const Step& act = stepAt(step);
    for (std::size_t i = 0; i < act.target.size(); ++i) {
        Seen& seen = seen_[names_.of(act.target[i])];
        if (seen.ownWriter == step) return wrong(step, "writes twice", act.target[i]);
        seen.ownWriter = step;
        seen.ownIndex = i;
    }
    for (const Slice& source : act.sources) {
        for (std::size_t i = 0; i < source.size(); ++i) {
            const Seen& seen = seen_[names_.of(source[i])];
            if (seen.ownWriter == step && seen.ownIndex != i) {
                return wrong(step, "reads what it writes elsewhere", source[i]);
            }
        }
    }
    return {};
}

Status Walk::noteRead(int step, const Location& location) {
    Seen& seen = seen_[names_.of(location)];
    if (seen.writer >= 0 && seen.writer != step &&
        !before_.isDoneBefore(seen.writer, postedOf(step))) {
        return wrong(step, "read races a write of", location);
    }
    seen.readers.push_back(step);
    return {};
}

Status Walk::noteWrite(int step, const Location& location) {
    Seen& seen = seen_[names_.of(location)];
    if (seen.writer >= 0 && seen.writer != step &&
        !before_.isDoneBefore(seen.writer, postedOf(step))) {
        return wrong(step, "write races a write of", location);
    }
    for (const int reader : seen.readers) {
        if (reader != step && !before_.isDoneBefore(reader, postedOf(step))) {
            return wrong(step, "write races a read of", location);
        }
    }
    seen.writer = step;
    seen.readers.clear();
    return {};
}

Status Walk::post(int step) {
    const Step& act = stepAt(step);
    if (act.verb == Verb::kSignal || act.verb == Verb::kWait) return {};
    if (act.verb != Verb::kSend) ISTHMUS_TRY(checkOverlap(step));
    for (const Slice& source : act.sources) {
        for (std::size_t i = 0; i < source.size(); ++i) {
            if (!isOntoItself(act, i)) ISTHMUS_TRY(noteRead(step, source[i]));
        }
    }
    for (std::size_t i = 0; i < act.target.size(); ++i) {
        if (!isOntoItself(act, i)) ISTHMUS_TRY(noteWrite(step, act.target[i]));
    }
    if (act.verb != Verb::kSend) return {};
    auto& payload = payloads_[static_cast<std::size_t>(step)];
    for (const Location& location : act.sources[0]) {
        ISTHMUS_TRY(read(step, location, payload.emplace_back()));
    }
    return {};
}

Status Walk::read(int step, const Location& location, Value& value) const {
    const std::size_t name = names_.of(location);
    value = memory_[name];
    if (!value.isThere()) return wrong(step, "reads nothing at", location);
    if (location.buffer == Buffer::kInput) {
        const Value original{identityOf(location), expressions_.leaf(location.rank), false};
        const bool isSame = value == original || (value.isScaled && plans_.size() == 1);
        if (!isSame) return wrong(step, "reads after the input was overwritten", location);
    } else if (!isWritten_[name]) {
        return wrong(step, "reads before anything was written to", location);
    }
    return {};
}

Status Walk::write(int step, const Location& location, Value value) {
    const auto rank = static_cast<std::size_t>(location.rank);
    const ChunkName what = nameOfIdentity(value.identity);
    const auto slot = static_cast<std::size_t>(location.chunk);
    const Plan& owner = plans_[rank];
    bool fits = true;
    switch (location.buffer) {
    case Buffer::kInput:
        return wrong(step, "writes to", location);
    case Buffer::kOutput:
        fits = what == operand_.meaning(location);
        break;
    case Buffer::kScratch:
        fits = fitsSlot(owner.chunking, what, owner.scratch[slot]);
        break;
    case Buffer::kShared:
        fits = fitsSlot(owner.chunking, what, owner.shared[slot]);
        break;
    }
    if (!fits) {
        std::string text = "writes chunk ";
        text += std::to_string(what.chunk);
        text += " of block ";
        text += std::to_string(what.block);
        text += " to";
        return wrong(step, text, location);
    }
    const std::size_t name = names_.of(location);
    memory_[name] = value;
    isWritten_[name] = true;
    return {};
}

Status Walk::complete(int step, Value& value) const {
    const Step& act = stepAt(step);
    if (!act.completes) return {};
    const Location& where = act.target.front();
    if (!reduces(operand_.collective)) return wrong(step, "completes what has no sum", where);
    if (value.isScaled) return wrong(step, "completes twice", where);
    if (!expressions_.isEverybodyOnce(value.expression)) {
        return wrong(step, "completes with other than every contributor once", where);
    }
    // It moves bytes and scales none: an average would be the sum.
    if (act.sources.size() == 1 && plans_.front().contributors() > 1) {
        return wrong(step, "completes by a copy what several contributed", where);
    }
    value.isScaled = true;
    return {};
}

Status Walk::finishReduce(int step) {
    const Step& act = stepAt(step);
    std::vector<int> operands;
    for (std::size_t i = 0; i < act.target.size(); ++i) {
        operands.clear();
        Value sum;
        for (const Slice& source : act.sources) {
            Value value;
            ISTHMUS_TRY(read(step, source[i], value));
            operands.push_back(value.expression);
            const bool isAlone = act.sources.size() == 1;
            if (value.isScaled && !isAlone) return wrong(step, "adds to a scaled", source[i]);
            if (sum.isThere() && sum.identity != value.identity) {
                return wrong(step, "adds different chunks:", source[i]);
            }
            sum = value;
        }
        sum.expression = expressions_.sum(operands);
        ISTHMUS_TRY(complete(step, sum));
        ISTHMUS_TRY(write(step, act.target[i], sum));
    }
    return {};
}

Status Walk::finish(int step) {
    const Step& act = stepAt(step);
    if (act.verb == Verb::kCopy || act.verb == Verb::kReduce) return finishReduce(step);
    if (act.completes) return Status::mismatch("only copy and reduce complete: " + textOf(act));
    if (act.verb != Verb::kRecv) return {};
    const auto send = static_cast<std::size_t>(matching_.partner[static_cast<std::size_t>(step)]);
    for (std::size_t i = 0; i < act.target.size(); ++i) {
        ISTHMUS_TRY(write(step, act.target[i], payloads_[send][i]));
    }
    return {};
}

Status Walk::checkOutputs() {
    bitsOf_.assign(static_cast<std::size_t>(operand_.chunksPerBlock), -1);
    for (const Plan& plan : plans_) {
        for (int chunk = 0; chunk < operand_.outputChunks(plan.me); ++chunk) {
            const Location location{plan.me, Buffer::kOutput, chunk};
            ISTHMUS_TRY(checkOutput(location, memory_[names_.of(location)]));
        }
    }
    return {};
}

Status Walk::checkOutput(const Location& location, const Value& value) {
    const auto fail = [&](std::string_view what) {
        return Status::mismatch("at the end " + textOf(location) + " " + std::string(what));
    };
    if (!value.isThere()) return fail("holds nothing");
    if (value.identity != identityOf(location)) return fail("holds another chunk");
    if (reduces(operand_.collective)) {
        if (!expressions_.isEverybodyOnce(value.expression)) {
            return fail("lacks a contributor or has one twice");
        }
        if (!value.isScaled) return fail("was never completed");
    } else {
        const int block = location.chunk / operand_.chunksPerBlock;
        const Rank source =
            hasRoot(operand_.collective) && operand_.collective != Collective::kGather
                ? operand_.root
                : block;
        if (!expressions_.isExactly(value.expression, std::vector<Rank>{source})) {
            return fail("comes from another rank");
        }
    }
    if (operand_.collective != Collective::kAllReduce) return {};
    int& bits = bitsOf_[static_cast<std::size_t>(location.chunk)];
    if (bits < 0) bits = value.expression;
    return bits == value.expression ? Status() : fail("differs in bits from another rank");
}

}  // namespace isthmus
