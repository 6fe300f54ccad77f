#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/engine/call.hpp"
#include "comm/engine/control_block.hpp"
#include "comm/engine/extents.hpp"
#include "comm/engine/meeting.hpp"
#include "comm/memory/scratch_pool.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

class Membership;
class Execution;

/// Where the ranks are that somebody waits for, as far as shared memory tells.
enum class Awaited : std::uint8_t {
    kNobody,
    kElsewhere,  ///< all on other CPUs of this machine
    kUnknown,    ///< some on other nodes, or it matters less
    kHere,       ///< one on the CPU of who waits: it cannot go on until that one lets it
};

/// A posted message of an Execution.
struct StepOperation : Operation {
    Execution* execution = nullptr;
    int slot = 0;
    int step = -1;  ///< -1: nothing waits for it (a signal to another node)
    Status outcome;
};

/// A Plan bound to one call and run to its end. Engine thread only.
///
/// Life: begin() with the call's sequence number -> enter() publishes the call to the node ->
/// progress() decides between direct and staged once all of the node have entered, then runs
/// segments in a window -> isDone() -> end(), ready for another call: a small call must not pay for
/// dozens of allocations.
class Execution {
public:
    explicit Execution(Membership& group);
    ~Execution();

    /// Takes up a call; the memory of the one before serves again. Only when new or after end().
    void begin(std::unique_ptr<CallRequest> call, std::uint64_t sequence);
    /// Gives back what the call held. Only when nothing is pending.
    void end();

    const CallRequest& call() const { return *call_; }
    std::uint64_t sequence() const { return sequence_; }
    const CallFingerprint& fingerprint() const { return fingerprint_; }

    /// Tells the node's ranks about the call. Once.
    Status enter();
    /// Instead, for a call that meets once and that the node's ranks know of already.
    void hasEnteredBefore();

    /// Does what can be done now. True when anything happened.
    bool progress();

    /// False when it waits for its node only, and nothing of what it waits for has come.
    bool mayMove() const;
    bool waitsForMessages() const { return !flying_.empty(); }

    bool isDone() const { return isDone_; }
    /// Posted messages that have not come back; the memory they use is theirs until then.
    int pendingOperations() const { return pending_; }

    /// No peer reads or writes its buffers: what it shows of them is a copy in its lane.
    bool isPrivate() const { return plan_ && plan_->meetsOnce(); }

    /// Stops running steps; the caller cancels the messages.
    void stop() { isStopped_ = true; }

    /// "ring segment 1 of 4, step 17 of 28", for messages; `awaited` gets the ranks that it waits
    /// for now.
    std::string standing(std::vector<Rank>& awaited) const;

    /// Where the ranks are that it waits for now; `cpu` is the caller's.
    Awaited awaited(int cpu) const;

    /// Of my node, one whose news it cannot go on without; -1: it is not one alone.
    int awaitedPosition() const;

    /// True when the rank at `position` of my node is in the same call.
    bool hasVerified(int position) const { return verified_[position] != 0; }

private:
    /// One active segment in one slot of the window.
    struct SegmentRun {
        struct Waiting {
            int step = 0;
            int remote = 0;  ///< messages from other nodes still to come
        };
        int segment = -1;
        int left = 0;
        std::vector<std::uint32_t> waitsFor;
        std::vector<Waiting> waiting;
        std::vector<int> ready;  ///< copies and reductions
        std::size_t nextReady = 0;

        void reset() {
            segment = -1;
            waiting.clear();
            ready.clear();
            nextReady = 0;
        }
    };

    Status enterMeeting(const std::shared_ptr<const CompiledPlan>& plan);
    void tellBlocks();
    void tellShared();
    void showInput(std::size_t bytes);
    bool areAllShown() const;
    void takeShown();
    void publish();
    bool decideMapping();
    bool mustStage() const;
    Mapping agreedMapping() const;
    bool hasEntered(int position) const;
    bool verifyPeers();
    Status bind(Mapping mapping);
    Status copyInput(std::size_t bytes);
    Status replaceInput(std::size_t bytes);
    void copyInputOf(int segment);
    int passes() const;
    Status grabScratch();
    std::size_t layOutShared();
    void startSegment(SegmentRun& run, int segment);
    bool progressRun(SegmentRun& run);
    bool pollWaits(SegmentRun& run);
    bool isSatisfied(const SegmentRun& run, const SegmentRun::Waiting& waiting) const;
    bool hasRaised(const SegmentRun& run, const CompiledPlan::Peer& peer) const;
    Awaited place(int position, int cpu) const;
    void finishSegment(SegmentRun& run);
    void makeReady(SegmentRun& run, int step);
    void completeStep(SegmentRun& run, int step);
    void settle(SegmentRun& run);
    bool takeLanded();

