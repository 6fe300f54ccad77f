// One rank of a job that dies, stops, waits, forks or ends at a moment of its own choice; a user's
// program on the C API. stress_program MODE [NUMBER...]: prints "ready" once all ranks have met.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <isthmus/isthmus.h>

#include "tests/faults/checked_calls.hpp"
#include "tests/faults/rank.hpp"

namespace {

using namespace rank;
using std::chrono::steady_clock;

// Elements of the longest blocks: a call of them takes some milliseconds, so that moments chosen
// by chance are mostly inside one.
constexpr std::size_t kMost = std::size_t{1} << 17;
std::size_t most = kMost;

std::vector<int> numbers;

int number(std::size_t place) {
    return place < numbers.size() ? numbers[place] : 0;
}

// CLOCK_MONOTONIC is one for all processes of this machine, in whatever namespace.
std::string nowInMicroseconds() {
    return std::to_string(steady_clock::now().time_since_epoch() / std::chrono::microseconds(1));
}

int wrong(int turn) {
    say("wrong turn " + std::to_string(turn));
    return 99;
}

int failedNow(isthmusResult_t result) {
    const std::string text = isthmusGetLastError(nullptr);
    say("failed " + std::to_string(result) + " " + text);
    say("heard " + nowInMicroseconds());
    return result;
}

/// Checked calls, up to three in flight, until one fails or `isOver` says so of a turn.
template <typename IsOver>
int callOn(unsigned seed, const IsOver& isOver) {
    std::deque<std::unique_ptr<CheckedCall>> flying;
    for (int turn = 0;; ++turn) {
        if (turn % 16 == 0) {
            // All ranks stop in the same turn: rank 0 says when.
            float flag = me == 0 && isOver() ? 1 : 0;
            std::vector<float> flags(1, flag);
            if (const auto result = sumOnce(world, flags); result != isthmusSuccess)
                return failedNow(result);
            if (flags[0] != 0) break;
        }
        flying.push_back(std::make_unique<CheckedCall>(world, me, ranks, turn, seed, most));
        isthmusResult_t result = flying.back()->begin(true);
        if (result == isthmusSuccess && flying.size() < 3) continue;
        if (result == isthmusSuccess) result = isthmusWait(flying.front()->request(), -1);
        if (result != isthmusSuccess) {
            const int status = failedNow(result);
            // Nothing that fails may still write into the buffers that go now.
            for (auto& call : flying) (void)isthmusWait(call->request(), -1);
            return status;
        }
        if (!flying.front()->isRight()) return wrong(turn);
        flying.pop_front();
    }
    for (auto& call : flying) {
        if (const auto result = isthmusWait(call->request(), -1); result != isthmusSuccess)
            return failedNow(result);
        if (!call->isRight()) return wrong(-1);
    }
    return finish();
}

// dies VICTIM MILLISECONDS SEED
int dies() {
    std::thread end;
    if (me == number(0)) {
        end = std::thread([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(number(1)));
            say("dies " + nowInMicroseconds());
            ::kill(::getpid(), SIGKILL);
        });
    }
    const int status = callOn(static_cast<unsigned>(number(2)), [] { return false; });
    if (end.joinable()) end.join();
    return status;
}

int wakePipe[2] = {-1, -1};

// Lets its parent go on when that has stopped for NUMBER 2 milliseconds (0: never): nobody else
// knows the parent by a number that holds here.
void waker() {
    const pid_t stopped = ::getppid();
    char news = 0;
    ::close(wakePipe[1]);
    if (::read(wakePipe[0], &news, 1) != 1) ::_exit(0);  // it has ended
    ::usleep(static_cast<useconds_t>(number(2)) * 1000);
    if (number(2) > 0) ::kill(stopped, SIGCONT);
    ::_exit(0);
}

// stops VICTIM MILLISECONDS FOR SEED LENGTH [MOST]
int stops() {
    if (number(5) > 0) most = static_cast<std::size_t>(number(5));
    std::thread pause;
    const auto begin = steady_clock::now();
    if (me == number(0)) {
        pause = std::thread([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(number(1)));
            say("stops " + nowInMicroseconds());
            if (::write(wakePipe[1], "x", 1) != 1) return;
            ::kill(::getpid(), SIGSTOP);
        });
    }
    const int status = callOn(static_cast<unsigned>(number(3)), [&] {
        return steady_clock::now() - begin > std::chrono::milliseconds(number(4));
    });
    if (pause.joinable()) pause.join();
    return status;
}

