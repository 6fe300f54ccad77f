// A part of what leads to a peer breaks: what is under way arrives over the rest, or fails with the
// peer's name. Nothing wrong is delivered, and nobody touches memory that was given back.
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

#include "tests/conformance/transport/transport_world.hpp"
#include "tests/support/rma/device_kinds.hpp"

namespace isthmus {
namespace {

constexpr std::size_t kSizes[] = {0, 100, 5000, 70'000, 300'000, 2 << 20};

/// One message each way for each size, several times over.
class Traffic {
public:
    explicit Traffic(TransportWorld& world, std::uint64_t first = 1) : world_(world) {
        for (std::uint64_t at = first; at < first + 30; ++at) {
            for (int side = 0; side < 2; ++side) {
                const std::size_t bytes = kSizes[(at + static_cast<std::uint64_t>(side)) % 6];
                MessageTag tag = tagOf(at);
                tag.from = static_cast<std::uint16_t>(side);
                tag.to = static_cast<std::uint16_t>(1 - side);
                Message message{side, 2 * at + static_cast<std::uint64_t>(side), {}, {}};
                message.receive = std::make_unique<Posted>(tag, bytes);
                message.send = std::make_unique<Posted>(tag, bytes);
                message.send->fill(message.seed);
                messages_.push_back(std::move(message));
            }
        }
        for (Message& each : messages_) {
            world_.link(1 - each.from, each.from).postRecv(each.receive->operation);
            world_.link(each.from, 1 - each.from).postSend(each.send->operation);
        }
    }

    bool end() {
        return world_.runUntil([&] {
            return std::all_of(messages_.begin(), messages_.end(), [](const Message& each) {
                return each.send->completions > 0 && each.receive->completions > 0;
            });
        });
    }
    std::size_t arrived() const {
        return static_cast<std::size_t>(
            std::count_if(messages_.begin(), messages_.end(),
                          [](const Message& each) { return each.receive->isGood(); }));
    }
    std::size_t size() const { return messages_.size(); }

    /// Whatever arrived is right; whatever failed names the peer.
    void check() {
        for (const Message& each : messages_) {
            EXPECT_EQ(each.send->completions, 1);
            EXPECT_EQ(each.receive->completions, 1);
            EXPECT_TRUE(each.receive->isGuardIntact());
            if (each.receive->isGood()) {
                EXPECT_EQ(each.receive->firstWrong(each.seed), -1);
            } else {
                checkFailure(*each.receive, 1 - each.from, each.from);
            }
            if (!each.send->isGood()) checkFailure(*each.send, each.from, 1 - each.from);
        }
    }
    /// Everything was given back: bytes that are written there now stay.
    void checkNobodyWrites() {
        constexpr std::uint64_t kMine = 999'983;
        for (const Message& each : messages_) each.receive->fill(kMine);
        world_.settle();
        for (const Message& each : messages_) EXPECT_EQ(each.receive->firstWrong(kMine), -1);
    }

private:
    struct Message {
        int from;
        std::uint64_t seed;
        std::unique_ptr<Posted> send;
        std::unique_ptr<Posted> receive;
    };

    void checkFailure(const Posted& posted, int here, int there) {
        EXPECT_EQ(posted.status.code(), Status::Code::kPeerLost) << posted.status.what();
        EXPECT_NE(posted.status.what().find(world_.link(here, there).describe()), std::string::npos)
            << posted.status.what();
    }

    TransportWorld& world_;
    std::vector<Message> messages_;
};

class Lanes : public testing::TestWithParam<std::string> {};

TEST_P(Lanes, AConnectionThatBreaksFailsByNameAndSpoilsNothing) {
    std::size_t failed = 0;
    for (const int dropAfter : {1, 3, 20, 90}) {
        const auto world = makeWorld(droppingKind(GetParam(), dropAfter), 2);
        ASSERT_NE(world, nullptr);
        Traffic traffic(*world);
        ASSERT_TRUE(traffic.end()) << "broken at " << dropAfter;
        traffic.check();
        traffic.checkNobodyWrites();
        if (traffic.arrived() == traffic.size()) continue;
        ++failed;
        for (int side = 0; side < 2; ++side) {
            const auto& losses = world->at(side).recorder.losses;
            ASSERT_TRUE(world->runUntil([&] { return !losses.empty(); }));
            EXPECT_EQ(losses.size(), 1U);
            EXPECT_EQ(losses[0].state, Endpoint::State::kLost);
        }
    }
    EXPECT_GE(failed, 3U) << "most of them break before all is through";
}

std::vector<std::string> plainKinds() {
    std::vector<std::string> kinds;
    for (const std::string& kind : enduringDeviceKinds()) {
        if (!kind.starts_with("strict_")) kinds.push_back(kind);
    }
    return kinds;
}

INSTANTIATE_TEST_SUITE_P(Over, Lanes, testing::ValuesIn(plainKinds()),
                         [](const auto& each) { return each.param; });

/// Breaks every connection of this process to `address`. Returns how many.
int cut(const char* address) {
    in_addr wanted{};
    ::inet_aton(address, &wanted);
    int found = 0;
    DIR* const folder = ::opendir("/proc/self/fd");
    while (const dirent* entry = ::readdir(folder)) {
        const int fd = std::atoi(entry->d_name);
        sockaddr_in there{};
        socklen_t bytes = sizeof(there);
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &bytes) != 0) continue;
        if (there.sin_family != AF_INET || there.sin_addr.s_addr != wanted.s_addr) continue;
        ::shutdown(fd, SHUT_RDWR);
        ++found;
    }
    ::closedir(folder);
    return found;
}

TEST(Cards, OfSeveralThatBreakAreDoneWithout) {
    const auto world = makeWorld("tcpOverThree", 2);
    Traffic before(*world);
    ASSERT_TRUE(before.end());
    before.check();
    std::uint64_t first = 1000;
    for (const char* address : {"127.0.0.2", "127.0.0.3"}) {
        Traffic traffic(*world, first += 1000);
        ASSERT_TRUE(world->runUntil([&] { return traffic.arrived() > 5; }));
        EXPECT_GE(cut(address), 1) << address;
        ASSERT_TRUE(traffic.end()) << address;
        traffic.check();
        EXPECT_EQ(traffic.arrived(), traffic.size()) << "the others lead there";
        traffic.checkNobodyWrites();
    }
    EXPECT_TRUE(world->at(0).recorder.losses.empty());
    Traffic last(*world, first += 1000);
    ASSERT_TRUE(world->runUntil([&] { return last.arrived() > 5; }));
    EXPECT_GE(cut("127.0.0.1"), 1);
    ASSERT_TRUE(last.end());
    last.check();
    last.checkNobodyWrites();
    EXPECT_LT(last.arrived(), last.size()) << "nothing is left";
}

}  // namespace
}  // namespace isthmus
