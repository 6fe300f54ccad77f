#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "comm/base/bytes.hpp"
#include "comm/transport/ofi/ofi_device.hpp"

namespace isthmus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Recorded final : RmaListener {
    void arrived(std::span<const std::byte> message) override {
        messages.push_back(toText(message));
    }
    void completed(std::uint64_t context, const Status& outcome) override {
        EXPECT_FALSE(outcomes.contains(context)) << "completed twice";
        outcomes[context] = outcome;
    }
    void failed(RmaPeer, const Status& why) override { failures.push_back(why); }
    void disconnected(RmaPeer peer) override { disconnects.push_back(peer); }

    std::vector<std::string> messages;
    std::map<std::uint64_t, Status> outcomes;
    std::vector<Status> failures;
    std::vector<RmaPeer> disconnects;
};

struct Side {
    std::unique_ptr<RmaDevice> device;
    Recorded recorded;
    RmaPeer peer{};
};

class OfiDevices : public testing::TestWithParam<OfiOptions> {
protected:
    void SetUp() override {
        for (Side& side : sides) {
            auto made = makeOfiDevice(GetParam());
            ASSERT_TRUE(made.ok()) << made.status().what();
            side.device = std::move(*made);
        }
        connect(0, 1);
        connect(1, 0);
    }
    void connect(int from, int to) {
        const auto peer = sides[from].device->connect(sides[to].device->address());
        ASSERT_TRUE(peer.ok()) << peer.status().what();
        sides[from].peer = *peer;
    }
    template <typename IsDone>
    bool runUntil(const IsDone& isDone, milliseconds limit = seconds(20)) {
        const SteadyClock clock;
        const Time end = clock.now() + limit;
        while (!isDone()) {
            if (clock.now() > end) return false;
            for (Side& side : sides) {
                if (side.device) side.device->progress(side.recorded);
            }
        }
        return true;
    }
    void post(int from, const std::string& text) {
        const iovec piece{const_cast<char*>(text.data()), text.size()};
        ASSERT_TRUE(runUntil([&] {
            const RmaPost taken = sides[from].device->post(sides[from].peer, std::span(&piece, 1));
            EXPECT_NE(taken, RmaPost::kGone);
            return taken != RmaPost::kFull;
        }));
    }
    /// A transfer between memory that both sides have registered for it, and how it ended.
    Status transfer(bool isPut, Bytes& local, Bytes& remote, std::ptrdiff_t shift = 0) {
        RmaDevice& device = *sides[0].device;
        const auto here = device.registerMemory(local.data(), local.size());
        const auto there = sides[1].device->registerMemory(remote.data(), remote.size());
        EXPECT_TRUE(here.ok() && there.ok());
        const auto key = device.importKey(sides[0].peer, sides[1].device->key(*there));
        EXPECT_TRUE(key.ok());
        const RmaTransfer wish{
            local.data(), *here,        reinterpret_cast<std::uint64_t>(remote.data() + shift),
            *key,         local.size(), ++lastContext};
        EXPECT_TRUE(runUntil([&] {
            return (isPut ? device.put(sides[0].peer, wish) : device.get(sides[0].peer, wish)) ==
                   RmaPost::kTaken;
        }));
        EXPECT_TRUE(runUntil([&] { return sides[0].recorded.outcomes.contains(lastContext); }));
        device.dropKey(*key);
        device.deregister(*here);
        sides[1].device->deregister(*there);
        return sides[0].recorded.outcomes[lastContext];
    }
    static Bytes filled(std::size_t bytes, int seed) {
        Bytes memory(bytes);
        for (std::size_t at = 0; at < bytes; ++at) {
            memory[at] = static_cast<std::byte>(at * 31 + at / 251 + seed);
        }
        return memory;
    }

    std::array<Side, 2> sides;
    std::uint64_t lastContext = 0;
};

