#include <cstring>
#include <mutex>
#include <unordered_set>

#include "comm/capi/handles.hpp"

using namespace isthmus;  // NOLINT: this file is the C side of that namespace

namespace {

// What users hold. The library's own blocks lie in the same arena, and no pointer of a user may end
// them.
struct Handed {
    std::mutex mutex;
    std::unordered_set<void*> pointers;  // guarded by mutex
};

Handed& handed() {
    static auto* const all = new Handed();  // outlives every thread of the program
    return *all;
}

}  // namespace

isthmusResult_t isthmusMemAlloc(void** pointer, size_t bytes) {
    if (pointer == nullptr) return resultOf(Status::invalidArgument("pointer is null"));
    *pointer = nullptr;
    const auto runtime = Runtime::ofProcess("");
    if (!runtime.ok()) return resultOf(runtime.status());
    const auto memory = (*runtime)->arena().allocatePopulated(bytes);
    if (!memory.ok()) return resultOf(memory.status());
    std::memset(*memory, 0, bytes);  // a block may have been used before
    const std::lock_guard lock(handed().mutex);
    handed().pointers.insert(*memory);
    *pointer = *memory;
    return isthmusSuccess;
}

isthmusResult_t isthmusMemFree(void* pointer) {
    if (pointer == nullptr) return isthmusSuccess;
    const auto runtime = Runtime::ofProcess("");
    if (!runtime.ok()) return resultOf(runtime.status());
    {
        const std::lock_guard lock(handed().mutex);
        if (handed().pointers.erase(pointer) == 0) {
            return resultOf(Status::invalidArgument(
                "the pointer did not come from isthmusMemAlloc, or was given back before"));
        }
    }
    (*runtime)->arena().free(pointer);
    return isthmusSuccess;
}
