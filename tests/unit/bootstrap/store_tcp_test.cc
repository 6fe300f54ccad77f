#include "comm/bootstrap/store_tcp.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/bootstrap/store_session.hpp"

namespace isthmus {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

const HostPort kAnyPort{"127.0.0.1", 0};

std::unique_ptr<TcpStoreServer> serve(const JobKey& key) {
    return std::move(*TcpStoreServer::start(kAnyPort, key));
}

/// Something else that listens at a port and treats each connection as `talk` says.
class ForeignService {
public:
    explicit ForeignService(std::function<void(const UniqueFd&)> talk)
        : listener_(std::move(*listenAt(kAnyPort))),
          place_(placeOf(listener_, kAnyPort)),
          thread_([this, talk = std::move(talk)] {
              for (;;) {
                  const UniqueFd taken(acceptOne());
                  if (!taken.isOpen()) return;
                  talk(taken);
              }
          }) {}
    ~ForeignService() {
        isEnding_ = true;
        thread_.join();
    }
    ForeignService(const ForeignService&) = delete;
    ForeignService& operator=(const ForeignService&) = delete;
    const HostPort& place() const { return place_; }

private:
    int acceptOne() {
        while (!isEnding_) {
            const int taken = ::accept(listener_.get(), nullptr, nullptr);
            if (taken >= 0) return taken;
            std::this_thread::sleep_for(milliseconds(2));
        }
        return -1;
    }

