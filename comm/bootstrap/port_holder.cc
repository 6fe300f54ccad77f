#include "comm/bootstrap/port_holder.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace isthmus {

namespace {

namespace fs = std::filesystem;

/// Inodes of the listening sockets at `port`, from a table of /proc/net.
std::set<std::string> listenersIn(const char* table, std::uint16_t port) {
    constexpr std::string_view kListening = "0A";  // TCP_LISTEN of include/net/tcp_states.h
    std::set<std::string> inodes;
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // the heading
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string slot, local, remote, state, queues, timer, retries, user, timeout, inode;
        words >> slot >> local >> remote >> state >> queues >> timer >> retries >> user >>
            timeout >> inode;
        const auto colon = local.rfind(':');
        if (state != kListening || colon == std::string::npos) continue;
        unsigned found = 0;
        std::from_chars(local.data() + colon + 1, local.data() + local.size(), found, 16);
        if (found == port) inodes.insert("socket:[" + inode + "]");
    }
    return inodes;
}

bool holdsOneOf(const fs::path& process, const std::set<std::string>& sockets) {
    std::error_code error;
    for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code unreadable;
        const auto target = fs::read_symlink(entry->path(), unreadable);
        if (!unreadable && sockets.count(target.string()) > 0) return true;
    }
    return false;
}

}  // namespace

std::string portHolder(std::uint16_t port) {
    auto sockets = listenersIn("/proc/net/tcp", port);
    sockets.merge(listenersIn("/proc/net/tcp6", port));
    if (sockets.empty()) return {};
    std::error_code error;
    for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        const bool isProcess = std::all_of(
            name.begin(), name.end(), [](char letter) { return letter >= '0' && letter <= '9'; });
        if (!isProcess || !holdsOneOf(entry->path(), sockets)) continue;
        std::string program;
        std::getline(std::ifstream(entry->path() / "comm"), program);
        return "process " + name + " (" + program + ")";
    }
    return {};
}

}  // namespace isthmus
