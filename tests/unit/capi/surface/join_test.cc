// Two processes find each other in every way but the environment (the examples show that one).
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <isthmus/communicator.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace isthmus {
namespace {

constexpr unsigned kLimitSeconds = 30;  // a process that hangs is ended by its alarm

/// The way two ranks know before they have a communicator: a socket to the other one.
class Line {
public:
    explicit Line(int descriptor) : descriptor_(descriptor) {}

    bool send(const void* data, std::size_t bytes) const {
        return ::write(descriptor_, data, bytes) == static_cast<ssize_t>(bytes);
    }
    bool receive(void* data, std::size_t bytes) const {
        auto* to = static_cast<char*>(data);
        while (bytes > 0) {
            const ssize_t got = ::read(descriptor_, to, bytes);
            if (got <= 0) return false;
            to += got;
            bytes -= static_cast<std::size_t>(got);
        }
        return true;
    }

private:
    int descriptor_;
};

using RankMain = std::function<bool(Rank, const Line&)>;

/// Runs `main` as rank 0 and 1, each a process of its own; this one never uses the library, which
/// does not survive a fork.
void expectBothSucceed(const RankMain& main) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    std::array<pid_t, 2> children{};
    for (const int rank : {0, 1}) {
        children[rank] = ::fork();
        ASSERT_GE(children[rank], 0);
        if (children[rank] == 0) {
            ::alarm(kLimitSeconds);
            ::close(ends[1 - rank]);
            ::_exit(main(rank, Line(ends[rank])) ? 0 : 1);
        }
    }
    for (const int end : ends) ::close(end);
    for (const int rank : {0, 1}) {
        int status = -1;
        ASSERT_EQ(::waitpid(children[rank], &status, 0), children[rank]);
        EXPECT_EQ(status, 0) << "rank " << rank;
    }
}

bool say(const Status& status) {
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.what().c_str());
    return status.ok();
}

/// 1 + 2 = 3, and the child communicators work too.
bool addsUp(const Result<Communicator>& made, Rank rank) {
    if (!made.ok()) return say(made.status());
    const Communicator& communicator = *made;
    if (communicator.rank() != rank || communicator.ranks() != 2) return false;
    std::vector<float> values(1000, static_cast<float>(rank + 1));
    if (!say(communicator.blocking().allReduce(values))) return false;
    if (values != std::vector<float>(1000, 3.0F)) return false;
    const auto reversed = communicator.split(0, -rank);
    if (!reversed.ok() || !reversed->has_value()) return say(reversed.status());
    std::array<int, 1> mine{rank};
    std::array<int, 2> all{-1, -1};
    if (!say((*reversed)->blocking().allGather(mine, all))) return false;
    return all == std::array{1, 0};
}

