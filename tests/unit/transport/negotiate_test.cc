#include "comm/transport/negotiate.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

const JobKey kKey = JobKey::derivedFrom("one job");
const JobKey kOtherKey = JobKey::derivedFrom("another job");
constexpr ProcessId kCaller{1, 2};
constexpr ProcessId kCalled{3, 4};

TEST(Negotiate, BothKnowEachOtherAfterwards) {
    NegotiateConnector connector(kKey, Purpose::kTcpFrames, kCaller, kCalled);
    NegotiateAcceptor acceptor(kKey, Purpose::kTcpFrames, kCalled);
    const auto answer = acceptor.answer(connector.hello());
    ASSERT_TRUE(answer.ok());
    ASSERT_TRUE(connector.check(*answer).ok());
    ASSERT_TRUE(acceptor.check(connector.proof()).ok());
    EXPECT_EQ(acceptor.peer(), kCaller);
}

TEST(Negotiate, AnotherKeyIsNamedOnTheConnectingSide) {
    NegotiateConnector connector(kKey, Purpose::kTcpFrames, kCaller, kCalled);
    NegotiateAcceptor acceptor(kOtherKey, Purpose::kTcpFrames, kCalled);
    const Status status = connector.check(*acceptor.answer(connector.hello()));
    EXPECT_EQ(status.code(), Status::Code::kConfiguration);
    EXPECT_NE(status.what().find("job key differs"), std::string::npos) << status.what();
    EXPECT_FALSE(acceptor.check(connector.proof()).ok());
}

TEST(Negotiate, TheWrongDoorIsRefused) {
    NegotiateConnector connector(kKey, Purpose::kSharedMemory, kCaller, kCalled);
    NegotiateAcceptor acceptor(kKey, Purpose::kTcpFrames, kCalled);
    const auto answer = acceptor.answer(connector.hello());
    ASSERT_TRUE(connector.check(*answer).ok());
    EXPECT_EQ(acceptor.check(connector.proof()).code(), Status::Code::kConfiguration);

    NegotiateConnector lost(kKey, Purpose::kTcpFrames, kCaller, {9, 9});
    EXPECT_EQ(lost.check(*acceptor.answer(lost.hello())).code(), Status::Code::kPeerLost);
}

TEST(Negotiate, NothingThatWasSaidCanBeSaidAgain) {
    NegotiateConnector connector(kKey, Purpose::kTcpFrames, kCaller, kCalled);
    NegotiateAcceptor acceptor(kKey, Purpose::kTcpFrames, kCalled);
    const auto answer = acceptor.answer(connector.hello());
    ASSERT_TRUE(connector.check(*answer).ok());
    const Mac proof = connector.proof();
    // The same hello again: the new nonce of the acceptor makes the old proof worthless.
    ASSERT_TRUE(acceptor.answer(connector.hello()).ok());
    EXPECT_FALSE(acceptor.check(proof).ok());
    // The acceptor's own proof, reflected.
    Mac reflected{};
    std::copy(answer->end() - sizeof(Mac), answer->end(), reflected.begin());
    EXPECT_FALSE(acceptor.check(reflected).ok());
    // Another nonce, another hello.
    EXPECT_NE(connector.hello(),
              NegotiateConnector(kKey, Purpose::kTcpFrames, kCaller, kCalled).hello());
}

TEST(Negotiate, EveryChangedByteIsNoticed) {
    for (std::size_t at = 0; at < kHelloBytes; ++at) {
        NegotiateConnector connector(kKey, Purpose::kTcpFrames, kCaller, kCalled);
        NegotiateAcceptor acceptor(kKey, Purpose::kTcpFrames, kCalled);
        Hello hello = connector.hello();
        hello[at] ^= std::byte{1};
        const auto answer = acceptor.answer(hello);
        EXPECT_FALSE(answer.ok() && connector.check(*answer).ok()) << "hello byte " << at;
    }
    for (std::size_t at = 0; at < kAnswerBytes; ++at) {
        NegotiateConnector connector(kKey, Purpose::kTcpFrames, kCaller, kCalled);
        NegotiateAcceptor acceptor(kKey, Purpose::kTcpFrames, kCalled);
        auto answer = acceptor.answer(connector.hello());
        (*answer)[at] ^= std::byte{1};
        EXPECT_FALSE(connector.check(*answer).ok()) << "answer byte " << at;
    }
}

}  // namespace
}  // namespace isthmus
