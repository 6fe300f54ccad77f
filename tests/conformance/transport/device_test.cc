// What every device promises, whatever stands behind it.

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <thread>

#include "tests/support/rma/device_kinds.hpp"
#include "tests/support/sanitized.hpp"

namespace isthmus {
namespace {

class Listener final : public RmaListener {
public:
    void arrived(std::span<const std::byte> message) override {
        messages.emplace_back(message.begin(), message.end());
    }
    void completed(std::uint64_t context, const Status& outcome) override {
        EXPECT_TRUE(outcomes.emplace(context, outcome).second) << "twice";
    }
    void failed(RmaPeer peer, const Status&) override { failures.push_back(peer); }
    void disconnected(RmaPeer peer) override { ends.push_back(peer); }

    std::vector<Bytes> messages;
    std::map<std::uint64_t, Status> outcomes;
    std::vector<RmaPeer> failures;
    std::vector<RmaPeer> ends;
};

class Device : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        for (int side = 0; side < 2; ++side) {
            auto made = makeDevice(GetParam(), side, 0);
            ASSERT_TRUE(made.ok()) << made.status().what();
            device[side] = std::move(*made);
        }
        for (int side = 0; side < 2; ++side) {
            const auto other = device[side]->connect(device[1 - side]->address());
            ASSERT_TRUE(other.ok()) << other.status().what();
            peer[side] = *other;
        }
    }
    void step() {
        for (int side = 0; side < 2; ++side) {
            if (device[side]) device[side]->progress(listener[side]);
        }
    }
    template <typename Done>
    bool runUntil(const Done& isDone) {
        const SteadyClock clock;
        const Time end = clock.now() + test::kPatience;
        while (!isDone()) {
            if (clock.now() > end) return false;
            step();
            std::this_thread::yield();
        }
        return true;
    }
    /// False, once that is seen to be so: this device has messages only.
    bool hasTransfers() {
        std::vector<std::byte> memory(100);
        const auto region = device[1]->registerMemory(memory.data(), memory.size());
        EXPECT_TRUE(region.ok()) << region.status().what();
        const auto key = device[0]->importKey(peer[0], device[1]->key(*region));
        if (key.ok()) {
            device[0]->dropKey(*key);
        } else {
            EXPECT_EQ(key.status().code(), Status::Code::kUnsupported);
        }
        device[1]->deregister(*region);
        return device[0]->limits().transferBytes > 0 && key.ok();
    }
    /// Memory of one side, registered, and its key at the other.
    struct Memory {
        std::vector<std::byte> bytes;
        RmaRegion region{};
        RmaKey keyAtPeer{};
    };
    Memory memoryOf(int side, std::size_t bytes) {
        Memory made;
        made.bytes.resize(bytes);
        const auto region = device[side]->registerMemory(made.bytes.data(), bytes);
        EXPECT_TRUE(region.ok()) << region.status().what();
        made.region = *region;
        const Bytes key = device[side]->key(made.region);
        EXPECT_GE(key.size(), 1U);
        EXPECT_LE(key.size(), kLongestRmaKey);
        const auto imported = device[1 - side]->importKey(peer[1 - side], key);
        EXPECT_TRUE(imported.ok()) << imported.status().what();
        made.keyAtPeer = *imported;
        return made;
    }
    /// Between all of two memories of one length; the local one is of side 0.
    RmaTransfer between(Memory& local, Memory& remote, std::uint64_t context) {
        RmaTransfer transfer;
        transfer.local = local.bytes.data();
        transfer.localRegion = local.region;
        transfer.remote = reinterpret_cast<std::uint64_t>(remote.bytes.data());
        transfer.key = remote.keyAtPeer;
        transfer.bytes = std::min(local.bytes.size(), device[0]->limits().transferBytes);
        transfer.context = context;
        return transfer;
    }
    /// Posts again and again until it is taken.
    template <typename Post>
    void insist(const Post& post) {
        RmaPost outcome = RmaPost::kFull;
        ASSERT_TRUE(runUntil([&] {
            outcome = post();
            return outcome != RmaPost::kFull;
        }));
        ASSERT_EQ(outcome, RmaPost::kTaken);
    }
    /// The same, while side 1 does nothing.
    template <typename Post>
    void insistAlone(const Post& post) {
        while (post() == RmaPost::kFull) device[0]->progress(listener[0]);
    }
    static void fill(Bytes& bytes, unsigned first) {
        for (std::size_t at = 0; at < bytes.size(); ++at) {
            bytes[at] = static_cast<std::byte>(first + at * 7);
        }
    }

    std::unique_ptr<RmaDevice> device[2];
    RmaPeer peer[2]{};
    Listener listener[2];
    std::uint64_t contexts_ = 0;
};

