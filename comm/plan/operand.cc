#include "comm/plan/operand.hpp"

#include <algorithm>

namespace isthmus {

int Operand::inputBlocks(Rank rank) const {
    if (onlySums(rank)) return 0;
    switch (collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
    case Collective::kAllGather:
    case Collective::kGather:
        return 1;
    case Collective::kBroadcast:
        return rank == root ? 1 : 0;
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
        return ranks;
    case Collective::kScatter:
        return rank == root ? ranks : 0;
    case Collective::kBarrier:
        break;
    }
    return 0;
}

int Operand::outputBlocks(Rank rank) const {
    if (onlySums(rank)) return 0;
    switch (collective) {
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kReduceScatter:
    case Collective::kScatter:
        return 1;
    case Collective::kReduce:
        return rank == root ? 1 : 0;
    case Collective::kAllGather:
    case Collective::kAllToAll:
        return ranks;
    case Collective::kGather:
        return rank == root ? ranks : 0;
    case Collective::kBarrier:
        break;
    }
    return 0;
}

bool Operand::onlySums(Rank rank) const {
    return std::binary_search(summing.begin(), summing.end(), rank);
}

bool Operand::has(const Location& location) const {
    if (location.rank < 0 || location.rank >= ranks || location.chunk < 0) return false;
    if (location.buffer == Buffer::kInput) return location.chunk < inputChunks(location.rank);
    if (location.buffer == Buffer::kOutput) return location.chunk < outputChunks(location.rank);
    return false;
}

ChunkName Operand::meaning(const Location& location) const {
    const int block = location.chunk / chunksPerBlock;
    const int chunk = location.chunk % chunksPerBlock;
    const bool isInput = location.buffer == Buffer::kInput;
    switch (collective) {
    case Collective::kAllGather:
    case Collective::kGather:
        return {isInput ? location.rank : block, chunk};
    case Collective::kReduceScatter:
    case Collective::kScatter:
        return {isInput ? block : location.rank, chunk};
    case Collective::kAllToAll:
        return {isInput ? location.rank * ranks + block : block * ranks + location.rank, chunk};
    default:
        return {0, chunk};
    }
}

Location Operand::inPlace(const Location& location) const {
    const bool isInput = location.buffer == Buffer::kInput;
    if (!isInput && location.buffer != Buffer::kOutput) return location;
    const bool hasBoth = inputBlocks(location.rank) > 0 && outputBlocks(location.rank) > 0;
    if (!hasBoth) return location;
    const int mine = location.rank * chunksPerBlock;  // where my own block begins
    switch (collective) {
    case Collective::kReduceScatter:
    case Collective::kScatter:
        return isInput ? location : Location{location.rank, Buffer::kInput, mine + location.chunk};
    case Collective::kAllGather:
    case Collective::kGather:
        return isInput ? Location{location.rank, Buffer::kOutput, mine + location.chunk} : location;
    default:
        return {location.rank, Buffer::kOutput, location.chunk};
    }
}

}  // namespace isthmus
