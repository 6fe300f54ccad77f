#include "tools/cli/probe_link.hpp"

#include <algorithm>
#include <chrono>

#include "tools/cli/bench_session.hpp"

namespace isthmus::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSlots = 4;                            // receives that are called ahead
constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 20U;  // of a message
// At least the credit of a shaper (tools/cluster/rate.cc), so that the first message, which is not
// timed, uses it up; and the first look, when nothing is known, takes a second at 10 Mbit/s.
constexpr std::uint64_t kLeastBytes = std::uint64_t{512} << 10U;
constexpr std::uint64_t kFirstBytes = std::uint64_t{256} << 10U;
constexpr std::uint64_t kFirstMessages = 4;
constexpr std::uint64_t kLeastMessages = 9;
constexpr std::uint64_t kMostMessages = 65;
// Long beside a slice of the processor's (4 ms) and beside what queues hold (2 MB at 200 Mbit/s is
// 80 ms, but as many wait at the begin as at the end).
constexpr double kWindowSeconds = 0.12;

constexpr int kDataTag = 11;
constexpr int kDoseTag = 12;
constexpr int kPingTag = 13;

constexpr int kWarmPings = 20;
constexpr int kPings = 101;

double secondsBetween(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

}  // namespace

ProbeLink::~ProbeLink() {
    if (memory_ != nullptr) static_cast<void>(isthmusMemFree(memory_));
}

Status ProbeLink::start() {
    void* memory = nullptr;
    ISTHMUS_TRY(statusOf(isthmusMemAlloc(&memory, (kSlots + 1) * kMostBytes)));
    memory_ = static_cast<std::byte*>(memory);
    for (std::uint64_t at = 0; at < (kSlots + 1) * kMostBytes; at += 8) {
        memory_[at] = static_cast<std::byte>(at / 8 * 37 + static_cast<std::uint64_t>(me_));
    }
    return {};
}

Result<ProbeLink::Arrival> ProbeLink::exchange(Rank to, Rank from, const Dose& out,
                                               const Dose& in) {
    std::vector<isthmusRequest_t> sends(to >= 0 ? out.messages : 0);
    std::vector<isthmusRequest_t> receives(from >= 0 ? in.messages : 0);
    std::byte* const outgoing = memory_ + kSlots * kMostBytes;
    const auto receive = [&](std::size_t at) {
        return statusOf(isthmusRecv(memory_ + at % kSlots * kMostBytes, in.bytes, isthmusUint8,
                                    from, kDataTag, nullptr, comm_, nullptr, &receives[at]));
    };
    for (std::size_t at = 0; at < std::min<std::size_t>(kSlots, receives.size()); ++at) {
        ISTHMUS_TRY(receive(at));
    }
    for (isthmusRequest_t& request : sends) {
        ISTHMUS_TRY(statusOf(isthmusSend(outgoing, out.bytes, isthmusUint8, to, kDataTag, comm_,
                                         nullptr, &request)));
    }
    Clock::time_point first;
    for (std::size_t at = 0; at < receives.size(); ++at) {
        ISTHMUS_TRY(statusOf(isthmusWait(&receives[at], -1)));
        if (at == 0) first = Clock::now();
        if (at + kSlots < receives.size()) ISTHMUS_TRY(receive(at + kSlots));
    }
    const Clock::time_point last = Clock::now();
    ISTHMUS_TRY(statusOf(isthmusWaitAll(sends.size(), sends.data(), -1)));
    if (receives.empty()) return Arrival{};
    return Arrival{secondsBetween({}, first), secondsBetween({}, last),
                   static_cast<double>(in.bytes) * static_cast<double>(in.messages - 1)};
}

/// Tells `from` what we want, hears from `to` what it wants.
Result<ProbeLink::Dose> ProbeLink::agree(Rank to, Rank from, const Dose& in) {
    Dose out;
    isthmusRequest_t request = nullptr;
    if (from >= 0) {
        ISTHMUS_TRY(
            statusOf(isthmusSend(&in, 2, isthmusUint64, from, kDoseTag, comm_, nullptr, &request)));
    }
    if (to >= 0) {
        ISTHMUS_TRY(statusOf(
            isthmusRecv(&out, 2, isthmusUint64, to, kDoseTag, nullptr, comm_, nullptr, nullptr)));
    }
    ISTHMUS_TRY(statusOf(isthmusWait(&request, -1)));
    return out;
}

