#include "torch_plugin/csrc/lane.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "torch_plugin/csrc/work.hpp"

namespace isthmus::glue {

std::shared_ptr<Lane> Lane::make(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks,
                                 const GroupSettings& settings) {
    auto prefixed = c10::make_intrusive<c10d::PrefixStore>("lane", store);
    GroupSettings own = settings;
    own.name += " (lane)";
    return std::shared_ptr<Lane>(
        new Lane(Communicator::make(std::move(prefixed), rank, ranks, own)));
}

Lane::Lane(std::shared_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)), thread_("isthmus-lane", &Work::runOnLane) {
    Executor::instance().start();
    thread_.start();
}

void Lane::post(c10::intrusive_ptr<Work> work) {
    thread_.post(std::move(work));
}

Outcome Lane::close() {
    communicator_->drain();
    return communicator_->close();
}

}  // namespace isthmus::glue
