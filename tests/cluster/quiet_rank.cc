// A rank that adds, says nothing for some seconds, and adds again: quiet_rank SECONDS.
#include <isthmus/isthmus.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

bool add(isthmusComm_t comm) {
    int sum = 1;
    if (isthmusAllReduce(&sum, &sum, 1, isthmusInt32, isthmusSum, comm, nullptr, nullptr) !=
        isthmusSuccess) {
        std::fprintf(stderr, "%s\n", isthmusGetLastError(nullptr));
        return false;
    }
    return sum == 2;
}

}  // namespace

int main(int, char** arguments) {
    isthmusComm_t comm = nullptr;
    if (isthmusCommInitEnv(&comm, nullptr) != isthmusSuccess || !add(comm)) return 1;
    std::puts("added");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(arguments[1])));
    if (!add(comm)) return 1;
    return isthmusCommDestroy(comm) == isthmusSuccess ? 0 : 1;
}
