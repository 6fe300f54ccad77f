// One rank of a job that something bad happens to; a user's program on the C API.
// rank_program MODE [ARGUMENT]: prints "ready" once all ranks have met, and how it went.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <isthmus/isthmus.h>

#include "tests/faults/checked_calls.hpp"
#include "tests/faults/rank.hpp"

namespace {

using namespace rank;

int argument = 0;

// Sums for ARGUMENT milliseconds (0: until something happens), with calls queued behind each.
int loop() {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<float> buffers[3] = {std::vector<float>(65536, 0), std::vector<float>(1000, 0),
                                     std::vector<float>(7, 0)};
    for (int turn = 0;; ++turn) {
        // All ranks stop in the same turn: rank 0's clock decides.
        const bool isLate = argument > 0 && std::chrono::steady_clock::now() - begin >
                                                std::chrono::milliseconds(argument);
        buffers[2][0] = me == 0 && isLate ? 1 : 0;
        isthmusRequest_t requests[3] = {};
        isthmusResult_t first = isthmusSuccess;
        for (int i = 0; i < 3 && first == isthmusSuccess; ++i) {
            first = isthmusAllReduce(buffers[i].data(), buffers[i].data(), buffers[i].size(),
                                     isthmusFloat32, isthmusSum, world, nullptr, &requests[i]);
        }
        const isthmusResult_t ended = isthmusWaitAll(3, requests, -1);
        if (first == isthmusSuccess) first = ended;
        if (first != isthmusSuccess) {
            const int status = failed(first);
            const isthmusResult_t again = sumOnce(world, buffers[1]);
            say("then " + std::to_string(again) + " " + isthmusGetLastError(nullptr));
            sleepFor(100);  // the verdicts are out
            const double used = cpuMilliseconds();
            sleepFor(300);
            say("cpu " + std::to_string(static_cast<int>(cpuMilliseconds() - used)));
            isthmusCommDestroy(world);
            return status;
        }
        if (buffers[2][0] != 0) break;
    }
    say("done");
    isthmusCommDestroy(world);
    return 0;
}

// Ends without a word to the library, with a call under way when ARGUMENT says so.
int leave() {
    auto* const kept = new std::vector<float>(1 << 20, 1);  // a call's buffer outlives it
    isthmusRequest_t request = nullptr;
    if (argument == 1) {
        isthmusAllReduce(kept->data(), kept->data(), kept->size(), isthmusFloat32, isthmusSum,
                         world, nullptr, &request);
    }
    say("done");
    if (argument == 2) ::_exit(0);
    if (argument == 3) std::exit(0);
    return 0;
}

int forkChild() {
    const pid_t child = ::fork();
    if (child == 0) {
        std::vector<float> buffer(10, 1);
        const isthmusResult_t result = sumOnce(world, buffer);
        const std::string text = isthmusGetLastError(nullptr);
        isthmusCommDestroy(world);
        isthmusComm_t mine = nullptr;
        const isthmusResult_t made = isthmusCommInitEnv(&mine, nullptr);
        say("child " + std::to_string(result) + " " + text);
        say("child made " + std::to_string(made) + " " + isthmusGetLastError(nullptr));
        std::exit(0);  // with all that the library does at exit
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    say("child ended " + std::to_string(status));
    for (int i = 0; i < 100; ++i) {
        std::vector<float> buffer(5000, 1);
        if (const auto result = sumOnce(world, buffer); result != isthmusSuccess)
            return failed(result);
    }
    return finish();
}

// ARGUMENT communicators, one after another; says what grew.
int many() {
    const auto round = [] {
        isthmusComm_t part = nullptr;
        isthmusResult_t result = isthmusCommSplit(world, me % 2, 0, &part, nullptr);
        if (result != isthmusSuccess) return result;
        std::vector<float> buffer(100, 1);
        result = sumOnce(part, buffer);
        isthmusCommDestroy(part);
        return result;
    };
    for (int i = 0; i < argument / 3; ++i) {
        if (const auto result = round(); result != isthmusSuccess) return failed(result);
    }
    const int fds = entriesOf("/proc/self/fd");
    const int threads = entriesOf("/proc/self/task");
    const long kilobytes = residentKilobytes();
    for (int i = 0; i < argument; ++i) {
        if (const auto result = round(); result != isthmusSuccess) return failed(result);
    }
    say("grew fds " + std::to_string(entriesOf("/proc/self/fd") - fds) + " threads " +
        std::to_string(entriesOf("/proc/self/task") - threads));
    say("kilobytes " + std::to_string(residentKilobytes() - kilobytes));
    return finish();
}

// ARGUMENT calls of random kind, root and size with nothing between them, each checked.
int mixed() {
    std::mt19937 random(2024);
    std::mt19937 pauses(static_cast<unsigned>(me));
    const std::size_t sizes[] = {1, 2, 3, 64, 4096};
    const auto size = static_cast<std::size_t>(ranks);
    for (int turn = 0; turn < argument; ++turn) {
        const unsigned kind = random() % 6;
        const int root = static_cast<int>(random() % size);
        const std::size_t n = sizes[random() % 5];
        if (me == 1 && pauses() % 64 == 0) ::usleep(pauses() % 500);
        std::vector<float> in(n * size);
        std::vector<float> out(n * size, -1);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = valueOf(me, i, turn);
        const auto sum = [&](std::size_t i) {
            float total = 0;
            for (int rank = 0; rank < ranks; ++rank) total += valueOf(rank, i, turn);
            return total;
        };
        isthmusResult_t result = isthmusSuccess;
        std::vector<float> wanted;
        switch (kind) {
        case 0:
            result = isthmusBroadcast(in.data(), out.data(), n, isthmusFloat32, root, world,
                                      nullptr, nullptr);
            for (std::size_t i = 0; i < n; ++i) wanted.push_back(valueOf(root, i, turn));
            break;
        case 1:
            result = isthmusAllReduce(in.data(), out.data(), n, isthmusFloat32, isthmusSum, world,
                                      nullptr, nullptr);
            for (std::size_t i = 0; i < n; ++i) wanted.push_back(sum(i));
            break;
        case 2:
            result = isthmusReduce(in.data(), out.data(), n, isthmusFloat32, isthmusSum, root,
                                   world, nullptr, nullptr);
            for (std::size_t i = 0; i < n && me == root; ++i) wanted.push_back(sum(i));
            break;
        case 3:
            result = isthmusBarrier(world, nullptr, nullptr);
            break;
        case 4:
            result =
                isthmusAllGather(in.data(), out.data(), n, isthmusFloat32, world, nullptr, nullptr);
            for (std::size_t i = 0; i < n * size; ++i)
                wanted.push_back(valueOf(static_cast<int>(i / n), i % n, turn));
            break;
        default:
            result =
                isthmusAlltoAll(in.data(), out.data(), n, isthmusFloat32, world, nullptr, nullptr);
            for (std::size_t i = 0; i < n * size; ++i) {
                wanted.push_back(valueOf(static_cast<int>(i / n),
                                         static_cast<std::size_t>(me) * n + i % n, turn));
            }
        }
        if (result != isthmusSuccess) return failed(result);
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (out[i] == (i < wanted.size() ? wanted[i] : -1)) continue;
            say("wrong turn " + std::to_string(turn) + " kind " + std::to_string(kind) +
                " elements " + std::to_string(n) + " index " + std::to_string(i));
            return 99;
        }
    }
    return finish();
}

// All-reduces of ARGUMENT MiB in ordinary and in shared memory, checked.
int big() {
    const std::size_t count = static_cast<std::size_t>(argument) << 18;
    std::vector<float> ordinary(count, static_cast<float>(me + 1));
    if (const auto result = sumOnce(world, ordinary); result != isthmusSuccess)
        return failed(result);
    const auto wanted = static_cast<float>(ranks * (ranks + 1)) / 2;
    for (const float value : ordinary) {
        if (value != wanted) return 99;
    }
    return finish();
}

}  // namespace

int main(int argc, char** argv) {
    ::alarm(60);  // never a stray
    const std::map<std::string, int (*)()> modes = {
        {"loop", loop}, {"once", finish}, {"leave", leave}, {"fork", forkChild},
        {"many", many}, {"mixed", mixed}, {"big", big}};
    if (argc < 2 || modes.count(argv[1]) == 0) return 64;
    if (argc > 2) argument = std::atoi(argv[2]);
    if (const isthmusResult_t result = start(); result != isthmusSuccess) return failed(result);
    return modes.at(argv[1])();
}
