#include "comm/communicator/runtime.hpp"

#include <algorithm>
#include <array>

#include "comm/bootstrap/bootstrap_knobs.hpp"
#include "comm/communicator/pair_choice.hpp"
#include "comm/memory/memory_knobs.hpp"
#include "comm/transport/transport_knobs.hpp"
#include "topology/topology_knobs.hpp"

namespace isthmus {

Options::Tables allKnobs() {
    static constexpr std::array<std::span<const Knob>, 6> kTables = {
        kBootstrapKnobs, kTopologyKnobs, kMemoryKnobs,
        kTransportKnobs, kSelectorKnobs, kCommunicatorKnobs};
    return kTables;
}

namespace {

Result<Runtime::Reading> readingOf(const std::string& text) {
    constexpr std::array<std::string_view, 3> kWords = {"never", "auto", "always"};
    const auto at = std::find(kWords.begin(), kWords.end(), text);
    if (at == kWords.end()) {
        return Status::configuration("ISTHMUS_READ_PEERS is \"" + text +
                                     "\", expected auto, always or never");
    }
    return static_cast<Runtime::Reading>(at - kWords.begin());
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::make(
    Options options, EngineConfig engine, const std::function<Status(Runtime&)>& addTransports) {
    auto selector = SelectorOptions::from(options);
    if (!selector.ok()) return selector.status();
    const auto reading = readingOf(options.text("ISTHMUS_READ_PEERS"));
    if (!reading.ok()) return reading.status();
    const auto asked = static_cast<std::size_t>(options.integer("ISTHMUS_ARENA"));
    auto arena = Arena::create(asked > 0 ? asked : Arena::defaultCapacityBytes());
    if (!arena.ok()) return arena.status();
    std::unique_ptr<Runtime> runtime(new Runtime(std::move(options), std::move(*arena)));
    runtime->selectorOptions_ = std::move(*selector);
    runtime->reading_ = *reading;
    engine.arena = runtime->arena_.get();
    engine.scratchBytes = static_cast<std::size_t>(runtime->options_.integer("ISTHMUS_SCRATCH"));
    runtime->engine_ = std::make_unique<Engine>(std::move(engine));
    ISTHMUS_TRY(addTransports(*runtime));
    return runtime;
}

Runtime::Runtime(Options options, std::unique_ptr<Arena> arena)
    : options_(std::move(options)),
      arena_(std::move(arena)),
      pairChoices_(std::make_unique<PairChoices>()) {}

Runtime::~Runtime() = default;

void Runtime::addTransport(std::unique_ptr<Transport> transport, Reach reach) {
    if (reach == Reach::kInsideNode) {
        insideNode_ = transport.get();
    } else {
        betweenNodes_.push_back(transport.get());
    }
    engine_->addTransport(std::move(transport));
}

Transport* Runtime::betweenNodes(std::string_view name) const {
    const auto found = std::find_if(betweenNodes_.begin(), betweenNodes_.end(),
                                    [&](const Transport* each) { return each->name() == name; });
    return found == betweenNodes_.end() ? nullptr : *found;
}

}  // namespace isthmus