ProbeLink::Dose ProbeLink::doseAfter(const Arrival& look) {
    const double seconds = std::max(look.lastSeconds - look.firstSeconds, 1e-6);
    const double window = look.bytes / seconds * kWindowSeconds;
    Dose dose;
    dose.bytes = static_cast<std::uint64_t>(std::clamp(window / (kLeastMessages - 1),
                                                       static_cast<double>(kLeastBytes),
                                                       static_cast<double>(kMostBytes)));
    dose.messages = static_cast<std::uint64_t>(
        std::clamp(window / static_cast<double>(dose.bytes) + 1,
                   static_cast<double>(kLeastMessages), static_cast<double>(kMostMessages)));
    return dose;
}

Result<std::vector<ProbeLink::Arrival>> ProbeLink::stream(const std::vector<Pair>& pairs) {
    ISTHMUS_TRY(statusOf(isthmusBarrier(comm_, nullptr, nullptr)));
    Rank to = -1;
    Rank from = -1;
    std::size_t mine = 0;
    for (std::size_t at = 0; at < pairs.size(); ++at) {
        if (pairs[at].first == me_) to = pairs[at].second;
        if (pairs[at].second == me_) {
            from = pairs[at].first;
            mine = at;
        }
    }
    std::vector<double> numbers(3 * pairs.size(), 0.0);
    if (to >= 0 || from >= 0) {
        const Dose little{kFirstBytes, kFirstMessages};
        const Result<Arrival> look = exchange(to, from, little, little);
        if (!look.ok()) return look.status();
        const Dose in = doseAfter(*look);
        const Result<Dose> out = agree(to, from, in);
        if (!out.ok()) return out.status();
        const Result<Arrival> arrival = exchange(to, from, *out, in);
        if (!arrival.ok()) return arrival.status();
        if (from >= 0) {
            numbers[3 * mine] = arrival->firstSeconds;
            numbers[3 * mine + 1] = arrival->lastSeconds;
            numbers[3 * mine + 2] = arrival->bytes;
        }
    }
    const Result<std::vector<double>> all = shared(std::move(numbers));
    if (!all.ok()) return all.status();
    std::vector<Arrival> arrivals;
    for (std::size_t at = 0; at < all->size(); at += 3) {
        arrivals.push_back({(*all)[at], (*all)[at + 1], (*all)[at + 2]});
    }
    return arrivals;
}

Result<double> ProbeLink::pingPong(Rank peer, bool isFirst) {
    std::vector<double> trips;
    std::uint64_t word = 0;
    const auto send = [&] {
        return statusOf(
            isthmusSend(&word, 1, isthmusUint64, peer, kPingTag, comm_, nullptr, nullptr));
    };
    const auto receive = [&] {
        return statusOf(
            isthmusRecv(&word, 1, isthmusUint64, peer, kPingTag, nullptr, comm_, nullptr, nullptr));
    };
    for (int trip = 0; trip < kWarmPings + kPings; ++trip) {
        const auto began = Clock::now();
        ISTHMUS_TRY(isFirst ? send() : receive());
        ISTHMUS_TRY(isFirst ? receive() : send());
        if (trip >= kWarmPings) trips.push_back(secondsBetween(began, Clock::now()));
    }
    std::nth_element(trips.begin(), trips.begin() + kPings / 2, trips.end());
    return trips[kPings / 2] / 2;
}

Result<std::vector<double>> ProbeLink::latencySeconds(const std::vector<Pair>& pairs) {
    ISTHMUS_TRY(statusOf(isthmusBarrier(comm_, nullptr, nullptr)));
    std::vector<double> seconds(pairs.size(), 0.0);
    for (std::size_t at = 0; at < pairs.size(); ++at) {
        const auto& [from, to] = pairs[at];
        if (me_ != from && me_ != to) continue;
        const Result<double> half = pingPong(me_ == from ? to : from, me_ == from);
        if (!half.ok()) return half.status();
        if (me_ == from) seconds[at] = *half;
    }
    return shared(std::move(seconds));
}

/// What the ranks know of each pair; only one of them is not 0.
Result<std::vector<double>> ProbeLink::shared(std::vector<double> mine) {
    if (mine.empty()) return mine;
    ISTHMUS_TRY(statusOf(isthmusAllReduce(mine.data(), mine.data(), mine.size(), isthmusFloat64,
                                          isthmusMax, comm_, nullptr, nullptr)));
    return mine;
}

}  // namespace isthmus::cli
