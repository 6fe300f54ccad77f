#include "benchmarks/micro/pair.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "comm/base/clock.hpp"
#include "comm/transport/ofi/ofi_device.hpp"
#include "comm/transport/ucx/ucx_device.hpp"

namespace isthmus::micro {

namespace {
constexpr int kBatch = 200;
}

void stop(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::_Exit(1);
}

Bytes Wire::swap(const Bytes& ours) const {
    if (::send(socket_, ours.data(), ours.size(), 0) < 0) stop("send");
    Bytes theirs(65536);
    const ssize_t got = ::recv(socket_, theirs.data(), theirs.size(), 0);
    if (got <= 0) stop("the other process is gone");
    theirs.resize(static_cast<std::size_t>(got));
    return theirs;
}

void runPair(const std::function<int(const Wire&, bool isFirst)>& side) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) != 0) stop("socketpair");
    const pid_t child = ::fork();
    if (child < 0) stop("fork");
    const bool isFirst = child != 0;
    ::close(ends[isFirst ? 1 : 0]);
    int code = side(Wire(ends[isFirst ? 0 : 1]), isFirst);
    std::fflush(stdout);
    int status = 0;
    if (isFirst && (::waitpid(child, &status, 0) != child || status != 0)) code = 1;
    std::_Exit(code);
}

double halfRoundTrip(int batches, const std::function<void()>& roundTrip) {
    const SteadyClock clock;
    std::vector<double> times;
    for (int batch = 0; batch < batches; ++batch) {
        const Time start = clock.now();
        for (int at = 0; at < kBatch; ++at) roundTrip();
        const std::chrono::duration<double, std::micro> taken = clock.now() - start;
        times.push_back(taken.count() / kBatch / 2);
    }
    const auto middle = times.begin() + batches / 2;
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
}

TransportChoice::Between wishedTransport(const std::string& wish) {
    const TransportChoice choice = valueOf(parseTransports(wish));
    if (choice.between.empty()) stop("expected tcp, ucx@TRANSPORTS or ofi@PROVIDER");
    return choice.between.front();
}

std::unique_ptr<RmaDevice> openDevice(const TransportChoice::Between& wish) {
    if (wish.name == "ofi") return valueOf(makeOfiDevice({wish.device, "127.0.0.1", false}));
    if (wish.name != "ucx") stop("expected ofi@PROVIDER or ucx@TRANSPORTS");
    UcxOptions options;
    if (!wish.device.empty()) options.transports = wish.device + ",self";
    std::replace(options.transports.begin(), options.transports.end(), '+', ',');
    return valueOf(makeUcxDevice(options));
}

}  // namespace isthmus::micro
