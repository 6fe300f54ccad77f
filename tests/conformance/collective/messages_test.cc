// Messages, and exchanges with neighbours: every type and size over every layout, in memory that is
// mapped and that is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/conformance/collective/data.hpp"
#include "tests/conformance/collective/layouts.hpp"
#include "tests/support/local_job.hpp"
#include "tests/support/rma/device_kinds.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::conformance {
namespace {

using Wires = LocalJob::Wires;

// Around an eager message, a fragment of one, and a segment.
constexpr std::size_t kCounts[] = {0, 1, 17, 4097, 8191, 8192, 8193, 24581};

struct Place {
    std::string layout;
    Wires wires;
    std::string device = {};
};

class Messages : public testing::TestWithParam<Place> {
protected:
    LocalJob job{nodesOf(GetParam().layout),
                 {{"ISTHMUS_SEGMENT", "8K"}},
                 GetParam().wires,
                 GetParam().device};
};

std::vector<Place> places() {
    std::vector<Place> places;
    for (const std::string layout : {"W1", "S4", "N2x2", "U321", "RR4", "U13"}) {
        for (const Wires wires : {Wires::kInproc, Wires::kShm, Wires::kTcp})
            places.push_back({layout, wires});
    }
    for (const std::string layout : {"S4", "N2x2", "U13"}) {
        for (const std::string& device : deviceKinds())
            places.push_back({layout, Wires::kCards, device});
    }
    return places;
}

std::string nameOf(const testing::TestParamInfo<Place>& test) {
    constexpr const char* kNames[] = {"Inproc", "SharedMemoryAndTcp", "SharedMemory", "Tcp", ""};
    return test.param.layout + kNames[static_cast<int>(test.param.wires)] + test.param.device;
}

INSTANTIATE_TEST_SUITE_P(Over, Messages, testing::ValuesIn(places()), nameOf);

/// Guarded memory, mapped by the node or not.
class Area {
public:
    Area(Communicator& communicator, bool isMapped, std::size_t bytes)
        : arena_(communicator.runtime().arena()) {
        constexpr std::byte kFill{0x5A};
        if (!isMapped) {
            buffer_.emplace(bytes, kFill);
            return;
        }
        const auto made = arena_.allocate(bytes + 2 * GuardedBuffer::kGuard);
        EXPECT_TRUE(made.ok()) << made.status().what();
        block_ = *made;
        buffer_.emplace(static_cast<std::byte*>(*made), bytes, kFill);
    }
    ~Area() {
        if (block_ != nullptr) arena_.free(block_);
    }
    Area(const Area&) = delete;
    Area& operator=(const Area&) = delete;

    std::byte* data() { return buffer_->data(); }
    testing::AssertionResult holds(const Buffer& wanted) {
        if (!buffer_->isIntact()) return testing::AssertionFailure() << "wrote outside";
        const bool isSame = std::equal(wanted.begin(), wanted.end(), buffer_->data());
        if (!isSame) return testing::AssertionFailure() << "differs";
        return testing::AssertionSuccess();
    }

private:
    Arena& arena_;
    void* block_ = nullptr;
    std::optional<GuardedBuffer> buffer_;
};

/// What `from` sends along its edge with that number.
Buffer messageOf(DataType type, Rank from, int edge, std::size_t count) {
    return anyBits(type, {.seed = count, .rank = from, .block = std::size_t(edge)}, count);
}

TEST_P(Messages, OfEveryTypeAndSizeArriveAtTheNextAndFromAnySource) {
    job.run([&](Rank me, Communicator& communicator) {
        test::CommOf comm(communicator);
        const int ranks = communicator.ranks();
        const Rank next = (me + 1) % ranks;
        const Rank previous = (me + ranks - 1) % ranks;
        for (int number = 0; number < kDataTypes; ++number) {
            const auto type = DataType(number);
            for (const std::size_t count : kCounts) {
                SCOPED_TRACE(std::string(isthmus::nameOf(type)) + " x " + std::to_string(count));
                const bool isMapped = (number + count) % 2 == 0;
                const Buffer message = messageOf(type, me, 0, count);
                const Buffer wanted = messageOf(type, previous, 0, count);
                Area area(communicator, isMapped, wanted.size());
                int source = -1;
                isthmusRequest_t receive = nullptr;
                // A tag of each type: from any source it could be the next one's.
                ASSERT_EQ(isthmusRecv(area.data(), count, isthmusDataType_t(number),
                                      number % 2 == 0 ? previous : ISTHMUS_ANY_SOURCE, number,
                                      &source, comm, nullptr, &receive),
                          isthmusSuccess)
                    << test::lastError();
                ASSERT_EQ(isthmusSend(message.data(), count, isthmusDataType_t(number), next,
                                      number, comm, nullptr, nullptr),
                          isthmusSuccess)
                    << test::lastError();
                ASSERT_EQ(isthmusWait(&receive, -1), isthmusSuccess) << test::lastError();
                ASSERT_EQ(source, previous);
                ASSERT_TRUE(area.holds(wanted));
            }
        }
    });
}

/// A graph: each rank sends to itself, twice to the next and once to the previous, which all may be
/// the same. Edges between the same ranks meet in the order of the lists.
struct Graph {
    int ranks;

