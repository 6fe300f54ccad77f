#include "tools/cli/launch.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "tools/cli/attendants.hpp"
#include "tools/cli/exit_code.hpp"
#include "tools/cli/job.hpp"
#include "tools/cluster/addresses.hpp"
#include "tools/cluster/cluster.hpp"
#include "tools/cluster/spawn.hpp"

namespace isthmus::cli {
namespace {

constexpr int kNodeMasterPort = 29500;  // torchrun's default; a fresh node has it free

/// A port that nobody holds just now on the loopback of this node.
Result<int> freePort() {
    const UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof place;
    auto* address = reinterpret_cast<sockaddr*>(&place);
    if (!probe.isOpen() || ::bind(probe.get(), address, bytes) != 0 ||
        ::getsockname(probe.get(), address, &bytes) != 0) {
        return cluster::systemError("find a free port");
    }
    return static_cast<int>(ntohs(place.sin_port));
}

/// The nodes of a launch: none, a cluster of its own that ends with it, or one that is up.
class LaunchNodes {
public:
    Status open(const LaunchPlan& plan, const std::string& ownName) {
        if (!plan.isEmulated) return {};
        Result<cluster::StateStore> store = cluster::StateStore::open();
        if (!store.ok()) return store.status();
        store_ = std::make_unique<cluster::StateStore>(std::move(*store));
        if (plan.clusterName.empty()) {
            auto made = cluster::makeCluster(
                *store_, {ownName, plan.nodes.text(), plan.nodes.nodes(), plan.mtu, plan.rates, 0});
            if (!made.ok()) return made.status();
            made_ = std::make_unique<cluster::MadeCluster>(std::move(*made));
            state_ = made_->state;
        } else {
            const auto state = store_->load(plan.clusterName);
            if (!state.ok()) return state.status();
            state_ = *state;
        }
        if (plan.nodes.nodes() > static_cast<int>(state_.nodes.size())) {
            return Status::invalidArgument(fmt::format("nodes {}: cluster {} has {} nodes only",
                                                       plan.nodes.text(), state_.name,
                                                       state_.nodes.size()));
        }
        for (int node = 0; node < plan.nodes.nodes(); ++node) {
            auto inside = cluster::Namespaces::of(state_.nodes[static_cast<std::size_t>(node)].init,
                                                  cluster::Namespaces::Which::kAll);
            if (!inside.ok()) return inside.status();
            inside_.push_back(std::move(*inside));
        }
        for (const std::string& limit : state_.limits)
            fmt::print(stderr, "isthmus run: limited here: {}\n", limit);
        return {};
    }

    ~LaunchNodes() {
        if (made_ != nullptr) (void)cluster::destroyCluster(*store_, state_);
    }

    const std::vector<cluster::Namespaces>& inside() const { return inside_; }
    const cluster::ProcessIdentity& keeper() const { return state_.keeper; }
    int cards() const {
        return state_.nodes.empty() ? 0 : static_cast<int>(state_.nodes.front().rates.cards.size());
    }

private:
    std::unique_ptr<cluster::StateStore> store_;
    std::unique_ptr<cluster::MadeCluster> made_;
    cluster::ClusterState state_;
    std::vector<cluster::Namespaces> inside_;
};

Result<StoreHost> openStore(const LaunchPlan& plan, const LaunchNodes& nodes, const JobKey& key) {
    if (!plan.isEmulated) return startStoreHost("127.0.0.1", key, nullptr);
    const auto bridge =
        cluster::Namespaces::of(nodes.keeper(), cluster::Namespaces::Which::kNetworkOnly);
    if (!bridge.ok()) return bridge.status();
    return startStoreHost(cluster::kBridgeAddress, key, &*bridge);
}

Result<MeetingPlace> arrange(const LaunchPlan& plan, const JobKey& key) {
    MeetingPlace meeting;
    const Result<JobKey> name = JobKey::random();
    if (!name.ok()) return name.status();
    meeting.runId = name->hex().substr(0, 32);
    const Result<int> keyFd = key.toInheritableDescriptor();
    if (!keyFd.ok()) return keyFd.status();
    meeting.jobKeyFd = *keyFd;
    if (plan.isEmulated) {
        meeting.masterAddress = cluster::addressOfNode(0);
        meeting.masterPort = kNodeMasterPort;
        return meeting;
    }
    const Result<int> port = freePort();
    if (!port.ok()) return port.status();
    meeting.masterAddress = "127.0.0.1";
    meeting.masterPort = *port;
    return meeting;
}

}  // namespace

int launch(LaunchPlan plan) {
    constexpr const char* kName = "run";
    const Result<JobKey> key = JobKey::random();
    if (!key.ok()) return report(kName, key.status());
    Result<MeetingPlace> meeting = arrange(plan, *key);
    if (!meeting.ok()) return report(kName, meeting.status());
    const UniqueFd keyFd(meeting->jobKeyFd);
    const bool makesCluster = plan.isEmulated && plan.clusterName.empty();
    const std::string clusterName =
        makesCluster ? fmt::format("run-{}", ::getpid()) : std::string();

    const Result<Attendant> watcher = startWatcher(meeting->runId, clusterName);
    if (!watcher.ok()) return report(kName, watcher.status());
    Job job(plan, *meeting);  // from here on signals wait until it looks at them
    LaunchNodes nodes;
    if (const Status opened = nodes.open(plan, clusterName); !opened.ok())
        return report(kName, opened);
    meeting->cards = nodes.cards();
    const Result<StoreHost> store = openStore(plan, nodes, *key);
    if (!store.ok()) return report(kName, store.status());
    meeting->store = store->place;
    if (const Status started = job.start(nodes.inside()); !started.ok()) {
        const int code = report(kName, started);
        const bool isTheProgram = started.code() == Status::Code::kInvalidArgument;
        return isTheProgram ? cluster::exitCodeOfFailure(plan.command[0]) : code;
    }
    return job.supervise();
}

}  // namespace isthmus::cli
