#include "tests/conformance/collective/trial.hpp"

#include <cmath>
#include <cstring>

#include "comm/base/digest.hpp"
#include "comm/communicator/coalesced.hpp"
#include "comm/communicator/packing.hpp"
#include "tests/conformance/collective/definition.hpp"

namespace isthmus::conformance {

namespace {

constexpr std::byte kUntouched{0x5A};

/// The input or the output of one rank: its blocks and where they lie, in elements.
struct Side {
    std::vector<std::size_t> counts;
    std::vector<std::size_t> places;
    std::size_t extent = 0;
};

Side packed(std::vector<std::size_t> counts) {
    Side side;
    for (const std::size_t count : counts) {
        side.places.push_back(side.extent);
        side.extent += count;
    }
    side.counts = std::move(counts);
    return side;
}

Side scattered(std::vector<std::size_t> counts, std::size_t gap) {
    Side side;
    side.places.assign(counts.size(), 0);
    side.extent = gap;
    for (std::size_t i = counts.size(); i-- > 0;) {
        side.places[i] = side.extent;
        side.extent += counts[i] + gap;
    }
    side.counts = std::move(counts);
    return side;
}

bool hasInputGaps(const Trial& trial, Rank me) {
    const bool isScatter = trial.collective == Collective::kScatter && me == trial.root;
    return trial.gap > 0 && (isScatter || trial.collective == Collective::kAllToAll);
}

bool hasOutputGaps(const Trial& trial, Rank me) {
    const bool isGather = trial.collective == Collective::kAllGather ||
                          (trial.collective == Collective::kGather && me == trial.root);
    return trial.gap > 0 && (isGather || trial.collective == Collective::kAllToAll);
}

std::shared_ptr<const UserReduction> reductionOf(Brought brought) {
    if (brought != Brought::kXor && brought != Brought::kLeft) return nullptr;
    const bool isXor = brought == Brought::kXor;
    const auto combine = [isXor](const void* in, void* inOut, std::size_t elements, DataType type) {
        const std::size_t bytes = elements * bytesOf(type);
        const auto* const left = static_cast<const std::byte*>(in);
        auto* const right = static_cast<std::byte*>(inOut);
        for (std::size_t at = 0; at < bytes; ++at)
            right[at] = isXor ? left[at] ^ right[at] : left[at];
    };
    return std::make_shared<UserReduction>(UserReduction{isXor ? "xor" : "left", isXor, combine});
}

// One unit in the last place of a number of that size.
double lastPlaceOf(DataType type, double number) {
    const int fraction = type == DataType::kFloat64   ? 52
                         : type == DataType::kFloat32 ? 23
                         : type == DataType::kFloat16 ? 10
                                                      : 7;
    return number == 0 ? 0 : std::ldexp(1.0, std::ilogb(number) - fraction);
}

}  // namespace

std::string describe(const Trial& trial) {
    std::string text = std::string(nameOf(trial.collective)) + " " +
                       std::string(nameOf(trial.type)) + " x " + std::to_string(trial.count);
    if (!trial.each.empty() || !trial.exchange.empty()) text += " (counts)";
    if (reduces(trial.collective)) text += " " + std::string(nameOf(trial.op));
    constexpr const char* kBrought[] = {"", " premultiplied", " xor", " left"};
    text += kBrought[static_cast<int>(trial.brought)];
    if (trial.isPrepared) text += " prepared";
    if (trial.isDeterministic) text += " deterministic";
    if (trial.roundsOnce) text += " rounded once";
    if (hasRoot(trial.collective)) text += " root " + std::to_string(trial.root);
    if (trial.gap > 0) text += " gap " + std::to_string(trial.gap);
    text += trial.isMapped ? " mapped" : " ordinary";
    if (trial.isInPlace) text += " in place";
    return text + " " + trial.algorithm + " seed " + std::to_string(trial.seed);
}

struct RunningTrial::Memory {
    struct Area {
        GuardedBuffer buffer;
        Buffer expected;
    };

