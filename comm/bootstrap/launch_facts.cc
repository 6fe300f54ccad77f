#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "comm/bootstrap/launch_environment.hpp"

namespace isthmus {

namespace {

/// Names, as /proc/PID/comm cuts them to 15 bytes, of processes that start all ranks of a node.
constexpr std::string_view kLaunchers[] = {
    "mpirun", "mpiexec",         "mpiexec.hydra",  "orterun",    "orted",   "prterun",
    "prted",  "hydra_pmi_proxy", "hydra_bstrap_p", "slurmstepd", "isthmus", "torchrun",
};
constexpr int kMostAncestors = 32;

struct Process {
    int id = 0;
    int parent = 0;
    std::string name;
    std::string started;  // clock ticks since boot: with the id, unique until the next boot
};

/// /proc/PID/stat: "id (name) state parent ... starttime", the name may hold anything (proc(5)).
Process processNumber(int id) {
    std::ifstream file("/proc/" + std::to_string(id) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto open = text.find('(');
    const auto close = text.rfind(')');
    Process process{id, 0, "", ""};
    if (open == std::string::npos || close == std::string::npos || close < open) return process;
    process.name = text.substr(open + 1, close - open - 1);
    std::istringstream rest(text.substr(close + 1));
    std::string state;
    rest >> state >> process.parent;
    constexpr int kFieldsBetween = 17;  // ppid is field 4, starttime field 22
    std::string skipped;
    for (int i = 0; i < kFieldsBetween; ++i) rest >> skipped;
    rest >> process.started;
    return process;
}

std::string textOf(const Process& process) {
    return process.name + " " + std::to_string(process.id) + " " + process.started;
}

/// The nearest ancestor that is a launcher; else the parent, which is one if it started the ranks.
std::string launcherProcess() {
    const Process parent = processNumber(::getppid());
    Process process = parent;
    for (int i = 0; i < kMostAncestors && process.id > 1; ++i) {
        const bool isLauncher = std::find(std::begin(kLaunchers), std::end(kLaunchers),
                                          process.name) != std::end(kLaunchers);
        if (isLauncher) return textOf(process);
        if (process.parent <= 0) break;
        process = processNumber(process.parent);
    }
    return textOf(parent);
}

}  // namespace

LaunchFacts launchFacts() {
    LaunchFacts facts;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view line = *entry;
        const auto equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        facts.variables.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
    facts.launcherProcess = launcherProcess();
    facts.userId = ::geteuid();
    return facts;
}

}  // namespace isthmus