TEST_P(OfiDevices, APutThatHasCompletedIsThere) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{5000},
                                    std::size_t{1} << 20, (std::size_t{9} << 20) + 17}) {
        Bytes local = filled(bytes, 3);
        Bytes remote(bytes);
        const Status outcome = transfer(true, local, remote);
        ASSERT_TRUE(outcome.ok()) << outcome.what();
        EXPECT_EQ(local, remote) << bytes << " bytes";
    }
}

TEST_P(OfiDevices, AGetThatHasCompletedIsHere) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{3} << 20}) {
        Bytes local(bytes);
        Bytes remote = filled(bytes, 4);
        const Status outcome = transfer(false, local, remote);
        ASSERT_TRUE(outcome.ok()) << outcome.what();
        EXPECT_EQ(local, remote) << bytes << " bytes";
    }
}

TEST_P(OfiDevices, MemoryThatIsNotRegisteredIsRefused) {
    Bytes local = filled(64, 5);
    Bytes remote(64);
    const Status outcome = transfer(true, local, remote, 1);
    EXPECT_EQ(outcome.code(), Status::Code::kMismatch) << outcome.what();
    EXPECT_EQ(remote, Bytes(64));
    EXPECT_TRUE(transfer(true, local, remote).ok());
    EXPECT_EQ(remote, local);
}

