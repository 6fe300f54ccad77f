#include "tools/cli/bench_shape.hpp"

#include <algorithm>
#include <string>

namespace isthmus::cli {
namespace {

constexpr std::uint64_t kBlockBytes = 16;

constexpr std::string_view kNcclTypes[kDataTypes] = {
    "int8",     "uint8", "int16",  "uint16", "int32",     "uint32",     "int64",  "uint64", "half",
    "bfloat16", "float", "double", "bool",   "complex64", "complex128", "f8e4m3", "f8e5m2"};

bool isOneBlock(Collective collective) {
    return collective == Collective::kAllReduce || collective == Collective::kBroadcast ||
           collective == Collective::kReduce;
}

}  // namespace

BenchShape benchShape(Collective collective, DataType type, int ranks, std::uint64_t sizeBytes) {
    BenchShape shape;
    if (collective == Collective::kBarrier) return shape;
    const std::uint64_t elementBytes = bytesOf(type);
    const auto all = static_cast<std::uint64_t>(ranks);
    shape.elements = sizeBytes / elementBytes;
    if (!isOneBlock(collective)) {
        const std::uint64_t unit = kBlockBytes / elementBytes;
        shape.elements = shape.elements / all / unit * unit;
    }
    const bool sendsBlocks = collective == Collective::kReduceScatter ||
                             collective == Collective::kAllToAll ||
                             collective == Collective::kScatter;
    const bool getsBlocks = collective == Collective::kAllGather ||
                            collective == Collective::kAllToAll ||
                            collective == Collective::kGather;
    shape.sendElements = shape.elements * (sendsBlocks ? all : 1);
    shape.recvElements = shape.elements * (getsBlocks ? all : 1);
    shape.sizeBytes = std::max(shape.sendElements, shape.recvElements) * elementBytes;
    return shape;
}

double busFactor(Collective collective, int ranks) {
    const double all = ranks;
    switch (collective) {
    case Collective::kAllReduce:
        return 2 * (all - 1) / all;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
        return (all - 1) / all;
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kBarrier:
        break;
    }
    return 1;
}

Result<DataType> benchType(std::string_view name) {
    std::string known;
    for (int index = 0; index < kDataTypes; ++index) {
        const auto type = static_cast<DataType>(index);
        if (name == kNcclTypes[index] || name == nameOf(type)) return type;
        known += (index == 0 ? "" : ", ") + std::string(kNcclTypes[index]);
    }
    return Status::invalidArgument("unknown type \"" + std::string(name) + "\": known are " +
                                   known);
}

Result<ReduceOp> benchOp(std::string_view name) {
    std::string known;
    for (int index = 0; index < kReduceOps; ++index) {
        const auto op = static_cast<ReduceOp>(index);
        if (name == nameOf(op)) return op;
        known += (index == 0 ? "" : ", ") + std::string(nameOf(op));
    }
    return Status::invalidArgument("unknown operation \"" + std::string(name) + "\": known are " +
                                   known);
}

std::string_view ncclNameOf(DataType type) {
    return kNcclTypes[static_cast<int>(type)];
}

}  // namespace isthmus::cli
