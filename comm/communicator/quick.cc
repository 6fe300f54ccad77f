// Small blocking calls, in one go.
#include "comm/communicator/communicator.hpp"

namespace isthmus {

std::optional<Communicator::CalledQuickly> Communicator::callQuickly(
    const QuickCall& call, std::chrono::milliseconds timeout, std::chrono::milliseconds patience) {
    const bool hasBuffers = call.input != nullptr && call.output != nullptr;
    if (!hasBuffers && call.kind.collective != Collective::kBarrier) return std::nullopt;
    if (!isConnected_.load(std::memory_order_acquire) || isClosed_ || Engine::isForked())
        return std::nullopt;
    if (hasEvent_.load(std::memory_order_acquire)) return std::nullopt;  // it is told of every end
    Engine& engine = runtime_.engine();
    switch (engine.runQuickly(*membership_, call)) {
    case Quick::kDone:
        return CalledQuickly();
    case Quick::kNotNow:
        return std::nullopt;
    case Quick::kLearn:
        learn(call);
        return std::nullopt;
    case Quick::kEntered:
        break;
    }
    auto request = std::make_unique<CallRequest>(call.request());
    request->limit = timeout.count() > 0 ? timeout : config_.timeout;
    request->deadline = engine.now() + request->limit;
    const auto work = request->work = std::make_shared<Work>();
    Time until = request->deadline + std::chrono::seconds(5);  // the call itself fails first
    if (patience.count() > 0) until = std::min(until, engine.now() + patience);
    engine.finishQuickly(*membership_, std::move(request), until);
    if (work->isDone()) return CalledQuickly{work->status(), nullptr};
    return CalledQuickly{{}, work};
}

void Communicator::learn(const QuickCall& call) {
    CallRequest request = call.request();
    const CallOptions options{.isBlocking = true};
    if (!prepare(request, options).ok()) return;  // call() will say what is wrong
    const bool mayBeQuick = !isWidened(request, options) && !onlySums(request);
    runtime_.engine().withToken(
        [&] { membership_->learn(call.kind, std::move(request), mayBeQuick); });
}

}  // namespace isthmus
