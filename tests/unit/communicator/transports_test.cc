// Pairs of processes that have several transports between nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "comm/bootstrap/store_memory.hpp"
#include "comm/communicator/formation.hpp"
#include "comm/communicator/runtime.hpp"
#include "comm/transport/inproc/inproc_transport.hpp"

namespace isthmus {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Names = std::vector<std::string>;

/// Another transport under a name of the test's. It counts what it was asked for, and reaches
/// nobody whom it is told to miss: their messages go to a process that is not there.
class NamedTransport final : public Transport {
public:
    NamedTransport(std::string name, std::unique_ptr<Transport> inside, std::set<ProcessId> missed)
        : name_(std::move(name)), inside_(std::move(inside)), missed_(std::move(missed)) {}

    std::string_view name() const override { return name_; }
    Bytes address() const override { return inside_->address(); }
    Result<Endpoint*> endpoint(const ProcessId& peer, const Bytes& address) override {
        ++asked;
        const ProcessId there = missed_.contains(peer) ? ProcessId{99, peer.low} : peer;
        return inside_->endpoint(there, address);
    }
    int progress(Time now) override { return inside_->progress(now); }
    std::vector<CardCounters> cards() const override { return inside_->cards(); }
    bool prepareSleep() override { return inside_->prepareSleep(); }
    void wakeUp() override { inside_->wakeUp(); }
    Time nextEvent() const override { return inside_->nextEvent(); }
    void close(Time deadline) override { inside_->close(deadline); }

    int asked = 0;

private:
    const std::string name_;
    const std::unique_ptr<Transport> inside_;
    const std::set<ProcessId> missed_;
};

ProcessId processOf(Rank rank) {
    return {0x7a, static_cast<std::uint64_t>(rank)};
}

/// Ranks that are each a node of its own, with the transports named for each.
class Ranks {
public:
    explicit Ranks(const std::vector<Names>& transports,
                   const std::map<std::string, std::set<std::pair<Rank, Rank>>>& missed = {},
                   const char* connectMilliseconds = "300") {
        Options options = Options::defaults(allKnobs());
        (void)options.set("ISTHMUS_ARENA", "16M", "test").ok();
        (void)options.set("ISTHMUS_CONNECT_TIMEOUT", connectMilliseconds, "test").ok();
        for (std::size_t rank = 0; rank < transports.size(); ++rank) {
            add(static_cast<Rank>(rank), transports[rank], missed, options);
        }
    }

    Runtime& runtime(Rank rank) { return *runtimes_[static_cast<std::size_t>(rank)]; }

    /// All make a communicator.
    std::vector<Result<MembershipConfig>> form() {
        const auto store = std::make_shared<MemoryStore>();
        const int ranks = static_cast<int>(runtimes_.size());
        std::vector<Result<MembershipConfig>> formed(runtimes_.size(),
                                                     Status::internal("not formed"));
        std::vector<std::thread> threads;
        for (Rank rank = 0; rank < ranks; ++rank) {
            threads.emplace_back([&, rank] {
                StoreExchanger exchanger(store, "test", rank, ranks);
                formed[static_cast<std::size_t>(rank)] = formMembership(
                    runtime(rank), exchanger, rank, ranks, deadlineIn(std::chrono::seconds(20)));
            });
        }
        for (std::thread& thread : threads) thread.join();
        return formed;
    }

    /// The transport whose endpoint it is.
    std::string nameOf(Rank rank, const Endpoint* endpoint, Rank peer) {
        std::string found = "none";
        runtime(rank).engine().withToken([&] {
            for (Transport* each : runtime(rank).betweenNodes()) {
                const Bytes address = runtime(peer).betweenNodes(each->name()) == nullptr
                                          ? Bytes{}
                                          : runtime(peer).betweenNodes(each->name())->address();
                const auto known = each->endpoint(processOf(peer), address);
                if (known.ok() && *known == endpoint) found = each->name();
            }
        });
        return found;
    }
    int asked(Rank rank, const std::string& name) {
        return static_cast<NamedTransport*>(runtime(rank).betweenNodes(name))->asked;
    }

private:
    void add(Rank rank, const Names& names,
             const std::map<std::string, std::set<std::pair<Rank, Rank>>>& missed,
             const Options& options) {
        EngineConfig config;
        config.self = processOf(rank);
        config.clock = &clock_;
        auto made = Runtime::make(options, config, [&](Runtime& runtime) {
            for (const std::string& name : names) {
                std::set<ProcessId> lost;
                if (const auto found = missed.find(name); found != missed.end()) {
                    for (const auto& [from, to] : found->second) {
                        if (from == rank) lost.insert(processOf(to));
                    }
                }
                Engine& engine = runtime.engine();
                auto inside =
                    fabrics_[name].makeTransport(config.self, nullptr, engine.sleepSet(), engine);
                runtime.addTransport(
                    std::make_unique<NamedTransport>(name, std::move(inside), lost),
                    Runtime::Reach::kBetweenNodes);
            }
            return Status();
        });
        EXPECT_TRUE(made.ok()) << made.status().what();
        runtimes_.push_back(std::move(*made));
    }

