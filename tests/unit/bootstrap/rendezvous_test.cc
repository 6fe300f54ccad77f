#include "comm/bootstrap/rendezvous.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/base/unique_fd.hpp"
#include "comm/bootstrap/unique_id.hpp"

namespace isthmus {
namespace {

using std::chrono::milliseconds;

LaunchEnvironment environmentOf(int rank, int ranks, std::string store) {
    LaunchEnvironment environment;
    environment.launcher = Launcher::kTorchrun;
    environment.rank = rank;
    environment.ranks = ranks;
    environment.localRanks = ranks;
    environment.store = std::move(store);
    environment.jobId = "job " + std::to_string(::getpid());
    return environment;
}

/// Meets as `ranks` threads, the last one first, and returns what each got.
std::vector<std::unique_ptr<Rendezvous>> meetAll(int ranks, const std::string& store,
                                                 const RendezvousOptions& options) {
    std::vector<std::unique_ptr<Rendezvous>> all(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = ranks - 1; rank >= 0; --rank) {
        threads.emplace_back([&, rank] {
            auto met = meet(environmentOf(rank, ranks, store), options);
            EXPECT_TRUE(met.ok()) << met.status().what();
            if (met.ok()) all[static_cast<std::size_t>(rank)] = std::move(*met);
        });
    }
    for (auto& thread : threads) thread.join();
    return all;
}

void expectOneKeyAndOneStore(const std::vector<std::unique_ptr<Rendezvous>>& all) {
    for (const auto& met : all) {
        ASSERT_NE(met, nullptr);
        EXPECT_EQ(met->key, all[0]->key);
        EXPECT_FALSE(met->key == JobKey{});
    }
    ASSERT_TRUE(all[0]->store->set("hello", toBytes("all")).ok());
    for (const auto& met : all) {
        EXPECT_EQ(toText(*met->store->get("hello", milliseconds(1000))), "all");
    }
}

std::string freePlace() {
    const HostPort any{"127.0.0.1", 0};
    const UniqueFd taken = std::move(*listenAt(any));
    return toText(placeOf(taken, any));
}

TEST(Rendezvous, RankZeroServesUnderALocalName) {
    RendezvousOptions options;
    options.limit = milliseconds(5000);
    const auto all =
        meetAll(3, "@isthmus-test-" + (*JobKey::random()).hex().substr(0, 16), options);
    expectOneKeyAndOneStore(all);
    EXPECT_NE(all[0]->server, nullptr);
    EXPECT_EQ(all[1]->server, nullptr);
}

TEST(Rendezvous, RankZeroServesAtAPortWithTheGivenKey) {
    const auto key = *JobKey::random();
    const UniqueFd descriptor(*key.toInheritableDescriptor());
    RendezvousOptions options;
    options.limit = milliseconds(5000);
    options.jobKeyDescriptor = std::to_string(descriptor.get());
    const auto all = meetAll(2, freePlace(), options);
    expectOneKeyAndOneStore(all);
    EXPECT_EQ(all[1]->key, key);
    EXPECT_EQ(all[1]->localAddress, "127.0.0.1");
}

TEST(Rendezvous, TheLaunchersStoreIsUsedWhereThereIsOne) {
    const auto key = *JobKey::random();
    const UniqueFd descriptor(*key.toInheritableDescriptor());
    const auto server = std::move(*TcpStoreServer::start({"127.0.0.1", 0}, key));
    RendezvousOptions options;
    options.limit = milliseconds(5000);
    options.jobKeyDescriptor = std::to_string(descriptor.get());
    const auto all = meetAll(2, toText(server->place()), options);
    expectOneKeyAndOneStore(all);
    EXPECT_EQ(all[0]->server, nullptr);
}

TEST(Rendezvous, AFolderServesToo) {
    char pattern[] = "/tmp/isthmus-meet-XXXXXX";
    const std::string folder = ::mkdtemp(pattern);
    RendezvousOptions options;
    options.limit = milliseconds(5000);
    expectOneKeyAndOneStore(meetAll(2, folder, options));
    std::filesystem::remove_all(folder);
}

TEST(Rendezvous, AWorldOfOneMeetsItself) {
    const auto met = meet(LaunchEnvironment{}, {});
    ASSERT_TRUE(met.ok());
    EXPECT_TRUE((*met)->store->set("a", {}).ok());
}

TEST(Rendezvous, AMissingRankZeroIsNamedAtTheLimit) {
    RendezvousOptions options;
    options.limit = milliseconds(100);
    const auto met = meet(environmentOf(1, 2, freePlace()), options);
    ASSERT_FALSE(met.ok());
    EXPECT_EQ(met.status().code(), Status::Code::kTimeout);
    EXPECT_EQ(met.status().what().find("rank 1 of 2 cannot meet the others: waited 100 ms for the "
                                       "store at 127.0.0.1:"),
              0u)
        << met.status().what();
}

TEST(Rendezvous, LoopbackIsListenedAtWhenItIsMeant) {
    const auto number = listeningPlaces({"127.0.0.1", 7000});
    ASSERT_TRUE(number.ok());
    EXPECT_TRUE(number->isExact);
    EXPECT_EQ(number->places, (std::vector<HostPort>{{"127.0.0.1", 7000}}));
    const auto foreign = listeningPlaces({"192.0.2.77", 7000});
    ASSERT_TRUE(foreign.ok());
    EXPECT_FALSE(foreign->isExact);
    ASSERT_FALSE(foreign->places.empty());
    const auto isLoopback = [](const HostPort& place) {
        return place.host == "::1" || place.host.starts_with("127.");
    };
    const auto& places = foreign->places;
    const auto firstLoopback = std::find_if(places.begin(), places.end(), isLoopback);
    EXPECT_TRUE(std::all_of(firstLoopback, places.end(), [&](const HostPort& place) {
        return isLoopback(place) || place.host.find('%') != std::string::npos;
    })) << "loopback comes last";
}

TEST(UniqueId, GoesThroughItsBytes) {
    UniqueId id;
    id.addresses = {"10.77.0.1", "fd77::1", "fe00::2", "127.0.0.1", "::1"};
    id.port = 4711;
    id.key = *JobKey::random();
    const auto again = UniqueId::from(id.bytes());
    ASSERT_TRUE(again.ok()) << again.status().what();
    EXPECT_EQ(again->port, 4711);
    EXPECT_EQ(again->key, id.key);
    EXPECT_EQ(again->addresses,
              (std::vector<std::string>{"10.77.0.1", "fd77::1", "fe00::2", "127.0.0.1", "::1"}));
}

TEST(UniqueId, OtherBytesAreRefused) {
    std::array<std::byte, UniqueId::kBytes> raw{};
    EXPECT_EQ(UniqueId::from(raw).status().code(), Status::Code::kInvalidArgument);
    raw = UniqueId{{"10.0.0.1"}, 1, {}}.bytes();
    ASSERT_TRUE(UniqueId::from(raw).ok());
    raw[42] = std::byte{200};  // the number of IPv4 addresses
    EXPECT_FALSE(UniqueId::from(raw).ok());
}

TEST(UniqueId, OthersFindItsMaker) {
    const auto id = makeUniqueId("127.0.0.1", {});
    ASSERT_TRUE(id.ok()) << id.status().what();
    const auto copy = UniqueId::from(id->bytes());
    ASSERT_TRUE(copy.ok());
    const auto one = connectTo(*copy, milliseconds(2000));
    const auto other = connectTo(*copy, milliseconds(2000));
    ASSERT_TRUE(one.ok() && other.ok()) << one.status().what();
    ASSERT_TRUE(one->store->set("a", toBytes("b")).ok());
    EXPECT_EQ(toText(*other->store->get("a", milliseconds(1000))), "b");
    EXPECT_FALSE(makeUniqueId("no-such-interface", {}).ok());
}

}  // namespace
}  // namespace isthmus
