#include "tests/faults/rank.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace rank {

isthmusComm_t world = nullptr;
int me = 0;
int ranks = 1;

void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

int failed(isthmusResult_t result) {
    say("failed " + std::to_string(result) + " " + isthmusGetLastError(nullptr));
    return result;
}

double cpuMilliseconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto of = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

long residentKilobytes() {
    long pages = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
        std::fclose(file);
    }
    return pages * (::sysconf(_SC_PAGESIZE) / 1024);
}

int entriesOf(const char* folder) {
    int count = 0;
    DIR* open = ::opendir(folder);
    while (open != nullptr && ::readdir(open) != nullptr) ++count;
    ::closedir(open);
    return count;
}

void sleepFor(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

isthmusResult_t sumOnce(isthmusComm_t comm, std::vector<float>& buffer) {
    return isthmusAllReduce(buffer.data(), buffer.data(), buffer.size(), isthmusFloat32, isthmusSum,
                            comm, nullptr, nullptr);
}

isthmusResult_t start() {
    const isthmusResult_t made = isthmusCommInitEnv(&world, nullptr);
    if (made != isthmusSuccess) return made;
    isthmusCommUserRank(world, &me);
    isthmusCommCount(world, &ranks);
    std::vector<float> buffer(1000, 1);
    const isthmusResult_t summed = sumOnce(world, buffer);
    if (summed == isthmusSuccess) say("ready");
    return summed;
}

int finish() {
    say("done");
    return isthmusCommDestroy(world);
}

}  // namespace rank
