// Two processes and one transport each: half a round trip of a message, the median of batches of
// 200, and the rate of one long message after the other.
//
// usage: micro_transport_latency tcp|ucx@TRANSPORTS|ofi@PROVIDER [ROUNDS]

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
#include "comm/transport/rma/rma_transport.hpp"
#include "comm/transport/transport_choice.hpp"
#include "comm/transport/ucx/ucx_device.hpp"

namespace isthmus {
namespace {

constexpr std::size_t kShort = 8;
constexpr std::size_t kLong = std::size_t{1} << 20;
constexpr int kBatch = 200;
constexpr int kRounds = 5;

[[noreturn]] void stop(const std::string& why) {
    std::fprintf(stderr, "micro_transport_latency: %s\n", why.c_str());
    std::_Exit(1);
}

template <typename Value>
Value valueOf(Result<Value> result) {
    if (!result.ok()) stop(result.status().what());
    return std::move(*result);
}

struct Deaf final : TransportListener {
    void announced(Endpoint&, const MessageTag&, const CallFingerprint&, std::uint64_t) override {}
    void control(Endpoint&, std::span<const std::byte>) override {}
    void lost(Endpoint&, const Status& why) override { stop(why.what()); }
};

std::unique_ptr<Transport> open(const std::string& wish, const ProcessId& self, SleepSet& sleepSet,
                                TransportListener& listener) {
    const TransportChoice choice = valueOf(parseTransports(wish));
    const JobKey key = JobKey::derivedFrom("micro_transport_latency");
    TcpOptions tcp;
    tcp.cards = {{"lo", "127.0.0.1"}};
    if (choice.between == "tcp") {
        return valueOf(makeTcpTransport(tcp, self, key, sleepSet, listener));
    }
    UcxOptions ucx;
    if (!choice.device.empty()) ucx.transports = choice.device + ",self";
    auto device = choice.between == "ofi"
                      ? valueOf(makeOfiDevice({choice.device, "127.0.0.1", false}))
                      : valueOf(makeUcxDevice(ucx));
    RmaOptions options;
    options.door = tcp;
    return valueOf(
        makeRmaTransport(std::move(device), std::move(options), self, key, sleepSet, listener));
}

/// One of the two processes.
class Side {
public:
    Side(const std::string& wish, int socket, bool isFirst)
        : isFirst_(isFirst), memory_(kLong, std::byte{7}) {
        transport_ = open(wish, {1, isFirst ? 1U : 2U}, sleepSet_, deaf_);
        const Bytes ours = transport_->address();
        Bytes theirs(65536);
        if (::send(socket, ours.data(), ours.size(), 0) < 0) stop("send");
        const ssize_t got = ::recv(socket, theirs.data(), theirs.size(), 0);
        if (got <= 0) stop("the other process is gone");
        theirs.resize(static_cast<std::size_t>(got));
        endpoint_ = valueOf(transport_->endpoint({1, isFirst ? 2U : 1U}, theirs));
        for (Operation* each : {&send_, &receive_}) {
            each->owner = this;
            each->done = [](Operation& self, const Status& status) {
                if (!status.ok()) stop(status.what());
                ++static_cast<Side*>(self.owner)->done_;
            };
        }
    }

    /// us for one way.
    double bounce(int batches, std::size_t bytes) {
        std::vector<double> times;
        for (int batch = 0; batch < batches; ++batch) {
            const Time start = clock_.now();
            for (int at = 0; at < kBatch; ++at) bounceOnce(bytes);
            const std::chrono::duration<double, std::micro> taken = clock_.now() - start;
            times.push_back(taken.count() / kBatch / 2);
        }
        std::nth_element(times.begin(), times.begin() + batches / 2, times.end());
        return times[static_cast<std::size_t>(batches) / 2];
    }

private:
    void bounceOnce(std::size_t bytes) {
        prepare(receive_, bytes);
        endpoint_->postRecv(receive_);
        if (!isFirst_) await(1);
        prepare(send_, bytes);
        endpoint_->postSend(send_);
        await(isFirst_ ? 2 : 1);
    }
    void prepare(Operation& operation, std::size_t bytes) {
        const bool isSend = &operation == &send_;
        operation.tag.sequence = isSend ? ++sent_ : ++received_;
        operation.tag.from = isSend == isFirst_ ? 0 : 1;
        operation.tag.to = isSend == isFirst_ ? 1 : 0;
        operation.pieces = {{memory_.data(), bytes}};
    }
    void await(int operations) {
        while (done_ < operations) transport_->progress(clock_.now());
        done_ -= operations;
    }

    const SteadyClock clock_;
    const bool isFirst_;
    std::vector<std::byte> memory_;
    SleepSet sleepSet_;
    Deaf deaf_;
    std::unique_ptr<Transport> transport_;
    Endpoint* endpoint_ = nullptr;
    Operation send_;
    Operation receive_;
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;
    int done_ = 0;
};

int run(const std::string& wish, int rounds) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) != 0) stop("socketpair");
    const pid_t child = ::fork();
    const bool isFirst = child != 0;
    Side side(wish, ends[isFirst ? 0 : 1], isFirst);
    side.bounce(10, kShort);
    for (int round = 0; round < rounds; ++round) {
        const double us = side.bounce(100, kShort);
        const double longUs = side.bounce(3, kLong);
        if (isFirst) {
            std::printf("8 B one way %.2f us, 1 MiB %.1f us = %.2f GB/s\n", us, longUs,
                        static_cast<double>(kLong) / longUs / 1e3);
        }
    }
    std::fflush(stdout);
    int status = 0;
    if (isFirst) ::waitpid(child, &status, 0);
    std::_Exit(status == 0 ? 0 : 1);  // without a goodbye that the other would take for an end
}

}  // namespace
}  // namespace isthmus

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: %s tcp|ucx@TRANSPORTS|ofi@PROVIDER [ROUNDS]\n", words[0]);
        return 1;
    }
    return isthmus::run(words[1], count > 2 ? std::atoi(words[2]) : isthmus::kRounds);
}
