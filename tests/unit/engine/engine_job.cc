#include "tests/unit/engine/engine_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/transport/rma/rma_transport.hpp"
#include "tests/support/rma/device_kinds.hpp"

namespace isthmus::test {

namespace {

constexpr std::size_t kArenaBytes = std::size_t{64} << 20;
/// Of jobs over devices, of which a test has many at once: all pages are there from the start.
constexpr std::size_t kSmallArenaBytes = std::size_t{8} << 20;
constexpr std::size_t kInlineBytes = 4096;  // of each lane
constexpr std::int64_t kInlineLimit = 2048;
constexpr std::uint64_t kGroupId = 0x6e6;

}  // namespace

EngineJob::EngineJob(const std::vector<int>& nodeOfRank, const SimLink& link)
    : layout_(Layout::of(nodeOfRank)),
      inside_(layout_.nodes.size()),
      between_(virtualClock_, 1, link),
      processes_(nodeOfRank.size()) {
    makeProcesses();
}

EngineJob::EngineJob(const std::vector<int>& nodeOfRank, std::string device)
    : layout_(Layout::of(nodeOfRank)),
      device_(std::move(device)),
      inside_(layout_.nodes.size()),
      between_(virtualClock_, 1, {}),
      processes_(nodeOfRank.size()) {
    makeProcesses();
}

EngineJob::EngineJob(const std::vector<int>& nodeOfRank, Reads reads)
    : layout_(Layout::of(nodeOfRank)),
      reads_(reads),
      inside_(layout_.nodes.size()),
      between_(virtualClock_, 1, {}),
      processes_(nodeOfRank.size()) {
    makeProcesses();
}

void EngineJob::makeProcesses() {
    virtualClock_.advance(std::chrono::seconds(1));  // some members mean "never" by zero
    for (Rank rank = 0; rank < ranks(); ++rank) makeProcess(rank);
    for (Rank rank = 0; rank < ranks(); ++rank) makeGroup(rank);
}

EngineJob::~EngineJob() {
    for (Process& process : processes_) {
        process.isStopped = false;
        process.engine->withToken(
            [&] { process.group->fail(Status::aborted("the test is over")); });
    }
    const auto areIdle = [&] {
        return std::all_of(processes_.begin(), processes_.end(),
                           [](const Process& process) { return process.group->isIdle(); });
    };
    EXPECT_TRUE(runFor(areIdle, std::chrono::seconds(5)));
    for (Process& process : processes_) {
        process.engine->withToken([&] { process.engine->retire(std::move(process.group)); });
    }
    settle();
}

void EngineJob::makeProcess(Rank rank) {
    Process& process = processes_[rank];
    const std::size_t arenaBytes = isReal() ? kSmallArenaBytes : kArenaBytes;
    auto arena = Arena::create(arenaBytes);
    ASSERT_TRUE(arena.ok()) << arena.status().what();
    process.arena = std::move(*arena);
    EngineConfig config;
    config.self = {0xe1, static_cast<std::uint64_t>(rank)};
    config.clock = &clock();
    config.arena = process.arena.get();
    config.scratchBytes = arenaBytes / 4;
    config.hasThread = false;
    process.engine = std::make_unique<Engine>(config);
    Engine& engine = *process.engine;
    auto inside = inside_[layout_.nodeOf(rank)].makeTransport(config.self, process.arena.get(),
                                                              engine.sleepSet(), engine);
    auto between = makeBetween(rank);
    ASSERT_NE(between, nullptr);
    process.inside = inside.get();
    process.between = between.get();
    engine.addTransport(std::move(inside));
    engine.addTransport(std::move(between));
    const int nodeRanks = static_cast<int>(layout_.nodes[layout_.nodeOf(rank)].size());
    const auto memory = process.arena->allocate(ControlBlock::bytes(nodeRanks, kInlineBytes), 128);
    ASSERT_TRUE(memory.ok()) << memory.status().what();
    process.block = ControlBlock::construct(*memory, nodeRanks, kInlineBytes);
}

std::unique_ptr<Transport> EngineJob::makeBetween(Rank rank) {
    Engine& engine = *processes_[rank].engine;
    const ProcessId self = engine.config().self;
    if (!isReal()) return between_.makeTransport(self, engine);
    auto device = makeDevice(device_, rank);
    EXPECT_TRUE(device.ok()) << device.status().what();
    RmaOptions options;
    options.door.cards = {{"lo", "127.0.0.1"}};
    options.door.limits.eagerBytes = 256;
    options.directBytes = 1;
    auto made = makeRmaTransport(std::move(*device), options, self,
                                 JobKey::derivedFrom("engine job"), engine.sleepSet(), engine);
    EXPECT_TRUE(made.ok()) << made.status().what();
    return made.ok() ? std::move(*made) : nullptr;
}

Member EngineJob::memberOf(Rank me, Rank rank) {
    Process& mine = processes_[me];
    const Process& other = processes_[rank];
    const auto& node = layout_.nodes[layout_.nodeOf(me)];
    const auto at = std::find(node.begin(), node.end(), rank);
    Member member;
    member.process = other.engine->config().self;
    member.place = "place " + std::to_string(rank);
    if (at != node.end()) {
        member.position = static_cast<int>(at - node.begin());
        member.pid = reads_.pid;
        member.block = other.block;
        member.arena = {other.arena->base(), other.arena->capacityBytes()};
    }
    if (rank == me) return member;
    const bool isNear = at != node.end();
    Transport& way = isNear ? *mine.inside : *mine.between;
    Transport& theirs = isNear ? *other.inside : *other.between;
    member.endpoint = *way.endpoint(member.process, theirs.address());
    return member;
}

void EngineJob::makeGroup(Rank rank) {
    Process& mine = processes_[rank];
    MembershipConfig config;
    config.id = kGroupId;
    config.name = "dp";
    config.me = rank;
    config.layout = layout_;
    config.block = mine.block;
    config.inlineBytes = kInlineBytes;
    config.inlineLimit = kInlineLimit;
    config.canRead = reads_.pid != 0;
    config.reading = ReadChoice::Wish::kAlways;
    for (Rank other = 0; other < ranks(); ++other) {
        config.globalRanks.push_back(other);
        config.members.push_back(memberOf(rank, other));
    }
    mine.engine->withToken([&] {
        mine.group = std::make_unique<Membership>(*mine.engine, std::move(config));
        mine.engine->add(*mine.group);
    });
}

std::vector<int> EngineJob::positionsInNode(Rank rank) const {
    const auto& node = layout_.nodes[layout_.nodeOf(rank)];
    std::vector<int> positions(processes_.size(), -1);
    for (std::size_t i = 0; i < node.size(); ++i) positions[node[i]] = static_cast<int>(i);
    return positions;
}

std::shared_ptr<PreparedPlans> EngineJob::prepare(Rank rank, Plan plan, Mapping mapping) const {
    const int nodeRanks = static_cast<int>(layout_.nodes[layout_.nodeOf(rank)].size());
    auto prepared = std::make_shared<PreparedPlans>();
    prepared->byMapping[static_cast<int>(mapping)] = std::make_shared<const CompiledPlan>(
        CompiledPlan::of(std::move(plan), positionsInNode(rank), nodeRanks));
    return prepared;
}

std::shared_ptr<const PreparedPlans> EngineJob::prepare(Rank rank, const CallRequest& call,
                                                        const Way& way) const {
    const Algorithm* entry = findAlgorithm(call.collective, way.algorithm);
    EXPECT_NE(entry, nullptr) << way.algorithm;
    const auto& node = layout_.nodes[layout_.nodeOf(rank)];
    const std::vector<int> positionInNode = positionsInNode(rank);
    auto prepared = std::make_shared<PreparedPlans>();
    prepared->segments = prepared->segmentsWhenMapped = way.segments;
    prepared->window = way.window;
    prepared->pieceBytes = way.pieceBytes;
    for (const Mapping mapping : entry->mappings) {
        // As the selector does: alone on its node nothing is staged where there is a choice.
        if (node.size() == 1 && entry->mappings.size() > 1 && mapping != Mapping::kAll) continue;
        PlanRequest request;
        request.collective = call.collective;
        request.me = rank;
        request.root = call.root;
        request.mapping = mapping;
        request.algorithm = way.algorithm;
        auto plan = makePlan(layout_, request);
        EXPECT_TRUE(plan.ok()) << plan.status().what();
        prepared->byMapping[static_cast<int>(mapping)] = std::make_shared<const CompiledPlan>(
            CompiledPlan::of(std::move(*plan), positionInNode, static_cast<int>(node.size())));
    }
    return prepared;
}

std::shared_ptr<Work> EngineJob::start(Rank rank, CallRequest call, const Way& way, Time limit) {
    auto plans = prepare(rank, call, way);
    return startPrepared(rank, std::move(call), std::move(plans), limit);
}

std::shared_ptr<Work> EngineJob::startPrepared(Rank rank, CallRequest call,
                                               std::shared_ptr<const PreparedPlans> plans,
                                               Time limit) {
    call.prepared = std::move(plans);
    call.limit = limit;
    call.deadline = now() + limit;
    call.work = std::make_shared<Work>();
    auto work = call.work;
    auto owned = std::make_unique<CallRequest>(std::move(call));
    engine(rank).withToken([&] { group(rank).submit(std::move(owned)); });
    return work;
}

bool EngineJob::step(Rank rank) {
    bool isNews = false;
    engine(rank).withToken([&] { isNews = engine(rank).step(); });
    return isNews;
}

void EngineJob::settle() {
    bool isNews = true;
    for (int turn = 0; isNews && turn < 100'000; ++turn) {
        isNews = false;
        for (Rank rank = 0; rank < ranks(); ++rank) {
            if (!processes_[rank].isStopped) isNews |= step(rank);
        }
    }
    ASSERT_FALSE(isNews) << "no end of news at one moment";
}

bool EngineJob::runUntil(const std::function<bool()>& isOver, Time until) {
    while (isReal()) {
        if (isOver()) return true;
        if (now() > until) return false;
        for (Rank rank = 0; rank < ranks(); ++rank) {
            if (!processes_[rank].isStopped) step(rank);
        }
    }
    while (true) {
        settle();
        if (isOver()) return true;
        Time next = Time::max();
        for (const Process& process : processes_) {
            if (!process.isStopped) next = std::min(next, process.engine->nextEvent());
        }
        if (next > until || next <= now()) {
            EXPECT_GT(next, now()) << "an event of the past did not end by a step";
            return false;
        }
        virtualClock_.advanceTo(next);
    }
}

std::span<float> EngineJob::mapped(Rank rank, std::size_t elements, float value) {
    const auto memory = processes_[rank].arena->allocate(elements * sizeof(float));
    EXPECT_TRUE(memory.ok()) << memory.status().what();
    std::span<float> buffer(static_cast<float*>(*memory), elements);
    std::fill(buffer.begin(), buffer.end(), value);
    return buffer;
}

CallRequest sumOf(std::span<float> buffer) {
    CallRequest call;
    call.collective = Collective::kAllReduce;
    call.type = DataType::kFloat32;
    call.input = reinterpret_cast<const std::byte*>(buffer.data());
    call.output = reinterpret_cast<std::byte*>(buffer.data());
    call.counts.uniform = buffer.size();
    return call;
}

bool isFilledWith(std::span<const float> buffer, float value) {
    return std::all_of(buffer.begin(), buffer.end(), [&](float each) { return each == value; });
}

}  // namespace isthmus::test
