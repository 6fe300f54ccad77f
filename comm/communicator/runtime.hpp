#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/base/knobs.hpp"
#include "comm/communicator/racks.hpp"
#include "comm/engine/engine.hpp"
#include "comm/memory/arena.hpp"
#include "comm/selector/select.hpp"

namespace isthmus {

inline constexpr Knob kCommunicatorKnobs[] = {
    {"ISTHMUS_LINE_RATE", "auto", Unit::kText,
     "what the card of this node carries each way: 10gbit, 2.5gbit; auto: what its driver says; "
     "none: not known. Where nodes differ, large all-reduces give slow cards less to do"},
    {"ISTHMUS_ONLY_SUMS", "0", Unit::kFlag,
     "the ranks of this process hold no data for all-reduces and only add up that of others: they "
     "call them with null buffers"},
    {"ISTHMUS_RACK", "", Unit::kText,
     "the rack of this node, a name that its other nodes say too (row/rack for racks in rows): "
     "links between racks are crossed by what they must carry only"},
    {"ISTHMUS_RACK_RATE", "none", Unit::kText,
     "what the link of this node's rack carries each way: 40gbit; none: not known, less than its "
     "nodes' cards together"},
    {"ISTHMUS_TIMEOUT", "300000", Unit::kMilliseconds,
     "how long one call, or making a communicator, may take before it fails"},
    {"ISTHMUS_SHM", "1", Unit::kFlag,
     "share memory with the ranks of this node; 0: go by TCP inside a node too"},
    {"ISTHMUS_READ_PEERS", "auto", Unit::kText,
     "ordinary buffers of this node's ranks are read where they lie, through the system: auto "
     "(where that is quicker), always, never"},
    {"ISTHMUS_LOG", "warning", Unit::kText,
     "what is written to standard error: error, warning, info or debug"},
};

/// Every knob table of the library, for Options and for `isthmus info --options`.
Options::Tables allKnobs();

/// A transport that ISTHMUS_TRANSPORTS names and this process cannot have.
struct MissingTransport {
    std::string name;
    std::string why;
};

class PairChoices;

/// What a process has once: options, shared memory, transports, the Engine.
class Runtime {
public:
    /// This process's, made at the first call and kept until it ends. `towards`: our own address on
    /// the way to where the ranks meet (empty: unknown), to choose the network card. Any thread.
    /// Errors: kConfiguration (options, interface, ports), kResource (shared memory), kAborted
    /// after a fork.
    static Result<Runtime*> ofProcess(const std::string& towards);

    /// For tests: a process of its own inside this one. `addTransports` gets the Engine before
    /// anything runs.
    static Result<std::unique_ptr<Runtime>> make(
        Options options, EngineConfig engine, const std::function<Status(Runtime&)>& addTransports);
    ~Runtime();

    const Options& options() const { return options_; }
    const SelectorOptions& selectorOptions() const { return selectorOptions_; }
    Arena& arena() { return *arena_; }
    Engine& engine() { return *engine_; }
    const ProcessId& self() const { return engine_->config().self; }
    /// The transport that shares memory with this node's ranks (or null), and those that reach
    /// other nodes, the best first.
    enum class Reach : std::uint8_t { kInsideNode, kBetweenNodes };
    void addTransport(std::unique_ptr<Transport> transport, Reach reach);
    Transport* insideNode() const { return insideNode_; }
    const std::vector<Transport*>& betweenNodes() const { return betweenNodes_; }
    /// Of that name; null: there is none.
    Transport* betweenNodes(std::string_view name) const;
    const std::vector<MissingTransport>& missingTransports() const { return missing_; }
    void addMissing(MissingTransport missing) { missing_.push_back(std::move(missing)); }
    /// Which of them leads to whom. Any thread.
    PairChoices& pairChoices() { return *pairChoices_; }
    /// What this node's card carries each way; 0: not known. The ranks of a node may differ: the
    /// largest counts.
    double lineBitsPerSecond() const { return lineBitsPerSecond_; }
    /// Whether ranks of this process only add in all-reduces (ISTHMUS_ONLY_SUMS).
    bool onlySums() const { return onlySums_; }
    void setOnlySums(bool only) { onlySums_ = only; }
    /// Whether buffers that peers cannot map are read through the system (ISTHMUS_READ_PEERS).
    enum class Reading : std::uint8_t { kNever, kWhereQuicker, kAlways };
    Reading reading() const { return reading_; }
    /// Where this node is (ISTHMUS_RACK) and what leads there (ISTHMUS_RACK_RATE).
    const RackWord& rack() const { return rack_; }
    void setRack(RackWord rack) { rack_ = std::move(rack); }
    void setLineBitsPerSecond(double bits) { lineBitsPerSecond_ = bits; }
    /// How many of the node's cards this process uses at once.
    int cards() const { return cards_; }
    void setCards(int cards) { cards_ = cards; }
    /// Which host this is, and whether nothing but its loopback leads here from others.
    struct Host {
        std::uint64_t id = 0;  ///< of boot and network namespace; 0: not known
        bool isLoopbackOnly = false;
    };
    const Host& host() const { return host_; }
    void setHost(Host host) { host_ = host; }

private:
    Runtime(Options options, std::unique_ptr<Arena> arena);

    Options options_;
    SelectorOptions selectorOptions_;
    std::unique_ptr<Arena> arena_;
    std::unique_ptr<Engine> engine_;
    Transport* insideNode_ = nullptr;
    std::vector<Transport*> betweenNodes_;
    std::vector<MissingTransport> missing_;
    std::unique_ptr<PairChoices> pairChoices_;
    double lineBitsPerSecond_ = 0;
    int cards_ = 1;
    Reading reading_ = Reading::kWhereQuicker;
    bool onlySums_ = false;
    RackWord rack_;
    Host host_;
};

}  // namespace isthmus