/// Who writes to memory after it was taken back hears of it, or nothing (shm, udp); it never
/// writes.
TEST_P(OfiDevices, AKeyEndsWithItsRegistration) {
    Bytes local = filled(100'000, 6);
    Bytes remote(local.size());
    RmaDevice& device = *sides[0].device;
    const auto here = device.registerMemory(local.data(), local.size());
    const auto there = sides[1].device->registerMemory(remote.data(), remote.size());
    ASSERT_TRUE(here.ok() && there.ok());
    const auto key = device.importKey(sides[0].peer, sides[1].device->key(*there));
    ASSERT_TRUE(key.ok());
    sides[1].device->deregister(*there);
    const RmaTransfer wish{
        local.data(), *here,        reinterpret_cast<std::uint64_t>(remote.data()),
        *key,         local.size(), 77};
    ASSERT_EQ(device.put(sides[0].peer, wish), RmaPost::kTaken);
    runUntil([&] { return sides[0].recorded.outcomes.contains(77); }, milliseconds(200));
    device.disconnect(sides[0].peer, RmaDevice::Ending::kNow);
    ASSERT_TRUE(runUntil([&] { return !sides[0].recorded.disconnects.empty(); }));
    ASSERT_TRUE(sides[0].recorded.outcomes.contains(77));
    EXPECT_FALSE(sides[0].recorded.outcomes[77].ok());
    EXPECT_EQ(remote, Bytes(remote.size()));
}

TEST_P(OfiDevices, EverythingTakenArrivesBeforeAnOrderlyEnd) {
    for (int at = 0; at < 40; ++at) post(0, "word " + std::to_string(at));
    const RmaPeer peer = sides[0].peer;
    sides[0].device->disconnect(peer, RmaDevice::Ending::kDelivered);
    const iovec piece{const_cast<char*>("late"), 4};
    EXPECT_EQ(sides[0].device->post(peer, std::span(&piece, 1)), RmaPost::kGone);
    ASSERT_TRUE(runUntil([&] { return !sides[0].recorded.disconnects.empty(); }));
    sides[0].device.reset();
    ASSERT_TRUE(runUntil([&] { return sides[1].recorded.messages.size() >= 40; }));
    EXPECT_EQ(sides[1].recorded.messages.size(), 40U);
}

TEST_P(OfiDevices, AnEndNowCompletesWhatIsUnderWay) {
    Bytes local = filled(8 << 20, 7);
    Bytes remote(local.size());
    RmaDevice& device = *sides[0].device;
    const auto here = device.registerMemory(local.data(), local.size());
    const auto there = sides[1].device->registerMemory(remote.data(), remote.size());
    ASSERT_TRUE(here.ok() && there.ok());
    const auto key = device.importKey(sides[0].peer, sides[1].device->key(*there));
    ASSERT_TRUE(key.ok());
    for (std::uint64_t context = 1; context <= 4; ++context) {
        const RmaTransfer wish{
            local.data(), *here,        reinterpret_cast<std::uint64_t>(remote.data()),
            *key,         local.size(), context};
        ASSERT_EQ(device.put(sides[0].peer, wish), RmaPost::kTaken);
    }
    device.disconnect(sides[0].peer, RmaDevice::Ending::kNow);
    const SteadyClock clock;
    const Time end = clock.now() + seconds(1);
    while (sides[0].recorded.disconnects.empty() && clock.now() < end) {
        device.progress(sides[0].recorded);  // the peer is hung
    }
    EXPECT_EQ(sides[0].recorded.disconnects.size(), 1U);
    ASSERT_EQ(sides[0].recorded.outcomes.size(), 4U);
    EXPECT_FALSE(sides[0].recorded.outcomes[4].ok());
    sides[1].device->deregister(*there);
}

TEST_P(OfiDevices, BytesThatAreNoAddressAreRefused) {
    Bytes address = sides[1].device->address();
    EXPECT_EQ(sides[0].device->connect({}).status().code(), Status::Code::kMismatch);
    for (std::size_t length = 0; length < address.size(); length += 3) {
        EXPECT_FALSE(sides[0].device->connect(std::span(address).first(length)).ok());
    }
    address.push_back(std::byte{1});
    EXPECT_FALSE(sides[0].device->connect(address).ok());
    EXPECT_EQ(
        sides[0].device->importKey(sides[0].peer, std::span(address).first(20)).status().code(),
        Status::Code::kMismatch);
}

INSTANTIATE_TEST_SUITE_P(Over, OfiDevices,
                         testing::Values(OfiOptions{"shm", "", false},
                                         OfiOptions{"tcp;ofi_rxm", "127.0.0.1", false},
                                         OfiOptions{"tcp;ofi_rxm", "127.0.0.1", true},
                                         OfiOptions{"udp;ofi_rxd", "127.0.0.1", false}),
                         [](const auto& each) {
                             return each.param.provider.substr(0, each.param.provider.find(';')) +
                                    (each.param.confirmsByReading ? "ConfirmedByReading" : "");
                         });

TEST(Ofi, ProvidersThatAreNotHereAreRefusedByName) {
    const auto made = makeOfiDevice({"no-such-provider", "", false});
    EXPECT_EQ(made.status().code(), Status::Code::kUnsupported);
    EXPECT_NE(made.status().what().find("no-such-provider"), std::string::npos);
    const auto elsewhere = makeOfiDevice({"tcp;ofi_rxm", "192.0.2.1", false});
    EXPECT_EQ(elsewhere.status().code(), Status::Code::kConfiguration);
}

std::size_t localFiles() {
    std::size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
        count += file.path().filename().string().starts_with("isthmus-ofi-") ? 1 : 0;
    }
    return count;
}

TEST(Ofi, WhatAKilledProcessLeavesIsSweptByTheNext) {
    const std::size_t before = localFiles();
    const pid_t child = ::fork();
    if (child == 0) {
        const auto device = makeOfiDevice({"shm", "", false});
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(localFiles(), before + 1);
    const auto device = makeOfiDevice({"shm", "", false});
    ASSERT_TRUE(device.ok()) << device.status().what();
    EXPECT_EQ(localFiles(), before + 1);  // the one of this process
}

TEST(Ofi, NothingIsLeftByAProcessThatExits) {
    const std::size_t before = localFiles();
    const pid_t child = ::fork();
    if (child == 0) {
        static auto* const device = new auto(makeOfiDevice({"shm", "", false}));
        std::exit(device->ok() && localFiles() == before + 1 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_EQ(localFiles(), before);
}

TEST(Ofi, DescribesItself) {
    const auto text = describeOfi();
    ASSERT_TRUE(text.ok()) << text.status().what();
    EXPECT_NE(text->find("shm"), std::string::npos) << *text;
}

}  // namespace
}  // namespace isthmus
