#include "comm/communicator/runtime.hpp"

#include <array>

#include "comm/bootstrap/bootstrap_knobs.hpp"
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

Result<std::unique_ptr<Runtime>> Runtime::make(
    Options options, EngineConfig engine, const std::function<Status(Runtime&)>& addTransports) {
    auto selector = SelectorOptions::from(options);
    if (!selector.ok()) return selector.status();
    const auto asked = static_cast<std::size_t>(options.integer("ISTHMUS_ARENA"));
    auto arena = Arena::create(asked > 0 ? asked : Arena::defaultCapacityBytes());
    if (!arena.ok()) return arena.status();
    std::unique_ptr<Runtime> runtime(new Runtime(std::move(options), std::move(*arena)));
    runtime->selectorOptions_ = std::move(*selector);
    engine.arena = runtime->arena_.get();
    engine.scratchBytes = static_cast<std::size_t>(runtime->options_.integer("ISTHMUS_SCRATCH"));
    runtime->engine_ = std::make_unique<Engine>(std::move(engine));
    ISTHMUS_TRY(addTransports(*runtime));
    return runtime;
}

Runtime::~Runtime() = default;

void Runtime::addTransport(std::unique_ptr<Transport> transport, Reach reach) {
    (reach == Reach::kInsideNode ? insideNode_ : betweenNodes_) = transport.get();
    engine_->addTransport(std::move(transport));
}

}  // namespace isthmus
