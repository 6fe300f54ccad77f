#include "comm/capi/store_callbacks.hpp"

#include <algorithm>
#include <cstring>

#include "comm/bootstrap/host_port.hpp"
#include "comm/bootstrap/launch_environment.hpp"
#include "topology/discover/net_device.hpp"

namespace isthmus {

CallbackStore::CallbackStore(const isthmusStoreCallbacks_t& functions, void* context)
    : context_(context) {
    std::memcpy(&functions_, &functions, std::min(functions.size, sizeof(functions_)));
}

CallbackStore::~CallbackStore() {
    if (functions_.release != nullptr) functions_.release(context_);
}

Status CallbackStore::failed(const char* what, std::string_view key, int code) const {
    const char* const why = functions_.why == nullptr ? nullptr : functions_.why(context_);
    const bool isTold = why != nullptr && *why != '\0';
    return Status::peerLost(std::string("the store that was given failed to ") + what + " \"" +
                            std::string(key) + "\"" +
                            (isTold ? std::string(": ") + why : " with " + std::to_string(code)));
}

Status CallbackStore::set(std::string_view key, const Bytes& value) {
    const int code = functions_.set(context_, std::string(key).c_str(), value.data(), value.size());
    return code == 0 ? Status() : failed("set", key, code);
}

Result<Bytes> CallbackStore::get(std::string_view key, std::chrono::milliseconds limit) {
    Bytes value;
    const auto sink = [](void* into, const void* data, std::size_t bytes) {
        const auto* begin = static_cast<const std::byte*>(data);
        static_cast<Bytes*>(into)->assign(begin, begin + bytes);
    };
    const int code =
        functions_.get(context_, std::string(key).c_str(), limit.count(), sink, &value);
    if (code == 1)
        return Status::timeout("nobody wrote \"" + std::string(key) + "\" within " +
                               std::to_string(limit.count()) + " ms");
    if (code != 0) return failed("get", key, code);
    return value;
}

Result<bool> CallbackStore::has(std::string_view key) {
    if (functions_.has == nullptr)
        return Status::unsupported("the store that was given cannot look for keys");
    const int code = functions_.has(context_, std::string(key).c_str());
    if (code > 1 || code < 0) return failed("look for", key, code);
    return code == 0;
}

Status CallbackStore::erase(std::string_view key) {
    if (functions_.erase == nullptr) return {};
    const int code = functions_.erase(context_, std::string(key).c_str());
    return code == 0 || code == 1 ? Status() : failed("erase", key, code);
}

std::string towardsMaster() {
    const LaunchFacts facts = launchFacts();
    const auto master = facts.variables.find("MASTER_ADDR");
    if (master == facts.variables.end()) return "";
    const std::string host = withoutBrackets(master->second);
    const auto address = addressTowards(host);
    if (!address.ok()) return "";
    // The master's own name may mean loopback there (127.0.1.1 in its hosts file): others that know
    // it by that name are not reached so.
    const bool isMeant = host == "localhost" || isLoopbackAddress(host);
    return isLoopbackAddress(*address) && !isMeant ? "" : *address;
}

}  // namespace isthmus
