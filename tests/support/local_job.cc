#include "tests/support/local_job.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

namespace isthmus {

LocalJob::LocalJob(std::vector<int> nodeOfRank,
                   const std::vector<std::pair<std::string, std::string>>& options)
    : nodeOfRank_(std::move(nodeOfRank)) {
    Options settings = Options::defaults(allKnobs());
    (void)settings.set("ISTHMUS_ARENA", "256M", "test").ok();
    (void)settings.set("ISTHMUS_TIMEOUT", "20000", "test").ok();
    for (const auto& [name, value] : options) {
        const Status status = settings.set(name, value, "test");
        EXPECT_TRUE(status.ok()) << status.what();
    }
    const int nodes = *std::max_element(nodeOfRank_.begin(), nodeOfRank_.end()) + 1;
    for (int node = 0; node < nodes; ++node) inside_.push_back(std::make_unique<InprocFabric>());
    for (int rank = 0; rank < ranks(); ++rank) {
        EngineConfig config;
        config.self = {0x15711u, static_cast<std::uint64_t>(rank)};
        config.clock = &clock_;
        config.ranksOnNode = ranks();
        config.cpus = 2;
        auto made = Runtime::make(settings, config, [&](Runtime& runtime) {
            Engine& engine = runtime.engine();
            const ProcessId self = engine.config().self;
            runtime.addTransport(inside_[nodeOfRank_[rank]]->makeTransport(
                                     self, &runtime.arena(), engine.sleepSet(), engine),
                                 Runtime::Reach::kInsideNode);
            runtime.addTransport(between_.makeTransport(self, nullptr, engine.sleepSet(), engine),
                                 Runtime::Reach::kBetweenNodes);
            return Status();
        });
        EXPECT_TRUE(made.ok()) << made.status().what();
        runtimes_.push_back(std::move(*made));
    }
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
