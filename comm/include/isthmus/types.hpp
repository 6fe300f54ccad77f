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
    kComplex64,   ///< two f32, the real part first
    kComplex128,  ///< two f64
    kFloat8e4m3,  ///< moved, never reduced
    kFloat8e5m2,  ///< moved, never reduced
};

/// Reductions. Values are those of isthmusRedOp_t. kAvg is for floating and complex types only; the
/// bitwise three are for integers and bool only; complex types have kSum and kAvg.
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

inline constexpr int kDataTypes = 17;
inline constexpr int kReduceOps = 8;
inline constexpr int kCollectives = 9;

/// Bytes of one element.
constexpr std::size_t bytesOf(DataType type) {
    switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kBool:
    case DataType::kFloat8e4m3:
    case DataType::kFloat8e5m2:
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
    case DataType::kComplex64:
        return 8;
    case DataType::kComplex128:
        return 16;
    }
    return 0;
}

/// Real types in which sums, averages, minima and maxima are formed.
constexpr bool isFloating(DataType type) {
    return type == DataType::kFloat16 || type == DataType::kBfloat16 ||
           type == DataType::kFloat32 || type == DataType::kFloat64;
}

constexpr bool isComplex(DataType type) {
    return type == DataType::kComplex64 || type == DataType::kComplex128;
}

/// The type that a complex one holds two of; any other type itself.
constexpr DataType partOf(DataType type) {
    if (type == DataType::kComplex64) return DataType::kFloat32;
    return type == DataType::kComplex128 ? DataType::kFloat64 : type;
}

/// Names as torch and NCCL print them: "f32", "bf16", "i64", "bool", "c64", "f8e4m3".
constexpr std::string_view nameOf(DataType type) {
    constexpr std::string_view kNames[kDataTypes] = {
        "i8",   "u8",  "i16", "u16",  "i32", "u32",  "i64",    "u64",   "f16",
        "bf16", "f32", "f64", "bool", "c64", "c128", "f8e4m3", "f8e5m2"};
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
