#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <isthmus/status.hpp>
#include <isthmus/store.hpp>

namespace isthmus {

/// Puts `data` at the end of `target`. Not in this header: inlined, g++ 12 warns of overflows in
/// std::vector that cannot be.
void append(Bytes& target, std::span<const std::byte> data);

/// Appends values in little-endian order (the only order we run on; the wire magic rejects the
/// other).
class ByteWriter {
public:
    template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T> ByteWriter& put(T value) {
        append(bytes_, std::as_bytes(std::span(&value, 1)));
        return *this;
    }
    /// A 32-bit length, then the bytes.
    ByteWriter& put(std::span<const std::byte> data) {
        put(static_cast<std::uint32_t>(data.size()));
        append(bytes_, data);
        return *this;
    }
    ByteWriter& put(std::string_view text) {
        return put(std::as_bytes(std::span(text.data(), text.size())));
    }

    Bytes take() { return std::move(bytes_); }

private:
    Bytes bytes_;
};

/// Reads what ByteWriter wrote; never past the end. After a failed read every further one fails:
/// check ok() once.
class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> data) : rest_(data) {}

    template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T> T get() {
        T value{};
        if (rest_.size() < sizeof(T)) {
            isOk_ = false;
            rest_ = {};
            return value;
        }
        std::memcpy(&value, rest_.data(), sizeof(T));
        rest_ = rest_.subspan(sizeof(T));
        return value;
    }
    std::span<const std::byte> getBytes() {
        const auto length = get<std::uint32_t>();
        if (!isOk_ || rest_.size() < length) {
            isOk_ = false;
            rest_ = {};
            return {};
        }
        const auto data = rest_.first(length);
        rest_ = rest_.subspan(length);
        return data;
    }
    std::string getText() {
        const auto data = getBytes();
        return {reinterpret_cast<const char*>(data.data()), data.size()};
    }

    bool ok() const { return isOk_; }
    bool atEnd() const { return rest_.empty(); }

private:
    std::span<const std::byte> rest_;
    bool isOk_ = true;
};

inline Bytes toBytes(std::string_view text) {
    const auto data = std::as_bytes(std::span(text.data(), text.size()));
    return {data.begin(), data.end()};
}

inline std::string toText(std::span<const std::byte> data) {
    return {reinterpret_cast<const char*>(data.data()), data.size()};
}

}  // namespace isthmus
