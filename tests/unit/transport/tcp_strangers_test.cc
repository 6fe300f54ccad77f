// What comes to a listening port that is not one of our processes, and what we find when the port
// that we connect to is not ours.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/transport/negotiate.hpp"
#include "comm/transport/tcp/tcp_transport.hpp"

namespace isthmus {
namespace {

using std::chrono::milliseconds;

class Quiet final : public TransportListener {
public:
    void announced(Endpoint&, const MessageTag&, const CallFingerprint&, std::uint64_t) override {}
    void control(Endpoint&, std::span<const std::byte> message) override {
        controls.emplace_back(message.begin(), message.end());
    }
    void lost(Endpoint&, const Status& why) override { losses.push_back(why); }

    std::vector<Bytes> controls;
    std::vector<Status> losses;
};

struct Process {
    explicit Process(std::uint64_t number, const JobKey& key,
                     const TcpOptions& options = optionsOf()) {
        id = {number, number};
        auto made = makeTcpTransport(options, id, key, sleepSet, listener);
        EXPECT_TRUE(made.ok()) << made.status().what();
        if (made.ok()) transport = std::move(*made);
    }
    static TcpOptions optionsOf() {
        TcpOptions options;
        options.cards = {{"lo", "127.0.0.1"}};
        options.handshakeLimit = milliseconds(300);
        options.connectLimit = milliseconds(800);
        return options;
    }
    std::uint16_t port() const {
        const Bytes address = transport->address();
        ByteReader reader(address);
        EXPECT_EQ(reader.get<std::uint8_t>(), 1);
        reader.getText();
        return reader.get<std::uint16_t>();
    }

