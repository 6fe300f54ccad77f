#include "comm/communicator/environment_job.hpp"

#include <mutex>

#include "comm/base/log.hpp"
#include "comm/communicator/runtime.hpp"
#include "topology/discover/net_device.hpp"
#include "topology/discover/select_interface.hpp"

namespace isthmus {

Result<Options> environmentOptions() {
    auto options = Options::fromEnvironment(allKnobs());
    if (!options.ok() || options->text("ISTHMUS_INTERFACE").empty()) return options;
    const auto devices = discoverNetDevices();
    if (!devices.ok()) return devices.status();
    const auto chosen = selectInterfaces(*devices, options->text("ISTHMUS_INTERFACE"), {});
    return chosen.ok() ? std::move(options) : Result<Options>(chosen.status());
}

std::string EnvironmentJob::towards() const {
    // Ranks of one machine that go by TCP (ISTHMUS_SHM=0, or no shared memory) need no card.
    const bool isOneNode =
        environment.isOneNode() || rendezvous == nullptr || rendezvous->localAddress.empty();
    return isOneNode ? "127.0.0.1" : rendezvous->localAddress;
}

Result<EnvironmentJob*> meetByEnvironment(std::chrono::milliseconds limit) {
    static std::mutex mutex;
    static EnvironmentJob* job = nullptr;
    const std::lock_guard lock(mutex);
    if (job != nullptr) return job;
    const auto options = environmentOptions();
    if (!options.ok()) return options.status();
    auto environment = readLaunchEnvironment(launchFacts());
    if (!environment.ok()) return environment.status();
    auto fresh = std::make_unique<EnvironmentJob>();
    fresh->environment = std::move(*environment);
    log(LogLevel::kInfo, fresh->environment.explanation);
    if (fresh->environment.ranks > 1) {
        const auto ports = parsePortRange(options->text("ISTHMUS_PORT_RANGE"));
        if (!ports.ok()) return ports.status();
        RendezvousOptions wishes;
        wishes.jobKeyDescriptor = options->text("ISTHMUS_JOB_KEY_FD");
        wishes.jobKeyFile = options->text("ISTHMUS_JOB_KEY_FILE");
        wishes.ports = *ports;
        wishes.limit = limit;
        auto met = meet(fresh->environment, wishes);
        if (!met.ok()) return met.status();
        fresh->rendezvous = std::shared_ptr<Rendezvous>(std::move(*met));
        fresh->store = std::shared_ptr<Store>(fresh->rendezvous, fresh->rendezvous->store.get());
    }
    job = fresh.release();
    return job;
}

}  // namespace isthmus