    void raise(SegmentRun& run, int step);
    void beginWait(SegmentRun& run, int step);
    void post(SegmentRun& run, int step);
    void postSignal(SegmentRun& run, int step, const CompiledPlan::Peer& peer, bool isSend);
    StepOperation* newOperation(const SegmentRun& run, int step, Rank peer, bool isSend);

    std::size_t runHeavy(SegmentRun& run, int step);
    std::size_t runCopy(SegmentRun& run, int index);
    /// In a peer's own memory, which is read through the system.
    bool isForeign(const Location& location) const;
    void copyFrom(Rank owner, const MemoryPiece& to, const MemoryPiece& from);
    std::size_t runReduce(SegmentRun& run, int index);
    void placesOf(const SegmentRun& run, int index, std::size_t at,
                  std::vector<MemoryPiece>& places) const;
    MemoryPiece pieceOf(const SegmentRun& run, const Location& location,
                        const ChunkName& name) const;
    std::byte* inputOf(const SegmentRun& run, const Location& location,
                       const ChunkName& name) const;
    std::byte* sharedOf(const SegmentRun& run, const Location& location) const;
    int slotOf(const SegmentRun& run) const { return run.segment % window_; }
    static void landed(Operation& operation, const Status& status);

    Membership& group_;
    std::unique_ptr<CallRequest> call_;
    std::uint64_t sequence_ = 0;
    int lane_ = 0;
    CallFingerprint fingerprint_;

    bool isDone_ = false;
    bool isStopped_ = false;
    bool isStreaming_ = false;  ///< results are stored around the cache
    bool isBulky_ = false;      ///< copies and reductions take longer than waking a peer
    bool isUneven_ = false;     ///< an all-to-all with counts: peers' blocks lie as they say
    bool isShown_ = false;      ///< then, my input in my lane
    int unverified_ = 0;
    std::vector<char> verified_;  ///< per position of my node
    std::uint64_t inputOffset_ = kNotMapped;
    std::uint64_t outputOffset_ = kNotMapped;
    bool canBeRead_ = false;       ///< my input, by peers
    std::uint64_t bothBytes_ = 0;  ///< of input and output
    Time decidedAt_ = Time(0);  ///< reading or staging, by the node's first rank; 0: nothing to say

    std::shared_ptr<const CompiledPlan> plan_;
    std::optional<Extents> extents_;
    const std::byte* input_ = nullptr;
    int segments_ = 0;
    int window_ = 0;
    std::size_t pieceElements_ = 0;  ///< PreparedPlans::pieceBytes; 0: in segments
    int nextSegment_ = 0;
    int endedSegments_ = 0;
    std::vector<SegmentRun> runs_;
    std::vector<int> fresh_;  ///< steps of the run at hand that have just become ready

    ScratchPool::Block scratch_;  ///< private slots of all window slots
    ScratchPool::Block sharedBlock_;
    std::byte* shared_ = nullptr;  ///< of sharedBlock_
    std::size_t scratchStride_ = 0;
    std::size_t sharedStride_ = 0;
    std::size_t sharedBytes_ = 0;      ///< of all window slots
    std::size_t sharedSlotBytes_ = 0;  ///< where isUneven_; all slots alike
    std::vector<std::size_t> scratchOffsets_;
    std::vector<std::size_t> sharedOffsets_;
    Meeting meeting_;               ///< of plans that meet once, which need nothing of the above
    ScratchPool::Block inputCopy_;  ///< of a call in place whose plan may not be
    bool copiesBySegment_ = false;  ///< into it, each pass its own

    int pending_ = 0;
    std::vector<StepOperation*> flying_;
    std::vector<StepOperation*> landed_;
    std::vector<StepOperation*> landing_;  ///< those that takeLanded() has in hand

    /// Of the reduction at hand, the places of the result before those of the operands; kept for
    /// their memory.
    std::vector<MemoryPiece> places_;
    std::vector<MemoryPiece> morePlaces_;
    std::vector<void*> addresses_;
};

}  // namespace isthmus