    std::atomic<bool> isEnding_ = false;
    UniqueFd listener_;
    HostPort place_;
    std::thread thread_;
};

Status connectStatus(const HostPort& place, const JobKey& key, milliseconds limit) {
    const auto store = TcpStore::connect(place, key, limit);
    return store.ok() ? Status() : store.status();
}

TEST(TcpStore, AnotherJobKeyIsNamedAtOnce) {
    const auto server = serve(*JobKey::random());
    const auto start = steady_clock::now();
    const Status status = connectStatus(server->place(), *JobKey::random(), milliseconds(5000));
    EXPECT_EQ(status.code(), Status::Code::kConfiguration);
    EXPECT_NE(status.what().find("the job key differs"), std::string::npos) << status.what();
    EXPECT_NE(status.what().find(toText(server->place())), std::string::npos);
    EXPECT_LT(steady_clock::now() - start, milliseconds(1000));
}

TEST(TcpStore, AnHttpServerIsNamed) {  // BOOT-12
    const ForeignService http([](const UniqueFd& taken) {
        // As Python's http.server: it answers once the line is whole.
        char text[64];
        ::recv(taken.get(), text, sizeof text, 0);
        const std::string answer = "HTTP/1.0 400 Bad request version\r\n\r\n<html>";
        ::send(taken.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    });
    const Status status = connectStatus(http.place(), *JobKey::random(), milliseconds(5000));
    EXPECT_EQ(status.code(), Status::Code::kConfiguration);
    EXPECT_NE(status.what().find("another service answered, not an isthmus store: it said "
                                 "\"HTTP/1.0 400 Bad request"),
              std::string::npos)
        << status.what();
}

TEST(TcpStore, AnEchoServerIsNamed) {  // BOOT-12
    const ForeignService echo([](const UniqueFd& taken) {
        char text[64];
        const ssize_t got = ::recv(taken.get(), text, sizeof text, 0);
        if (got > 0) ::send(taken.get(), text, static_cast<std::size_t>(got), MSG_NOSIGNAL);
    });
    const Status status = connectStatus(echo.place(), *JobKey::random(), milliseconds(5000));
    EXPECT_EQ(status.code(), Status::Code::kConfiguration);
    EXPECT_NE(status.what().find("sends back what it is sent"), std::string::npos);
}

TEST(TcpStore, ASilentListenerIsGivenUpAtTheLimit) {  // BOOT-12
    const UniqueFd silent = std::move(*listenAt(kAnyPort));
    const HostPort place = placeOf(silent, kAnyPort);
    const auto start = steady_clock::now();
    const Status status = connectStatus(place, *JobKey::random(), milliseconds(300));
    EXPECT_EQ(status.code(), Status::Code::kTimeout);
    EXPECT_NE(status.what().find("says nothing"), std::string::npos) << status.what();
    EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
}

TEST(TcpStore, NobodyThereIsSaidAtTheLimit) {
    HostPort place = kAnyPort;
    {
        const UniqueFd taken = std::move(*listenAt(kAnyPort));
        place = placeOf(taken, kAnyPort);
    }
    const Status status = connectStatus(place, *JobKey::random(), milliseconds(150));
    EXPECT_EQ(status.code(), Status::Code::kTimeout);
    EXPECT_EQ(status.what(), "waited 150 ms for the store at " + toText(place) +
                                 ": cannot connect to " + toText(place) + ": Connection refused");
}

TEST(TcpStore, TheServerMayStartLater) {
    const auto key = *JobKey::random();
    HostPort place = kAnyPort;
    {
        const UniqueFd taken = std::move(*listenAt(kAnyPort));
        place = placeOf(taken, kAnyPort);
    }
    std::unique_ptr<TcpStoreServer> server;
    std::thread late([&] {
        std::this_thread::sleep_for(milliseconds(300));
        server = std::move(*TcpStoreServer::start(place, key));
    });
    const Status status = connectStatus(place, key, milliseconds(5000));
    late.join();
    EXPECT_TRUE(status.ok()) << status.what();
}

TEST(TcpStore, ALostServerIsALostPeer) {
    const auto key = *JobKey::random();
    auto server = serve(key);
    const auto place = server->place();
    const auto store = std::move(*TcpStore::connect(place, key, milliseconds(2000)));
    server = std::move(*TcpStoreServer::start(kAnyPort, key));
    server.reset();
    const auto start = steady_clock::now();
    const auto value = store->get("key", milliseconds(60'000));
    EXPECT_EQ(value.status().code(), Status::Code::kPeerLost) << value.status().what();
    EXPECT_LT(steady_clock::now() - start, milliseconds(4000));
}

TEST(TcpStore, ARestartedServerIsNotTheSame) {
    const auto key = *JobKey::random();
    auto server = serve(key);
    const auto place = server->place();
    const auto store = std::move(*TcpStore::connect(place, key, milliseconds(2000)));
    ASSERT_TRUE(store->set("key", toBytes("value")).ok());
    server.reset();
    server = std::move(*TcpStoreServer::start(place, key));
    const auto value = store->get("key", milliseconds(2000));
    EXPECT_EQ(value.status().code(), Status::Code::kPeerLost);
    EXPECT_NE(value.status().what().find("started anew"), std::string::npos);
}

TEST(TcpStore, GarbageClosesOnlyThatConnection) {
    const auto key = *JobKey::random();
    const auto server = serve(key);
    const auto store = std::move(*TcpStore::connect(server->place(), key, milliseconds(2000)));
    const std::string garbage[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string(100'000, '\xff'), std::string(4096, '\0'),
        "ISTHMUS?" + std::string(4096, 'x'),
        std::string("ISTHMUS?\x01\0\0\0", 12) + std::string(20, 'n') + std::string(500, 'p')};
    for (const std::string& text : garbage) {
        const auto stranger =
            std::move(*connectTo(server->place(), deadlineIn(milliseconds(1000))));
        const auto sent = sendAll(stranger, toBytes(text), deadlineIn(milliseconds(1000)));
        EXPECT_TRUE(sent.ok() || sent.code() == Status::Code::kPeerLost);
        std::array<std::byte, 256> room;
        Result<std::size_t> got = std::size_t{1};
        for (int i = 0; i < 4 && got.ok(); ++i) {
            got = receiveSome(stranger, room, deadlineIn(milliseconds(1000)));
        }
        EXPECT_EQ(got.status().code(), Status::Code::kPeerLost) << "closed by the server";
    }
    EXPECT_TRUE(store->set("still", toBytes("there")).ok());
}

TEST(TcpStore, ManySilentStrangersKeepNobodyOut) {
    const auto key = *JobKey::random();
    const auto server = serve(key);
    std::vector<UniqueFd> strangers;
    for (int i = 0; i < 100; ++i) {
        auto stranger = connectTo(server->place(), deadlineIn(milliseconds(1000)));
        if (stranger.ok()) strangers.push_back(std::move(*stranger));
    }
    EXPECT_EQ(strangers.size(), 100u);
    EXPECT_TRUE(connectStatus(server->place(), key, milliseconds(2000)).ok());
}

TEST(TcpStoreServer, APortInUseNamesItsHolder) {  // BOOT-12
    const auto key = *JobKey::random();
    const auto server = serve(key);
    const auto second = TcpStoreServer::start(server->place(), key);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().code(), Status::Code::kConfiguration);
    const std::string& what = second.status().what();
    EXPECT_NE(what.find("cannot listen at " + toText(server->place())), std::string::npos) << what;
    EXPECT_NE(what.find("held by process " + std::to_string(::getpid())), std::string::npos)
        << what;
}

TEST(TcpStoreServer, KeepsToThePortRange) {
    const auto key = *JobKey::random();
    std::uint16_t free = 0;
    {
        const UniqueFd taken = std::move(*listenAt(kAnyPort));
        free = placeOf(taken, kAnyPort).port;
    }
    const PortRange range{free, free};
    const auto server = TcpStoreServer::start(kAnyPort, key, range);
    ASSERT_TRUE(server.ok()) << server.status().what();
    EXPECT_EQ((*server)->place().port, free);
    const auto second = TcpStoreServer::start(kAnyPort, key, range);
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.status().what().find("every port of ISTHMUS_PORT_RANGE"), std::string::npos);
}

TEST(TcpStoreServer, ListensAtSeveralPlacesWithOnePort) {
    const auto key = *JobKey::random();
    const auto server = TcpStoreServer::start(
        std::vector<HostPort>{{"127.0.0.1", 0}, {"127.0.0.2", 0}, {"192.0.2.77", 0}}, key);
    ASSERT_TRUE(server.ok()) << server.status().what();
    ASSERT_EQ((*server)->places().size(), 2u) << "192.0.2.77 is not ours (RFC 5737)";
    EXPECT_EQ((*server)->places()[1].port, (*server)->place().port);
    for (const HostPort& place : (*server)->places()) {
        EXPECT_TRUE(connectStatus(place, key, milliseconds(2000)).ok());
    }
    EXPECT_FALSE(TcpStoreServer::start(HostPort{"192.0.2.77", 0}, key).ok());
}

TEST(ServerSession, AChangedFrameIsRefused) {
    const auto key = *JobKey::random();
    const Nonce nonce = makeNonce();
    for (const bool isChanged : {false, true}) {
        ServerSession session(key, makeNonce(), makeNonce());
        const Bytes hello = clientHello(nonce);
        ASSERT_TRUE(session.feed(hello).ok());
        const Bytes answer = session.output();
        ASSERT_TRUE(checkServerHello(key, hello, answer).ok());
        const Mac proof = clientProof(key, hello, answer);
        ASSERT_TRUE(session.feed(proof).ok());
        EXPECT_TRUE(session.isTrusted());
        FrameStream frames(key, proof, Side::kClient);
        Bytes frame = frames.seal(encode(StoreRequest{StoreVerb::kHas, 0, "key", {}}));
        if (isChanged) frame.back() ^= std::byte{1};
        std::vector<StoreRequest> requests;
        Status status;
        for (const std::byte value : frame) {  // byte by byte, as a slow network may bring it
            auto some = session.feed(std::span(&value, 1));
            if (!some.ok()) {
                status = some.status();
                break;
            }
            for (auto& request : *some) requests.push_back(std::move(request));
        }
        EXPECT_EQ(status.ok(), !isChanged);
        ASSERT_EQ(requests.size(), isChanged ? 0u : 1u);
        if (!isChanged) {
            EXPECT_EQ(requests.front().key, "key");
        }
    }
}

TEST(ServerSession, AProofSentBackIsNoProof) {
    const auto key = *JobKey::random();
    ServerSession session(key, makeNonce(), makeNonce());
    ASSERT_TRUE(session.feed(clientHello(makeNonce())).ok());
    const Bytes proof(session.output().end() - 32, session.output().end());
    EXPECT_FALSE(session.feed(proof).ok());
    EXPECT_FALSE(session.isTrusted());
}

TEST(FrameStream, LengthsAreCheckedFirst) {
    FrameStream frames(*JobKey::random(), Mac{}, Side::kClient);
    const Bytes huge = ByteWriter().put(std::uint32_t{0xffffffff}).take();
    EXPECT_EQ(frames.open(huge).status().code(), Status::Code::kMismatch);
}

TEST(StoreWire, NoPrefixOfARequestIsARequest) {
    const Bytes whole = encode(StoreRequest{StoreVerb::kSet, 7, "key", toBytes("value")});
    ASSERT_TRUE(decodeStoreRequest(whole).ok());
    for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_FALSE(decodeStoreRequest(std::span(whole).first(i)).ok()) << i << " bytes";
    }
    Bytes longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decodeStoreRequest(longer).ok());
}

}  // namespace
}  // namespace isthmus