    ProcessId id;
    SleepSet sleepSet;
    Quiet listener;
    std::unique_ptr<Transport> transport;
};

const JobKey kKey = JobKey::derivedFrom("strangers");

Bytes addressOf(std::uint16_t port) {
    ByteWriter writer;
    writer.put(std::uint8_t{1}).put(std::string_view("127.0.0.1")).put(port);
    writer.put(std::uint32_t{1}).put(kKey.span());
    return writer.take();
}

bool runUntil(std::initializer_list<Process*> processes, const std::function<bool()>& isDone,
              milliseconds limit = milliseconds(5000)) {
    const SteadyClock clock;
    const Time end = clock.now() + limit;
    while (!isDone()) {
        if (clock.now() > end) return false;
        for (Process* process : processes) process->transport->progress(clock.now());
        std::this_thread::yield();
    }
    return true;
}

void spend(std::initializer_list<Process*> processes, milliseconds time) {
    runUntil(
        processes, [] { return false; }, time);
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

UniqueFd call(std::uint16_t port) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    return socket;
}

void say(const UniqueFd& socket, std::string_view text) {
    ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

bool isClosedByPeer(const UniqueFd& socket) {
    char byte = 0;
    const ssize_t got = ::recv(socket.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

std::size_t openDescriptors() {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

/// A message goes from `one` to `other`.
void expectTheyTalk(Process& one, Process& other) {
    const std::size_t before = other.listener.controls.size();
    (*one.transport->endpoint(other.id, other.transport->address()))->sendControl(Bytes(3));
    (void)other.transport->endpoint(one.id, one.transport->address());
    EXPECT_TRUE(runUntil({&one, &other}, [&] { return other.listener.controls.size() > before; }));
}

TEST(TcpStrangers, GarbageIsTurnedAwayAndOthersComeIn) {
    Process listening(1, kKey);
    std::string random(64 * 1024, '\0');
    std::mt19937 generator(3);
    for (char& byte : random) byte = static_cast<char>(generator());
    const std::string tls("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
    const std::string lengths(64, '\xff');
    for (const std::string& text : {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), tls,
                                    std::string("SSH-2.0-OpenSSH_9.2\r\n"), random, lengths}) {
        const UniqueFd socket = call(listening.port());
        say(socket, text);
        EXPECT_TRUE(runUntil({&listening}, [&] { return isClosedByPeer(socket); }))
            << text.substr(0, 10);
    }
    Process honest(2, kKey);
    expectTheyTalk(honest, listening);
}

TEST(TcpStrangers, WhoStaysSilentIsDroppedInTime) {
    Process listening(1, kKey);
    const UniqueFd silent = call(listening.port());
    const UniqueFd slow = call(listening.port());
    say(slow, "isthmusH");  // and no more
    EXPECT_FALSE(runUntil(
        {&listening}, [&] { return isClosedByPeer(silent); }, milliseconds(200)));
    EXPECT_TRUE(runUntil(
        {&listening}, [&] { return isClosedByPeer(silent) && isClosedByPeer(slow); },
        milliseconds(1000)));
}

TEST(TcpStrangers, ManyBadCallersLeaveNothingBehind) {
    Process listening(1, kKey);
    Process honest(2, kKey);
    spend({&listening}, milliseconds(5));
    const std::size_t before = openDescriptors();
    {
        std::vector<UniqueFd> waiting;
        for (int at = 0; at < 80; ++at) {
            waiting.push_back(call(listening.port()));
            spend({&listening}, milliseconds(1));
        }
        spend({&listening}, milliseconds(5));
        EXPECT_LE(openDescriptors(), before + 80 + 64);  // ours, and at most 64 of theirs
        expectTheyTalk(honest, listening);
    }
    for (int at = 0; at < 500; ++at) {
        UniqueFd socket = call(listening.port());
        const linger reset{1, 0};
        if (at % 2 == 0) {
            ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        }
        socket.reset();
        if (at % 50 == 0) spend({&listening}, milliseconds(2));
    }
    EXPECT_TRUE(runUntil({&listening, &honest}, [&] { return openDescriptors() <= before + 4; }))
        << openDescriptors() << " were " << before;
}

TEST(TcpStrangers, AnotherKeyIsSaidToTheCaller) {
    Process listening(1, kKey);
    Process stale(2, kKey);
    Bytes address = listening.transport->address();
    address.back() ^= std::byte{1};  // it ends with the key of the door
    Endpoint* endpoint = *stale.transport->endpoint(listening.id, address);
    endpoint->connect();
    ASSERT_TRUE(runUntil({&listening, &stale}, [&] { return !stale.listener.losses.empty(); }));
    EXPECT_EQ(stale.listener.losses[0].code(), Status::Code::kConfiguration);
    EXPECT_NE(stale.listener.losses[0].what().find("job key differs"), std::string::npos);
    EXPECT_NE(stale.listener.losses[0].what().find(endpoint->describe()), std::string::npos);
    EXPECT_TRUE(listening.listener.losses.empty());
}

/// Listens and treats each caller as `serve` says, on a thread of its own.
class Foreign {
public:
    explicit Foreign(const std::function<void(int)>& serve)
        : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address = loopback(0);
        socklen_t length = sizeof(address);
        EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
        EXPECT_EQ(::listen(listener_.get(), 8), 0);
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
        port = ntohs(address.sin_port);
        thread_ = std::jthread([this, serve] {
            while (true) {
                const UniqueFd caller(::accept(listener_.get(), nullptr, nullptr));
                if (!caller.isOpen()) return;
                serve(caller.get());
            }
        });
    }
    ~Foreign() { ::shutdown(listener_.get(), SHUT_RDWR); }

    std::uint16_t port = 0;

private:
    UniqueFd listener_;
    std::jthread thread_;
};

Status outcomeAt(std::uint16_t port) {
    Process caller(1, kKey);
    (*caller.transport->endpoint({7, 7}, addressOf(port)))->connect();
    EXPECT_TRUE(runUntil({&caller}, [&] { return !caller.listener.losses.empty(); }));
    return caller.listener.losses.empty() ? Status() : caller.listener.losses[0];
}

TEST(TcpStrangers, AForeignServerIsRecognised) {
    const Foreign echo([](int caller) {
        char room[256];
        const ssize_t got = ::recv(caller, room, sizeof(room), 0);
        if (got > 0) ::send(caller, room, static_cast<std::size_t>(got), MSG_NOSIGNAL);
        ::recv(caller, room, sizeof(room), 0);
    });
    EXPECT_EQ(outcomeAt(echo.port).code(), Status::Code::kConfiguration);
    const Foreign http([](int caller) {
        char room[256];
        ::recv(caller, room, sizeof(room), 0);
        const std::string_view text = "HTTP/1.0 400 Bad request\r\n\r\n";
        ::send(caller, text.data(), text.size(), MSG_NOSIGNAL);
    });
    const Status status = outcomeAt(http.port);
    EXPECT_EQ(status.code(), Status::Code::kConfiguration);
    EXPECT_NE(status.what().find("not isthmus"), std::string::npos) << status.what();
    const Foreign silent([](int caller) {
        char room[256];
        while (::recv(caller, room, sizeof(room), 0) > 0) {
        }
    });
    const Status late = outcomeAt(silent.port);
    EXPECT_EQ(late.code(), Status::Code::kPeerLost);
    EXPECT_NE(late.what().find("no answer"), std::string::npos) << late.what();
}

TEST(TcpStrangers, NobodyThereIsKnownSoon) {
    std::uint16_t port = 0;
    {
        Process gone(3, kKey);
        port = gone.port();
    }
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(outcomeAt(port).code(), Status::Code::kPeerLost);
    EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1500));
}

TEST(TcpStrangers, GarbageAfterTheHandshakeEndsOnlyThatConnection) {
    Process listening(1, kKey);
    const ProcessId liar{5, 5};
    Endpoint* endpoint = *listening.transport->endpoint(liar, addressOf(1));
    const UniqueFd socket = call(listening.port());
    NegotiateConnector negotiation(kKey, Purpose::kTcpFrames, liar, listening.id);
    ::send(socket.get(), negotiation.hello().data(), kHelloBytes, MSG_NOSIGNAL);
    Answer answer{};
    std::size_t got = 0;
    ASSERT_TRUE(runUntil({&listening}, [&] {
        const ssize_t more =
            ::recv(socket.get(), answer.data() + got, answer.size() - got, MSG_DONTWAIT);
        if (more > 0) got += static_cast<std::size_t>(more);
        return got == answer.size();
    }));
    ASSERT_TRUE(negotiation.check(answer).ok());
    const Mac proof = negotiation.proof();
    ::send(socket.get(), proof.data(), proof.size(), MSG_NOSIGNAL);
    spend({&listening}, milliseconds(5));
    EXPECT_TRUE(listening.listener.losses.empty());
    say(socket, std::string(200, '\xff'));
    ASSERT_TRUE(runUntil({&listening}, [&] { return !listening.listener.losses.empty(); }));
    EXPECT_EQ(endpoint->state(), Endpoint::State::kLost);
    EXPECT_TRUE(runUntil({&listening}, [&] { return isClosedByPeer(socket); }));
    Process honest(2, kKey);
    expectTheyTalk(honest, listening);
}

TEST(TcpPorts, StayInTheirRangeAndNameTheHolder) {
    TcpOptions options = Process::optionsOf();
    options.ports = {21510, 21511};
    Process one(1, kKey, options);
    Process two(2, kKey, options);
    EXPECT_NE(one.port(), two.port());
    for (const Process* process : {&one, &two}) {
        EXPECT_TRUE(process->port() == 21510 || process->port() == 21511);
    }
    SleepSet sleepSet;
    Quiet listener;
    const auto third = makeTcpTransport(options, {3, 3}, kKey, sleepSet, listener);
    ASSERT_FALSE(third.ok());
    EXPECT_EQ(third.status().code(), Status::Code::kConfiguration);
    EXPECT_NE(third.status().what().find("21510"), std::string::npos) << third.status().what();
}

TEST(TcpPorts, OnlyTheCardsAddressIsListenedOn) {
    SleepSet sleepSet;
    Quiet listener;
    for (const char* address : {"0.0.0.0", "::", "example.org", "192.0.2.1", ""}) {
        TcpOptions options;
        options.cards = {{"lo", address}};
        const auto made = makeTcpTransport(options, {1, 1}, kKey, sleepSet, listener);
        EXPECT_EQ(made.status().code(), Status::Code::kConfiguration) << address;
    }
    Process process(1, kKey);
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in other = loopback(process.port());
    other.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // 127.0.0.2 is this machine, too
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&other), sizeof(other)),
              -1);
}

TEST(TcpPorts, Version6) {
    TcpOptions options = Process::optionsOf();
    options.cards = {{"lo", "::1"}};
    SleepSet sleepSet;
    Quiet listener;
    if (!makeTcpTransport(options, {9, 9}, kKey, sleepSet, listener).ok()) {
        GTEST_SKIP() << "this machine has no ::1";
    }
    Process one(1, kKey, options);
    Process two(2, kKey, options);
    expectTheyTalk(one, two);
}

}  // namespace
}  // namespace isthmus
