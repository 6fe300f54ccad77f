#pragma once

#include <memory>

#include "comm/base/sleep_set.hpp"
#include "comm/memory/arena.hpp"
#include "comm/transport/frame_endpoint.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

struct InprocHub;

/// Connects Transports inside one process, each used by a thread of its own: for tests, and for
/// several ranks in one process. Outlives nothing: transports keep what they share alive.
/// makeTransport: any thread.
class InprocFabric {
public:
    explicit InprocFabric(const FlowLimits& limits = {});
    ~InprocFabric();
    InprocFabric(const InprocFabric&) = delete;
    InprocFabric& operator=(const InprocFabric&) = delete;

    /// `arena` (may be null) is what peers see as mapped(); it must outlive their use of it.
    /// Destroying the transport without close() looks to its peers as if the process had died.
    std::unique_ptr<Transport> makeTransport(const ProcessId& self, Arena* arena,
                                             SleepSet& sleepSet, TransportListener& listener);

private:
    const FlowLimits limits_;
    std::shared_ptr<InprocHub> hub_;
};

}  // namespace isthmus
