// Two processes and one device each: half a round trip of a message, and the rate of puts. Beside
// them, in the same minute, fi_pingpong -p shm -e rdm or ucx_perftest tell what the library takes.
//
// usage: micro_rma_device ofi@shm|ofi@tcp|ofi@PROVIDER|ucx@posix|ucx@tcp|ucx [ROUNDS [BYTES]]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "benchmarks/micro/pair.hpp"

namespace isthmus::micro {
namespace {

constexpr std::size_t kMessageBytes = 8;
constexpr std::size_t kPutBytes = std::size_t{1} << 20;
constexpr int kPutsAtOnce = 4;
constexpr int kRounds = 7;

struct Counts final : RmaListener {
    void arrived(std::span<const std::byte>) override { ++messages; }
    void completed(std::uint64_t, const Status& outcome) override {
        if (!outcome.ok()) stop(outcome.what());
        ++transfers;
    }
    void failed(RmaPeer, const Status& why) override { stop(why.what()); }
    void disconnected(RmaPeer) override {}

    int messages = 0;
    int transfers = 0;
};

class Side {
public:
    Side(std::unique_ptr<RmaDevice> device, std::size_t messageBytes, const Wire& wire,
         bool isFirst)
        : device_(std::move(device)),
          messageBytes_(messageBytes),
          wire_(wire),
          isFirst_(isFirst),
          memory_(kPutBytes) {
        for (std::size_t at = 0; at < memory_.size(); ++at) {
            memory_[at] = static_cast<std::byte>(at * 131 + at / 977);
        }
        peer_ = valueOf(device_->connect(wire_.swap(device_->address())));
        canPut_ = device_->limits().transferBytes > 0;
        if (!canPut_) return;
        region_ = valueOf(device_->registerMemory(memory_.data(), memory_.size()));
        key_ = valueOf(device_->importKey(peer_, wire_.swap(device_->key(region_))));
        const auto here = reinterpret_cast<std::uint64_t>(memory_.data());
        const Bytes there = wire_.swap(Bytes(reinterpret_cast<const std::byte*>(&here),
                                             reinterpret_cast<const std::byte*>(&here + 1)));
        std::copy_n(there.data(), sizeof(remote_), reinterpret_cast<std::byte*>(&remote_));
    }

    bool canPut() const { return canPut_; }
    double bounce(int batches) {
        return halfRoundTrip(batches, [&] {
            if (isFirst_) post();
            await(counts_.messages, 1);
            if (!isFirst_) post();
        });
    }
    /// GB/s; the other side looks on.
    double put(int times) {
        const Time start = clock_.now();
        if (!isFirst_) {
            await(counts_.messages, 1);
            post();
            return 0;
        }
        for (int taken = 0; counts_.transfers < times;) {
            if (taken < times && taken - counts_.transfers < kPutsAtOnce) {
                const RmaTransfer transfer{memory_.data(), region_, remote_, key_, kPutBytes, 1};
                if (device_->put(peer_, transfer) == RmaPost::kTaken) ++taken;
            }
            device_->progress(counts_);
        }
        counts_.transfers = 0;
        const double seconds = std::chrono::duration<double>(clock_.now() - start).count();
        post();
        await(counts_.messages, 1);
        return static_cast<double>(kPutBytes) * times / seconds / 1e9;
    }

private:
    void post() {
        const iovec piece{memory_.data(), messageBytes_};
        while (device_->post(peer_, std::span(&piece, 1)) != RmaPost::kTaken) {
            device_->progress(counts_);
        }
    }
    void await(int& count, int wanted) {
        while (count < wanted) device_->progress(counts_);
        count -= wanted;
    }

    const SteadyClock clock_;
    const std::unique_ptr<RmaDevice> device_;
    const std::size_t messageBytes_;
    const Wire& wire_;
    const bool isFirst_;
    std::vector<std::byte> memory_;
    Counts counts_;
    RmaPeer peer_{};
    bool canPut_ = false;
    RmaRegion region_{};
    RmaKey key_{};
    std::uint64_t remote_ = 0;
};

int measure(const TransportChoice::Between& wish, int rounds, std::size_t bytes, const Wire& wire,
            bool isFirst) {
    auto device = openDevice(wish);
    if (isFirst) std::printf("%s\n", device->describe().c_str());
    if (bytes > device->limits().messageBytes) stop("no message is that long");
    // Never destroyed: the other would take it for an end.
    Side& side = *new Side(std::move(device), bytes, wire, isFirst);
    side.bounce(10);
    if (side.canPut()) side.put(20);
    for (int round = 0; round < rounds; ++round) {
        const double us = side.bounce(100);
        const double rate = side.canPut() ? side.put(1000) : 0;
        if (!isFirst) continue;
        std::printf("%zu B one way %.2f us", bytes, us);
        if (side.canPut()) std::printf(", 1 MiB put %.2f GB/s", rate);
        std::printf("\n");
    }
    return 0;
}

}  // namespace
}  // namespace isthmus::micro

int main(int count, char** words) {
    using namespace isthmus::micro;
    if (count < 2) {
        std::fprintf(stderr, "usage: %s ofi@PROVIDER|ucx@TRANSPORTS [ROUNDS [BYTES]]\n", words[0]);
        return 1;
    }
    const auto wish = wishedTransport(words[1]);
    const int rounds = count > 2 ? std::atoi(words[2]) : kRounds;
    const std::size_t bytes = count > 3 ? std::strtoul(words[3], nullptr, 10) : kMessageBytes;
    runPair([&](const Wire& wire, bool isFirst) {
        return measure(wish, rounds, bytes, wire, isFirst);
    });
}
