#include "comm/communicator/neighbors.hpp"

#include "comm/communicator/together.hpp"

namespace isthmus {

namespace {

// Tags of users are not negative ints: theirs end one below.
constexpr std::uint32_t kTag = std::uint32_t{1} << 31;

}  // namespace

std::vector<PointToPointRequest> NeighborExchange::messages() const {
    std::vector<PointToPointRequest> all;
    for (const auto* edges : {&arriving_, &leaving_}) {  // whoever sends finds a receive
        for (const Edge& edge : *edges) {
            PointToPointRequest& message = all.emplace_back();
            message.isSend = edges == &leaving_;
            message.peer = edge.peer;
            message.tag = kTag;
            message.buffer = edge.buffer;
            message.bytes = edge.bytes;
        }
    }
    return all;
}

Status NeighborExchange::prepare(Communicator& communicator, const CallOptions& options) const {
    for (PointToPointRequest& message : messages()) {
        if (message.peer < 0) {  // any source is no neighbour
            return Status::invalidArgument("neighbor_all_to_all: " + std::to_string(message.peer) +
                                           " is not a rank of this communicator");
        }
        const Status status = communicator.prepare(message, options);
        if (!status.ok()) return status.within("neighbor_all_to_all");
    }
    return communicator.connect();
}

std::shared_ptr<Work> NeighborExchange::start(Communicator& communicator,
                                              const CallOptions& options) const {
    if (Status status = prepare(communicator, options); !status.ok()) {
        auto refused = std::make_shared<Work>();
        refused->complete(std::move(status));
        return refused;
    }
    CallOptions how = options;
    how.isBlocking = false;
    if (how.name.empty()) how.name = "neighbor_all_to_all";
    std::vector<std::shared_ptr<Work>> works;
    for (PointToPointRequest& message : messages())
        works.push_back(communicator.transfer(std::move(message), how));
    auto whole = together(works);
    if (options.isBlocking) (void)communicator.wait(*whole, options.patience).ok();
    return whole;
}

}  // namespace isthmus
