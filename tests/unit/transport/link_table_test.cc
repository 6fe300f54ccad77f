#include "comm/transport/link_table.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace isthmus {
namespace {

struct Socket {
    std::string name;
};

/// Takes whoever comes, and has as much to push out as it is told.
class Link {
public:
    struct Endpoint {
        isthmus::Endpoint::State state() const { return isthmus::Endpoint::State::kOpen; }
        void sayGoodbye() { ++goodbyes; }
        int goodbyes = 0;
    };

    void takeIncoming(Socket socket) { taken.push_back(std::move(socket.name)); }
    Endpoint& endpoint() { return endpoint_; }
    bool flush() { return left > 0; }

    std::vector<std::string> taken;
    int left = 0;

private:
    Endpoint endpoint_;
};

using Table = LinkTable<Link, Socket>;
using Names = std::vector<std::string>;

ProcessId process(std::uint64_t number) {
    return {.high = 0, .low = number};
}

TEST(LinkTable, GivesToALinkWhatItsPeerBroughtBefore) {
    Table links(2);
    links.welcome(process(1), {"first"});
    links.welcome(process(2), {"another's"});
    links.welcome(process(1), {"second"});
    links.welcome(process(1), {"one too many"});
    EXPECT_EQ(links.find(process(1)), nullptr);
    Link& link = links.add(process(1), std::make_unique<Link>());
    EXPECT_EQ(links.find(process(1)), &link);
    EXPECT_EQ(link.taken, (Names{"first", "second"}));
    links.welcome(process(1), {"late"});
    EXPECT_EQ(link.taken.back(), "late");
    links.forgetGuests();
    EXPECT_TRUE(links.add(process(2), std::make_unique<Link>()).taken.empty());
}

TEST(LinkTable, SaysGoodbyeToEachPeerWhenWhatIsReadyHasGone) {
    Table links;
    Link& slow = links.add(process(1), std::make_unique<Link>());
    Link& done = links.add(process(2), std::make_unique<Link>());
    slow.left = 3;
    const Time soon = SteadyClock().now() + std::chrono::seconds(30);
    int rests = 0;
    sayGoodbye(links, soon, [&] {
        EXPECT_EQ(slow.endpoint().goodbyes, 0);
        --slow.left;
        ++rests;
    });
    EXPECT_EQ(rests, 3);
    EXPECT_EQ(slow.endpoint().goodbyes, 1);
    EXPECT_EQ(done.endpoint().goodbyes, 1);
}

TEST(LinkTable, DoesNotWaitLongerThanAllowedForAPeerThatTakesNothing) {
    Table links;
    Link& stuck = links.add(process(1), std::make_unique<Link>());
    stuck.left = 1;
    int rests = 0;
    sayGoodbye(links, SteadyClock().now(), [&] { ++rests; });
    EXPECT_EQ(rests, 0);
    EXPECT_EQ(stuck.endpoint().goodbyes, 1);
}

}  // namespace
}  // namespace isthmus
