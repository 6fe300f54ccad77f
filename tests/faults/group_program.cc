// One rank of a job that makes, uses and drops many groups; a user's program on the C API.
// group_program MODE NUMBER...
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <isthmus/isthmus.h>

#include "tests/faults/checked_calls.hpp"
#include "tests/faults/rank.hpp"

namespace {

using namespace rank;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::vector<int> numbers;

int number(std::size_t place) {
    return place < numbers.size() ? numbers[place] : 0;
}

int wrong(const std::string& what) {
    say("wrong " + what);
    return 99;
}

struct Grown {
    int fds = entriesOf("/proc/self/fd");
    int threads = entriesOf("/proc/self/task");
    long kilobytes = residentKilobytes();

    void say() const {
        const Grown now;
        rank::say("grew fds " + std::to_string(now.fds - fds) + " threads " +
                  std::to_string(now.threads - threads));
        rank::say("kilobytes " + std::to_string(now.kilobytes - kilobytes));
    }
};

isthmusResult_t split(isthmusComm_t* part, int color) {
    return isthmusCommSplit(world, color, 0, part, nullptr);
}

// worlds COUNT: the whole world made anew each time, by a unique id that rank 0 of the first one
// hands on.
int worlds() {
    const auto round = [] {
        isthmusUniqueId id{};
        isthmusResult_t result = me == 0 ? isthmusGetUniqueId(&id) : isthmusSuccess;
        if (result != isthmusSuccess) return result;
        result = isthmusBroadcast(&id, &id, sizeof id, isthmusUint8, 0, world, nullptr, nullptr);
        if (result != isthmusSuccess) return result;
        isthmusComm_t again = nullptr;
        result = isthmusCommInitRank(&again, ranks, id, me);
        if (result != isthmusSuccess) return result;
        std::vector<float> buffer(100, 1);
        result = sumOnce(again, buffer);
        if (result == isthmusSuccess && buffer[99] != static_cast<float>(ranks))
            return isthmusInternalError;
        const isthmusResult_t ended = isthmusCommDestroy(again);
        return result == isthmusSuccess ? ended : result;
    };
    for (int i = 0; i < number(0) / 4 + 4; ++i) {
        if (const auto result = round(); result != isthmusSuccess) return failed(result);
    }
    const Grown before;
    for (int i = 0; i < number(0); ++i) {
        if (const auto result = round(); result != isthmusSuccess) return failed(result);
    }
    before.say();
    return finish();
}

// again COUNT: the program's own world destroyed and made again from the environment.
int again() {
    for (int i = 0; i < number(0); ++i) {
        if (const auto result = isthmusCommDestroy(world); result != isthmusSuccess)
            return failed(result);
        if (const auto result = isthmusCommInitEnv(&world, nullptr); result != isthmusSuccess)
            return failed(result);
        std::vector<float> buffer(10, 1);
        if (const auto result = sumOnce(world, buffer); result != isthmusSuccess)
            return failed(result);
        if (buffer[9] != static_cast<float>(ranks)) return wrong("world");
    }
    return finish();
}

// drops COUNT: groups that nobody ever destroys, half of them with a call in flight at the end.
int drops() {
    // Never freed: calls that nobody waits for may outlive this function.
    auto& kept = *new std::vector<std::vector<float>>(static_cast<std::size_t>(number(0)),
                                                      std::vector<float>(64, 1));
    for (int i = 0; i < number(0); ++i) {
        isthmusComm_t part = nullptr;
        if (const auto result = split(&part, 0); result != isthmusSuccess) return failed(result);
        auto& buffer = kept[static_cast<std::size_t>(i)];
        isthmusRequest_t request = nullptr;
        const isthmusResult_t result =
            isthmusAllReduce(buffer.data(), buffer.data(), buffer.size(), isthmusFloat32,
                             isthmusSum, part, nullptr, i % 2 == 0 ? nullptr : &request);
        if (result != isthmusSuccess) return failed(result);
    }
    // Who ends before the others have made the last group is lost to them.
    if (const auto result = isthmusBarrier(world, nullptr, nullptr); result != isthmusSuccess)
        return failed(result);
    return finish();
}

/// A group with calls in flight.
struct Busy {
    isthmusComm_t comm = nullptr;
    int me = 0;
    int ranks = 0;
    int turn = 0;
    std::deque<std::unique_ptr<CheckedCall>> flying;

