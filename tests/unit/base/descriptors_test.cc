#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <vector>

#include "comm/base/descriptors.hpp"

namespace isthmus {
namespace {

/// Listens under a name of its own in the abstract space.
class Listener {
public:
    Listener() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        place_.sun_family = AF_UNIX;
        EXPECT_EQ(::bind(fd_.get(), raw(), sizeof(sa_family_t)), 0);  // the kernel gives a name
        bytes_ = sizeof place_;
        EXPECT_EQ(::getsockname(fd_.get(), raw(), &bytes_), 0);
        EXPECT_EQ(::listen(fd_.get(), 8), 0);
    }
    int fd() const { return fd_.get(); }
    void knock(const UniqueFd& caller) { EXPECT_EQ(::connect(caller.get(), raw(), bytes_), 0); }

private:
    sockaddr* raw() { return reinterpret_cast<sockaddr*>(&place_); }

    UniqueFd fd_;
    sockaddr_un place_{};
    socklen_t bytes_ = 0;
};

UniqueFd newCaller() {
    return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// What whoever accepts at `listener` sees.
int acceptFails(const Listener& listener) {
    const UniqueFd taken(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    return taken.isOpen() ? 0 : errno;
}

bool wasTurnedAway(const UniqueFd& caller) {
    char byte = 0;
    return ::recv(caller.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

/// All descriptors that a limit a little above the present use leaves.
class AllTaken {
public:
    AllTaken() {
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        const rlimit small{64, before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
        for (;;) {
            UniqueFd one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
            if (!one.isOpen()) break;
            held_.push_back(std::move(one));
        }
        EXPECT_EQ(errno, EMFILE);
    }
    ~AllTaken() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    AllTaken(const AllTaken&) = delete;
    AllTaken& operator=(const AllTaken&) = delete;
    void giveOne() { held_.pop_back(); }

private:
    rlimit before_{};
    std::vector<UniqueFd> held_;
};

TEST(SpareDescriptor, TurnsCallersAwayOneAfterTheOther) {
    Listener listener;
    const UniqueFd first = newCaller();
    const UniqueFd second = newCaller();
    SpareDescriptor spare;
    const AllTaken all;
    for (const UniqueFd* caller : {&first, &second}) {
        listener.knock(*caller);
        ASSERT_EQ(acceptFails(listener), EMFILE);
        EXPECT_TRUE(spare.turnAway(listener.fd(), EMFILE));
        EXPECT_TRUE(wasTurnedAway(*caller));
        EXPECT_TRUE(spare.isThere());
    }
    EXPECT_FALSE(spare.turnAway(listener.fd(), EMFILE)) << "nobody is there";
    EXPECT_FALSE(spare.turnAway(listener.fd(), ECONNABORTED)) << "not its business";
}

TEST(SpareDescriptor, ThatWasLostComesBackWithTheFirstThatIsFree) {
    Listener listener;
    const UniqueFd caller = newCaller();
    listener.knock(caller);
    AllTaken all;
    SpareDescriptor spare;
    ASSERT_FALSE(spare.isThere());
    EXPECT_FALSE(spare.turnAway(listener.fd(), EMFILE));
    EXPECT_FALSE(spare.isThere());
    all.giveOne();
    spare.refill();
    EXPECT_TRUE(spare.isThere());
    ASSERT_EQ(acceptFails(listener), EMFILE) << "it took the one that was free";
    EXPECT_TRUE(spare.turnAway(listener.fd(), EMFILE));
    EXPECT_TRUE(wasTurnedAway(caller));
    EXPECT_TRUE(spare.isThere());
}

}  // namespace
}  // namespace isthmus
