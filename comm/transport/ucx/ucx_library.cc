#include "comm/transport/ucx/ucx_library.hpp"

#include <dlfcn.h>

#include <ucs/debug/log_def.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>

#include "comm/base/log.hpp"

namespace isthmus {

namespace {

/// UCX writes to standard output if nobody takes its messages.
ucs_log_func_rc_t takeLog(const char*, unsigned, const char*, ucs_log_level_t level,
                          const ucs_log_component_config_t* component, const char* message,
                          va_list arguments) {
    if (level > component->log_level) return UCS_LOG_FUNC_RC_STOP;
    char text[512];
    std::vsnprintf(text, sizeof(text), message, arguments);
    // What it calls an error may be a peer that ended: whoever waits for that peer says so.
    log(level <= UCS_LOG_LEVEL_INFO ? LogLevel::kInfo : LogLevel::kDebug,
        std::string("ucx: ") + text);
    return UCS_LOG_FUNC_RC_STOP;
}

class Symbols {
public:
    explicit Symbols(void* handle) : handle_(handle) {}

    template <typename Function>
    Symbols& find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(::dlsym(handle_, name));
        if (function == nullptr && missing_.empty()) missing_ = name;
        return *this;
    }
    const std::string& missing() const { return missing_; }

private:
    void* handle_;
    std::string missing_;
};

std::string findAll(void* handle, UcxLibrary& to) {
    Symbols symbols(handle);
    symbols.find(to.getVersion, "ucp_get_version")
        .find(to.configRead, "ucp_config_read")
        .find(to.configModify, "ucp_config_modify")
        .find(to.configRelease, "ucp_config_release")
        .find(to.initVersion, "ucp_init_version")
        .find(to.cleanup, "ucp_cleanup")
        .find(to.workerCreate, "ucp_worker_create")
        .find(to.workerDestroy, "ucp_worker_destroy")
        .find(to.workerGetAddress, "ucp_worker_get_address")
        .find(to.workerReleaseAddress, "ucp_worker_release_address")
        .find(to.workerProgress, "ucp_worker_progress")
        .find(to.workerGetEfd, "ucp_worker_get_efd")
        .find(to.workerArm, "ucp_worker_arm")
        .find(to.workerSetAmRecvHandler, "ucp_worker_set_am_recv_handler")
        .find(to.endpointCreate, "ucp_ep_create")
        .find(to.endpointClose, "ucp_ep_close_nbx")
        .find(to.endpointFlush, "ucp_ep_flush_nbx")
        .find(to.endpointPrint, "ucp_ep_print_info")
        .find(to.amSend, "ucp_am_send_nbx")
        .find(to.put, "ucp_put_nbx")
        .find(to.get, "ucp_get_nbx")
        .find(to.requestFree, "ucp_request_free")
        .find(to.memMap, "ucp_mem_map")
        .find(to.memUnmap, "ucp_mem_unmap")
        .find(to.keyPack, "ucp_rkey_pack")
        .find(to.keyBufferRelease, "ucp_rkey_buffer_release")
        .find(to.keyUnpack, "ucp_ep_rkey_unpack")
        .find(to.keyDestroy, "ucp_rkey_destroy")
        .find(to.statusString, "ucs_status_string");
    return symbols.missing();
}

/// Crashes of the program are the program's: UCX would print them and wait.
void leaveSignalsAlone(void* handle) {
    const auto disable =
        reinterpret_cast<void (*)(int)>(::dlsym(handle, "ucs_debug_disable_signal"));
    if (disable == nullptr) return;
    for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) disable(signal);
}

Result<std::unique_ptr<UcxLibrary>> load(const std::string& name) {
    void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const why = ::dlerror();
        return Status::unsupported(
            "no UCX here (install libucx0 or the Python package "
            "libucx-cu13, or name the library in ISTHMUS_UCX_LIBRARY): " +
            std::string(why == nullptr ? name.c_str() : why));
    }
    auto library = std::make_unique<UcxLibrary>();
    if (const std::string missing = findAll(handle, *library); !missing.empty()) {
        return Status::unsupported(name + " has no " + missing + ": UCX 1.13 or newer is needed");
    }
    leaveSignalsAlone(handle);
    if (const auto push = reinterpret_cast<decltype(&::ucs_log_push_handler)>(
            ::dlsym(handle, "ucs_log_push_handler"))) {
        push(takeLog);
    }
    return library;
}

}  // namespace

Result<const UcxLibrary*> UcxLibrary::open(const std::string& name) {
    static std::mutex mutex;
    static std::map<std::string, std::unique_ptr<UcxLibrary>> opened;
    const std::lock_guard lock(mutex);
    auto& library = opened[name];
    if (!library) {
        auto loaded = load(name);
        if (!loaded.ok()) return loaded.status();
        library = std::move(*loaded);
    }
    return static_cast<const UcxLibrary*>(library.get());
}

std::string UcxLibrary::version() const {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    getVersion(&major, &minor, &release);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

}  // namespace isthmus
