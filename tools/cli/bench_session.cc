#include "tools/cli/bench_session.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "comm/cost/bounds.hpp"
#include "tools/cli/bench_data.hpp"

namespace isthmus::cli {
namespace {

// Room for a host name with its pid: one block of the all-gather of who is who.
constexpr std::size_t kInfoBytes = 80;

// What each rank tells the others of one half.
enum Fact : std::size_t { kMeanSeconds, kSent, kReceived, kWrong, kFacts };

constexpr std::size_t kAlignment = 4096;

isthmusDataType_t cType(DataType type) {
    return static_cast<isthmusDataType_t>(type);
}

double secondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Status statusOf(isthmusResult_t result) {
    if (result == isthmusSuccess) return {};
    std::string text = isthmusGetLastError(nullptr);
    if (text.empty()) text = isthmusGetErrorString(result);
    return {static_cast<Status::Code>(result), std::move(text)};
}

Result<std::unique_ptr<BenchSession>> BenchSession::join(const BenchOptions& options,
                                                         std::uint64_t bytes) {
    std::unique_ptr<BenchSession> session(new BenchSession(options));
    ISTHMUS_TRY(session->start(bytes));
    return session;
}

Status BenchSession::start(std::uint64_t bytes) {
    ISTHMUS_TRY(statusOf(isthmusCommInitEnv(&comm_, nullptr)));
    ISTHMUS_TRY(statusOf(isthmusCommCount(comm_, &ranks_)));
    ISTHMUS_TRY(statusOf(isthmusCommUserRank(comm_, &rank_)));
    std::vector<int> nodes(static_cast<std::size_t>(ranks_), 0);
    ISTHMUS_TRY(statusOf(isthmusCommNodes(comm_, nodes.data())));
    layout_ = Layout::of(nodes);
    callOptions_.timeout_ms = std::int64_t{1000} * options_.timeoutSeconds;
    if (!options_.algorithm.empty()) callOptions_.algorithm = options_.algorithm.c_str();
    if (options_.root >= ranks_) {
        return Status::invalidArgument("-r " + std::to_string(options_.root) + ": there are " +
                                       std::to_string(ranks_) + " ranks");
    }
    return allocate(bytes);
}

Status BenchSession::allocate(std::uint64_t bytes) {
    const std::uint64_t room = (bytes / kAlignment + 1) * kAlignment;
    for (std::byte** buffer : {&sendBuffer_, &recvBuffer_}) {
        void* memory = nullptr;
        if (options_.usesMalloc) {
            memory = std::aligned_alloc(kAlignment, room);
            if (memory == nullptr) {
                return Status::resource("no memory for buffers of " + std::to_string(room) +
                                        " bytes");
            }
        } else {
            ISTHMUS_TRY(statusOf(isthmusMemAlloc(&memory, room)));
        }
        *buffer = static_cast<std::byte*>(memory);
    }
    return {};
}

BenchSession::~BenchSession() {
    if (comm_ != nullptr) static_cast<void>(isthmusCommDestroy(comm_));
    for (std::byte* buffer : {sendBuffer_, recvBuffer_}) {
        if (options_.usesMalloc) {
            std::free(buffer);
        } else if (buffer != nullptr) {
            static_cast<void>(isthmusMemFree(buffer));
        }
    }
}

void BenchSession::use(const std::string& algorithm, int iterations, int warmups) {
    options_.algorithm = algorithm;
    options_.iterations = iterations;
    options_.warmups = warmups;
    callOptions_.algorithm = algorithm.empty() ? nullptr : options_.algorithm.c_str();
}

Result<std::vector<BenchRankInfo>> BenchSession::rankInfos() {
    std::vector<char> mine(kInfoBytes, '\0');
    const int pid = ::getpid();
    std::memcpy(mine.data(), &pid, sizeof pid);
    if (::gethostname(mine.data() + sizeof pid, kInfoBytes - sizeof pid - 1) != 0) {
        std::strcpy(mine.data() + sizeof pid, "unknown");
    }
    std::vector<char> all(kInfoBytes * static_cast<std::size_t>(ranks_));
    ISTHMUS_TRY(statusOf(isthmusAllGather(mine.data(), all.data(), kInfoBytes, isthmusUint8, comm_,
                                          nullptr, nullptr)));
    std::vector<BenchRankInfo> infos;
    std::vector<int> seen(layout_.nodes.size(), 0);
    for (Rank rank = 0; rank < ranks_; ++rank) {
        const char* const block = all.data() + static_cast<std::size_t>(rank) * kInfoBytes;
        BenchRankInfo info;
        info.rank = rank;
        info.node = layout_.nodeOf(rank);
        info.localRank = seen[static_cast<std::size_t>(info.node)]++;
        std::memcpy(&info.pid, block, sizeof info.pid);
        info.host = block + sizeof info.pid;
        infos.push_back(std::move(info));
    }
    return infos;
}

BenchSession::Places BenchSession::placesOf(const BenchCall& call, Placing placing) const {
    if (placing == Placing::kOutOfPlace) return {sendBuffer_, recvBuffer_};
    const std::uint64_t block = call.shape.elements * bytesOf(call.type);
    std::byte* const whole = recvBuffer_;
    std::byte* const mine = whole + static_cast<std::uint64_t>(rank_) * block;
    switch (call.collective) {
    case Collective::kAllGather:
    case Collective::kGather:
        return {mine, whole};
    case Collective::kReduceScatter:
    case Collective::kScatter:
        return {whole, mine};
    case Collective::kAllReduce:
    case Collective::kAllToAll:
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kBarrier:
        break;
    }
    return {whole, whole};
}

void BenchSession::fill(const BenchCall& call, const Places& places) const {
    const std::uint64_t sent = call.shape.sendElements;
    const std::uint64_t received = call.shape.recvElements * bytesOf(call.type);
    // Not what a right result could be: floats of these bytes are no small integers.
    if (received > 0) std::memset(places.recv, 0x5A, received);
    if (sent > 0) fillOperand(places.send, sent, call.type, call.op, rank_, 0);
}

std::uint64_t BenchSession::wrongOf(const BenchCall& call, const Places& places) const {
    const std::uint64_t count = call.shape.elements;
    const std::uint64_t blockBytes = count * bytesOf(call.type);
    const std::uint64_t mine = static_cast<std::uint64_t>(rank_) * count;
    const bool isRoot = rank_ == call.root;
    const auto sums = [&](std::uint64_t first) {
        return wrongSums(places.recv, count, call.type, call.op, ranks_, first);
    };
    const auto copies = [&](Rank source, std::uint64_t first, std::uint64_t block) {
        return wrongCopies(places.recv + block * blockBytes, count, call.type, call.op, source,
                           first);
    };
    const auto blocks = [&](std::uint64_t first) {
        std::uint64_t wrong = 0;
        for (Rank rank = 0; rank < ranks_; ++rank) {
            wrong += copies(rank, first, static_cast<std::uint64_t>(rank));
        }
        return wrong;
    };
    switch (call.collective) {
    case Collective::kAllReduce:
        return sums(0);
    case Collective::kReduce:
        return isRoot ? sums(0) : 0;
    case Collective::kReduceScatter:
        return sums(mine);
    case Collective::kAllGather:
        return blocks(0);
    case Collective::kGather:
        return isRoot ? blocks(0) : 0;
    case Collective::kAllToAll:
        return options_.isUneven ? wrongUneven(call, places) : blocks(mine);
    case Collective::kBroadcast:
        return copies(call.root, 0, 0);
    case Collective::kScatter:
        return copies(call.root, mine, 0);
    case Collective::kBarrier:
        break;
    }
    return 0;
}

std::uint64_t BenchSession::wrongUneven(const BenchCall& call, const Places& places) const {
    const UnevenBlocks mine = UnevenBlocks::of(call.shape.elements, rank_, ranks_);
    std::uint64_t wrong = 0;
    for (Rank source = 0; source < ranks_; ++source) {
        const UnevenBlocks theirs = UnevenBlocks::of(call.shape.elements, source, ranks_);
        const auto from = static_cast<std::size_t>(source);
        wrong += wrongCopies(places.recv + mine.offsets[from] * bytesOf(call.type),
                             mine.counts[from], call.type, call.op, source,
                             theirs.offsets[static_cast<std::size_t>(rank_)]);
    }
    return wrong;
}

Status BenchSession::issueUneven(const BenchCall& call, const Places& places) {
    if (uneven_.counts.empty() || unevenFor_ != call.shape.elements) {
        uneven_ = UnevenBlocks::of(call.shape.elements, rank_, ranks_);
        unevenFor_ = call.shape.elements;
    }
    return statusOf(isthmusAlltoAllV(places.send, uneven_.counts.data(), uneven_.offsets.data(),
                                     places.recv, uneven_.counts.data(), uneven_.offsets.data(),
                                     cType(call.type), comm_, &callOptions_, nullptr));
}

Status BenchSession::issue(const BenchCall& call, const Places& places) {
    const std::size_t count = call.shape.elements;
    const isthmusDataType_t type = cType(call.type);
    const auto op = static_cast<isthmusRedOp_t>(call.op);
    const isthmusCallOptions_t* const options = &callOptions_;
    const void* const send = places.send;
    void* const recv = places.recv;
    switch (call.collective) {
    case Collective::kAllReduce:
        return statusOf(isthmusAllReduce(send, recv, count, type, op, comm_, options, nullptr));
    case Collective::kAllGather:
        return statusOf(isthmusAllGather(send, recv, count, type, comm_, options, nullptr));
    case Collective::kReduceScatter:
        return statusOf(isthmusReduceScatter(send, recv, count, type, op, comm_, options, nullptr));
    case Collective::kAllToAll:
        return options_.isUneven
                   ? issueUneven(call, places)
                   : statusOf(isthmusAlltoAll(send, recv, count, type, comm_, options, nullptr));
    case Collective::kBroadcast:
        return statusOf(
            isthmusBroadcast(send, recv, count, type, call.root, comm_, options, nullptr));
    case Collective::kReduce:
        return statusOf(
            isthmusReduce(send, recv, count, type, op, call.root, comm_, options, nullptr));
    case Collective::kGather:
        return statusOf(isthmusGather(send, recv, count, type, call.root, comm_, options, nullptr));
    case Collective::kScatter:
        return statusOf(
            isthmusScatter(send, recv, count, type, call.root, comm_, options, nullptr));
    case Collective::kBarrier:
        break;
    }
    return statusOf(isthmusBarrier(comm_, options, nullptr));
}

// Reads the counters while no payload is under way: nobody passes the second barrier, and so sends
// for the next call, before all have read; barriers carry no payload.
Result<isthmusWireCounters_t> BenchSession::countWire() {
    isthmusWireCounters_t counters{sizeof(isthmusWireCounters_t), 0, 0, 0, 0};
    ISTHMUS_TRY(statusOf(isthmusBarrier(comm_, nullptr, nullptr)));
    ISTHMUS_TRY(statusOf(isthmusWireCounters(comm_, &counters)));
    ISTHMUS_TRY(statusOf(isthmusBarrier(comm_, nullptr, nullptr)));
    return counters;
}

Result<BenchSession::Timed> BenchSession::time(const BenchCall& call, const Places& places) {
    for (int warmup = 0; warmup < options_.warmups; ++warmup) ISTHMUS_TRY(issue(call, places));
    Timed timed;
    timed.seconds.reserve(static_cast<std::size_t>(options_.iterations));
    const Result<isthmusWireCounters_t> before = countWire();
    if (!before.ok()) return before.status();
    const auto start = std::chrono::steady_clock::now();
    double last = 0;
    for (int iteration = 0; iteration < options_.iterations; ++iteration) {
        if (options_.meetsFirst && hasRoot(call.collective)) {
            ISTHMUS_TRY(statusOf(isthmusBarrier(comm_, nullptr, nullptr)));
            last = secondsSince(start);
        }
        for (int part = 0; part < options_.aggregated; ++part) ISTHMUS_TRY(issue(call, places));
        const double now = secondsSince(start);
        timed.seconds.push_back((now - last) / options_.aggregated);
        last = now;
    }
    const Result<isthmusWireCounters_t> after = countWire();
    if (!after.ok()) return after.status();
    timed.mean = last / options_.iterations / options_.aggregated;
    timed.sent = after->sent_payload - before->sent_payload;
    timed.received = after->received_payload - before->received_payload;
    return timed;
}

Result<HalfResult> BenchSession::measure(const BenchCall& call, Placing placing, double rate) {
    const Places places = placesOf(call, placing);
    fill(call, places);
    Result<Timed> timed = time(call, places);
    if (!timed.ok()) return timed.status();
    std::uint64_t wrong = 0;
    if (options_.checks > 0) {
        fill(call, places);
        ISTHMUS_TRY(issue(call, places));
        wrong = wrongOf(call, places);
    }
    if (!timed->seconds.empty() && options_.hasIterations) {
        ISTHMUS_TRY(statusOf(isthmusAllReduce(timed->seconds.data(), timed->seconds.data(),
                                              timed->seconds.size(), isthmusFloat64, isthmusMax,
                                              comm_, nullptr, nullptr)));
    } else {
        timed->seconds.clear();
    }
    return combine(call, *timed, wrong, rate);
}

Result<std::vector<std::uint64_t>> BenchSession::gather(const std::vector<std::uint64_t>& mine) {
    std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(ranks_));
    ISTHMUS_TRY(statusOf(isthmusAllGather(mine.data(), all.data(), mine.size(), isthmusUint64,
                                          comm_, nullptr, nullptr)));
    return all;
}

Result<HalfResult> BenchSession::combine(const BenchCall& call, const Timed& timed,
                                         std::uint64_t wrong, double rate) {
    const Result<std::vector<std::uint64_t>> facts =
        gather({std::bit_cast<std::uint64_t>(timed.mean), timed.sent, timed.received, wrong});
    if (!facts.ok()) return facts.status();
    std::vector<double> means;
    HalfResult half;
    std::uint64_t allWrong = 0;
    double total = 0;
    for (std::size_t at = 0; at < facts->size(); at += kFacts) {
        means.push_back(std::bit_cast<double>((*facts)[at + kMeanSeconds]));
        total += means.back();
        allWrong += (*facts)[at + kWrong];
    }
    half.seconds = total / static_cast<double>(means.size());
    if (options_.average == 0) half.seconds = means.front();
    half.leastSeconds = *std::min_element(means.begin(), means.end());
    half.mostSeconds = *std::max_element(means.begin(), means.end());
    if (options_.average == 2) half.seconds = half.leastSeconds;
    if (options_.average == 3) half.seconds = half.mostSeconds;
    if (half.seconds > 0) {
        half.algorithmBytesPerSecond = static_cast<double>(call.shape.sizeBytes) / half.seconds;
    }
    half.busBytesPerSecond = half.algorithmBytesPerSecond * busFactor(call.collective, ranks_);
    if (options_.checks > 0) half.wrong = allWrong;
    half.iterationSeconds = timed.seconds;
    if (!options_.hasWire) return half;
    half.wire = wireOf(call, *facts, rate);
    if (half.wire->boundSeconds && half.seconds > 0) {
        half.wire->share = *half.wire->boundSeconds / half.seconds;
    }
    return half;
}

WireResult BenchSession::wireOf(const BenchCall& call, const std::vector<std::uint64_t>& facts,
                                double rate) const {
    std::vector<WireBytes> nodes(layout_.nodes.size());
    for (Rank rank = 0; rank < ranks_; ++rank) {
        WireBytes& node = nodes[static_cast<std::size_t>(layout_.nodeOf(rank))];
        node.egress += facts[static_cast<std::size_t>(rank) * kFacts + kSent];
        node.ingress += facts[static_cast<std::size_t>(rank) * kFacts + kReceived];
    }
    WireResult wire;
    for (const WireBytes& node : nodes) wire.bytes = std::max(wire.bytes, node.larger());
    wire.bytes /= static_cast<std::uint64_t>(options_.iterations) *
                  static_cast<std::uint64_t>(options_.aggregated);
    wire.boundBytes =
        options_.isUneven
            ? unevenBound(call.shape.elements, layout_) * bytesOf(call.type)
            : wireBound(call.collective, layout_, call.shape.sizeBytes, call.root).busiest;
    if (rate > 0 && wire.boundBytes > 0) {
        wire.boundSeconds = static_cast<double>(wire.boundBytes) / rate;
    }
    return wire;
}

}  // namespace isthmus::cli
