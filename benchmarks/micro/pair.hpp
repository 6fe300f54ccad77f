#pragma once

#include <functional>
#include <memory>
#include <string>

#include <isthmus/status.hpp>
#include <isthmus/store.hpp>

#include "comm/transport/rma/rma_device.hpp"
#include "comm/transport/transport_choice.hpp"

namespace isthmus::micro {

/// Says why on standard error and ends the process with 1.
[[noreturn]] void stop(const std::string& why);

template <typename Value>
Value valueOf(Result<Value> result) {
    if (!result.ok()) stop(result.status().what());
    return std::move(*result);
}

/// Bytes to and from the other process, outside of what is measured.
class Wire {
public:
    explicit Wire(int socket) : socket_(socket) {}
    /// Gives ours and takes theirs; at most 64 KiB.
    Bytes swap(const Bytes& ours) const;

private:
    int socket_;
};

/// Runs `side` in this process (first) and in a forked one, and ends both with its code, without a
/// goodbye that the other would take for an end.
[[noreturn]] void runPair(const std::function<int(const Wire&, bool isFirst)>& side);

/// us for one way: the median over batches of half a round trip, since who shares its processors
/// loses some of them whole.
double halfRoundTrip(int batches, const std::function<void()>& roundTrip);

/// The first between nodes of a wish such as ucx@posix.
TransportChoice::Between wishedTransport(const std::string& wish);

/// "ucx" or "ofi", over loopback where it takes addresses.
std::unique_ptr<RmaDevice> openDevice(const TransportChoice::Between& wish);

}  // namespace isthmus::micro
