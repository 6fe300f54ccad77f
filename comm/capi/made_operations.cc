#include "comm/capi/made_operations.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "comm/reduce/half.hpp"

namespace isthmus {

namespace {

template <typename T>
T valueAt(const void* place) {
    T value;
    std::memcpy(&value, place, sizeof value);
    return value;
}

double numberAt(DataType type, const void* place) {
    switch (type) {
    case DataType::kFloat16:
        return fromFloat16(valueAt<std::uint16_t>(place));
    case DataType::kBfloat16:
        return fromBfloat16(valueAt<std::uint16_t>(place));
    case DataType::kFloat32:
        return valueAt<float>(place);
    default:
        return valueAt<double>(place);
    }
}

}  // namespace

Result<PremulSum> premulSumOf(DataType type, const void* factor) {
    if (!isFloating(type)) {
        return Status::invalidArgument("premul_sum is not defined on " + std::string(nameOf(type)) +
                                       "; it is for floating types only");
    }
    return PremulSum{type, numberAt(type, factor)};
}

int MadeOperations::add(Entry entry) {
    const std::lock_guard lock(mutex_);
    auto place = std::find(entries_.begin(), entries_.end(), std::nullopt);
    if (place == entries_.end()) place = entries_.emplace(entries_.end());
    *place = std::move(entry);
    return kReduceOps + static_cast<int>(place - entries_.begin());
}

Status MadeOperations::remove(int number) {
    if (!find(number).has_value()) {
        return Status::invalidArgument("no operation " + std::to_string(number) +
                                       " was made for this communicator");
    }
    const std::lock_guard lock(mutex_);
    entries_[static_cast<std::size_t>(number - kReduceOps)].reset();
    return {};
}

std::optional<MadeOperations::Entry> MadeOperations::find(int number) const {
    if (number < kReduceOps) return std::nullopt;
    const auto at = static_cast<std::size_t>(number - kReduceOps);
    const std::lock_guard lock(mutex_);
    return at < entries_.size() ? entries_[at] : std::nullopt;
}

}  // namespace isthmus
