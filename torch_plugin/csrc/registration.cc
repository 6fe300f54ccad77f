#include <torch/library.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>

#include "torch_plugin/csrc/backend.hpp"
#include "torch_plugin/csrc/cpu_allocator.hpp"
#include "torch_plugin/csrc/executor.hpp"

namespace isthmus::glue {
namespace {

using ProcessGroup = c10d::ProcessGroup;

/// Puts our backend into `group` for host tensors. Operators instead of Python bindings: the
/// library then needs no Python symbol and one file serves every Python of this torch.
void attach(const c10::intrusive_ptr<ProcessGroup>& group, std::int64_t timeoutMs, std::string name,
            std::vector<std::int64_t> globalRanks, bool isDeterministic, bool roundsOnce) {
    watchForks();
    GroupSettings settings;
    settings.name = std::move(name);
    settings.timeout = std::chrono::milliseconds(timeoutMs);
    settings.globalRanks.assign(globalRanks.begin(), globalRanks.end());
    settings.isDeterministic = isDeterministic;
    settings.roundsOnce = roundsOnce;
    const c10::intrusive_ptr<c10d::Backend> backend = c10::make_intrusive<Backend>(
        group->getStore(), group->getRank(), group->getSize(), std::move(settings));
    group->setBackend(c10::kCPU, ProcessGroup::BackendType::CUSTOM, backend);
}

/// For the end of the program, before Python's is: once it returns true, no thread of ours touches
/// a tensor any more. False while a callback on a future runs; call it again.
bool shutdownAll(std::int64_t graceMs) {
    if (isForkedChild()) return true;
    const std::chrono::milliseconds grace(graceMs);
    Communicator::closeAll(grace);
    return Executor::instance().stop(grace);
}

std::string builtFor() {
    return TORCH_VERSION;
}

std::string libraryVersion() {
    int code = 0;
    isthmusGetVersion(&code);
    return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
           std::to_string(code % 100);
}

}  // namespace
}  // namespace isthmus::glue

// One library per torch; the name of the operators carries no version because only one can be
// loaded.
TORCH_LIBRARY(isthmus, library) {
    library.def(
        "attach(__torch__.torch.classes.c10d.ProcessGroup group, int timeout_ms, str name, "
        "int[] global_ranks, bool deterministic, bool one_rounding) -> ()",
        &isthmus::glue::attach);
    library.def("shutdown_all(int grace_ms) -> bool", &isthmus::glue::shutdownAll);
    library.def("share_cpu_tensors(int least_bytes) -> ()", &isthmus::glue::shareCpuTensors);
    library.def("built_for() -> str", &isthmus::glue::builtFor);
    library.def("library_version() -> str", &isthmus::glue::libraryVersion);
}
