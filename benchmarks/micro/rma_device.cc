// Two processes and one device each: half a round trip of a message, and the rate of puts. Beside
// them, in the same minute, fi_pingpong -p shm -e rdm or ucx_perftest tell what the library takes.
//
// usage: micro_rma_device ofi@shm|ofi@tcp|ofi@PROVIDER|ucx@posix|ucx@tcp|ucx [ROUNDS]

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "comm/transport/ofi/ofi_device.hpp"
#include "comm/transport/transport_choice.hpp"
#include "comm/transport/ucx/ucx_device.hpp"

namespace isthmus {
namespace {

constexpr std::size_t kMessageBytes = 8;
constexpr std::size_t kPutBytes = std::size_t{1} << 20;
constexpr int kPutsAtOnce = 4;
constexpr int kRounds = 7;

[[noreturn]] void stop(const std::string& why) {
    std::fprintf(stderr, "micro_rma_device: %s\n", why.c_str());
    std::_Exit(1);
}

template <typename Value>
Value valueOf(Result<Value> result) {
    if (!result.ok()) stop(result.status().what());
    return std::move(*result);
}

/// Bytes to and from the other process, outside the device.
class Wire {
public:
    explicit Wire(int socket) : socket_(socket) {}
    Bytes swap(const Bytes& ours) const {
        if (::send(socket_, ours.data(), ours.size(), 0) < 0) stop("send");
        Bytes theirs(65536);
        const ssize_t got = ::recv(socket_, theirs.data(), theirs.size(), 0);
        if (got <= 0) stop("the other process is gone");
        theirs.resize(static_cast<std::size_t>(got));
        return theirs;
    }

private:
    int socket_;
};

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
    Side(std::unique_ptr<RmaDevice> device, const Wire& wire, bool isFirst)
        : device_(std::move(device)), wire_(wire), isFirst_(isFirst), memory_(kPutBytes) {
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
    /// us for one way, the median of batches: who shares its processors loses some of them whole.
    double bounce(int batches) {
        constexpr int kBatch = 200;
        std::vector<double> times;
        for (int batch = 0; batch < batches; ++batch) {
            const Time start = clock_.now();
            for (int at = 0; at < kBatch; ++at) {
                if (isFirst_) post();
                await(counts_.messages, 1);
                if (!isFirst_) post();
            }
            const std::chrono::duration<double, std::micro> taken = clock_.now() - start;
            times.push_back(taken.count() / kBatch / 2);
        }
        std::nth_element(times.begin(), times.begin() + batches / 2, times.end());
        return times[static_cast<std::size_t>(batches) / 2];
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
        const iovec piece{memory_.data(), kMessageBytes};
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

std::unique_ptr<RmaDevice> deviceOf(const TransportChoice& choice) {
    if (choice.between == "ofi") return valueOf(makeOfiDevice({choice.device, "127.0.0.1", false}));
    UcxOptions options;
    if (!choice.device.empty()) options.transports = choice.device + ",self";
    return valueOf(makeUcxDevice(options));
}

int run(const std::string& wish, int rounds) {
    const TransportChoice choice = valueOf(parseTransports(wish));
    if (choice.between != "ofi" && choice.between != "ucx") stop("expected ofi@... or ucx@...");
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) != 0) stop("socketpair");
    const pid_t child = ::fork();
    const bool isFirst = child != 0;
    const Wire wire(ends[isFirst ? 0 : 1]);
    ::close(ends[isFirst ? 1 : 0]);
    auto device = deviceOf(choice);
    if (isFirst) std::printf("%s\n", device->describe().c_str());
    Side side(std::move(device), wire, isFirst);
    side.bounce(10);
    if (side.canPut()) side.put(20);
    for (int round = 0; round < rounds; ++round) {
        const double us = side.bounce(100);
        const double rate = side.canPut() ? side.put(1000) : 0;
        if (!isFirst) continue;
        std::printf("8 B one way %.2f us", us);
        if (side.canPut()) std::printf(", 1 MiB put %.2f GB/s", rate);
        std::printf("\n");
    }
    int status = 0;
    return isFirst && ::waitpid(child, &status, 0) == child && status != 0 ? 1 : 0;
}

}  // namespace
}  // namespace isthmus

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: %s ofi@PROVIDER|ucx@TRANSPORTS [ROUNDS]\n", words[0]);
        return 1;
    }
    return isthmus::run(words[1], count > 2 ? std::atoi(words[2]) : isthmus::kRounds);
}