TEST_P(Device, EveryMessageArrivesOnceAndWhole) {
    ASSERT_GE(device[0]->limits().messageBytes, 256U);
    constexpr std::size_t kMessages = 500;
    for (std::size_t at = 0; at < kMessages; ++at) {
        const std::size_t bytes = at % 2 == 0 ? at + 2 : device[0]->limits().messageBytes - at % 3;
        Bytes message(bytes, static_cast<std::byte>(at));
        message[1] = static_cast<std::byte>(at >> 8);
        const iovec pieces[] = {{message.data(), 2}, {message.data() + 2, bytes - 2}};
        insist([&] { return device[0]->post(peer[0], pieces); });
        std::fill(message.begin(), message.end(), std::byte{0xEE});  // it is ours again
    }
    ASSERT_TRUE(runUntil([&] { return listener[1].messages.size() >= kMessages; }));
    for (int at = 0; at < 20; ++at) step();
    ASSERT_EQ(listener[1].messages.size(), kMessages);
    std::vector<bool> seen(kMessages);
    for (const Bytes& message : listener[1].messages) {
        const std::size_t at = std::to_integer<std::size_t>(message[0]) +
                               (std::to_integer<std::size_t>(message[1]) << 8);
        ASSERT_LT(at, kMessages);
        EXPECT_FALSE(seen[at]);
        seen[at] = true;
        EXPECT_EQ(message.size(), at % 2 == 0 ? at + 2 : device[0]->limits().messageBytes - at % 3);
        for (std::size_t i = 2; i < message.size(); ++i) {
            ASSERT_EQ(message[i], static_cast<std::byte>(at));
        }
    }
}

TEST_P(Device, AMessageAfterTheEndOfAPutFindsItsBytes) {
    if (!hasTransfers()) return;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{90'000}}) {
        for (unsigned run = 0; run < 10; ++run) {
            Memory from = memoryOf(0, bytes);
            Memory to = memoryOf(1, bytes);
            fill(from.bytes, run + 1);
            const std::uint64_t context = ++contexts_;
            insist([&] { return device[0]->put(peer[0], between(from, to, context)); });
            ASSERT_TRUE(runUntil([&] { return listener[0].outcomes.contains(context); }));
            EXPECT_TRUE(listener[0].outcomes[context].ok()) << listener[0].outcomes[context].what();
            const std::size_t before = listener[1].messages.size();
            std::byte word{1};
            const iovec piece{&word, 1};
            insist([&] { return device[0]->post(peer[0], std::span(&piece, 1)); });
            ASSERT_TRUE(runUntil([&] { return listener[1].messages.size() > before; }));
            EXPECT_EQ(to.bytes, from.bytes) << bytes;
            device[0]->dropKey(to.keyAtPeer);
            device[1]->deregister(to.region);
            device[0]->deregister(from.region);
        }
    }
}