    SteadyClock clock_;
    std::map<std::string, InprocFabric> fabrics_;
    std::vector<std::unique_ptr<Runtime>> runtimes_;
};

/// The name of what each rank uses towards each other.
std::vector<Names> chosenIn(Ranks& ranks, const std::vector<Result<MembershipConfig>>& formed) {
    std::vector<Names> all;
    for (std::size_t rank = 0; rank < formed.size(); ++rank) {
        EXPECT_TRUE(formed[rank].ok()) << formed[rank].status().what();
        Names names;
        for (std::size_t peer = 0; formed[rank].ok() && peer < formed.size(); ++peer) {
            if (peer == rank) continue;
            names.push_back(ranks.nameOf(static_cast<Rank>(rank),
                                         formed[rank]->members[peer].endpoint,
                                         static_cast<Rank>(peer)));
        }
        all.push_back(names);
    }
    return all;
}

TEST(Transports, EachPairUsesTheFirstThatBothHave) {
    Ranks ranks({{"fast", "slow"}, {"slow"}, {"fast", "slow"}});
    EXPECT_EQ(chosenIn(ranks, ranks.form()),
              (std::vector<Names>{{"slow", "fast"}, {"slow", "slow"}, {"fast", "slow"}}));
}

TEST(Transports, OneThatBringsNothingIsNotUsedByThatPair) {
    Ranks ranks({{"fast", "slow"}, {"fast", "slow"}, {"fast", "slow"}}, {{"fast", {{0, 1}}}});
    EXPECT_EQ(chosenIn(ranks, ranks.form()),
              (std::vector<Names>{{"slow", "fast"}, {"slow", "fast"}, {"fast", "fast"}}));
}

TEST(Transports, PairsAreTriedOnceInAProcess) {
    Ranks ranks({{"fast", "slow"}, {"fast", "slow"}}, {{"fast", {{1, 0}}}});
    const SteadyClock clock;
    EXPECT_EQ(chosenIn(ranks, ranks.form()), (std::vector<Names>{{"slow"}, {"slow"}}));
    const int before = ranks.asked(0, "fast");
    const Time began = clock.now();
    const auto again = ranks.form();
    EXPECT_LT(clock.now() - began, std::chrono::milliseconds(250)) << "the trial took 300 ms";
    EXPECT_EQ(ranks.asked(0, "fast"), before);
    EXPECT_EQ(chosenIn(ranks, again), (std::vector<Names>{{"slow"}, {"slow"}}));
}

TEST(Transports, OneThatIsSilentIsGivenUpSoonAfterAnotherIsProved) {
    Ranks ranks({{"fast", "slow"}, {"fast", "slow"}}, {{"fast", {{1, 0}}}}, "20000");
    const SteadyClock clock;
    const Time began = clock.now();
    EXPECT_EQ(chosenIn(ranks, ranks.form()), (std::vector<Names>{{"slow"}, {"slow"}}));
    EXPECT_LT(clock.now() - began, std::chrono::seconds(6)) << "ten are left to who says nothing";
}

TEST(Transports, TheOnlyOneIsNotTried) {
    Ranks ranks({{"slow"}, {"fast", "slow"}}, {{"slow", {{0, 1}}}});
    const SteadyClock clock;
    const Time began = clock.now();
    const auto formed = ranks.form();
    EXPECT_LT(clock.now() - began, std::chrono::milliseconds(250));
    EXPECT_EQ(ranks.asked(1, "fast"), 0);
    EXPECT_TRUE(formed[0].ok());
}

// https://github.com/aws-samples/aws-do-eks/pull/69
TEST(Transports, LoopbackIsForRanksOfOneHost) {  // BOOT-01
    Ranks ranks({{"tcp"}, {"tcp"}, {"tcp"}});
    for (const Rank rank : {0, 1, 2}) ranks.runtime(rank).setHost({7, rank != 1});
    for (const auto& each : ranks.form()) EXPECT_TRUE(each.ok()) << each.status().what();
    ranks.runtime(1).setHost({8, false});
    for (const auto& each : ranks.form()) {
        ASSERT_FALSE(each.ok());
        EXPECT_EQ(each.status().code(), Status::Code::kConfiguration);
        EXPECT_THAT(each.status().what(),
                    AllOf(HasSubstr("rank 0 ("), HasSubstr("loopback addresses for rank 1 ("),
                          HasSubstr("ISTHMUS_INTERFACE")));
    }
}

TEST(Transports, RanksThatHaveNoneInCommonAreNamedOnEveryRank) {
    Ranks ranks({{"fast"}, {"fast", "slow"}, {"slow"}});
    for (const auto& each : ranks.form()) {
        ASSERT_FALSE(each.ok());
        EXPECT_EQ(each.status().code(), Status::Code::kConfiguration);
        EXPECT_THAT(each.status().what(), AllOf(HasSubstr("rank 0"), HasSubstr("has fast"),
                                                HasSubstr("rank 2"), HasSubstr("has slow")));
    }
}

}  // namespace
}  // namespace isthmus