    Side input;
    Side output;
    std::vector<Area> areas;  ///< of input and output; one when in place
    std::vector<void*> blocks;
    std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t inputAt = 0;  ///< where input and output begin in their areas, in bytes
    std::size_t outputAt = 0;
};

RunningTrial::RunningTrial(const Trial& trial, Communicator& communicator)
    : trial_(trial), communicator_(communicator), memory_(std::make_unique<Memory>()) {
    const Rank me = communicator.rank();
    const int ranks = communicator.ranks();
    auto from = inputCounts(trial, me, ranks);
    auto to = outputCounts(trial, me, ranks);
    memory_->input =
        hasInputGaps(trial, me) ? scattered(std::move(from), trial.gap) : packed(std::move(from));
    memory_->output =
        hasOutputGaps(trial, me) ? scattered(std::move(to), trial.gap) : packed(std::move(to));
    place();
}

RunningTrial::~RunningTrial() {
    for (void* block : memory_->blocks) communicator_.runtime().arena().free(block);
}

void RunningTrial::place() {
    Memory& memory = *memory_;
    const std::size_t width = bytesOf(trial_.type);
    const auto me = static_cast<std::size_t>(communicator_.rank());
    const auto addArea = [&](std::size_t bytes) {
        if (!trial_.isMapped) {
            memory.areas.push_back({GuardedBuffer(bytes, kUntouched), Buffer(bytes, kUntouched)});
            return;
        }
        const auto made =
            communicator_.runtime().arena().allocate(bytes + 2 * GuardedBuffer::kGuard);
        EXPECT_TRUE(made.ok()) << made.status().what();
        memory.blocks.push_back(*made);
        memory.areas.push_back({GuardedBuffer(static_cast<std::byte*>(*made), bytes, kUntouched),
                                Buffer(bytes, kUntouched)});
    };
    const std::size_t inputBlocks = memory.input.counts.size();
    const std::size_t outputBlocks = memory.output.counts.size();
    if (trial_.isInPlace) {
        // The side with one block lies where the other side has that of this rank.
        if (inputBlocks < outputBlocks && inputBlocks > 0)
            memory.inputAt = memory.output.places[me] * width;
        if (outputBlocks < inputBlocks && outputBlocks > 0)
            memory.outputAt = memory.input.places[me] * width;
        addArea(std::max(memory.input.extent, memory.output.extent) * width);
    } else {
        addArea(memory.input.extent * width);
        addArea(memory.output.extent * width);
    }
    const auto fill = [&](Memory::Area& area, std::size_t at, const Side& side, bool isResult) {
        for (std::size_t block = 0; block < side.counts.size(); ++block) {
            const std::size_t count = side.counts[block];
            const Buffer values = isResult ? resultOf(trial_, communicator_.rank(),
                                                      communicator_.ranks(), block, count)
                                           : operandOf(trial_, communicator_.rank(), block, count);
            const std::size_t offset = at + side.places[block] * width;
            std::copy(values.begin(), values.end(), area.expected.begin() + offset);
            if (!isResult) std::copy(values.begin(), values.end(), area.buffer.data() + offset);
        }
    };
    fill(memory.areas.front(), memory.inputAt, memory.input, false);
    fill(memory.areas.back(), memory.outputAt, memory.output, true);
    // Nobody looks at a side that has nothing.
    const auto addressOf = [&](Memory::Area& area, std::size_t at) {
        return area.expected.empty() ? nullptr : area.buffer.data() + at;
    };
    memory.from = addressOf(memory.areas.front(), memory.inputAt);
    memory.to = addressOf(memory.areas.back(), memory.outputAt);
}

CallRequest RunningTrial::request() const {
    CallRequest request;
    request.collective = trial_.collective;
    request.type = trial_.type;
    request.op = trial_.op;
    request.root = trial_.root;
    request.input = memory_->from;
    request.output = memory_->to;
    request.counts.uniform = trial_.count;
    request.counts.each = trial_.each;
    if (!trial_.exchange.empty()) {
        request.counts.sent = memory_->input.counts;
        request.counts.received = memory_->output.counts;
    }
    request.reduction = reductionOf(trial_.brought);
    return request;
}

std::shared_ptr<Work> RunningTrial::startOne(CallRequest request, const CallOptions& options) {
    if (trial_.brought == Brought::kFactor) {
        return callPremultiplied(communicator_, std::move(request), options,
                                 factorOf(communicator_.rank()));
    }
    Displacements displacements;
    const Rank me = communicator_.rank();
    if (hasInputGaps(trial_, me)) displacements.input = memory_->input.places;
    if (hasOutputGaps(trial_, me)) displacements.output = memory_->output.places;
    return callWithDisplacements(communicator_, std::move(request), options, displacements);
}

void RunningTrial::start(bool isBlocking) {
    CallRequest call = request();
    CallOptions options;
    options.isBlocking = isBlocking;
    options.algorithm = trial_.algorithm;
    options.isDeterministic = trial_.isDeterministic;
    options.roundsOnce = trial_.roundsOnce;
    if (trial_.isPrepared) {
        const Status status = communicator_.prepare(call, options);
        EXPECT_TRUE(status.ok()) << status.what();
    }
    work_ = startOne(std::move(call), options);
}

void RunningTrial::startCoalesced(std::vector<std::unique_ptr<RunningTrial>>& trials) {
    std::vector<Tensor> tensors;
    for (const auto& trial : trials) {
        const CallRequest one = trial->request();
        tensors.push_back({one.input, one.output, one.counts.uniform});
    }
    RunningTrial& first = *trials.front();
    const CoalescedCall call(first.request(), std::move(tensors));
    const auto work =
        call.start(first.communicator_, {}, [&](CallRequest request, const CallOptions& options) {
            return first.startOne(std::move(request), options);
        });
    for (const auto& trial : trials) trial->work_ = work;
}

testing::AssertionResult RunningTrial::finish() {
    const auto failure = [&] {
        return testing::AssertionFailure()
               << describe(trial_) << " at rank " << communicator_.rank() << " of "
               << communicator_.ranks() << ": ";
    };
    const Status waited = communicator_.wait(*work_, std::chrono::milliseconds(0));
    if (!work_->isDone()) return failure() << "not done: " << waited.what();
    if (!work_->status().ok()) return failure() << work_->status().what();
    const testing::AssertionResult same = compare();
    return same ? same : failure() << same.message();
}

testing::AssertionResult RunningTrial::compare() const {
    const DataType type = partOf(trial_.type);
    const std::size_t width = bytesOf(type);
    const bool isRounded = reduces(trial_.collective) && trial_.op == ReduceOp::kAvg;
    for (std::size_t number = 0; number < memory_->areas.size(); ++number) {
        Memory::Area& area = memory_->areas[number];
        const std::byte* const got = area.buffer.data();
        const std::byte* const want = area.expected.data();
        if (!area.buffer.isIntact())
            return testing::AssertionFailure() << "wrote outside of buffer " << number;
        for (std::size_t at = 0; at < area.expected.size(); at += width) {
            if (std::memcmp(got + at, want + at, width) == 0) continue;
            if (isRounded) {
                const double exact = decode(type, want + at);
                const double found = decode(type, got + at);
                if (std::fabs(found - exact) <= lastPlaceOf(type, exact)) continue;
            }
            return testing::AssertionFailure()
                   << "buffer " << number << " differs at element " << at / width << " of "
                   << area.expected.size() / width << ": "
                   << testing::PrintToString(std::vector(got + at, got + at + width)) << " for "
                   << testing::PrintToString(std::vector(want + at, want + at + width));
        }
    }
    return testing::AssertionSuccess();
}

std::uint64_t RunningTrial::digest() const {
    Digest digest;
    const std::size_t width = bytesOf(trial_.type);
    const Side& side = memory_->output;
    for (std::size_t block = 0; block < side.counts.size(); ++block) {
        const std::byte* const at =
            memory_->areas.back().buffer.data() + memory_->outputAt + side.places[block] * width;
        digest.add(std::string_view(reinterpret_cast<const char*>(at), side.counts[block] * width));
    }
    return digest.value();
}

testing::AssertionResult runTrial(const Trial& trial, Communicator& communicator) {
    RunningTrial running(trial, communicator);
    running.start(true);
    return running.finish();
}

}  // namespace isthmus::conformance