TEST_P(Device, AGetBringsTheBytes) {
    if (!hasTransfers()) return;
    Memory to = memoryOf(0, 70'000);
    Memory from = memoryOf(1, 70'000);
    fill(from.bytes, 9);
    insist([&] { return device[0]->get(peer[0], between(to, from, 1)); });
    ASSERT_TRUE(runUntil([&] { return listener[0].outcomes.contains(1); }));
    EXPECT_TRUE(listener[0].outcomes[1].ok()) << listener[0].outcomes[1].what();
    EXPECT_EQ(to.bytes, from.bytes);
}

TEST_P(Device, ManyTransfersAtOnceEachEndOnce) {
    if (!hasTransfers()) return;
    constexpr std::uint64_t kTransfers = 200;
    Memory from = memoryOf(0, 4096);
    Memory to = memoryOf(1, 4096);
    for (std::uint64_t context = 1; context <= kTransfers; ++context) {
        insist([&] {
            return context % 2 == 0 ? device[0]->put(peer[0], between(from, to, context))
                                    : device[0]->get(peer[0], between(from, to, context));
        });
    }
    ASSERT_TRUE(runUntil([&] { return listener[0].outcomes.size() == kTransfers; }));
    for (const auto& [context, outcome] : listener[0].outcomes) EXPECT_TRUE(outcome.ok());
}

TEST_P(Device, WhoEndsInOrderHasDeliveredEverything) {
    Bytes message(100, std::byte{5});
    for (int at = 0; at < 10; ++at) {
        const iovec piece{message.data(), message.size()};
        insist([&] { return device[0]->post(peer[0], std::span(&piece, 1)); });
    }
    device[0]->disconnect(peer[0], RmaDevice::Ending::kDelivered);
    const iovec piece{message.data(), message.size()};
    EXPECT_EQ(device[0]->post(peer[0], std::span(&piece, 1)), RmaPost::kGone);
    ASSERT_TRUE(runUntil([&] { return listener[0].ends.size() == 1; }));
    EXPECT_EQ(listener[0].ends[0], peer[0]);
    ASSERT_TRUE(runUntil([&] { return listener[1].messages.size() == 10; }));
    EXPECT_TRUE(listener[0].failures.empty());
}

TEST_P(Device, AnEndAtOnceCompletesTheTransfersBefore) {
    if (!hasTransfers()) return;
    std::byte word{1};
    const iovec piece{&word, 1};
    for (int side = 0; side < 2; ++side) {  // connected both ways
        insist([&] { return device[side]->post(peer[side], std::span(&piece, 1)); });
        ASSERT_TRUE(runUntil([&] { return listener[1 - side].messages.size() == 1; }));
    }
    Memory from = memoryOf(0, 50'000);
    Memory to = memoryOf(1, 50'000);
    std::uint64_t taken = 0;
    while (taken < 8 && device[0]->put(peer[0], between(from, to, taken + 1)) == RmaPost::kTaken) {
        ++taken;
    }
    ASSERT_GE(taken, 1U);
    device[0]->disconnect(peer[0], RmaDevice::Ending::kNow);
    ASSERT_TRUE(runUntil([&] { return !listener[0].ends.empty(); }));
    EXPECT_EQ(listener[0].outcomes.size(), taken);
    for (int at = 0; at < 20; ++at) step();
    EXPECT_EQ(listener[0].outcomes.size(), taken);
    EXPECT_EQ(listener[0].ends.size(), 1U);
}

TEST_P(Device, AnEndInOrderMayBeCutShortUntilItIsTold) {
    for (int steps = 0; steps < 12; ++steps) {
        device[0]->disconnect(peer[0], RmaDevice::Ending::kDelivered);
        for (int at = 0; at < steps; ++at) device[0]->progress(listener[0]);
        if (listener[0].ends.empty()) device[0]->disconnect(peer[0], RmaDevice::Ending::kNow);
        ASSERT_TRUE(runUntil([&] { return !listener[0].ends.empty(); })) << steps << " steps";
        EXPECT_EQ(listener[0].ends, std::vector{peer[0]});
        listener[0].ends.clear();
        const auto again = device[0]->connect(device[1]->address());
        ASSERT_TRUE(again.ok()) << again.status().what();
        peer[0] = *again;
    }
}

TEST_P(Device, WhatLiesOutsideARegistrationIsRefused) {
    const bool isStandIn = GetParam().ends_with("standin");
    // UCX would not refuse; the stand-in does it for all.
    if (!isStandIn && GetParam().find("ofi_") == std::string::npos) return;
    Memory from = memoryOf(0, 5000);
    Memory to = memoryOf(1, 5000);
    const RmaTransfer good = between(from, to, 0);
    std::vector<RmaTransfer> wrong(6, good);
    wrong[0].remote += 1;
    wrong[1].remote -= 1;
    wrong[2].local += 1;
    wrong[3].remote = ~std::uint64_t{0} - 10;  // the sum would wrap
    wrong[4].bytes = 5001;
    wrong[5].localRegion = RmaRegion{~std::uint64_t{0}};
    for (std::size_t at = 0; at < wrong.size(); ++at) {
        wrong[at].context = at + 1;
        insist([&] { return device[0]->put(peer[0], wrong[at]); });
        insist([&] {
            RmaTransfer transfer = wrong[at];
            transfer.context += 100;
            return device[0]->get(peer[0], transfer);
        });
    }
    ASSERT_TRUE(runUntil([&] { return listener[0].outcomes.size() == 2 * wrong.size(); }));
    for (const auto& [context, outcome] : listener[0].outcomes) {
        EXPECT_EQ(outcome.code(), Status::Code::kMismatch) << context;
    }
    EXPECT_EQ(to.bytes, std::vector<std::byte>(5000));
    if (!isStandIn) return;  // libfabric may not say so (ofi_device_test.cc)
    device[1]->deregister(to.region);
    RmaTransfer late = good;
    late.context = 1000;
    insist([&] { return device[0]->put(peer[0], late); });
    ASSERT_TRUE(runUntil([&] { return listener[0].outcomes.contains(1000); }));
    EXPECT_EQ(listener[0].outcomes[1000].code(), Status::Code::kMismatch);
    EXPECT_EQ(to.bytes, std::vector<std::byte>(5000));
}

TEST_P(Device, WhatIsNoAddressAndWhatIsNoKey) {
    EXPECT_FALSE(device[0]->importKey(peer[0], {}).ok());
}

TEST_P(Device, NobodySleepsOverAMessage) {
    pollfd descriptor{device[1]->eventDescriptor(), POLLIN, 0};
    if (descriptor.fd < 0) return;  // it is asked again and again
    std::byte word{1};
    const iovec piece{&word, 1};
    for (std::size_t run = 1; run <= 3; ++run) {
        ASSERT_TRUE(
            runUntil([&] { return device[1]->arm() && device[1]->progress(listener[1]) == 0; }));
        insistAlone([&] { return device[0]->post(peer[0], std::span(&piece, 1)); });
        const SteadyClock clock;
        const Time end = clock.now() + std::chrono::seconds(5);
        while (::poll(&descriptor, 1, 0) == 0 && clock.now() < end) {
            device[0]->progress(listener[0]);
        }
        EXPECT_LT(clock.now(), end);
        ASSERT_TRUE(runUntil([&] { return listener[1].messages.size() == run; }));
    }
}

INSTANTIATE_TEST_SUITE_P(Over, Device, testing::ValuesIn(deviceKinds()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace isthmus
