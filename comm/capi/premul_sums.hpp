#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus {

/// The operations that a program made with isthmusRedOpCreatePreMulSum for one communicator.
/// Thread: any.
class PremulSums {
public:
    struct Entry {
        DataType type;
        double factor;
    };

    /// The number of the new operation: the first that is free beyond the plain ones.
    /// kInvalidArgument: `type` is not a real floating type.
    Result<int> add(DataType type, const void* factor);
    Status remove(int number);
    std::optional<Entry> find(int number) const;

private:
    mutable std::mutex mutex_;
    std::vector<std::optional<Entry>> entries_;  // guarded by mutex_
};

}  // namespace isthmus
