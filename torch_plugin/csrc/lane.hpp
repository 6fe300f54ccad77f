#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "torch_plugin/csrc/communicator.hpp"
#include "torch_plugin/csrc/work_thread.hpp"

namespace isthmus::glue {

/// Runs calls that are more than one call of the library, one after another in the order of their
/// issue, on a thread of its own. It has a communicator of its own: its calls may then fall between
/// the group's others in any order.
class Lane {
public:
    /// Contacts nobody; the thread is started here, and throws when the system has none to give.
    static std::shared_ptr<Lane> make(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                      int ranks, const GroupSettings& settings);
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    const std::shared_ptr<Communicator>& communicator() const { return communicator_; }

    /// Runs `work` after all that were posted before.
    void post(c10::intrusive_ptr<Work> work);

    /// Lets what was posted end (within the group's timeout); then as Communicator::close().
    Outcome close();

private:
    explicit Lane(std::shared_ptr<Communicator> communicator);

    const std::shared_ptr<Communicator> communicator_;
    WorkThread thread_;
};

}  // namespace isthmus::glue
