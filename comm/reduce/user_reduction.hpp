#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include <isthmus/types.hpp>

namespace isthmus {

/// A reduction that the program brought along. Associative; ranks know it by its name, since
/// functions cannot be compared across processes.
struct UserReduction {
    /// inOut[i] = in[i] op inOut[i]; `in` stands left of `inOut`. Elements are aligned as the
    /// caller's buffers are.
    using Combine =
        std::function<void(const void* in, void* inOut, std::size_t elements, DataType type)>;

    std::string name;
    bool isCommutative = false;
    Combine combine;
};

/// targets[*][i] = sources[0][i] op sources[1][i] op ..., left to right. A target may be one of
/// `sources` exactly; otherwise nothing overlaps. Any type serves: it only says how wide an
/// element is. At least one source and one target. Thread: any.
void reduceByUser(const UserReduction& reduction, DataType type, std::span<void* const> targets,
                  std::span<const void* const> sources, std::size_t elements);

}  // namespace isthmus