// turns LENGTH: sums for so many milliseconds; rank 0 says ten times a second how many it has done.
int turns() {
    const auto begin = steady_clock::now();
    auto told = begin;
    std::vector<float> buffer(65536, 0);
    for (int turn = 0;; ++turn) {
        const auto now = steady_clock::now();
        if (me == 0 && now - told >= std::chrono::milliseconds(100)) {
            say("at " + nowInMicroseconds() + " " + std::to_string(turn));
            told = now;
        }
        buffer[0] = me == 0 && now - begin > std::chrono::milliseconds(number(0)) ? 1 : 0;
        if (const auto result = sumOnce(world, buffer); result != isthmusSuccess)
            return failedNow(result);
        if (buffer[0] != 0) return finish();
    }
}

// waits MILLISECONDS: what a rank costs while it waits for rank 0 in a barrier.
int waits() {
    if (me == 0) {
        sleepFor(number(0));
        return isthmusBarrier(world, nullptr, nullptr) == isthmusSuccess ? finish() : 1;
    }
    const auto begin = steady_clock::now();
    const double before = cpuMilliseconds();
    if (const auto result = isthmusBarrier(world, nullptr, nullptr); result != isthmusSuccess)
        return failed(result);
    const double used = cpuMilliseconds() - before;
    const double took =
        std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
    say("permille " + std::to_string(static_cast<int>(used * 1000 / took)));
    say("milliseconds " + std::to_string(static_cast<int>(took)));
    return finish();
}

// leaves SEED: a barrier, and the end of the process at once, each rank at its own pace.
int leaves() {
    std::mt19937 random(static_cast<unsigned>(number(0) * 64 + me));
    ::usleep(random() % 3000);
    if (const auto result = isthmusBarrier(world, nullptr, nullptr); result != isthmusSuccess)
        return failed(result);
    ::usleep(random() % 2 == 0 ? 0 : random() % 3000);
    if (random() % 3 == 0) ::_exit(0);
    return 0;
}

// forks COUNT: while calls are in flight, children that end in one of three ways.
int forks() {
    for (int turn = 0; turn < number(0); ++turn) {
        std::vector<std::unique_ptr<CheckedCall>> calls;
        for (int i = 0; i < 4; ++i) {
            calls.push_back(
                std::make_unique<CheckedCall>(world, me, ranks, turn * 4 + i, 11, 4096));
            if (const auto result = calls.back()->begin(true); result != isthmusSuccess)
                return failed(result);
        }
        const pid_t child = ::fork();
        if (child == 0) {
            if (turn % 3 == 0) ::_exit(0);
            if (turn % 3 == 1) std::exit(0);
            std::vector<float> buffer(10, 1);
            ::_exit(sumOnce(world, buffer) == isthmusAborted ? 0 : 1);
        }
        for (auto& call : calls) {
            if (const auto result = isthmusWait(call->request(), -1); result != isthmusSuccess)
                return failed(result);
            if (!call->isRight()) return wrong(turn);
        }
        int status = -1;
        if (::waitpid(child, &status, 0) != child || status != 0) {
            say("child of turn " + std::to_string(turn) + " ended " + std::to_string(status));
            return 98;
        }
    }
    return finish();
}

}  // namespace

int main(int argc, char** argv) {
    ::alarm(120);  // never a stray
    const std::map<std::string, int (*)()> modes = {{"dies", dies},     {"stops", stops},
                                                    {"turns", turns},   {"waits", waits},
                                                    {"leaves", leaves}, {"forks", forks}};
    if (argc < 2 || modes.count(argv[1]) == 0) return 64;
    for (int i = 2; i < argc; ++i) numbers.push_back(std::atoi(argv[i]));
    if (std::string(argv[1]) == "stops") {
        if (::pipe(wakePipe) != 0) return 65;
        if (::fork() == 0) waker();
        ::close(wakePipe[0]);
    }
    if (const isthmusResult_t result = start(); result != isthmusSuccess) return failedNow(result);
    return modes.at(argv[1])();
}
