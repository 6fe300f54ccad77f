#include "comm/algorithm/entry_kinds.hpp"

#include "comm/algorithm/halving.hpp"
#include "comm/plan/chunking.hpp"

namespace isthmus {
namespace {

bool isOneNode(const Layout& layout) {
    return layout.nodes.size() == 1;
}

bool isAny(const Layout&) {
    return true;
}

bool isSeveralNodes(const Layout& layout) {
    return layout.nodes.size() > 1 || layout.ranks() == 1;
}

template <Fits Fit>
Fits withDataEverywhere(Collective collective) {
    if (collective != Collective::kAllReduce) return Fit;
    return [](const Layout& layout) { return layout.summing.empty() && Fit(layout); };
}

}  // namespace

Chunking whole(const Layout&) {
    return {};
}

Chunking pieceForEachRank(const Layout& layout) {
    return evenChunking(layout.ranks());
}

Chunking halves(const Layout&) {
    return evenChunking(2);
}

Chunking pieceForEachThatHalves(const Layout& layout) {
    return evenChunking(halvingWorkers(layout.ranks()));
}

Entry byMessages(std::string_view name, Collective collective, std::string_view meaning,
                 std::string_view source, Cut cut, Write write, bool isInPlaceSafe) {
    return {{name,
             collective,
             meaning,
             source,
             kOneLevel,
             {Mapping::kNone},
             isInPlaceSafe,
             withDataEverywhere<isAny>(collective)},
            cut,
            write};
}

Entry inNode(std::string_view name, Collective collective, std::string_view meaning, Cut cut,
             Write write, bool isInPlaceSafe) {
    const std::vector<Mapping> mappings = {Mapping::kAll, Mapping::kShared, Mapping::kRead};
    return {{name, collective, meaning, kOwn, kOneLevel, mappings, isInPlaceSafe,
             withDataEverywhere<isOneNode>(collective)},
            cut,
            write};
}

Entry twoLevel(std::string_view name, Collective collective, std::string_view meaning,
               std::string_view source, Cut cut, Write write, bool isInPlaceSafe) {
    const std::vector<Mapping> mappings = {Mapping::kAll, Mapping::kShared};
    return {{name, collective, meaning, source, kLevels, mappings, isInPlaceSafe,
             withDataEverywhere<isSeveralNodes>(collective)},
            cut,
            write};
}

Entry anyMapping(Entry entry) {
    entry.facts.mappings = {Mapping::kShared};
    return entry;
}

Entry withFit(Entry entry, Fits fits) {
    entry.facts.fits = fits;
    return entry;
}

Entry equalBlocks(Entry entry) {
    entry.facts.servesCounts = false;
    return entry;
}

}  // namespace isthmus
