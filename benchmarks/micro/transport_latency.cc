// Two processes and one transport each: half a round trip of a message, the median of batches, and
// the rate of one long message after the other.
//
// usage: micro_transport_latency tcp|ucx@TRANSPORTS|ofi@PROVIDER [ROUNDS]

#include <cstdio>
#include <cstdlib>

#include "benchmarks/micro/pair.hpp"
#include "comm/transport/rma/rma_transport.hpp"

namespace isthmus::micro {
namespace {

constexpr std::size_t kShort = 8;
constexpr std::size_t kLong = std::size_t{1} << 20;
constexpr int kRounds = 5;

struct Deaf final : TransportListener {
    void announced(Endpoint&, const MessageTag&, const CallFingerprint&, std::uint64_t) override {}
    void control(Endpoint&, std::span<const std::byte>) override {}
    void lost(Endpoint&, const Status& why) override { stop(why.what()); }
};

std::unique_ptr<Transport> open(const TransportChoice::Between& wish, const ProcessId& self,
                                SleepSet& sleepSet, TransportListener& listener) {
    const JobKey key = JobKey::derivedFrom("micro_transport_latency");
    TcpOptions tcp;
    tcp.cards = {{"lo", "127.0.0.1"}};
    if (wish.name == "tcp") return valueOf(makeTcpTransport(tcp, self, key, sleepSet, listener));
    RmaOptions options;
    options.door = tcp;
    return valueOf(
        makeRmaTransport(openDevice(wish), std::move(options), self, key, sleepSet, listener));
}

/// One of the two processes.
class Side {
public:
    Side(const TransportChoice::Between& wish, const Wire& wire, bool isFirst)
        : isFirst_(isFirst), memory_(kLong, std::byte{7}) {
        transport_ = open(wish, {1, isFirst ? 1U : 2U}, sleepSet_, deaf_);
        endpoint_ =
            valueOf(transport_->endpoint({1, isFirst ? 2U : 1U}, wire.swap(transport_->address())));
        for (Operation* each : {&send_, &receive_}) {
            each->owner = this;
            each->done = [](Operation& self, const Status& status) {
                if (!status.ok()) stop(status.what());
                ++static_cast<Side*>(self.owner)->done_;
            };
        }
    }

    double bounce(int batches, std::size_t bytes) {
        return halfRoundTrip(batches, [&] { bounceOnce(bytes); });
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

int measure(const TransportChoice::Between& wish, int rounds, const Wire& wire, bool isFirst) {
    // Never destroyed: the other would take it for an end.
    Side& side = *new Side(wish, wire, isFirst);
    side.bounce(10, kShort);
    for (int round = 0; round < rounds; ++round) {
        const double us = side.bounce(100, kShort);
        const double longUs = side.bounce(3, kLong);
        if (!isFirst) continue;
        std::printf("8 B one way %.2f us, 1 MiB %.1f us = %.2f GB/s\n", us, longUs,
                    static_cast<double>(kLong) / longUs / 1e3);
    }
    return 0;
}

}  // namespace
}  // namespace isthmus::micro

int main(int count, char** words) {
    using namespace isthmus::micro;
    if (count < 2) {
        std::fprintf(stderr, "usage: %s tcp|ucx@TRANSPORTS|ofi@PROVIDER [ROUNDS]\n", words[0]);
        return 1;
    }
    const auto wish = wishedTransport(words[1]);
    const int rounds = count > 2 ? std::atoi(words[2]) : kRounds;
    runPair([&](const Wire& wire, bool isFirst) { return measure(wish, rounds, wire, isFirst); });
}
