#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace isthmus::scheduler {

/// How a caller looks at a search and ends it early. Both may be empty.
struct Watch {
    std::function<bool()> wantsToStop;
    /// What is being tried, and how many placements were looked at.
    std::function<void(const std::string&, std::uint64_t)> progress;

    bool stops() const { return wantsToStop && wantsToStop(); }
    void tell(const std::string& what, std::uint64_t looked) const {
        if (progress) progress(what, looked);
    }
};

}  // namespace isthmus::scheduler
