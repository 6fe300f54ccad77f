#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python/csrc/errors.hpp"
#include "python/csrc/request.hpp"
#include "python/csrc/shapes.hpp"

namespace isthmus::python {

namespace {

nb::object allReduce(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                     int op) {
    Pair pair = Pair::of("all_reduce", send, receive);
    pair.expect("recv", pair.receive, pair.send.elements());
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusAllReduce(on.send, on.receive, on.sendElements, on.type, opOf(op), comm,
                                options, request);
    });
}

nb::object broadcast(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                     int root) {
    const bool isRoot = nb::cast<Communicator&>(self).rank() == root;
    // Only the root's array is read; elsewhere an array that is given alone is written to.
    Pair pair = isRoot ? Pair::of("broadcast", send, receive)
                       : Pair::writing("broadcast", receive.is_none() ? send : receive);
    if (isRoot) pair.expect("recv", pair.receive, pair.send.elements());
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusBroadcast(on.send, on.receive, on.receiveElements, on.type, root, comm,
                                options, request);
    });
}

nb::object reduce(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                  int op, int root) {
    const bool isRoot = nb::cast<Communicator&>(self).rank() == root;
    Pair pair = isRoot ? Pair::of("reduce", send, receive) : Pair::reading("reduce", send);
    if (isRoot) pair.expect("recv", pair.receive, pair.send.elements());
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusReduce(on.send, on.receive, on.sendElements, on.type, opOf(op), root, comm,
                             options, request);
    });
}

nb::object allGather(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive) {
    Pair pair = Pair::ofTwo("all_gather", send, receive);
    pair.expect("recv", pair.receive, pair.send.elements() * ranksOf(self));
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusAllGather(on.send, on.receive, on.sendElements, on.type, comm, options,
                                request);
    });
}

nb::object reduceScatter(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                         int op) {
    Pair pair = Pair::ofTwo("reduce_scatter", send, receive);
    pair.expect("send", pair.send, pair.receive.elements() * ranksOf(self));
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusReduceScatter(on.send, on.receive, on.receiveElements, on.type, opOf(op),
                                    comm, options, request);
    });
}

nb::object allToAll(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive) {
    const std::size_t ranks = ranksOf(self);
    Pair pair = Pair::of("all_to_all", send, receive);
    pair.expect("recv", pair.receive, pair.send.elements());
    if (pair.send.elements() % ranks != 0) {
        refuse("all_to_all: " + std::to_string(pair.send.elements()) +
               " elements cannot be shared equally by " + std::to_string(ranks) + " ranks");
    }
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusAlltoAll(on.send, on.receive, on.sendElements / ranks, on.type, comm, options,
                               request);
    });
}

nb::object gather(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                  int root) {
    const bool isRoot = nb::cast<Communicator&>(self).rank() == root;
    Pair pair = isRoot ? Pair::ofTwo("gather", send, receive) : Pair::reading("gather", send);
    if (isRoot) pair.expect("recv", pair.receive, pair.send.elements() * ranksOf(self));
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusGather(on.send, on.receive, on.sendElements, on.type, root, comm, options,
                             request);
    });
}

nb::object scatter(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                   int root) {
    const bool isRoot = nb::cast<Communicator&>(self).rank() == root;
    Pair pair = isRoot ? Pair::ofTwo("scatter", send, receive) : Pair::writing("scatter", receive);
    if (isRoot) pair.expect("send", pair.send, pair.receive.elements() * ranksOf(self));
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusScatter(on.send, on.receive, on.receiveElements, on.type, root, comm, options,
                              request);
    });
}

nb::object barrier(nb::handle self, const Wishes& wishes) {
    return run(self, wishes, {}, [](auto comm, auto options, auto request, int*) {
        return isthmusBarrier(comm, options, request);
    });
}

}  // namespace

void defineCollectives(nb::class_<Communicator>& type) {
    const auto send = nb::arg("send").none();
    const auto receive = nb::arg("recv").none();
    const auto perhapsReceive = nb::arg("recv").none() = nb::none();
    const auto op = nb::arg("op") = static_cast<int>(isthmusSum);
    const auto root = nb::arg("root") = 0;
    defineCall(type, "all_reduce", &allReduce,
               "Every rank ends with the reduction of all; recv None: in place.", send,
               perhapsReceive, op);
    defineCall(type, "broadcast", &broadcast,
               "Every rank ends with the root's array; recv None: send is written elsewhere.", send,
               perhapsReceive, root);
    defineCall(type, "reduce", &reduce,
               "The root ends with the reduction of all; recv counts there, None: in place.", send,
               perhapsReceive, op, root);
    defineCall(type, "all_gather", &allGather,
               "Every rank ends with the arrays of all, in rank order.", send, receive);
    defineCall(type, "reduce_scatter", &reduceScatter,
               "Rank r ends with the r-th block of the reduction of all.", send, receive, op);
    defineCall(type, "all_to_all", &allToAll,
               "Block q of send goes to rank q, which finds it as this rank's block of recv; recv "
               "None: in place.",
               send, perhapsReceive);
    defineCall(type, "gather", &gather,
               "The root ends with the arrays of all, in rank order; recv counts there.", send,
               perhapsReceive, root);
    defineCall(type, "scatter", &scatter,
               "Rank r ends with the root's r-th block; send counts at the root.", send, receive,
               root);
    defineCall(type, "barrier", &barrier, "Ends when every rank has come here.");
}

}  // namespace isthmus::python
