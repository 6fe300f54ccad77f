#include "comm/transport/sim/sim_transport.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace isthmus {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class Quiet final : public TransportListener {
public:
    void announced(Endpoint&, const MessageTag&, const CallFingerprint&, std::uint64_t) override {}
    void control(Endpoint&, std::span<const std::byte>) override {}
    void lost(Endpoint&, const Status&) override { ++losses; }
    int losses = 0;
};

/// Sends `bytes` from one process to another and says when they were there.
class Pair {
public:
    Pair(std::uint64_t seed, const SimLink& link, const SimChaos& chaos = {})
        : fabric(clock, seed, link, chaos),
          one(fabric.makeTransport({1, 1}, listeners[0])),
          two(fabric.makeTransport({2, 2}, listeners[1])) {}

    bool runUntil(const std::function<bool()>& isDone, Time limit) {
        while (!isDone()) {
            if (one->progress(clock.now()) + two->progress(clock.now()) > 0) continue;
            const Time next = std::min(one->nextEvent(), two->nextEvent());
            if (next > limit) return false;
            clock.advanceTo(next);
        }
        return true;
    }
    Time timeOf(std::size_t bytes) {
        const Time start = clock.now();
        std::vector<std::byte> from(bytes);
        std::vector<std::byte> to(bytes);
        int left = 2;
        Operation send;
        Operation receive;
        send.pieces = {{from.data(), bytes}};
        receive.pieces = {{to.data(), bytes}};
        for (Operation* const each : {&send, &receive}) {
            each->tag.sequence = ++sequence_ / 2;
            each->owner = &left;
            each->done = [](Operation& self, const Status& status) {
                EXPECT_TRUE(status.ok()) << status.what();
                --*static_cast<int*>(self.owner);
            };
        }
        receive.tag = send.tag;
        (*two->endpoint({1, 1}, {}))->postRecv(receive);
        (*one->endpoint({2, 2}, {}))->postSend(send);
        EXPECT_TRUE(runUntil([&] { return left == 0; }, Time(std::chrono::hours(1))));
        return clock.now() - start;
    }

    VirtualClock clock;
    Quiet listeners[2];
    SimFabric fabric;
    std::unique_ptr<Transport> one;
    std::unique_ptr<Transport> two;

private:
    std::uint64_t sequence_ = 0;
};

TEST(Sim, TimeIsLatencyPlusBytesOverBandwidth) {
    Pair pair(1, {1e9, microseconds(100), 1 << 20});
    pair.timeOf(8);  // connects
    // 8 bytes and a header of 88 at 1 byte per nanosecond.
    EXPECT_EQ(pair.timeOf(8), microseconds(100) + Time(96));
    // 100 MB take 100 ms, headers 0.04 % more, the grant one latency.
    const Time large = pair.timeOf(100'000'000);
    EXPECT_GE(large, milliseconds(100) + microseconds(200));
    EXPECT_LE(large, milliseconds(101));
}

TEST(Sim, ASmallWindowLimitsTheRate) {
    // 64 KiB per round trip of 2 ms.
    Pair pair(1, {1e12, milliseconds(1), 64 * 1024});
    pair.timeOf(8);
    const Time time = pair.timeOf(64 * 64 * 1024);
    EXPECT_GE(time, milliseconds(63));
}

TEST(Sim, OneSeedIsOneRun) {
    const SimChaos chaos{0.3, microseconds(500)};
    const auto run = [&](std::uint64_t seed) {
        Pair pair(seed, {}, chaos);
        Time total{0};
        for (const std::size_t bytes : {10, 100'000, 3'000'000}) total += pair.timeOf(bytes);
        return total;
    };
    EXPECT_EQ(run(5), run(5));
    EXPECT_NE(run(5), run(6));
}

TEST(Sim, WhatIsCutIsSilent) {
    Pair pair(1, {});
    pair.timeOf(8);
    pair.fabric.cut({1, 1}, {2, 2});
    bool isDone = false;
    std::byte memory[4] = {};
    Operation receive;
    receive.pieces = {{memory, sizeof(memory)}};
    receive.owner = &isDone;
    receive.done = [](Operation& self, const Status&) { *static_cast<bool*>(self.owner) = true; };
    receive.tag.communicator = 99;
    Endpoint& endpoint = **pair.two->endpoint({1, 1}, {});
    endpoint.postRecv(receive);
    pair.one.reset();  // dies behind the cut
    EXPECT_TRUE(!pair.two->progress(pair.clock.now()));
    pair.clock.advance(std::chrono::hours(1));
    pair.two->progress(pair.clock.now());
    EXPECT_FALSE(isDone);
    EXPECT_EQ(pair.listeners[1].losses, 0);
    endpoint.cancel(99, Status::timeout("an hour"));
    pair.two->progress(pair.clock.now());
    EXPECT_TRUE(isDone);
}

}  // namespace
}  // namespace isthmus
