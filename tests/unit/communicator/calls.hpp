#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "comm/communicator/communicator.hpp"

namespace isthmus::test {

template <typename T>
constexpr DataType kTypeOf = std::is_same_v<T, float>          ? DataType::kFloat32
                             : std::is_same_v<T, double>       ? DataType::kFloat64
                             : std::is_same_v<T, std::int64_t> ? DataType::kInt64
                             : std::is_same_v<T, std::int32_t> ? DataType::kInt32
                                                               : DataType::kUint8;

template <typename T>
CallRequest callOf(Collective collective, const std::vector<T>& input, std::vector<T>& output,
                   std::size_t count, Rank root = 0) {
    CallRequest request;
    request.collective = collective;
    request.type = kTypeOf<T>;
    request.root = root;
    request.input = reinterpret_cast<const std::byte*>(input.data());
    request.output = reinterpret_cast<std::byte*>(output.data());
    request.counts.uniform = count;
    return request;
}

/// In place.
template <typename T>
CallRequest allReduceOf(std::vector<T>& buffer, ReduceOp op = ReduceOp::kSum) {
    CallRequest request = callOf(Collective::kAllReduce, buffer, buffer, buffer.size());
    request.op = op;
    return request;
}

inline CallOptions blocking(std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) {
    CallOptions options;
    options.isBlocking = true;
    options.timeout = timeout;
    return options;
}

template <typename T>
PointToPointRequest sendOf(const std::vector<T>& buffer, Rank peer, std::uint32_t tag = 0) {
    PointToPointRequest request;
    request.isSend = true;
    request.peer = peer;
    request.tag = tag;
    request.buffer = reinterpret_cast<std::byte*>(const_cast<T*>(buffer.data()));  // only read
    request.bytes = buffer.size() * sizeof(T);
    return request;
}

template <typename T>
PointToPointRequest recvOf(std::vector<T>& buffer, Rank peer, std::uint32_t tag = 0) {
    PointToPointRequest request;
    request.peer = peer;
    request.tag = tag;
    request.buffer = reinterpret_cast<std::byte*>(buffer.data());
    request.bytes = buffer.size() * sizeof(T);
    return request;
}

/// Ends a started call.
inline Status endOf(Communicator& communicator, const std::shared_ptr<Work>& work) {
    return communicator.wait(*work, std::chrono::milliseconds(0));
}

/// "all_reduce of {rank + 1}" and whether every rank got ranks * (ranks + 1) / 2: the communicator
/// works.
inline bool sums(Communicator& communicator, std::size_t count = 33) {
    std::vector<float> buffer(count, static_cast<float>(communicator.rank() + 1));
    const auto work = communicator.call(allReduceOf(buffer), blocking());
    const int ranks = communicator.ranks();
    return work->isDone() && work->status().ok() &&
           buffer == std::vector<float>(count, static_cast<float>(ranks * (ranks + 1)) / 2);
}

}  // namespace isthmus::test
