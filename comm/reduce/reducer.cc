#include "comm/reduce/reducer.hpp"

#include <cstring>

#include "comm/base/assert.hpp"
#include "comm/reduce/job.hpp"

namespace isthmus {

namespace {

using reduction::BitOp;
using reduction::Job;

bool isBitwise(ReduceOp op) {
    return op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
}

BitOp bitOpOf(ReduceOp op) {
    if (op == ReduceOp::kBand) return BitOp::kAnd;
    return op == ReduceOp::kBor ? BitOp::kOr : BitOp::kXor;
}

BitOp boolOpOf(ReduceOp op) {
    switch (op) {
    case ReduceOp::kProd:
    case ReduceOp::kMin:
    case ReduceOp::kBand:
        return BitOp::kBoolAnd;
    case ReduceOp::kBxor:
        return BitOp::kBoolXor;
    default:
        return BitOp::kBoolOr;
    }
}

/// Wrapping sums and products of signed integers have the bits of the unsigned ones.
DataType withoutSign(DataType type) {
    switch (type) {
    case DataType::kInt8:
        return DataType::kUint8;
    case DataType::kInt16:
        return DataType::kUint16;
    case DataType::kInt32:
        return DataType::kUint32;
    case DataType::kInt64:
        return DataType::kUint64;
    default:
        return type;
    }
}

/// One source and nothing to do to it.
void copyToAll(const Job& job) {
    if (job.targetCount == 1) {
        return copyBytes(job.targets[0], job.sources[0], job.bytes, job.streaming);
    }
    runBits(BitOp::kOr, job);
}

/// Sum and avg of complex numbers are those of their parts.
void run(DataType stored, ReduceOp op, const Job& job) {
    const DataType type = partOf(stored);
    if (type == DataType::kBool) return runBits(boolOpOf(op), job);
    if (job.sourceCount == 1) {
        const bool scales = isFloating(type) && job.scale != 1.0;
        return scales ? runSum(type, job) : copyToAll(job);
    }
    if (isBitwise(op)) return runBits(bitOpOf(op), job);
    switch (op) {
    case ReduceOp::kProd:
        return runProduct(withoutSign(type), job);
    case ReduceOp::kMin:
        return runExtreme(type, false, job);
    case ReduceOp::kMax:
        return runExtreme(type, true, job);
    default:
        return runSum(withoutSign(type), job);
    }
}

}  // namespace

bool isReducible(DataType type, ReduceOp op) {
    if (type == DataType::kFloat8e4m3 || type == DataType::kFloat8e5m2) return false;
    if (isComplex(type)) return op == ReduceOp::kSum || op == ReduceOp::kAvg;
    if (op == ReduceOp::kAvg) return isFloating(type);
    return !isBitwise(op) || !isFloating(type);
}

void reduce(DataType type, ReduceOp op, void* target, std::span<const void* const> sources,
            std::size_t elements, double scale) {
    reduceToMany(type, op, std::span<void* const>(&target, 1), sources, elements, scale, false);
}

void reduceToMany(DataType type, ReduceOp op, std::span<void* const> targets,
                  std::span<const void* const> sources, std::size_t elements, double scale,
                  bool streaming) {
    ISTHMUS_ASSERT(isReducible(type, op));
    ISTHMUS_ASSERT(!sources.empty() && !targets.empty());
    if (elements == 0) return;
    run(type, op,
        Job{sources.data(), sources.size(), targets.data(), targets.size(),
            elements * bytesOf(type), scale, streaming});
}

void copyBytes(void* target, const void* source, std::size_t bytes, bool streaming) {
    if (bytes == 0 || target == source) return;
    if (!streaming) {
        std::memcpy(target, source, bytes);
        return;
    }
    runBits(BitOp::kOr, Job{&source, 1, &target, 1, bytes, 1.0, true});
}

}  // namespace isthmus
