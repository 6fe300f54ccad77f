// What a job costs that does nothing, or little: processor time over time, of all its ranks.
//
// usage: waiting idle SECONDS    the communicator is open and nothing is called
//        waiting call BYTES      one all-reduce, over a link that is slow
// Rank 0 prints one JSON line. Started as ranks (isthmus run, torchrun, mpirun, srun).
#include <isthmus/isthmus.h>
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

// After its last call an engine looks for news for some 20 ms before it rests.
constexpr auto kRest = std::chrono::milliseconds(200);

isthmusComm_t world = nullptr;

double secondsOf(clockid_t clock) {
    timespec at{};
    ::clock_gettime(clock, &at);
    return static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
}

void check(isthmusResult_t result, const char* what) {
    if (result == isthmusSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, isthmusGetLastError(nullptr));
    std::exit(1);
}

template <typename T>
void sum(T* values, std::size_t elements, isthmusDataType_t type) {
    check(isthmusAllReduce(values, values, elements, type, isthmusSum, world, nullptr, nullptr),
          "all_reduce");
}

void addUp(std::size_t bytes) {
    void* memory = nullptr;
    check(isthmusMemAlloc(&memory, bytes), "memory");
    sum(static_cast<float*>(memory), bytes / sizeof(float), isthmusFloat32);
    check(isthmusMemFree(memory), "memory");
}

}  // namespace

int main(int argc, char** argv) {
    const bool isIdle = argc == 3 && std::strcmp(argv[1], "idle") == 0;
    const bool isCall = argc == 3 && std::strcmp(argv[1], "call") == 0;
    if (!isIdle && !isCall) {
        std::fprintf(stderr, "usage: waiting idle SECONDS | waiting call BYTES\n");
        return 2;
    }
    check(isthmusCommInitEnv(&world, nullptr), "init");
    int rank = 0;
    check(isthmusCommUserRank(world, &rank), "rank");
    addUp(4096);
    std::this_thread::sleep_for(kRest);
    const double usedBefore = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
    const double start = secondsOf(CLOCK_MONOTONIC);
    if (isIdle) std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(argv[2])));
    if (isCall) addUp(std::strtoull(argv[2], nullptr, 10));
    const double seconds = secondsOf(CLOCK_MONOTONIC) - start;
    double used = secondsOf(CLOCK_PROCESS_CPUTIME_ID) - usedBefore;
    std::this_thread::sleep_for(kRest);  // nobody calls while others measure
    sum(&used, 1, isthmusFloat64);
    if (rank == 0)
        std::printf("{\"seconds\": %.3f, \"processors\": %.6f}\n", seconds, used / seconds);
    check(isthmusCommDestroy(world), "destroy");
    return 0;
}
