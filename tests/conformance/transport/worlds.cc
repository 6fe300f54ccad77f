
#include "comm/transport/inproc/inproc_transport.hpp"
#include "comm/transport/shm/shm_transport.hpp"
#include "comm/transport/sim/sim_transport.hpp"
#include "comm/transport/tcp/tcp_transport.hpp"
#include "tests/conformance/transport/transport_world.hpp"
#include "tests/support/rma/device_kinds.hpp"

namespace isthmus {

namespace {

class InprocWorld final : public WallWorld {
public:
    explicit InprocWorld(int members) {
        for (int position = 0; position < members; ++position) {
            auto member = std::make_unique<Member>();
            member->id = idOf(position);
            member->transport =
                fabric_.makeTransport(member->id, nullptr, member->sleepSet, member->recorder);
            add(std::move(member));
        }
    }

private:
    InprocFabric fabric_;
};

class TcpWorld final : public WallWorld {
public:
    TcpWorld(int members, std::vector<TcpOptions::Card> cards) {
        const JobKey key = JobKey::derivedFrom("conformance");
        TcpOptions options;
        options.cards = std::move(cards);
        for (int position = 0; position < members; ++position) {
            auto member = std::make_unique<Member>();
            member->id = idOf(position);
            auto made =
                makeTcpTransport(options, member->id, key, member->sleepSet, member->recorder);
            EXPECT_TRUE(made.ok()) << made.status().what();
            member->transport = std::move(*made);
            add(std::move(member));
        }
    }
};

class ShmWorld final : public WallWorld {
public:
    explicit ShmWorld(int members) {
        const JobKey key = JobKey::derivedFrom("conformance");
        for (int position = 0; position < members; ++position) {
            auto arena = Arena::create(16 << 20);
            EXPECT_TRUE(arena.ok()) << arena.status().what();
            arenas_.push_back(std::move(*arena));
            auto member = std::make_unique<Member>();
            member->id = idOf(position);
            auto made = makeShmTransport({}, member->id, key, member->sleepSet, member->recorder,
                                         *arenas_.back());
            EXPECT_TRUE(made.ok()) << made.status().what();
            member->transport = std::move(*made);
            add(std::move(member));
        }
    }
    ~ShmWorld() override { removeAll(); }

private:
    std::vector<std::unique_ptr<Arena>> arenas_;
};

class SimWorld final : public TransportWorld {
public:
    explicit SimWorld(int members) : fabric_(clock_, 11, {}, {0.1, std::chrono::microseconds(30)}) {
        for (int position = 0; position < members; ++position) {
            auto member = std::make_unique<Member>();
            member->id = idOf(position);
            member->transport = fabric_.makeTransport(member->id, member->recorder);
            add(std::move(member));
        }
    }

    Time now() const override { return clock_.now(); }
    void idle() override {
        const Time next = nextEvent();
        if (next == Time::max()) return clock_.advance(std::chrono::microseconds(50));
        clock_.advanceTo(next);
    }

private:
    VirtualClock clock_;
    SimFabric fabric_;
};

}  // namespace

std::unique_ptr<TransportWorld> makeWorld(const std::string& kind, int members) {
    if (kind == "inproc") return std::make_unique<InprocWorld>(members);
    if (kind == "shm") return std::make_unique<ShmWorld>(members);
    if (kind == "sim") return std::make_unique<SimWorld>(members);
    const TcpOptions::Card first{"lo", "127.0.0.1"};
    const TcpOptions::Card second{"lo", "127.0.0.2"};
    const TcpOptions::Card third{"lo", "127.0.0.3"};
    if (kind == "tcp") return std::make_unique<TcpWorld>(members, std::vector{first});
    if (kind == "tcpOverThree")
        return std::make_unique<TcpWorld>(members, std::vector{first, second, third});
    return makeRmaWorld(kind, members);
}

namespace {
std::vector<std::string> kindsWith(const std::vector<std::string>& devices) {
    std::vector<std::string> kinds = {"inproc", "shm", "sim", "tcp", "tcpOverThree"};
    kinds.insert(kinds.end(), devices.begin(), devices.end());
    return kinds;
}
}  // namespace

std::vector<std::string> worldKinds() {
    return kindsWith(deviceKinds());
}

std::vector<std::string> enduringWorldKinds() {
    return kindsWith(enduringDeviceKinds());
}

}  // namespace isthmus
