#pragma once

#include "comm/algorithm/entries.hpp"

namespace isthmus {

inline constexpr bool kSafe = true;
inline constexpr bool kUnsafe = false;
inline constexpr bool kOneLevel = false;
inline constexpr bool kLevels = true;

inline constexpr std::string_view kOwn = "own: derivation in comm/algorithm/DESIGN.md";
inline constexpr std::string_view kPatarasuk =
    "Patarasuk and Yuan 2009, doi 10.1016/j.jpdc.2008.09.002";
inline constexpr std::string_view kThakur = "Thakur et al. 2005, doi 10.1177/1094342005051521";
inline constexpr std::string_view kRabenseifner =
    "Rabenseifner 2004, doi 10.1007/978-3-540-24685-5_1; any count by folding";
inline constexpr std::string_view kChan = "Chan et al., PPoPP 2006: both directions of a ring";
inline constexpr std::string_view kSanders = "Sanders et al. 2009, doi 10.1016/j.parco.2009.09.001";
inline constexpr std::string_view kBruck = "Bruck et al. 1997, doi 10.1109/71.642949";
inline constexpr std::string_view kBytePs =
    "Jiang et al., BytePS, OSDI 2020, Theorem 1; no servers";
inline constexpr std::string_view kRuefenacht =
    "Ruefenacht et al., recursive multiplying, Parallel Computing 69, 2017; scattering: own";
inline constexpr std::string_view kServers =
    "Jiang et al., BytePS, OSDI 2020: summation service; several ranks of a node: own";
inline constexpr std::string_view kPxn = "PXN, NVIDIA NCCL 2.12, 2022; unequal nodes: own";
inline constexpr std::string_view kLeaders =
    "Kielmann et al., MagPIe, PPoPP 1999, doi 10.1145/301104.301116";
inline constexpr std::string_view kHensgen = "Hensgen et al. 1988, doi 10.1007/BF01379320";
inline constexpr std::string_view kBlueConnect =
    "Cho et al., BlueConnect, MLSys 2019; unequal nodes: own";

using Write = void (*)(PlanBuilder&, const Scene&);
using Cut = Chunking (*)(const Layout&);
using Fits = bool (*)(const Layout&);

Chunking whole(const Layout& layout);
Chunking pieceForEachRank(const Layout& layout);
Chunking halves(const Layout& layout);
Chunking pieceForEachThatHalves(const Layout& layout);

/// For layouts of any nodes, of one node, and of several. All-reduces add up what every rank has:
/// where some have nothing to add (Layout::summing) those of withFit() serve.
Entry byMessages(std::string_view name, Collective collective, std::string_view meaning,
                 std::string_view source, Cut cut, Write write, bool isInPlaceSafe = kSafe);
Entry inNode(std::string_view name, Collective collective, std::string_view meaning, Cut cut,
             Write write, bool isInPlaceSafe = kSafe);
Entry twoLevel(std::string_view name, Collective collective, std::string_view meaning,
               std::string_view source, Cut cut, Write write, bool isInPlaceSafe = kSafe);

/// The same plan whether buffers are mapped or not: ranks need not wait for each other to choose.
Entry anyMapping(Entry entry);
/// For other layouts.
Entry withFit(Entry entry, Fits fits);
/// A rank would need the sizes of blocks between others.
Entry equalBlocks(Entry entry);

/// Those of several levels.
void addReducingTwoLevel(std::vector<Entry>& all);
void addLeaders(std::vector<Entry>& all);
void addSumming(std::vector<Entry>& all);
void addOrderedTwoLevel(std::vector<Entry>& all);
void addMovingTwoLevel(std::vector<Entry>& all);
void addThreeLevel(std::vector<Entry>& all);

}  // namespace isthmus
