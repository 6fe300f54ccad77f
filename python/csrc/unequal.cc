#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/csrc/errors.hpp"
#include "python/csrc/request.hpp"
#include "python/csrc/shapes.hpp"

namespace isthmus::python {

namespace {

using Counts = std::vector<std::size_t>;

nb::object allGatherV(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                      const Counts& counts, const PerhapsCounts& places) {
    Pair pair = Pair::ofTwo("all_gather_v", send, receive);
    pair.expectRoom("recv", pair.receive, extentOf(pair.call, counts, places, ranksOf(self)));
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusAllGatherV(on.send, on.sendElements, on.receive, counts.data(),
                                 dataOf(places), on.type, comm, options, request);
    });
}

nb::object reduceScatterV(nb::handle self, const Wishes& wishes, nb::handle send,
                          nb::handle receive, const Counts& counts, int op) {
    Pair pair = Pair::ofTwo("reduce_scatter_v", send, receive);
    pair.expect("send", pair.send, extentOf(pair.call, counts, {}, ranksOf(self)));
    const auto me = static_cast<std::size_t>(nb::cast<Communicator&>(self).rank());
    pair.expect("recv", pair.receive, counts[me]);
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusReduceScatterV(on.send, on.receive, counts.data(), on.type, opOf(op), comm,
                                     options, request);
    });
}

nb::object allToAllV(nb::handle self, const Wishes& wishes, nb::handle send,
                     const Counts& sendCounts, nb::handle receive, const Counts& receiveCounts,
                     const PerhapsCounts& sendPlaces, const PerhapsCounts& receivePlaces) {
    Pair pair = Pair::ofTwo("all_to_all_v", send, receive);
    const std::size_t ranks = ranksOf(self);
    pair.expectRoom("send", pair.send, extentOf(pair.call, sendCounts, sendPlaces, ranks));
    pair.expectRoom("recv", pair.receive, extentOf(pair.call, receiveCounts, receivePlaces, ranks));
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusAlltoAllV(on.send, sendCounts.data(), dataOf(sendPlaces), on.receive,
                                receiveCounts.data(), dataOf(receivePlaces), on.type, comm, options,
                                request);
    });
}

nb::object gatherV(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                   const Counts& counts, const PerhapsCounts& places, int root) {
    const bool isRoot = nb::cast<Communicator&>(self).rank() == root;
    Pair pair = isRoot ? Pair::ofTwo("gather_v", send, receive) : Pair::reading("gather_v", send);
    const std::size_t extent = extentOf(pair.call, counts, places, ranksOf(self));
    if (isRoot) pair.expectRoom("recv", pair.receive, extent);
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusGatherV(on.send, on.sendElements, on.receive, counts.data(), dataOf(places),
                              on.type, root, comm, options, request);
    });
}

nb::object scatterV(nb::handle self, const Wishes& wishes, nb::handle send, const Counts& counts,
                    nb::handle receive, const PerhapsCounts& places, int root) {
    const bool isRoot = nb::cast<Communicator&>(self).rank() == root;
    Pair pair =
        isRoot ? Pair::ofTwo("scatter_v", send, receive) : Pair::writing("scatter_v", receive);
    const std::size_t extent = extentOf(pair.call, counts, places, ranksOf(self));
    if (isRoot) pair.expectRoom("send", pair.send, extent);
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusScatterV(on.send, counts.data(), dataOf(places), on.receive,
                               on.receiveElements, on.type, root, comm, options, request);
    });
}

}  // namespace

void defineUnequalCollectives(nb::class_<Communicator>& type) {
    const auto send = nb::arg("send").none();
    const auto receive = nb::arg("recv").none();
    const auto sendCounts = nb::arg("sendcounts");
    const auto receiveCounts = nb::arg("recvcounts");
    const auto places = nb::arg("displs") = nb::none();
    const auto op = nb::arg("op") = static_cast<int>(isthmusSum);
    const auto root = nb::arg("root") = 0;
    defineCall(type, "all_gather_v", &allGatherV,
               "all_gather with recvcounts[q] elements of rank q; displs None: packed.", send,
               receive, receiveCounts, places);
    defineCall(type, "reduce_scatter_v", &reduceScatterV,
               "reduce_scatter whose block of rank q has recvcounts[q] elements.", send, receive,
               receiveCounts, op);
    defineCall(type, "all_to_all_v", &allToAllV,
               "all_to_all with sendcounts[q] elements to, and recvcounts[q] from, rank q.", send,
               sendCounts, receive, receiveCounts, nb::arg("sdispls") = nb::none(),
               nb::arg("rdispls") = nb::none());
    defineCall(type, "gather_v", &gatherV, "gather with recvcounts[q] elements of rank q.", send,
               receive, receiveCounts, places, root);
    defineCall(type, "scatter_v", &scatterV, "scatter with sendcounts[q] elements for rank q.",
               send, sendCounts, receive, places, root);
}

}  // namespace isthmus::python
