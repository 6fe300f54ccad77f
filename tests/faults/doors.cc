#include "tests/faults/doors.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace isthmus::test {

std::set<std::pair<std::string, int>> doorsOf(pid_t pid) {
    std::set<std::string> sockets;
    const std::string folder = "/proc/" + std::to_string(pid);
    if (DIR* open = ::opendir((folder + "/fd").c_str())) {
        while (const dirent* entry = ::readdir(open)) {
            char target[64] = {};
            const std::string link = folder + "/fd/" + entry->d_name;
            if (::readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
            const std::string text = target;
            if (text.rfind("socket:[", 0) == 0) sockets.insert(text.substr(8, text.size() - 9));
        }
        ::closedir(open);
    }
    std::set<std::pair<std::string, int>> doors;
    std::ifstream table(folder + "/net/tcp");
    std::string line;
    std::getline(table, line);
    while (std::getline(table, line)) {
        std::istringstream words(line);
        std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
        words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
            timeout >> inode;
        if (state != "0A" || sockets.count(inode) == 0) continue;
        in_addr address{static_cast<in_addr_t>(std::stoul(local.substr(0, 8), nullptr, 16))};
        char text[INET_ADDRSTRLEN] = {};
        ::inet_ntop(AF_INET, &address, text, sizeof text);
        doors.emplace(text, std::stoi(local.substr(9), nullptr, 16));
    }
    return doors;
}

int knock(const std::string& host, int port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, host.c_str(), &place.sin_addr);
    const timeval limit{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0) return fd;
    ::close(fd);
    return -1;
}

int descriptorsOf(pid_t pid) {
    int count = 0;
    if (DIR* open = ::opendir(("/proc/" + std::to_string(pid) + "/fd").c_str())) {
        while (::readdir(open) != nullptr) ++count;
        ::closedir(open);
    }
    return count;
}

long kilobytesOf(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    long kilobytes = 0;
    for (std::string word; status >> word;) {
        if (word == "RssAnon:") status >> kilobytes;
    }
    return kilobytes;
}

}  // namespace isthmus::test
