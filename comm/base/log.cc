#include "comm/base/log.hpp"

#include <unistd.h>

#include <atomic>
#include <string>

namespace isthmus {

namespace {
std::atomic<int> currentLevel{static_cast<int>(LogLevel::kWarning)};
std::atomic<int> currentRank{-1};
constexpr const char* kNames[] = {"ERROR", "WARNING", "INFO", "DEBUG"};
}  // namespace

void setLogLevel(LogLevel level) {
    currentLevel.store(static_cast<int>(level), std::memory_order_relaxed);
}

void setLogRank(int rank) {
    currentRank.store(rank, std::memory_order_relaxed);
}

bool isLogged(LogLevel level) {
    return static_cast<int>(level) <= currentLevel.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view text) {
    if (!isLogged(level)) return;
    std::string line = "isthmus ";
    line += kNames[static_cast<int>(level)];
    if (const int rank = currentRank.load(std::memory_order_relaxed); rank >= 0) {
        line += " rank " + std::to_string(rank);
    }
    line += " pid " + std::to_string(::getpid()) + ": ";
    line += text;
    line += '\n';
    // One write(2) per line: lines of processes that share a terminal do not mix either.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace isthmus
