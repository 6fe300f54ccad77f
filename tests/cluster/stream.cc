// stream receive PORT: takes one connection, prints its bytes and seconds.
// stream send HOST PORT SECONDS: sends as fast as it can for so long.
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

int receive(int port) {
    const int listener = ::socket(AF_INET6, SOCK_STREAM, 0);
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in6 place{};
    place.sin6_family = AF_INET6;  // takes IPv4 too
    place.sin6_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(listener, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0 ||
        ::listen(listener, 1) != 0)
        return 1;
    ::alarm(30);
    const int connection = ::accept(listener, nullptr, nullptr);
    std::vector<char> piece(1 << 20);
    long long bytes = 0;
    Clock::time_point start;
    for (ssize_t got; (got = ::recv(connection, piece.data(), piece.size(), 0)) > 0;) {
        if (bytes == 0) start = Clock::now();
        bytes += got;
    }
    std::printf("%lld %.6f\n", bytes, secondsSince(start));
    return 0;
}

int send(const char* host, const char* port, double seconds) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host, port, &hints, &found) != 0) return 1;
    ::alarm(30);
    int connection = -1;
    for (int attempt = 0; attempt < 200; ++attempt) {
        connection = ::socket(found->ai_family, SOCK_STREAM, 0);
        if (::connect(connection, found->ai_addr, found->ai_addrlen) == 0) break;
        ::close(connection);
        connection = -1;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ::freeaddrinfo(found);
    if (connection < 0) return 2;
    const std::vector<char> piece(256 << 10, 'x');
    const auto start = Clock::now();
    while (secondsSince(start) < seconds) {
        if (::send(connection, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) return 3;
    }
    ::close(connection);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "receive") == 0) return receive(std::atoi(argv[2]));
    if (argc == 5 && std::strcmp(argv[1], "send") == 0)
        return send(argv[2], argv[3], std::atof(argv[4]));
    return 64;
}
