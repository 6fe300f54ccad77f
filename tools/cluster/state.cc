#include "tools/cluster/state.hpp"

#include <dirent.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "comm/base/knobs.hpp"

namespace isthmus::cluster {
namespace {

using nlohmann::json;

json toJson(const ProcessIdentity& process) {
    return {{"pid", process.pid}, {"start_ticks", process.startTicks}};
}

ProcessIdentity processFrom(const json& value) {
    return {value.value("pid", 0), value.value("start_ticks", std::uint64_t{0})};
}

json toJson(const ClusterState& state) {
    json nodes = json::array();
    for (const NodeState& node : state.nodes) {
        nodes.push_back({{"init", toJson(node.init)}, {"rates", node.rates.text()}});
    }
    return {{"name", state.name},     {"shape", state.shape}, {"keeper", toJson(state.keeper)},
            {"ready", state.isReady}, {"mtu", state.mtu},     {"nodes", nodes},
            {"limits", state.limits}};
}

/// The file is ours, yet a crash may have cut it: every field has a default.
ClusterState stateFrom(const std::string& text, const std::string& name) {
    const json value = json::parse(text, nullptr, false);
    ClusterState state;
    state.name = name;
    if (!value.is_object()) return state;
    try {
        state.shape = value.value("shape", "");
        state.keeper = processFrom(value.value("keeper", json::object()));
        state.isReady = value.value("ready", false);
        state.mtu = value.value("mtu", 1500);
        state.limits = value.value("limits", std::vector<std::string>());
        for (const json& node : value.value("nodes", json::array())) {
            const auto rates = CardRates::parse(node.value("rates", "none"));
            state.nodes.push_back({processFrom(node.value("init", json::object())),
                                   rates.ok() ? *rates : CardRates()});
        }
    } catch (const json::exception&) {  // a field of a wrong type: as if the file had ended there
    }
    return state;
}

/// True when `path` is a folder of ours that we may write to, made if need be.
bool canUse(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return false;
    return S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
           ::access(path.c_str(), W_OK) == 0;
}

std::vector<std::string> namesIn(const std::string& folder) {
    std::vector<std::string> names;
    DIR* listing = ::opendir(folder.c_str());
    if (listing == nullptr) return names;
    while (const dirent* entry = ::readdir(listing)) {
        const std::string name = entry->d_name;
        if (name.size() > 5 && name.ends_with(".json"))
            names.push_back(name.substr(0, name.size() - 5));
    }
    ::closedir(listing);
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

bool isClusterName(const std::string& name) {
    const auto isGood = [](char letter) {
        return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ||
               letter == '_' || letter == '.';
    };
    return !name.empty() && name.size() <= 64 && name[0] != '.' &&
           std::all_of(name.begin(), name.end(), isGood);
}

Result<StateStore> StateStore::open() {
    std::vector<std::string> candidates;
    if (::geteuid() == 0) candidates.emplace_back("/run/isthmus");
    if (const auto runtime = environmentVariable("XDG_RUNTIME_DIR"))
        candidates.push_back(*runtime + "/isthmus");
    candidates.push_back(fmt::format("/tmp/isthmus-{}", ::geteuid()));
    for (const std::string& folder : candidates) {
        if (canUse(folder)) {
            ::rmdir(folder.c_str());  // made again when a record is; fails when one is there
            return StateStore(folder);
        }
    }
    return Status::resource(fmt::format(
        "no folder for the clusters' records: {} is not ours to write", candidates.back()));
}

Status StateStore::claim(const ClusterState& state) {
    const std::string path = pathOf(state.name);
    const std::string draft = fmt::format("{}.{}", path, ::getpid());
    for (int attempt = 0; attempt < 3; ++attempt) {
        if (!canUse(folder_)) return systemError(folder_);
        ISTHMUS_TRY(writeFile(draft, toJson(state).dump(1) + "\n"));
        const bool isMine = ::link(draft.c_str(), path.c_str()) == 0;  // whole, or not at all
        const int why = errno;
        ::unlink(draft.c_str());
        if (isMine) return {};
        errno = why;
        if (why != EEXIST) return systemError(path);
        const Result<ClusterState> old = load(state.name);
        if (old.ok() && old->isAlive()) break;
        ::unlink(path.c_str());
    }
    return Status::invalidArgument(fmt::format("a cluster named {} is up already", state.name));
}

Status StateStore::save(const ClusterState& state) {
    const std::string path = pathOf(state.name);
    const std::string draft = path + ".new";
    ISTHMUS_TRY(writeFile(draft, toJson(state).dump(1) + "\n"));
    if (::rename(draft.c_str(), path.c_str()) != 0) return systemError(path);
    return {};
}

void StateStore::remove(const std::string& name) {
    ::unlink(pathOf(name).c_str());
    ::unlink((pathOf(name) + ".new").c_str());
    ::rmdir(folder_.c_str());
}

Result<ClusterState> StateStore::load(const std::string& name) const {
    const std::string text = readFile(pathOf(name));
    if (!text.empty()) return stateFrom(text, name);
    std::string known;
    for (const std::string& each : namesIn(folder_)) known += (known.empty() ? "" : ", ") + each;
    return Status::invalidArgument(
        fmt::format("there is no cluster named {}; {}", name,
                    known.empty() ? "none is up" : "there are: " + known));
}

std::vector<ClusterState> StateStore::all() const {
    std::vector<ClusterState> states;
    for (const std::string& name : namesIn(folder_)) {
        Result<ClusterState> state = load(name);
        if (state.ok()) states.push_back(std::move(*state));
    }
    return states;
}

}  // namespace isthmus::cluster
