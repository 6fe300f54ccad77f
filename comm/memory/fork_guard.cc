#include "comm/memory/fork_guard.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <mutex>
#include <vector>

namespace isthmus {

namespace {

struct Registered {
    std::mutex mutex;
    std::vector<ForkGuard::Mapping> mappings;  // guarded by mutex
};

void remapInChild();

Registered& registered() {
    static auto* const all = [] {
        auto* made = new Registered();  // mappings may outlive static objects
        ::pthread_atfork([] { registered().mutex.lock(); }, [] { registered().mutex.unlock(); },
                         &remapInChild);
        return made;
    }();
    return *all;
}

void remapInChild() {
    constexpr int kHow = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    for (const auto& mapping : registered().mappings) {
        const void* const mapped =
            ::mmap(mapping.base, mapping.bytes, PROT_READ | PROT_WRITE, kHow, mapping.fd, 0);
        if (mapped == MAP_FAILED) std::abort();  // better than to change the parent's memory
    }
    registered().mutex.unlock();
}

}  // namespace

void ForkGuard::add(const Mapping& mapping) {
    const std::lock_guard lock(registered().mutex);
    registered().mappings.push_back(mapping);
}

void ForkGuard::remove(const std::byte* base) {
    const std::lock_guard lock(registered().mutex);
    std::erase_if(registered().mappings,
                  [base](const Mapping& mapping) { return mapping.base == base; });
}

}  // namespace isthmus
