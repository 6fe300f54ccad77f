#pragma once

#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/base/unique_fd.hpp"
#include "tools/cluster/process.hpp"

namespace isthmus::cluster {

/// The namespaces of a living process, held open: they cannot change hands meanwhile.
class Namespaces {
public:
    enum class Which {
        kNetworkOnly,  ///< and the user namespace that owns it
        kAll,          ///< all that makes a node
    };

    /// kPeerLost when `process` is gone.
    static Result<Namespaces> of(const ProcessIdentity& process, Which which);

    /// Moves the calling process, which must have one thread, in. A PID namespace takes effect for
    /// the children it makes afterwards.
    Status enter() const;

private:
    struct Held {
        std::string kind;
        UniqueFd fd;
    };
    std::vector<Held> held_;
};

/// Like fork(2) with new namespaces `flags`. With CLONE_NEWUSER the child is root inside, and only
/// there. Returns 0 in the child, -1 and errno on failure.
pid_t forkInto(unsigned long flags);

/// In the child of forkInto(CLONE_NEWUSER...): makes `userId` and `groupId` of outside its root.
Status becomeRootInside(unsigned userId, unsigned groupId);

}  // namespace isthmus::cluster
