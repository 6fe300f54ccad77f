// The Runtime of a process: what its environment asks for and its machine has.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <random>

#include "comm/base/bit_rate.hpp"
#include "comm/base/digest.hpp"
#include "comm/base/log.hpp"
#include "comm/bootstrap/authenticate.hpp"
#include "comm/bootstrap/host_identity.hpp"
#include "comm/bootstrap/job_key.hpp"
#include "comm/bootstrap/launch_environment.hpp"
#include "comm/bootstrap/rendezvous.hpp"
#include "comm/communicator/runtime.hpp"
#include "comm/transport/ofi/ofi_device.hpp"
#include "comm/transport/rma/rma_transport.hpp"
#include "comm/transport/shm/shm_transport.hpp"
#include "comm/transport/tcp/tcp_transport.hpp"
#include "comm/transport/transport_choice.hpp"
#include "comm/transport/ucx/ucx_device.hpp"
#include "topology/discover/container_limits.hpp"
#include "topology/discover/net_device.hpp"
#include "topology/discover/select_interface.hpp"

namespace isthmus {

namespace {

Result<LogLevel> logLevelOf(const std::string& text) {
    constexpr std::array<std::string_view, 4> kNames = {"error", "warning", "info", "debug"};
    const auto at = std::find(kNames.begin(), kNames.end(), text);
    if (at == kNames.end()) {
        return Status::configuration("ISTHMUS_LOG is \"" + text +
                                     "\", expected error, warning, info or debug");
    }
    return static_cast<LogLevel>(at - kNames.begin());
}

// Processors that this process may use: its affinity mask, less what its container allows.
int allowedCpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    int cpus = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    const ContainerLimits limits = discoverContainerLimits();
    if (limits.processors.isKnown()) {
        cpus = std::min(cpus, static_cast<int>(std::floor(limits.processors.value)));
    }
    return std::max(cpus, 1);
}

std::size_t lastLevelCacheBytes() {
    const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{32} << 20;
}

ProcessId newProcessId() {
    std::random_device source;
    const auto word = [&] { return (static_cast<std::uint64_t>(source()) << 32) | source(); };
    return {word(), word()};
}

Result<JobKey> keyOfProcess(const Options& options) {
    auto key = readJobKey(options.text("ISTHMUS_JOB_KEY_FD"), options.text("ISTHMUS_JOB_KEY_FILE"));
    if (!key.ok()) return key.status();
    if (key->has_value()) return **key;
    // No launcher made one: peers learn this process's own key together with its address, through
    // the store where the ranks meet.
    return JobKey::random();
}

/// What the drivers of these cards say that they carry together; 0: one does not say.
double toldBy(const std::vector<NetDevice>& devices, const std::vector<InterfaceChoice>& cards) {
    double bits = 0;
    for (const InterfaceChoice& card : cards) {
        const auto device =
            std::find_if(devices.begin(), devices.end(),
                         [&](const NetDevice& candidate) { return candidate.name == card.device; });
        if (device == devices.end() || !device->bitsPerSecond.isKnown()) return 0;
        bits += static_cast<double>(device->bitsPerSecond.value);
    }
    return bits;
}

Result<double> lineRateOf(const std::string& text, double told) {
    if (text == "none") return 0.0;
    if (text == "auto") return told;
    if (const auto bits = bitsPerSecondOf(text)) return *bits;
    return Status::configuration("ISTHMUS_LINE_RATE is \"" + text +
                                 "\", expected such as 10gbit, 2.5gbit or 500mbit, auto or none");
}

Result<RackWord> rackOf(const Options& options) {
    RackWord rack;
    rack.name = options.text("ISTHMUS_RACK");
    const std::string& rate = options.text("ISTHMUS_RACK_RATE");
    if (rate == "none") return rack;
    const auto bits = bitsPerSecondOf(rate);
    if (!bits) {
        return Status::configuration("ISTHMUS_RACK_RATE is \"" + rate +
                                     "\", expected such as 40gbit or none");
    }
    rack.bitsPerSecond = static_cast<std::uint64_t>(*bits);
    return rack;
}

bool isLoopback(const std::vector<InterfaceChoice>& cards) {
    return std::all_of(cards.begin(), cards.end(),
                       [](const InterfaceChoice& card) { return isLoopbackAddress(card.address); });
}

/// Of whoever this process reaches by loopback; 0: not known.
std::uint64_t hostId() {
    const auto host = thisHost();
    if (!host.ok()) return 0;
    return Digest().add(host->bootId).add(host->networkNamespace).value();
}

/// The cards that lead there, and what was asked of connections. `wish`: as ISTHMUS_INTERFACE.
Result<TcpOptions> chooseCards(Runtime& runtime, const std::string& wish,
                               const std::string& towards) {
    const auto devices = discoverNetDevices();
    if (!devices.ok()) return devices.status();
    const auto environment = readLaunchEnvironment(launchFacts());
    // A node's own name may mean loopback there; others that are known of are not reached by it.
    const bool misleads = environment.ok() && environment->localRanks > 0 &&
                          !environment->isOneNode() && isLoopbackAddress(towards);
    const auto chosen = selectInterfaces(*devices, wish, {misleads ? "" : towards, false});
    if (!chosen.ok()) return chosen.status();
    runtime.setHost({hostId(), isLoopback(*chosen)});
    const auto rate =
        lineRateOf(runtime.options().text("ISTHMUS_LINE_RATE"), toldBy(*devices, *chosen));
    if (!rate.ok()) return rate.status();
    runtime.setLineBitsPerSecond(*rate);
    const auto ports = parsePortRange(runtime.options().text("ISTHMUS_PORT_RANGE"));
    if (!ports.ok()) return ports.status();
    if (environment.ok()) ISTHMUS_TRY(checkPorts(*ports, *environment));
    TcpOptions tcp = TcpOptions::fromOptions(runtime.options());
    for (const InterfaceChoice& card : *chosen) tcp.cards.push_back({card.device, card.address});
    tcp.ports = *ports;
    return tcp;
}

std::string withCommas(std::string list) {
    std::replace(list.begin(), list.end(), '+', ',');
    return list;
}

Result<std::unique_ptr<RmaDevice>> openUcx(const Runtime& runtime,
                                           const TransportChoice::Between& choice,
                                           const std::string& card) {
    UcxOptions ucx;
    ucx.library = runtime.options().text("ISTHMUS_UCX_LIBRARY");
    if (!choice.device.empty()) ucx.transports = withCommas(choice.device) + ",self";
    if (choice.device == "tcp") ucx.devices = card;
    return makeUcxDevice(ucx);
}

Result<std::unique_ptr<RmaDevice>> openDevice(const Runtime& runtime,
                                              const TransportChoice::Between& choice,
                                              const TcpOptions::Card& card) {
    if (choice.name == "ofi") return makeOfiDevice({choice.device, card.address, false});
    return openUcx(runtime, choice, card.interfaceName);
}

/// Over a card that writes into the memory of others.
Result<std::unique_ptr<Transport>> openRma(Runtime& runtime, const JobKey& key,
                                           const TransportChoice::Between& choice,
                                           const TcpOptions& tcp) {
    auto device = openDevice(runtime, choice, tcp.cards.front());
    if (!device.ok()) return device.status();
    log(LogLevel::kInfo, "between nodes: " + (*device)->describe());
    RmaOptions rma;
    rma.door = tcp;
    rma.door.cards.resize(1);  // peers meet there, and nothing else
    Engine& engine = runtime.engine();
    return makeRmaTransport(std::move(*device), std::move(rma), runtime.self(), key,
                            engine.sleepSet(), engine);
}

Status addBetween(Runtime& runtime, const JobKey& key, const TransportChoice::Between& choice,
                  const TcpOptions& tcp) {
    Engine& engine = runtime.engine();
    const bool isTcp = choice.name == "tcp";
    auto transport = isTcp ? makeTcpTransport(tcp, runtime.self(), key, engine.sleepSet(), engine)
                           : openRma(runtime, key, choice, tcp);
    if (!transport.ok()) return transport.status();
    if (isTcp) runtime.setCards(static_cast<int>(tcp.cards.size()));
    runtime.addTransport(std::move(*transport), Runtime::Reach::kBetweenNodes);
    return {};
}

/// Each that can be had; at least one.
Status addAllBetween(Runtime& runtime, const JobKey& key, const TransportChoice& choice,
                     const std::string& towards) {
    Status first;
    for (const TransportChoice::Between& each : choice.between) {
        const bool namesCards = each.name == "tcp" && !each.device.empty();
        const Result<TcpOptions> tcp = chooseCards(
            runtime,
            namesCards ? withCommas(each.device) : runtime.options().text("ISTHMUS_INTERFACE"),
            towards);
        if (!tcp.ok()) return tcp.status();
        const Status added = addBetween(runtime, key, each, *tcp);
        if (added.ok()) continue;
        if (first.ok()) first = added;
        runtime.addMissing({each.name, added.what()});
    }
    return runtime.betweenNodes().empty() ? first : Status();
}

Status addShm(Runtime& runtime, const JobKey& key, const TransportChoice& choice) {
    if (!choice.sharesMemory || !runtime.options().flag("ISTHMUS_SHM")) return {};
    Engine& engine = runtime.engine();
    auto transport =
        makeShmTransport({}, runtime.self(), key, engine.sleepSet(), engine, runtime.arena());
    if (!transport.ok()) {
        log(LogLevel::kWarning,
            "no shared memory inside the node, messages instead: " + transport.status().what());
        return {};
    }
    runtime.addTransport(std::move(*transport), Runtime::Reach::kInsideNode);
    return {};
}

Result<std::unique_ptr<Runtime>> makeForProcess(const std::string& towards) {
    auto options = Options::fromEnvironment(allKnobs());
    if (!options.ok()) return options.status();
    const auto level = logLevelOf(options->text("ISTHMUS_LOG"));
    if (!level.ok()) return level.status();
    setLogLevel(*level);
    for (const auto& unknown : options->unknown()) {
        log(LogLevel::kWarning,
            "no option is called " + unknown.name +
                (unknown.nearest.empty() ? "" : "; did you mean " + unknown.nearest + "?"));
    }
    ISTHMUS_TRY(prepareAuthentication());
    const auto key = keyOfProcess(*options);
    if (!key.ok()) return key.status();
    static const SteadyClock clock;
    EngineConfig engine;
    engine.self = newProcessId();
    engine.clock = &clock;
    engine.cacheBytes = lastLevelCacheBytes();
    engine.cpus = allowedCpus();
    Result<RackWord> rack = rackOf(*options);
    if (!rack.ok()) return rack.status();
    const auto choice = parseTransports(options->text("ISTHMUS_TRANSPORTS"));
    if (!choice.ok()) return choice.status();
    const bool onlySums = options->flag("ISTHMUS_ONLY_SUMS");
    return Runtime::make(std::move(*options), engine, [&](Runtime& runtime) {
        runtime.setOnlySums(onlySums);
        runtime.setRack(std::move(*rack));
        ISTHMUS_TRY(addShm(runtime, *key, *choice));
        return addAllBetween(runtime, *key, *choice, towards);
    });
}

}  // namespace

Result<Runtime*> Runtime::ofProcess(const std::string& towards) {
    static std::mutex mutex;
    static Runtime* made = nullptr;  // never destroyed: threads of the program may outlive main()
    const std::lock_guard lock(mutex);
    if (Engine::isForked() && made != nullptr) {
        return Status::aborted(
            "used after fork: start the child with exec to use the library in it");
    }
    if (made == nullptr) {
        auto runtime = makeForProcess(towards);
        if (!runtime.ok()) return runtime.status();
        made = runtime->release();
        std::atexit([] {
            if (Engine::isForked()) return;
            Engine& engine = made->engine();
            engine.farewell(engine.now() + std::chrono::milliseconds(500));
        });
    }
    return made;
}

}  // namespace isthmus
