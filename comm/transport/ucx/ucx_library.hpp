#pragma once

// Private to the device: the only header that includes UCX's.

#include <ucp/api/ucp.h>

#include <string>

#include <isthmus/status.hpp>

namespace isthmus {

/// UCX's functions, looked up in a shared object of this process.
struct UcxLibrary {
    decltype(&::ucp_get_version) getVersion;
    decltype(&::ucp_config_read) configRead;
    decltype(&::ucp_config_modify) configModify;
    decltype(&::ucp_config_release) configRelease;
    decltype(&::ucp_init_version) initVersion;
    decltype(&::ucp_cleanup) cleanup;
    decltype(&::ucp_worker_create) workerCreate;
    decltype(&::ucp_worker_destroy) workerDestroy;
    decltype(&::ucp_worker_get_address) workerGetAddress;
    decltype(&::ucp_worker_release_address) workerReleaseAddress;
    decltype(&::ucp_worker_progress) workerProgress;
    decltype(&::ucp_worker_get_efd) workerGetEfd;
    decltype(&::ucp_worker_arm) workerArm;
    decltype(&::ucp_worker_set_am_recv_handler) workerSetAmRecvHandler;
    decltype(&::ucp_ep_create) endpointCreate;
    decltype(&::ucp_ep_close_nbx) endpointClose;
    decltype(&::ucp_ep_flush_nbx) endpointFlush;
    decltype(&::ucp_ep_print_info) endpointPrint;
    decltype(&::ucp_am_send_nbx) amSend;
    decltype(&::ucp_put_nbx) put;
    decltype(&::ucp_get_nbx) get;
    decltype(&::ucp_request_free) requestFree;
    decltype(&::ucp_mem_map) memMap;
    decltype(&::ucp_mem_unmap) memUnmap;
    decltype(&::ucp_rkey_pack) keyPack;
    decltype(&::ucp_rkey_buffer_release) keyBufferRelease;
    decltype(&::ucp_ep_rkey_unpack) keyUnpack;
    decltype(&::ucp_rkey_destroy) keyDestroy;
    decltype(&::ucs_status_string) statusString;

    /// Opened once and never closed: UCX leaves threads' and libraries' handlers behind. Thread:
    /// any. kUnsupported: it is not there, or it is older than 1.13.
    static Result<const UcxLibrary*> open(const std::string& name);
    std::string version() const;
};

}  // namespace isthmus
