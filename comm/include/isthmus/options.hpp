#pragma once

#include <chrono>
#include <complex>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <isthmus/isthmus.h>
#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

// The C++ side of the C API is all in headers: programs link C symbols only, so compilers and
// standard libraries may differ. `v1` keeps its symbols apart from those of later versions.
namespace isthmus {
inline namespace v1 {

// Every field has its initializer, so that `{.name = "x"}` is whole to -Wextra.

/// How one call behaves. Zero and empty mean the defaults.
struct CallOptions {
    std::chrono::milliseconds timeout{0};  ///< 0: the Communicator's
    int priority = 0;                      ///< 0 (first) to 7 (last); orders sending only
    std::string name{};                    ///< for messages
    std::string algorithm{};       ///< a name that `isthmus explain` lists, equal on all ranks
    bool isPersistent = false;     ///< only prepare it; Work::start() runs it, again and again
    bool isDeterministic = false;  ///< same bits on any layout; all ranks or none
    bool roundsOnce = false;       ///< 16-bit sums go as f32; all ranks or none
};

/// How a Communicator is made. Zero and empty mean the defaults.
struct CommunicatorOptions {
    std::string name{};                    ///< for messages and traces
    std::chrono::milliseconds timeout{0};  ///< of one call and of the making; 0: ISTHMUS_TIMEOUT
    bool isLazy = false;                   ///< look for the peers at the first call
    std::vector<int> globalRanks{};        ///< for messages: rank -> rank of the whole job
};

/// Which DataType the elements of type T are. Specialize it for small floats of your own:
/// `template <> struct isthmus::DataTypeOf<MyHalf> : isthmus::IsDataType<DataType::kFloat16> {};`
template <DataType kType>
struct IsDataType {
    static constexpr DataType value = kType;
};

template <typename T>
struct DataTypeOf {};

template <>
struct DataTypeOf<bool> : IsDataType<DataType::kBool> {};
template <>
struct DataTypeOf<std::byte> : IsDataType<DataType::kUint8> {};
template <>
struct DataTypeOf<float> : IsDataType<DataType::kFloat32> {};
template <>
struct DataTypeOf<double> : IsDataType<DataType::kFloat64> {};

template <>
struct DataTypeOf<std::complex<float>> : IsDataType<DataType::kComplex64> {};
template <>
struct DataTypeOf<std::complex<double>> : IsDataType<DataType::kComplex128> {};

template <typename T>
requires(std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= 8) struct DataTypeOf<T> {
    // kInt8 to kUint64 are numbered in pairs of (signed, unsigned) by width.
    static constexpr int kWidth = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    static constexpr DataType value =
        static_cast<DataType>(2 * kWidth + (std::is_unsigned_v<T> ? 1 : 0));
};

/// A type that collectives know.
template <typename T>
concept Element = requires {
    { DataTypeOf<std::remove_cv_t<T>>::value } -> std::convertible_to<DataType>;
}
&&bytesOf(DataTypeOf<std::remove_cv_t<T>>::value) == sizeof(T);

namespace detail {

template <typename B>
using ElementOf = std::remove_pointer_t<decltype(std::data(std::declval<B&>()))>;

}  // namespace detail

/// Contiguous elements that can be read: a span, a vector, an array.
template <typename B>
concept Buffer = requires(B& buffer) {
    std::data(buffer);
    { std::size(buffer) } -> std::convertible_to<std::size_t>;
}
&&Element<detail::ElementOf<B>>;

/// A Buffer that can be written.
template <typename B>
concept WritableBuffer = Buffer<B> && !std::is_const_v<detail::ElementOf<B>>;

namespace detail {

template <typename B>
inline constexpr bool kIsView = std::ranges::enable_borrowed_range<std::remove_cvref_t<B>>;

/// Whether what was given as `B&&` is still there after the expression: it has a name, or it is a
/// view of elements that live elsewhere.
template <typename B>
inline constexpr bool kLasts = std::is_lvalue_reference_v<B> || kIsView<B>;

}  // namespace detail

/// A Buffer that a call may be given. One that is only started takes no temporary that owns its
/// elements: they would be gone before it has read them.
template <typename B, bool isStarted>
concept GivenBuffer = Buffer<B> &&(!isStarted || detail::kLasts<B>);

template <typename B, bool isStarted>
concept GivenWritableBuffer = WritableBuffer<B> && GivenBuffer<B, isStarted>;

namespace detail {

/// The failure that the C call just reported on this thread.
inline Status statusOf(isthmusResult_t result) {
    if (result == isthmusSuccess) return {};
    return {static_cast<Status::Code>(result), isthmusGetLastError(nullptr)};
}

inline isthmusDataType_t toC(DataType type) {
    return static_cast<isthmusDataType_t>(type);
}
inline isthmusRedOp_t toC(ReduceOp op) {
    return static_cast<isthmusRedOp_t>(op);
}

/// Borrows the texts of `options`: the C call copies them.
inline isthmusCallOptions_t toC(const CallOptions& options) {
    isthmusCallOptions_t result = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    result.timeout_ms = options.timeout.count();
    result.priority = options.priority;
    result.name = options.name.empty() ? nullptr : options.name.c_str();
    result.algorithm = options.algorithm.empty() ? nullptr : options.algorithm.c_str();
    result.persistent = options.isPersistent ? 1 : 0;
    result.deterministic = options.isDeterministic ? 1 : 0;
    result.oneRounding = options.roundsOnce ? 1 : 0;
    return result;
}

/// Borrows the texts and ranks of `options`: the C call copies them. kInvalidArgument when there
/// are global ranks, but not one for each rank (the C call could not see that).
inline Result<isthmusConfig_t> toC(const CommunicatorOptions& options, int ranks) {
    const std::size_t globals = options.globalRanks.size();
    if (globals != 0 && (ranks < 0 || globals != static_cast<std::size_t>(ranks))) {
        return Status::invalidArgument(std::to_string(globals) + " global ranks for " +
                                       std::to_string(ranks) + " ranks");
    }
    isthmusConfig_t result = ISTHMUS_CONFIG_INITIALIZER;
    result.name = options.name.empty() ? nullptr : options.name.c_str();
    result.timeout_ms = options.timeout.count();
    result.lazy = options.isLazy ? 1 : 0;
    result.globalRanks = globals == 0 ? nullptr : options.globalRanks.data();
    return result;
}

}  // namespace detail
}  // namespace v1
}  // namespace isthmus