/// Every form of <isthmus/lists.hpp>, started or blocking.
bool servesLists(const Communicator& communicator) {
    const Rank rank = communicator.rank();
    const auto mine = static_cast<double>(rank + 1);
    using List = std::vector<std::vector<double>>;
    const List inputs = {{mine, 10 * mine}, {}, std::vector<double>(20'000, mine)};
    List outputs = {{0, 0}, {}, std::vector<double>(20'000)};
    const List sums = {{3, 30}, {}, std::vector<double>(20'000, 3)};
    if (!say(communicator.blocking().allReduceCoalesced(inputs, outputs)) || outputs != sums)
        return false;
    List both = inputs;
    Work work = communicator.allReduceCoalesced(both, ReduceOp::kMax, {.isDeterministic = true});
    if (!say(work.wait()) || both[0] != std::vector<double>{2, 20}) return false;
    if (!say(communicator.blocking().broadcastCoalesced(both = inputs, 1))) return false;
    if (both != List{{2, 20}, {}, std::vector<double>(20'000, 2)}) return false;
    List gathered = {std::vector<double>(4), {}, std::vector<double>(40'000)};
    if (!say(communicator.blocking().allGatherCoalesced(inputs, gathered))) return false;
    if (gathered[0] != std::vector<double>{1, 10, 2, 20} || gathered[2][20'000] != 2) return false;
    List scattered = outputs;
    if (!say(communicator.blocking().reduceScatterCoalesced(gathered, scattered))) return false;
    if (scattered[0] != (rank == 0 ? std::vector<double>{2, 20} : std::vector<double>{4, 40}))
        return false;
    const List blocks = {{10 * mine, 10 * mine + 1}};
    List exchanged = {{0, 0}};
    if (!say(communicator.blocking().allToAllCoalesced(blocks, exchanged))) return false;
    return exchanged[0] == std::vector<double>{10.0 + rank, 20.0 + rank};
}

/// Two edges to the other rank and one to oneself, then edges of unequal blocks one way only.
bool servesNeighbors(const Communicator& communicator) {
    const Rank rank = communicator.rank();
    const Rank other = 1 - rank;
    const Neighbors all{{other, rank, other}, {other, other, rank}};
    const std::vector<int> input = {10 * rank, 10 * rank + 1, 10 * rank + 2};
    std::vector<int> output(3, -1);
    if (!say(communicator.blocking().neighborAllToAll(input, output, all))) return false;
    if (output != std::vector<int>{10 * other, 10 * rank + 2, 10 * other + 1}) return false;
    const std::span<int> nothing;
    output.assign(3, -1);
    const Neighbors down{rank == 0 ? std::vector{1, 1} : std::vector<Rank>{},
                         rank == 1 ? std::vector{0, 0} : std::vector<Rank>{}};
    const Blocks sent{{0, 2}, {0, 1}};
    const Blocks received{{0, 2}, {}};
    return rank == 1
               ? say(communicator.blocking().neighborAllToAll(input, sent, nothing, {}, down))
               : say(communicator.neighborAllToAll(nothing, {}, output, received, down).wait()) &&
                     output == std::vector<int>{11, 12, -1};
}

TEST(Join, ThenListsOfTensorsAndOfNeighbors) {
    expectBothSucceed([](Rank rank, const Line& line) {
        UniqueId id{};
        if (rank == 0) {
            const auto made = Communicator::makeUniqueId();
            if (!made.ok()) return say(made.status());
            if (!line.send(&*made, sizeof(id))) return false;
            id = *made;
        } else if (!line.receive(&id, sizeof(id))) {
            return false;
        }
        const auto made = Communicator::withUniqueId(id, 2, rank);
        return made.ok() ? servesLists(*made) && servesNeighbors(*made) : say(made.status());
    });
}

TEST(Join, ByUniqueId) {
    expectBothSucceed([](Rank rank, const Line& line) {
        UniqueId id{};
        if (rank == 0) {
            const auto made = Communicator::makeUniqueId();
            if (!made.ok()) return say(made.status());
            id = *made;
            if (!line.send(&id, sizeof(id))) return false;
        } else if (!line.receive(&id, sizeof(id))) {
            return false;
        }
        return addsUp(Communicator::withUniqueId(id, 2, rank), rank);
    });
}

TEST(Join, ByAllGather) {
    expectBothSucceed([](Rank rank, const Line& line) {
        const auto gather = [&](const void* send, void* receive, std::size_t bytes) {
            auto* all = static_cast<char*>(receive);
            const auto* mine = static_cast<const char*>(send);
            std::copy(mine, mine + bytes, all + static_cast<std::size_t>(rank) * bytes);
            return line.send(send, bytes) &&
                   line.receive(all + static_cast<std::size_t>(1 - rank) * bytes, bytes);
        };
        return addsUp(Communicator::withAllGather(2, rank, gather), rank);
    });
}

/// Both ranks' writes go to both: each tells the other what it sets, and get() listens.
class LineStore final : public Store {
public:
    explicit LineStore(const Line& line) : line_(line) {}

    Status set(std::string_view key, const Bytes& value) override {
        const std::array<std::size_t, 2> sizes{key.size(), value.size()};
        if (!line_.send(sizes.data(), sizeof(sizes)) || !line_.send(key.data(), key.size()) ||
            !line_.send(value.data(), value.size())) {
            return Status::peerLost("the other rank hung up");
        }
        values_[std::string(key)] = value;
        return {};
    }
    Result<Bytes> get(std::string_view key, std::chrono::milliseconds) override {
        for (;;) {
            if (const auto found = values_.find(std::string(key)); found != values_.end()) {
                return found->second;
            }
            ISTHMUS_TRY(listen());
        }
    }
    Result<bool> has(std::string_view key) override { return values_.count(std::string(key)) != 0; }
    Status erase(std::string_view) override { return {}; }

private:
    Status listen() {
        std::array<std::size_t, 2> sizes{};
        if (!line_.receive(sizes.data(), sizeof(sizes))) return Status::peerLost("hung up");
        std::string key(sizes[0], ' ');
        Bytes value(sizes[1]);
        if (!line_.receive(key.data(), key.size()) || !line_.receive(value.data(), value.size())) {
            return Status::peerLost("hung up");
        }
        values_[key] = value;
        return {};
    }

    const Line& line_;
    std::map<std::string, Bytes> values_;
};

TEST(Join, ByStore) {
    expectBothSucceed([](Rank rank, const Line& line) {
        LineStore store(line);
        return addsUp(Communicator::withStore(store, 2, rank), rank);
    });
}

TEST(Join, ByStoreLazily) {
    expectBothSucceed([](Rank rank, const Line& line) {
        LineStore store(line);
        return addsUp(Communicator::withStore(store, 2, rank, {.isLazy = true}), rank);
    });
}

/// A store whose server has gone.
class BrokenStore final : public Store {
public:
    Status set(std::string_view, const Bytes&) override { return gone(); }
    Result<Bytes> get(std::string_view, std::chrono::milliseconds) override { return gone(); }
    Result<bool> has(std::string_view) override { return gone(); }
    Status erase(std::string_view) override { return gone(); }

private:
    static Status gone() { return Status::peerLost("the machine of the store burns"); }
};

TEST(Join, SaysWhyTheStoreFailed) {
    expectBothSucceed([](Rank rank, const Line&) {
        BrokenStore store;
        const auto made = Communicator::withStore(store, 2, rank);
        return !made.ok() && made.status().code() == Status::Code::kPeerLost &&
               made.status().what().find("the machine of the store burns") != std::string::npos;
    });
}

// The ranks must hear that nobody can be gathered from, and not hang.
TEST(Join, FailsWhenTheAllGatherFails) {
    expectBothSucceed([](Rank rank, const Line&) {
        const auto made = Communicator::withAllGather(
            2, rank, [](const void*, void*, std::size_t) { return false; });
        return !made.ok() && !made.status().what().empty();
    });
}

// One rank comes alone: it gives up at its limit, and says who is missing.
TEST(Join, NamesTheRankThatIsMissing) {
    expectBothSucceed([](Rank rank, const Line&) {
        if (rank == 1) return true;
        const auto id = Communicator::makeUniqueId();
        if (!id.ok()) return say(id.status());
        const auto start = std::chrono::steady_clock::now();
        const auto made =
            Communicator::withUniqueId(*id, 2, 0, {.timeout = std::chrono::milliseconds(300)});
        const auto took = std::chrono::steady_clock::now() - start;
        if (made.ok()) return false;
        std::fprintf(stderr, "as expected: %s\n", made.status().what().c_str());
        return made.status().code() == Status::Code::kTimeout &&
               made.status().what().find("rank 1 of 2") != std::string::npos &&
               took < std::chrono::seconds(5);
    });
}

}  // namespace
}  // namespace isthmus
