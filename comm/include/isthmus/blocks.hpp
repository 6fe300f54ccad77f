#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus {
inline namespace v1 {

/// Where each rank's (or neighbour's) block lies in a buffer of a v-form, in elements, one entry
/// for each.
struct Blocks {
    std::vector<std::size_t> counts{};
    std::vector<std::size_t> displacements{};  ///< empty: packed in rank order
};

namespace detail {

inline const std::size_t* placesOf(const Blocks& blocks) {
    return blocks.displacements.empty() ? nullptr : blocks.displacements.data();
}

inline Status expectElements(const char* what, std::size_t elements, std::size_t needed) {
    if (elements == needed) return {};
    return Status::invalidArgument(std::string(what) + " has " + std::to_string(elements) +
                                   " elements, needed " + std::to_string(needed));
}

/// One count, and one displacement or none at all, for each rank (or whatever the blocks are of).
inline Status expectCounts(const char* what, const Blocks& blocks, int ranks,
                           const char* whose = "rank") {
    const auto all = static_cast<std::size_t>(ranks);
    const std::size_t places = blocks.displacements.size();
    if (blocks.counts.size() == all && (places == 0 || places == all)) return {};
    return Status::invalidArgument(std::string(what) + " needs one count for each of " +
                                   std::to_string(ranks) + " " + whose + "s");
}

/// expectCounts(), and every block inside a buffer of `elements`.
inline Status expectBlocks(const char* what, std::size_t elements, const Blocks& blocks, int ranks,
                           const char* whose = "rank") {
    ISTHMUS_TRY(expectCounts(what, blocks, ranks, whose));
    const bool isPacked = blocks.displacements.empty();
    std::size_t next = 0;
    for (std::size_t rank = 0; rank < blocks.counts.size(); ++rank) {
        const std::size_t at = isPacked ? next : blocks.displacements[rank];
        const std::size_t count = blocks.counts[rank];
        if (at > elements || count > elements - at) {
            return Status::invalidArgument(std::string(what) + " has " + std::to_string(elements) +
                                           " elements, the block of " + whose + " " +
                                           std::to_string(rank) + " is " + std::to_string(count) +
                                           " from " + std::to_string(at));
        }
        next = at + count;
    }
    return {};
}

}  // namespace detail
}  // namespace v1
}  // namespace isthmus
