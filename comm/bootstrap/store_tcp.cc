#include "comm/bootstrap/store_tcp.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/base/log.hpp"
#include "comm/bootstrap/store_memory.hpp"

namespace isthmus {

namespace {

using std::chrono::milliseconds;

/// Waits between tries grow from the first to the last, each scattered by a quarter, so that a
/// thousand ranks that lost the same server do not come back in step.
constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLastPause{500};
constexpr milliseconds kHandshakeLimit{5'000};
constexpr milliseconds kReportEvery{10'000};
/// How long a server that answered once may be away before it counts as lost.
constexpr milliseconds kLostAfter{1'000};
/// For set, has and erase, which wait for nobody but the server.
constexpr milliseconds kServiceLimit{30'000};
/// The server counts a get's time from its arrival: it answers a little after our own limit.
constexpr milliseconds kAnswerSlack{1'000};

milliseconds scattered(milliseconds pause) {
    thread_local std::minstd_rand random{std::random_device{}()};
    const auto quarter = pause.count() / 4;
    return pause + milliseconds(std::uniform_int_distribution<long>(-quarter, quarter)(random));
}

bool mayPass(const Status& status) {
    return status.code() == Status::Code::kPeerLost || status.code() == Status::Code::kTimeout;
}

}  // namespace

struct TcpStore::Connection {
    UniqueFd socket;
    FrameStream outgoing;
    FrameStream incoming;
    StoreInstance instance;
    Bytes received;
    bool isFresh = true;

    Result<StoreAnswer> ask(const StoreRequest& request, Deadline deadline) {
        ISTHMUS_TRY(sendAll(socket, outgoing.seal(encode(request)), deadline));
        std::array<std::byte, 64 * 1024> room;
        for (;;) {
            auto opened = incoming.open(received);
            if (!opened.ok()) return opened.status();
            if (opened->has_value()) {
                received.clear();  // one question, one answer
                return decodeStoreAnswer((*opened)->body);
            }
            const auto got = receiveSome(socket, room, deadline);
            if (!got.ok()) return got.status();
            append(received, std::span(room).first(*got));
        }
    }
};

TcpStore::TcpStore(HostPort place, const JobKey& key) : place_(std::move(place)), key_(key) {}

TcpStore::~TcpStore() = default;

Result<std::unique_ptr<TcpStore>> TcpStore::connect(const HostPort& place, const JobKey& key,
                                                    milliseconds limit) {
    std::unique_ptr<TcpStore> store(new TcpStore(place, key));
    auto first = store->openWithin(deadlineIn(limit),
                                   "waited " + std::to_string(limit.count()) + " ms for the store");
    if (!first.ok()) return first.status();
    store->localAddress_ = localAddressOf((*first)->socket);
    store->instance_ = (*first)->instance;
    store->idle_.push_back(std::move(*first));
    return store;
}

/// One try: connects and proves the key both ways.
Result<std::unique_ptr<TcpStore::Connection>> TcpStore::open(Deadline deadline) {
    const auto until = std::min(deadline, deadlineIn(kHandshakeLimit));
    auto socket = connectTo(place_, until);
    if (!socket.ok()) return socket.status();
    const Bytes hello = clientHello(makeNonce());
    ISTHMUS_TRY(sendAll(*socket, hello, until));
    Bytes answer(kServerHelloBytes);
    std::size_t filled = 0;
    while (filled < answer.size() && mayBeServerHello(std::span(answer).first(filled))) {
        const auto got = receiveSome(*socket, std::span(answer).subspan(filled), until);
        if (!got.ok()) return got.status().within(toText(place_));
        filled += *got;
    }
    answer.resize(filled);
    const auto instance = checkServerHello(key_, hello, answer);
    if (!instance.ok()) return instance.status().within(toText(place_));
    const Mac session = clientProof(key_, hello, answer);
    ISTHMUS_TRY(sendAll(*socket, session, until));
    return std::make_unique<Connection>(Connection{std::move(*socket),
                                                   FrameStream(key_, session, Side::kClient),
                                                   FrameStream(key_, session, Side::kServer),
                                                   *instance,
                                                   {}});
}

/// Tries until the deadline; `why` begins the message when it passes.
Result<std::unique_ptr<TcpStore::Connection>> TcpStore::openWithin(Deadline deadline,
                                                                   std::string_view why) {
    const auto start = std::chrono::steady_clock::now();
    auto nextReport = start + kReportEvery;
    milliseconds pause = kFirstPause;
    for (;;) {
        auto connection = open(deadline);
        if (connection.ok() || !mayPass(connection.status())) return connection;
        if (timeLeft(deadline).count() == 0) {
            return Status::timeout(std::string(why) + " at " + toText(place_) + ": " +
                                   connection.status().what());
        }
        if (std::chrono::steady_clock::now() >= nextReport) {
            const auto waited = std::chrono::duration_cast<std::chrono::seconds>(
                std::chrono::steady_clock::now() - start);
            log(LogLevel::kWarning, "waiting for the store at " + toText(place_) +
                                        ", which rank 0 or the launcher " + "starts, since " +
                                        std::to_string(waited.count()) + " s (" +
                                        std::to_string(timeLeft(deadline).count() / 1000) +
                                        " s left): " + connection.status().what());
            nextReport += kReportEvery;
        }
        std::this_thread::sleep_for(std::min(scattered(pause), timeLeft(deadline)));
        pause = std::min(pause * 8 / 5, kLastPause);
    }
}

/// A connection that was used before, or a new one.
Result<std::unique_ptr<TcpStore::Connection>> TcpStore::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            auto connection = std::move(idle_.back());
            idle_.pop_back();
            connection->isFresh = false;
            return connection;
        }
    }
    auto connection = openWithin(deadlineIn(kLostAfter), "lost the store");
    if (!connection.ok()) {
        return connection.status().code() == Status::Code::kTimeout
                   ? Status::peerLost(connection.status().what())
                   : connection.status();
    }
    const std::lock_guard lock(mutex_);
    if ((*connection)->instance != *instance_) {
        return Status::peerLost("the store at " + toText(place_) +
                                " was started anew and has lost what was in it");
    }
    return connection;
}

Result<StoreAnswer> TcpStore::ask(const StoreRequest& request, milliseconds limit) {
    ISTHMUS_TRY(checkStoreKey(request.key));
    ISTHMUS_TRY(checkStoreValue(request.value));
    const auto deadline = deadlineIn(limit) + kAnswerSlack;
    for (;;) {
        auto connection = take();
        if (!connection.ok()) return connection.status();
        StoreRequest asked = request;
        asked.limitMilliseconds = static_cast<std::uint32_t>(std::min<std::int64_t>(
            std::max<std::int64_t>(0, (timeLeft(deadline) - kAnswerSlack).count()),
            std::numeric_limits<std::uint32_t>::max()));
        auto answer = (*connection)->ask(asked, deadline);
        if (answer.ok()) {
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(*connection));
            return answer;
        }
        const bool isLost = answer.status().code() == Status::Code::kPeerLost;
        // Asking twice is harmless: each request leads to the same state again.
        if (!isLost || timeLeft(deadline).count() == 0) {
            return answer.status().within("the store at " + toText(place_));
        }
        if ((*connection)->isFresh) std::this_thread::sleep_for(scattered(kFirstPause));
        const std::lock_guard lock(mutex_);
        idle_.clear();  // they are as old as the one that broke
    }
}

namespace {

Status statusOf(const Result<StoreAnswer>& answer) {
    if (!answer.ok()) return answer.status();
    if (answer->code == Status::Code::kOk) return {};
    return Status(answer->code, toText(answer->body));
}

}  // namespace

Status TcpStore::set(std::string_view key, const Bytes& value) {
    return statusOf(ask({StoreVerb::kSet, 0, std::string(key), value}, kServiceLimit));
}

Result<Bytes> TcpStore::get(std::string_view key, milliseconds limit) {
    auto answer = ask({StoreVerb::kGet, 0, std::string(key), {}}, limit);
    if (Status status = statusOf(answer); !status.ok()) {
        return status.code() == Status::Code::kTimeout ? nobodyWrote(key, limit) : status;
    }
    return std::move(answer->body);
}

Result<bool> TcpStore::has(std::string_view key) {
    const auto answer = ask({StoreVerb::kHas, 0, std::string(key), {}}, kServiceLimit);
    ISTHMUS_TRY(statusOf(answer));
    return !answer->body.empty() && answer->body.front() == std::byte{1};
}

Status TcpStore::erase(std::string_view key) {
    return statusOf(ask({StoreVerb::kErase, 0, std::string(key), {}}, kServiceLimit));
}

}  // namespace isthmus