    isthmusResult_t beginOne(unsigned seed) {
        flying.push_back(std::make_unique<CheckedCall>(comm, me, ranks, turn++, seed, 20000));
        return flying.back()->begin(true);
    }
    /// Looks at the one at `place`, which leaves when it is done.
    isthmusResult_t lookAt(std::size_t place, bool& isRight) {
        const auto at = flying.begin() + static_cast<std::ptrdiff_t>(place);
        int isDone = 0;
        const isthmusResult_t result = isthmusTest((*at)->request(), &isDone);
        if (isDone == 0) return result;
        isRight = result != isthmusSuccess || (*at)->isRight();
        flying.erase(at);
        return result;
    }
};

isthmusResult_t makeGroups(std::deque<Busy>& groups) {
    for (int i = 0; i < 3; ++i) {
        // All; all but the last; all but the first.
        const bool isIn = i == 0 || me != (i == 1 ? ranks - 1 : 0);
        isthmusComm_t part = nullptr;
        const isthmusResult_t result = split(&part, isIn ? 0 : -1);
        if (result != isthmusSuccess) return result;
        if (part == nullptr) continue;
        Busy& group = groups.emplace_back();
        group.comm = part;
        isthmusCommUserRank(part, &group.me);
        isthmusCommCount(part, &group.ranks);
    }
    return isthmusSuccess;
}

// overlaps TURNS SEED: three groups that overlap, eight calls in flight in each, begun and ended in
// another order on every rank. Nobody blocks: whoever waits for one group while another one waits
// for it would wait for ever.
int overlaps() {
    std::deque<Busy> groups;
    if (const auto result = makeGroups(groups); result != isthmusSuccess) return failed(result);
    std::mt19937 random(static_cast<unsigned>(number(1) * 64 + me));
    const auto isOpen = [](const Busy& group) {
        return group.turn < number(0) || !group.flying.empty();
    };
    while (std::any_of(groups.begin(), groups.end(), isOpen)) {
        Busy& group = groups[random() % groups.size()];
        const bool mayBegin = group.turn < number(0) && group.flying.size() < 8;
        isthmusResult_t result = isthmusSuccess;
        bool isRight = true;
        // A group's own seed, so that its ranks agree.
        const auto seed = static_cast<unsigned>(number(1) * 8 + group.ranks);
        if (mayBegin && (group.flying.empty() || random() % 3 != 0)) {
            result = group.beginOne(seed);
        } else if (!group.flying.empty()) {
            result = group.lookAt(random() % group.flying.size(), isRight);
        }
        if (result != isthmusSuccess) return failed(result);
        if (!isRight) return wrong("overlap");
    }
    for (Busy& group : groups) {
        if (const auto result = isthmusCommDestroy(group.comm); result != isthmusSuccess)
            return failed(result);
    }
    return finish();
}

// ahead CALLS: rank 0 starts all its calls before the others begin their first.
int ahead() {
    const auto calls = static_cast<std::size_t>(number(0));
    long before = residentKilobytes();
    for (int round = 0; round < 3; ++round) {
        std::vector<std::vector<float>> buffers(calls, std::vector<float>(64, 1));
        std::vector<isthmusRequest_t> requests(calls);
        if (round == 1) before = residentKilobytes();
        if (me != 0) sleepFor(500);
        for (std::size_t i = 0; i < calls; ++i) {
            const isthmusResult_t result =
                isthmusAllReduce(buffers[i].data(), buffers[i].data(), 64, isthmusFloat32,
                                 isthmusSum, world, nullptr, &requests[i]);
            if (result != isthmusSuccess) return failed(result);
        }
        if (round == 0) say("ahead kilobytes " + std::to_string(residentKilobytes() - before));
        for (std::size_t i = 0; i < calls; ++i) {
            if (const auto result = isthmusWait(&requests[i], -1); result != isthmusSuccess)
                return failed(result);
            if (buffers[i][63] != static_cast<float>(ranks)) return wrong("ahead");
        }
    }
    say("kilobytes " + std::to_string(residentKilobytes() - before));
    return finish();
}

// sizes CALLS: of ever other sizes, then of recurring ones; says how memory grew.
int sizes() {
    const auto callOf = [](std::size_t count) {
        static std::vector<float> in(30000, 1);
        static std::vector<float> out(30000 * 8);
        const isthmusResult_t result =
            isthmusAllGather(in.data(), out.data(), count, isthmusFloat32, world, nullptr, nullptr);
        if (result != isthmusSuccess) return result;
        return isthmusAllReduce(in.data(), out.data(), count, isthmusFloat32, isthmusSum, world,
                                nullptr, nullptr);
    };
    const int calls = number(0);
    for (const int shapes : {30000, 200}) {
        long before = 0;
        // The first time caches fill: of plans, and of scratch memory by its sizes.
        for (int i = 0; i < 2 * calls; ++i) {
            if (i == calls) before = residentKilobytes();
            const auto count = static_cast<std::size_t>(30000 - i % calls % shapes);
            if (const auto result = callOf(count); result != isthmusSuccess) return failed(result);
        }
        say("bytes a call " + std::to_string((residentKilobytes() - before) * 1024 / calls));
    }
    return finish();
}

// many COUNT: groups at once, one call each; says what they cost.
int many() {
    const Grown before;
    const auto begin = steady_clock::now();
    std::vector<isthmusComm_t> parts(static_cast<std::size_t>(number(0)));
    for (isthmusComm_t& part : parts) {
        if (const auto result = split(&part, 0); result != isthmusSuccess) return failed(result);
        std::vector<float> buffer(100, 1);
        if (const auto result = sumOnce(part, buffer); result != isthmusSuccess)
            return failed(result);
    }
    say("made in " + std::to_string((steady_clock::now() - begin) / milliseconds(1)));
    before.say();
    for (const isthmusComm_t part : parts) isthmusCommDestroy(part);
    return finish();
}

// exchanges: with both neighbours of a circle, sends before receives on some ranks and after them
// on others.
int exchanges() {
    for (const std::size_t bytes : {1UL, 65536UL, 6185593UL, 16UL << 20}) {
        for (int order = 0; order < 3; ++order) {
            const int next = (me + 1) % ranks;
            const int previous = (me + ranks - 1) % ranks;
            std::vector<char> out(bytes, static_cast<char>(me + 1));
            std::vector<char> in(bytes, 0);
            std::vector<isthmusRequest_t> requests(2);
            const bool sendsFirst = order == 0 || (order == 2 && me % 2 == 0);
            for (const bool sends : {sendsFirst, !sendsFirst}) {
                const isthmusResult_t result =
                    sends ? isthmusSend(out.data(), bytes, isthmusUint8, next, order, world,
                                        nullptr, &requests[0])
                          : isthmusRecv(in.data(), bytes, isthmusUint8, previous, order, nullptr,
                                        world, nullptr, &requests[1]);
                if (result != isthmusSuccess) return failed(result);
            }
            if (const auto result = isthmusWaitAll(2, requests.data(), -1);
                result != isthmusSuccess)
                return failed(result);
            if (in != std::vector<char>(bytes, static_cast<char>(previous + 1)))
                return wrong("exchange of " + std::to_string(bytes));
        }
    }
    return finish();
}

// paces CALLS: small sums one after another; says the median, and how many took a delayed
// acknowledgement's time (tcp(7): 40 ms), in thousandths.
int paces() {
    std::vector<double> took;
    for (int i = 0; i < number(0); ++i) {
        const std::size_t counts[] = {1, 350, 362, 1250, 2500};
        std::vector<float> buffer(counts[i % 5], 1);
        const auto begin = steady_clock::now();
        if (const auto result = sumOnce(world, buffer); result != isthmusSuccess)
            return failed(result);
        took.push_back(
            std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count());
    }
    std::sort(took.begin(), took.end());
    const auto late = took.end() - std::lower_bound(took.begin(), took.end(), 38000.0);
    say("median " + std::to_string(static_cast<int>(took[took.size() / 2])));
    say("late " + std::to_string(late * 1000 / static_cast<long>(took.size())));
    return finish();
}

}  // namespace

int main(int argc, char** argv) {
    ::alarm(240);  // never a stray
    const std::map<std::string, int (*)()> modes = {
        {"worlds", worlds},     {"again", again},         {"drops", drops},
        {"overlaps", overlaps}, {"ahead", ahead},         {"sizes", sizes},
        {"many", many},         {"exchanges", exchanges}, {"paces", paces}};
    if (argc < 2 || modes.count(argv[1]) == 0) return 64;
    for (int i = 2; i < argc; ++i) numbers.push_back(std::atoi(argv[i]));
    if (const isthmusResult_t result = start(); result != isthmusSuccess) return failed(result);
    return modes.at(argv[1])();
}
