#include "tests/conformance/transport/transport_world.hpp"

#include <algorithm>
#include <atomic>

namespace isthmus {

namespace {
constexpr std::byte kGuard{0xA5};

std::byte valueAt(std::uint64_t seed, std::size_t position) {
    const std::uint64_t mixed = (seed * 0x9e3779b97f4a7c15ULL + position) * 0xff51afd7ed558ccdULL;
    return static_cast<std::byte>(mixed >> 56);
}
}  // namespace

ProcessId TransportWorld::idOf(int position) {
    static std::uint64_t run = 0;  // worlds of one test program are never confused
    return {0x1000 + static_cast<std::uint64_t>(position), ++run};
}

Endpoint& TransportWorld::link(int from, int to) {
    Result<Endpoint*> endpoint =
        at(from).transport->endpoint(at(to).id, at(to).transport->address());
    EXPECT_TRUE(endpoint.ok()) << endpoint.status().what();
    return **endpoint;
}

int TransportWorld::step() {
    int happened = 0;
    for (const auto& member : members_) {
        if (member->transport) happened += member->transport->progress(now());
    }
    return happened;
}

Time TransportWorld::nextEvent() const {
    Time next = Time::max();
    for (const auto& member : members_) {
        if (member->transport) next = std::min(next, member->transport->nextEvent());
    }
    return next;
}

void TransportWorld::leave(int position, std::chrono::milliseconds limit) {
    Transport& leaving = *at(position).transport;
    const Time deadline = now() + limit;
    if (freesAtOnce()) return leaving.close(deadline);
    std::atomic<bool> isClosed{false};
    std::thread closing([&] {
        leaving.close(deadline);
        isClosed = true;
    });
    while (!isClosed) {
        for (const auto& member : members_) {
            if (member->transport && member->transport.get() != &leaving) {
                member->transport->progress(now());
            }
        }
    }
    closing.join();
}

bool TransportWorld::runUntil(const std::function<bool()>& isDone,
                              std::chrono::milliseconds limit) {
    const SteadyClock wall;
    const Time end = now() + limit;
    const Time wallEnd = wall.now() + 2 * test::kPatience;
    while (!isDone()) {
        if (now() > end || wall.now() > wallEnd) return false;
        if (step() == 0) idle();
    }
    return true;
}

void TransportWorld::settle() {
    // Loopback and handshakes need a moment between two happenings, and so does a process that
    // shares its processors: quiet is many steps and some time.
    Time last = now();
    int quietSteps = 0;
    runUntil(
        [&] {
            ++quietSteps;
            if (step() > 0) {
                last = now();
                quietSteps = 0;
            } else {
                idle();
            }
            return quietSteps > 500 && now() - last > std::chrono::milliseconds(5);
        },
        std::chrono::seconds(2));
}

Posted::Posted(const MessageTag& tag, std::size_t bytes, int parts)
    : bytes_(bytes), memory_(bytes + 2 * kGuardBytes, kGuard) {
    operation.tag = tag;
    operation.owner = this;
    operation.done = [](Operation& self, const Status& outcome) {
        auto& posted = *static_cast<Posted*>(self.owner);
        ++posted.completions;
        posted.status = outcome;
        if (posted.onDone) posted.onDone();
    };
    std::size_t at = 0;
    for (int part = 0; part < parts; ++part) {
        const std::size_t end = part + 1 == parts ? bytes : bytes * (part + 1) / parts;
        operation.pieces.push_back({memory_.data() + kGuardBytes + at, end - at});
        at = end;
    }
}

Posted& Posted::fill(std::uint64_t seed) {
    for (std::size_t at = 0; at < bytes_; ++at) memory_[kGuardBytes + at] = valueAt(seed, at);
    return *this;
}

std::ptrdiff_t Posted::firstWrong(std::uint64_t seed) const {
    for (std::size_t at = 0; at < bytes_; ++at) {
        if (memory_[kGuardBytes + at] != valueAt(seed, at)) return static_cast<std::ptrdiff_t>(at);
    }
    return -1;
}

bool Posted::isGuardIntact() const {
    for (std::size_t at = 0; at < kGuardBytes; ++at) {
        if (memory_[at] != kGuard || memory_[kGuardBytes + bytes_ + at] != kGuard) return false;
    }
    return true;
}

MessageTag tagOf(std::uint64_t sequence, std::uint64_t communicator) {
    MessageTag tag;
    tag.communicator = communicator;
    tag.sequence = sequence;
    tag.from = 0;
    tag.to = 1;
    return tag;
}

}  // namespace isthmus
