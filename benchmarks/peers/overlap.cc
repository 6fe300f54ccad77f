// Overlap of all-reduces that have a request with computing, in arena buffers, as overlap.h
// measures it.
//
// usage: overlap BYTES:WARMUPS:CALLS..., started as ranks (isthmus run, torchrun, mpirun, srun)
#include "benchmarks/peers/overlap.h"

#include <isthmus/isthmus.h>

#include <cstdlib>
#include <random>

namespace {

isthmusComm_t world = nullptr;
isthmusRequest_t request = nullptr;

void check(isthmusResult_t result, const char* what) {
    if (result == isthmusSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, isthmusGetLastError(nullptr));
    std::exit(1);
}

void begin(const float* send, float* recv, std::size_t elements) {
    check(isthmusAllReduce(send, recv, elements, isthmusFloat32, isthmusSum, world, nullptr,
                           &request),
          "all_reduce");
}

void finish() {
    check(isthmusWait(&request, -1), "wait");
}

void barrier() {
    check(isthmusBarrier(world, nullptr, nullptr), "barrier");
}

void add(double* values, int count) {
    check(isthmusAllReduce(values, values, static_cast<std::size_t>(count), isthmusFloat64,
                           isthmusSum, world, nullptr, nullptr),
          "sum");
}

bool measure(const OverlapLibrary& library, const char* word) {
    unsigned long long bytes = 0;
    int warmups = 0;
    int calls = 0;
    if (std::sscanf(word, "%llu:%d:%d", &bytes, &warmups, &calls) != 3 || calls < 1) return false;
    const std::size_t elements = bytes / sizeof(float);
    void* memory[2] = {nullptr, nullptr};
    std::minstd_rand random(static_cast<unsigned>(library.rank) + 1);
    for (void*& buffer : memory) {
        check(isthmusMemAlloc(&buffer, bytes), "memory");
        for (std::size_t index = 0; index < elements; ++index)
            static_cast<float*>(buffer)[index] = static_cast<float>(random() % 1024) - 512;
    }
    const OverlapTimes times =
        overlap_measure(&library, static_cast<const float*>(memory[0]),
                        static_cast<float*>(memory[1]), elements, warmups, calls);
    if (library.rank == 0) overlap_print(&times, bytes);
    for (void* buffer : memory) check(isthmusMemFree(buffer), "memory");
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    OverlapLibrary library = {0, 0, begin, finish, barrier, add};
    check(isthmusCommInitEnv(&world, nullptr), "init");
    check(isthmusCommUserRank(world, &library.rank), "rank");
    check(isthmusCommCount(world, &library.ranks), "ranks");
    bool went = argc > 1;
    for (int index = 1; index < argc && went; ++index) went = measure(library, argv[index]);
    if (!went && library.rank == 0) std::fprintf(stderr, "usage: overlap BYTES:WARMUPS:CALLS...\n");
    check(isthmusCommDestroy(world), "destroy");
    return went ? 0 : 2;
}
