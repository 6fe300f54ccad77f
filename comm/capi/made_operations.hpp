#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

#include "comm/reduce/user_reduction.hpp"

namespace isthmus {

/// A sum of inputs that are multiplied first.
struct PremulSum {
    DataType type;
    double factor;
};

/// kInvalidArgument: `type` is not a real floating type.
Result<PremulSum> premulSumOf(DataType type, const void* factor);

/// The operations that a program made for one communicator. Thread: any.
class MadeOperations {
public:
    using Entry = std::variant<PremulSum, std::shared_ptr<const UserReduction>>;

    /// The number of the new operation: the first that is free beyond the plain ones.
    int add(Entry entry);
    Status remove(int number);
    std::optional<Entry> find(int number) const;

private:
    mutable std::mutex mutex_;
    std::vector<std::optional<Entry>> entries_;  // guarded by mutex_
};

}  // namespace isthmus
