#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace isthmus {

/// A process's place in one Communicator, 0 to ranks - 1.
using Rank = int;

/// Element types. Values are those of isthmusDataType_t.
enum class DataType : std::uint8_t {
    kInt8,
    kUint8,
    kInt16,
    kUint16,
    kInt32,
    kUint32,
    kInt64,
    kUint64,
    kFloat16,
    kBfloat16,
    kFloat32,
    kFloat64,
    kBool,
};

/// Reductions. Values are those of isthmusRedOp_t. kAvg is for floating types only; the bitwise
/// three are for integers and bool only.
enum class ReduceOp : std::uint8_t { kSum, kProd, kMin, kMax, kAvg, kBand, kBor, kBxor };

/// What a call promises.
enum class Collective : std::uint8_t {
    kAllReduce,
    kAllGather,
    kReduceScatter,
    kAllToAll,
    kBroadcast,
    kReduce,
    kGather,
    kScatter,
    kBarrier,
};

inline constexpr int kDataTypes = 13;
inline constexpr int kReduceOps = 8;
inline constexpr int kCollectives = 9;

/// Bytes of one element.
constexpr std::size_t bytesOf(DataType type) {
    switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kBool:
        return 1;
    case DataType::kInt16:
    case DataType::kUint16:
    case DataType::kFloat16:
    case DataType::kBfloat16:
        return 2;
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kFloat32:
        return 4;
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kFloat64:
        return 8;
    }
    return 0;
}

constexpr bool isFloating(DataType type) {
    return type == DataType::kFloat16 || type == DataType::kBfloat16 ||
           type == DataType::kFloat32 || type == DataType::kFloat64;
}

/// Names as torch and NCCL print them: "f32", "bf16", "i64", "bool".
constexpr std::string_view nameOf(DataType type) {
    constexpr std::string_view kNames[kDataTypes] = {
        "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "bool"};
    return kNames[static_cast<int>(type)];
}

constexpr std::string_view nameOf(ReduceOp op) {
    constexpr std::string_view kNames[kReduceOps] = {"sum", "prod", "min", "max",
                                                     "avg", "band", "bor", "bxor"};
    return kNames[static_cast<int>(op)];
}

constexpr std::string_view nameOf(Collective collective) {
    constexpr std::string_view kNames[kCollectives] = {"all_reduce", "all_gather", "reduce_scatter",
                                                       "all_to_all", "broadcast",  "reduce",
                                                       "gather",     "scatter",    "barrier"};
    return kNames[static_cast<int>(collective)];
}

constexpr bool reduces(Collective collective) {
    return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
           collective == Collective::kReduce;
}

constexpr bool hasRoot(Collective collective) {
    return collective == Collective::kBroadcast || collective == Collective::kReduce ||
           collective == Collective::kGather || collective == Collective::kScatter;
}

}  // namespace isthmus
