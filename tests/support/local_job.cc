#include "tests/support/local_job.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "comm/transport/rma/rma_transport.hpp"
#include "comm/transport/shm/shm_transport.hpp"
#include "comm/transport/tcp/tcp_transport.hpp"
#include "tests/support/rma/device_kinds.hpp"

namespace isthmus {

namespace {

/// A transport that reaches some processes only, as one does that ends at the edge of its node.
class ConfinedTransport final : public Transport {
public:
    ConfinedTransport(std::unique_ptr<Transport> transport, std::vector<ProcessId> reachable)
        : transport_(std::move(transport)), reachable_(std::move(reachable)) {}

    std::string_view name() const override { return transport_->name(); }
    Bytes address() const override { return transport_->address(); }
    std::vector<CardCounters> cards() const override { return transport_->cards(); }
    Result<Endpoint*> endpoint(const ProcessId& peer, const Bytes& address) override {
        if (std::find(reachable_.begin(), reachable_.end(), peer) == reachable_.end()) {
            return Status(Status::Code::kUnsupported, "the peer is on another node");
        }
        return transport_->endpoint(peer, address);
    }
    int progress(Time now) override { return transport_->progress(now); }
    bool prepareSleep() override { return transport_->prepareSleep(); }
    void wakeUp() override { transport_->wakeUp(); }
    Time nextEvent() const override { return transport_->nextEvent(); }
    void close(Time deadline) override { transport_->close(deadline); }

private:
    std::unique_ptr<Transport> transport_;
    std::vector<ProcessId> reachable_;
};

// Test programs that run beside each other are never confused.
ProcessId processOf(Rank rank) {
    return {0x15711u + (static_cast<std::uint64_t>(::getpid()) << 32),
            static_cast<std::uint64_t>(rank)};
}

JobKey keyOfJob() {
    return JobKey::derivedFrom("local job");
}

}  // namespace

LocalJob::LocalJob(std::vector<int> nodeOfRank,
                   const std::vector<std::pair<std::string, std::string>>& options, Wires wires,
                   std::string device)
    : nodeOfRank_(std::move(nodeOfRank)), device_(std::move(device)) {
    Options settings = Options::defaults(allKnobs());
    (void)settings.set("ISTHMUS_ARENA", "256M", "test").ok();
    (void)settings.set("ISTHMUS_TIMEOUT", "20000", "test").ok();
    for (const auto& [name, value] : options) {
        const Status status = settings.set(name, value, "test");
        EXPECT_TRUE(status.ok()) << status.what();
    }
    const bool isOneNode = std::count(nodeOfRank_.begin(), nodeOfRank_.end(), nodeOfRank_[0]) ==
                           static_cast<std::ptrdiff_t>(nodeOfRank_.size());
    const bool canSplit = wires == Wires::kTcp || wires == Wires::kCards;
    if (canSplit && isOneNode) std::iota(nodeOfRank_.begin(), nodeOfRank_.end(), 0);
    const int nodes = *std::max_element(nodeOfRank_.begin(), nodeOfRank_.end()) + 1;
    for (int node = 0; node < nodes; ++node) inside_.push_back(std::make_unique<InprocFabric>());
    for (int rank = 0; rank < ranks(); ++rank) {
        EngineConfig config;
        config.self = processOf(rank);
        config.clock = &clock_;
        config.cpus = 2;
        auto made = Runtime::make(settings, config, [&](Runtime& runtime) {
            return addTransports(runtime, rank, wires);
        });
        EXPECT_TRUE(made.ok()) << made.status().what();
        if (ranks() > config.cpus) (*made)->engine().noteCrowded();
        runtimes_.push_back(std::move(*made));
    }
}

Status LocalJob::addTransports(Runtime& runtime, Rank rank, Wires wires) {
    Engine& engine = runtime.engine();
    const ProcessId self = engine.config().self;
    const bool hasShm = wires == Wires::kReal || wires == Wires::kShm;
    const bool hasTcp = wires == Wires::kReal || wires == Wires::kTcp;
    if (hasShm) {
        ISTHMUS_TRY(addShm(runtime, rank));
    } else {
        runtime.addTransport(inside_[nodeOfRank_[rank]]->makeTransport(self, &runtime.arena(),
                                                                       engine.sleepSet(), engine),
                             Runtime::Reach::kInsideNode);
    }
    if (hasTcp) return addTcp(runtime);
    if (wires == Wires::kCards) return addCard(runtime, rank);
    runtime.addTransport(between_.makeTransport(self, nullptr, engine.sleepSet(), engine),
                         Runtime::Reach::kBetweenNodes);
    return {};
}

Status LocalJob::addShm(Runtime& runtime, Rank rank) {
    Engine& engine = runtime.engine();
    auto inside = makeShmTransport({}, processOf(rank), keyOfJob(), engine.sleepSet(), engine,
                                   runtime.arena());
    if (!inside.ok()) return inside.status();
    std::vector<ProcessId> node;
    for (Rank other = 0; other < ranks(); ++other) {
        if (nodeOfRank_[other] == nodeOfRank_[rank]) node.push_back(processOf(other));
    }
    runtime.addTransport(std::make_unique<ConfinedTransport>(std::move(*inside), std::move(node)),
                         Runtime::Reach::kInsideNode);
    return {};
}

Status LocalJob::addTcp(Runtime& runtime) {
    Engine& engine = runtime.engine();
    TcpOptions tcp;
    tcp.cards = {{"lo", "127.0.0.1"}};
    auto between =
        makeTcpTransport(tcp, engine.config().self, keyOfJob(), engine.sleepSet(), engine);
    if (!between.ok()) return between.status();
    runtime.addTransport(std::move(*between), Runtime::Reach::kBetweenNodes);
    return {};
}

Status LocalJob::addCard(Runtime& runtime, Rank rank) {
    Engine& engine = runtime.engine();
    auto device = makeDevice(device_, rank);
    if (!device.ok()) return device.status();
    RmaOptions options;
    options.door.cards = {{"lo", "127.0.0.1"}};
    options.door.limits.eagerBytes = 1024;
    options.directBytes = 1;
    auto between = makeRmaTransport(std::move(*device), options, engine.config().self, keyOfJob(),
                                    engine.sleepSet(), engine);
    if (!between.ok()) return between.status();
    runtime.addTransport(std::move(*between), Runtime::Reach::kBetweenNodes);
    return {};
}

LocalJob::~LocalJob() = default;

void LocalJob::run(const std::function<void(Rank, Communicator&)>& body,
                   CommunicatorConfig config) {
    auto store = std::make_shared<MemoryStore>();
    const std::string prefix = "job" + std::to_string(made_++);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < ranks(); ++rank) {
        threads.emplace_back([&, rank] {
            auto made = Communicator::make(
                runtime(rank), std::make_unique<StoreExchanger>(store, prefix, rank, ranks()), rank,
                ranks(), config);
            ASSERT_TRUE(made.ok()) << made.status().what();
            body(rank, **made);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace isthmus