    std::vector<int> destinations(Rank rank) const {
        const Rank next = (rank + 1) % ranks;
        return {rank, next, (rank + ranks - 1) % ranks, next};
    }
    std::vector<int> sources(Rank rank) const {
        const Rank previous = (rank + ranks - 1) % ranks;
        return {previous, rank, (rank + 1) % ranks, previous};
    }
    /// The place in the list of its source of the edge that is at `place` in the list of `rank`.
    int placeAtSource(Rank rank, int place) const {
        const auto here = sources(rank);
        const auto there = destinations(here[place]);
        auto before = std::count(here.begin(), here.begin() + place, here[place]);
        for (int at = 0; at < 4; ++at) {
            if (there[at] == rank && before-- == 0) return at;
        }
        return -1;
    }
};

/// Elements on the edge at that place.
std::size_t edgeCount(std::size_t count, int place) {
    const std::size_t counts[] = {count + 1, count, 0, 2 * count};
    return counts[place];
}

void exchange(isthmusComm_t comm, Communicator& communicator, DataType type, std::size_t count) {
    const Graph graph{communicator.ranks()};
    const Rank me = communicator.rank();
    const auto sources = graph.sources(me);
    const auto destinations = graph.destinations(me);
    const isthmusNeighbors_t neighbors = {4, sources.data(), 4, destinations.data()};
    std::size_t leaving[4];
    std::size_t arriving[4];
    Buffer send;
    Buffer wanted;
    const auto append = [&](Buffer& to, Rank from, int place) {
        const Buffer one = messageOf(type, from, place, edgeCount(count, place));
        to.insert(to.end(), one.begin(), one.end());
    };
    for (int place = 0; place < 4; ++place) {
        leaving[place] = edgeCount(count, place);
        append(send, me, place);
        const int other = graph.placeAtSource(me, place);
        arriving[place] = edgeCount(count, other);
        append(wanted, sources[place], other);
    }
    Area area(communicator, count % 2 == 0, wanted.size());
    ASSERT_EQ(isthmusNeighborAlltoAllV(send.data(), leaving, nullptr, area.data(), arriving,
                                       nullptr, static_cast<isthmusDataType_t>(type), &neighbors,
                                       comm, nullptr, nullptr),
              isthmusSuccess)
        << test::lastError();
    ASSERT_TRUE(area.holds(wanted));
}

TEST_P(Messages, OfNeighborsOfEveryTypeAndSizeAreTheEdgesOfTheirGraph) {
    job.run([&](Rank, Communicator& communicator) {
        test::CommOf comm(communicator);
        for (int number = 0; number < kDataTypes; ++number) {
            for (const std::size_t count : kCounts) {
                SCOPED_TRACE(std::string(isthmus::nameOf(DataType(number))) + " x " +
                             std::to_string(count));
                exchange(comm, communicator, DataType(number), count);
            }
        }
    });
}

}  // namespace
}  // namespace isthmus::conformance
