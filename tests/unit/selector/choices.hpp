#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "comm/selector/select.hpp"

namespace isthmus {

inline Layout oneNode(int ranks) {
    return Layout::of(std::vector<int>(static_cast<std::size_t>(ranks), 0));
}

inline Layout equalNodes(int nodes, int ranksOfNode) {
    std::vector<int> nodeOf;
    for (int rank = 0; rank < nodes * ranksOfNode; ++rank) nodeOf.push_back(rank / ranksOfNode);
    return Layout::of(nodeOf);
}

inline Selection chosen(Collective collective, std::uint64_t bytes, const Layout& layout,
                        const SelectorOptions& options = {}) {
    CallShape call;
    call.collective = collective;
    call.bytes = bytes;
    const Result<Selection> selection = select(call, layout, options);
    EXPECT_TRUE(selection.ok()) << selection.status().what();
    return selection.ok() ? *selection : Selection{};
}

}  // namespace isthmus
