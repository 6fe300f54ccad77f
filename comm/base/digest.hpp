#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include <isthmus/store.hpp>

namespace isthmus {

/// 64 bits that tell values apart across processes of one job (XXH3; not cryptographic).
class Digest {
public:
    Digest();
    ~Digest();
    Digest(const Digest&) = delete;
    Digest& operator=(const Digest&) = delete;

    Digest& add(std::span<const std::byte> data);
    Digest& add(std::string_view text);
    template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T> Digest& add(T value) {
        return add(std::as_bytes(std::span(&value, 1)));
    }
    std::uint64_t value() const;

private:
    void* state_;
};

std::uint64_t digestOf(std::string_view text);

}  // namespace isthmus
