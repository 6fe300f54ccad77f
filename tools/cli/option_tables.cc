#include "tools/cli/option_tables.hpp"

#include <span>

#include "comm/bootstrap/bootstrap_knobs.hpp"
#include "comm/memory/memory_knobs.hpp"
#include "comm/selector/select.hpp"
#include "comm/transport/transport_knobs.hpp"
#include "topology/topology_knobs.hpp"

namespace isthmus::cli {

Options::Tables optionTables() {
    static constexpr std::span<const Knob> kTables[] = {
        kTopologyKnobs, kBootstrapKnobs, kMemoryKnobs, kTransportKnobs, kSelectorKnobs};
    return kTables;
}

}  // namespace isthmus::cli
