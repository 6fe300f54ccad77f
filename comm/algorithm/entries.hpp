#pragma once

#include <vector>

#include "comm/algorithm/scene.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// A catalogue entry with what writes its plans.
struct Entry {
    Algorithm facts;
    Chunking (*chunking)(const Layout& layout);
    /// Writes my plan. Never called in a world of one.
    void (*write)(PlanBuilder& plan, const Scene& scene);
};

const std::vector<Entry>& entries();
const Entry* findEntry(Collective collective, std::string_view name);

}  // namespace isthmus
