// Makes and destroys many communicators of 2 to 4 ranks and prints, from rank 0, one JSON line:
// seconds, and how descriptors, threads and memory of this process grew from the tenth to the last.
//
// usage: communicators COUNT, started as at least 4 ranks (isthmus run, torchrun, mpirun, srun)
#include <dirent.h>
#include <isthmus/isthmus.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

struct Usage {
    int descriptors = 0;
    int threads = 0;
    long residentKilobytes = 0;
};

int entriesOf(const char* path) {
    DIR* const folder = ::opendir(path);
    if (folder == nullptr) return -1;
    int entries = 0;
    while (::readdir(folder) != nullptr) ++entries;
    ::closedir(folder);
    return entries - 2;
}

Usage usageNow() {
    Usage usage;
    usage.descriptors = entriesOf("/proc/self/fd");
    usage.threads = entriesOf("/proc/self/task");
    std::FILE* const file = std::fopen("/proc/self/status", "r");
    char line[256];
    while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
        if (std::sscanf(line, "VmRSS: %ld kB", &usage.residentKilobytes) == 1) break;
    }
    if (file != nullptr) std::fclose(file);
    return usage;
}

void check(isthmusResult_t result, const char* what) {
    if (result == isthmusSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, isthmusGetLastError(nullptr));
    std::exit(1);
}

// The first 2, 3 or 4 ranks in turn; each communicator carries one all-reduce.
void makeUseDestroy(isthmusComm_t all, int rank, int number) {
    const int ranks = 2 + number % 3;
    isthmusComm_t part = nullptr;
    check(isthmusCommSplit(all, rank < ranks ? 0 : -1, rank, &part, nullptr), "split");
    if (part == nullptr) return;
    int sum = 1;
    check(isthmusAllReduce(&sum, &sum, 1, isthmusInt32, isthmusSum, part, nullptr, nullptr),
          "all_reduce");
    if (sum != ranks) {
        std::fprintf(stderr, "sum of %d ranks is %d\n", ranks, sum);
        std::exit(1);
    }
    check(isthmusCommDestroy(part), "destroy");
}

}  // namespace

int main(int argc, char** argv) {
    const int wanted = argc > 1 ? std::atoi(argv[1]) : 1000;
    isthmusComm_t all = nullptr;
    int rank = 0;
    check(isthmusCommInitEnv(&all, nullptr), "init");
    check(isthmusCommUserRank(all, &rank), "rank");
    Usage before;
    const auto start = std::chrono::steady_clock::now();
    for (int number = 0; number < wanted; ++number) {
        if (number == 10) before = usageNow();
        makeUseDestroy(all, rank, number);
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    const Usage after = usageNow();
    if (rank == 0) {
        std::printf(
            "{\"communicators\": %d, \"seconds\": %.3f, \"descriptors\": %d, \"threads\": %d, "
            "\"resident_kb\": %ld}\n",
            wanted, taken.count(), after.descriptors - before.descriptors,
            after.threads - before.threads, after.residentKilobytes - before.residentKilobytes);
    }
    check(isthmusCommDestroy(all), "destroy");
    return 0;
}
