// What only shared memory can do: mapped arenas, doorbells between processes, and proof of place.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <functional>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/bootstrap/socket.hpp"
#include "comm/transport/shm/shm_transport.hpp"

namespace isthmus {
namespace {

using std::chrono::milliseconds;

const JobKey kKey = JobKey::derivedFrom("shm test");

class Quiet final : public TransportListener {
public:
    void announced(Endpoint&, const MessageTag&, const CallFingerprint&, std::uint64_t) override {}
    void control(Endpoint&, std::span<const std::byte>) override { ++controls; }
    void lost(Endpoint&, const Status& why) override { losses.push_back(why); }

    int controls = 0;
    std::vector<Status> losses;
};

struct Process {
    explicit Process(std::uint64_t number, const JobKey& key = kKey, ShmOptions options = {})
        : id{number, number}, arena(std::move(*Arena::create(16 << 20))) {
        auto made = makeShmTransport(options, id, key, sleepSet, listener, *arena);
        EXPECT_TRUE(made.ok()) << made.status().what();
        if (made.ok()) transport = std::move(*made);
    }

    ProcessId id;
    std::unique_ptr<Arena> arena;
    SleepSet sleepSet;
    Quiet listener;
    std::unique_ptr<Transport> transport;
};

Endpoint& link(Process& from, const Process& to) {
    return **from.transport->endpoint(to.id, to.transport->address());
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

TEST(Shm, BothSeeTheOthersArena) {
    Process one(1);
    Process two(2);
    Endpoint& there = link(one, two);
    Endpoint& back = link(two, one);
    EXPECT_EQ(there.mapped().base, nullptr);
    there.connect();
    ASSERT_TRUE(runUntil({&one, &two}, [&] {
        return there.state() == Endpoint::State::kOpen && back.state() == Endpoint::State::kOpen;
    }));
    auto* const mine = static_cast<int*>(*two.arena->allocate(sizeof(int)));
    *mine = 4711;
    const auto offset = two.arena->offsetOf(mine, sizeof(int));
    ASSERT_TRUE(offset.has_value());
    EXPECT_EQ(there.mapped().bytes, two.arena->capacityBytes());
    EXPECT_EQ(*reinterpret_cast<int*>(there.mapped().base + *offset), 4711);
    EXPECT_EQ(back.mapped().bytes, one.arena->capacityBytes());
}

TEST(Shm, AnotherNodesAddressIsRefused) {
    Process one(1);
    Process two(2);
    const Bytes good = two.transport->address();
    ByteReader reader(good);
    const std::string bootId = reader.getText();
    const auto device = reader.get<std::uint64_t>();
    const auto inode = reader.get<std::uint64_t>();
    const std::string socketName = reader.getText();
    const auto with = [&](std::string_view boot, std::uint64_t networkInode) {
        ByteWriter writer;
        writer.put(boot).put(device).put(networkInode).put(std::string_view(socketName));
        writer.put(std::uint32_t{1}).put(kKey.span());
        return one.transport->endpoint({9, networkInode}, writer.take()).status().code();
    };
    EXPECT_EQ(with(bootId, inode), Status::Code::kOk);
    EXPECT_EQ(with(bootId, inode + 1), Status::Code::kUnsupported);
    EXPECT_EQ(with("00000000-0000-0000-0000-000000000000", inode + 2), Status::Code::kUnsupported);
    EXPECT_EQ(one.transport->endpoint({9, 8}, Bytes(5)).status().code(), Status::Code::kMismatch);
}

TEST(Shm, AnotherKeyIsSaidToTheCaller) {
    Process listening(1);
    Process stale(2);
    Bytes address = listening.transport->address();
    address.back() ^= std::byte{1};  // it ends with the key of the door
    (*stale.transport->endpoint(listening.id, address))->connect();
    ASSERT_TRUE(runUntil({&listening, &stale}, [&] { return !stale.listener.losses.empty(); }));
    EXPECT_EQ(stale.listener.losses[0].code(), Status::Code::kConfiguration);
    EXPECT_NE(stale.listener.losses[0].what().find("job key differs"), std::string::npos);
    EXPECT_TRUE(listening.listener.losses.empty());
}

TEST(Shm, StrangersAtTheSocketHurtNobody) {
    ShmOptions options;
    options.handshakeLimit = milliseconds(100);
    Process listening(1, kKey, options);
    Process honest(2);
    const Bytes address = listening.transport->address();
    ByteReader reader(address);
    reader.getText();
    reader.get<std::uint64_t>();
    reader.get<std::uint64_t>();
    const std::string socketName = reader.getText();
    std::vector<UniqueFd> callers;
    for (int at = 0; at < 100; ++at) {
        auto caller = connectTo({socketName, 0}, deadlineIn(milliseconds(100)));
        ASSERT_TRUE(caller.ok()) << caller.status().what();
        const Bytes garbage(at % 3 == 0 ? 0 : 100, std::byte{0xff});
        if (!garbage.empty()) {
            EXPECT_TRUE(sendAll(*caller, garbage, deadlineIn(milliseconds(100))).ok());
        }
        callers.push_back(std::move(*caller));
    }
    link(listening, honest);
    link(honest, listening).sendControl(Bytes(1));
    EXPECT_TRUE(runUntil({&listening, &honest}, [&] { return listening.listener.controls == 1; }));
    EXPECT_TRUE(listening.listener.losses.empty());
}

/// A child that maps us, sleeps until it is woken, answers once, and dies without a goodbye.
[[noreturn]] void childThatAnswersOnce(const Process& parent, int addressPipe) {
    Process child(2);
    const Bytes address = child.transport->address();
    [[maybe_unused]] const auto written = ::write(addressPipe, address.data(), address.size());
    Endpoint& endpoint = link(child, parent);
    endpoint.connect();
    const SteadyClock clock;
    const Time end = clock.now() + std::chrono::seconds(10);
    while (clock.now() < end && child.listener.controls == 0) {
        if (child.transport->progress(clock.now()) > 0) continue;
        const Time next = child.transport->nextEvent();
        const Time limit = next == Time::max() ? Time(std::chrono::seconds(5)) : next - clock.now();
        if (child.transport->prepareSleep()) child.sleepSet.wait(limit);
        child.transport->wakeUp();
    }
    endpoint.sendControl(Bytes(2));
    child.transport->progress(clock.now());
    ::kill(::getpid(), SIGKILL);
    ::_exit(1);
}

TEST(Shm, ASleepingProcessIsWokenAndADeadOneIsNoticed) {
    Process parent(1);
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) childThatAnswersOnce(parent, pipe[1]);
    Bytes address(4096);
    const ssize_t got = ::read(pipe[0], address.data(), address.size());
    ASSERT_GT(got, 0);
    address.resize(static_cast<std::size_t>(got));
    Endpoint& endpoint = **parent.transport->endpoint({2, 2}, address);
    endpoint.connect();
    ASSERT_TRUE(runUntil({&parent}, [&] { return endpoint.state() == Endpoint::State::kOpen; }));
    runUntil(
        {&parent}, [] { return false; }, milliseconds(50));  // the child goes to sleep
    const auto start = std::chrono::steady_clock::now();
    endpoint.sendControl(Bytes(1));
    ASSERT_TRUE(runUntil({&parent}, [&] { return parent.listener.controls == 1; }));
    // Its sleep would have lasted 5 s.
    EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1000));
    ASSERT_TRUE(runUntil({&parent}, [&] { return !parent.listener.losses.empty(); }));
    EXPECT_EQ(parent.listener.losses[0].code(), Status::Code::kPeerLost);
    EXPECT_NE(parent.listener.losses[0].what().find(std::to_string(child)), std::string::npos);
    EXPECT_EQ(endpoint.state(), Endpoint::State::kLost);
    ::waitpid(child, nullptr, 0);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

}  // namespace
}  // namespace isthmus
