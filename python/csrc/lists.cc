#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/csrc/errors.hpp"
#include "python/csrc/request.hpp"
#include "python/csrc/shapes.hpp"

namespace isthmus::python {

namespace {

using Counts = std::vector<std::size_t>;
using Ranks = std::vector<int>;

/// What the C call gets of two lists of arrays.
struct TensorList {
    std::vector<Array> arrays;
    std::vector<const void*> sends;
    std::vector<void*> receives;
    Counts counts;
    isthmusDataType_t type = isthmusUint8;
};

std::vector<nb::object> itemsOf(const char* call, const char* which, nb::handle list) {
    if (list.is_none()) refuse(std::string(call) + ": " + which + " is None");
    // An array is a sequence too, of numbers: it would be taken for a list of arrays.
    if (PyObject_CheckBuffer(list.ptr()) != 0 || nb::hasattr(list, "__dlpack__"))
        refuse(std::string(call) + ": " + which + " is one array; a list of arrays is expected");
    std::vector<nb::object> items;
    for (const nb::handle item : list) items.push_back(nb::borrow(item));
    return items;
}

/// `sendBlocks` and `receiveBlocks`: how many blocks of its count an array holds. `reads`: this
/// rank's send counts.
TensorList tensorsOf(const std::string& call, nb::handle send, nb::handle receive,
                     std::size_t sendBlocks, std::size_t receiveBlocks) {
    const auto sends = itemsOf(call.c_str(), "send", send);
    const bool isInPlace = receive.is_none();
    const auto receives = isInPlace ? sends : itemsOf(call.c_str(), "recv", receive);
    if (sends.size() != receives.size()) {
        refuse(call + ": send has " + std::to_string(sends.size()) + " arrays, recv " +
               std::to_string(receives.size()));
    }
    TensorList list;
    for (std::size_t index = 0; index < sends.size(); ++index) {
        const std::string title = call + ": array " + std::to_string(index);
        Pair pair = isInPlace ? Pair::of(title.c_str(), sends[index], nb::none())
                              : Pair::ofTwo(title.c_str(), sends[index], receives[index]);
        const std::size_t count = pair.send.elements() / sendBlocks;
        pair.expect("send", pair.send, count * sendBlocks);
        pair.expect("recv", pair.receive, count * receiveBlocks);
        if (index > 0 && pair.send.type() != list.type) {
            refuse(title + " is of " + nameOf(pair.send.type()) + ", those before of " +
                   nameOf(list.type));
        }
        list.type = pair.send.type();
        list.sends.push_back(pair.send.data());
        list.receives.push_back(pair.receive.data());
        list.counts.push_back(count);
        for (Array& array : pair.take()) list.arrays.push_back(std::move(array));
    }
    return list;
}

nb::object allReduce(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                     int op) {
    TensorList list = tensorsOf("all_reduce_coalesced", send, receive, 1, 1);
    return run(self, wishes, std::move(list.arrays),
               [&](auto comm, auto options, auto request, int*) {
                   return isthmusAllReduceCoalesced(list.counts.size(), list.sends.data(),
                                                    list.receives.data(), list.counts.data(),
                                                    list.type, opOf(op), comm, options, request);
               });
}

nb::object broadcast(nb::handle self, const Wishes& wishes, nb::handle arrays, int root) {
    const bool isRoot = nb::cast<Communicator&>(self).rank() == root;
    TensorList list;
    for (const nb::object& item : itemsOf("broadcast_coalesced", "send", arrays)) {
        const std::string title =
            "broadcast_coalesced: array " + std::to_string(list.counts.size());
        Array array = isRoot ? Pair::reading(title.c_str(), item).send
                             : Pair::writing(title.c_str(), item).receive;
        if (!list.counts.empty() && array.type() != list.type) {
            refuse(title + " is of " + nameOf(array.type()) + ", those before of " +
                   nameOf(list.type));
        }
        list.type = array.type();
        list.sends.push_back(array.data());
        list.receives.push_back(array.data());
        list.counts.push_back(array.elements());
        list.arrays.push_back(std::move(array));
    }
    return run(self, wishes, std::move(list.arrays),
               [&](auto comm, auto options, auto request, int*) {
                   return isthmusBroadcastCoalesced(list.counts.size(), list.sends.data(),
                                                    list.receives.data(), list.counts.data(),
                                                    list.type, root, comm, options, request);
               });
}

nb::object allGather(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive) {
    if (receive.is_none()) refuse("all_gather_coalesced: recv is None");
    TensorList list = tensorsOf("all_gather_coalesced", send, receive, 1, ranksOf(self));
    return run(self, wishes, std::move(list.arrays),
               [&](auto comm, auto options, auto request, int*) {
                   return isthmusAllGatherCoalesced(list.counts.size(), list.sends.data(),
                                                    list.receives.data(), list.counts.data(),
                                                    list.type, comm, options, request);
               });
}

nb::object reduceScatter(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive,
                         int op) {
    if (receive.is_none()) refuse("reduce_scatter_coalesced: recv is None");
    TensorList list = tensorsOf("reduce_scatter_coalesced", send, receive, ranksOf(self), 1);
    return run(
        self, wishes, std::move(list.arrays), [&](auto comm, auto options, auto request, int*) {
            return isthmusReduceScatterCoalesced(list.counts.size(), list.sends.data(),
                                                 list.receives.data(), list.counts.data(),
                                                 list.type, opOf(op), comm, options, request);
        });
}

nb::object allToAll(nb::handle self, const Wishes& wishes, nb::handle send, nb::handle receive) {
    const std::size_t ranks = ranksOf(self);
    TensorList list = tensorsOf("all_to_all_coalesced", send, receive, ranks, ranks);
    return run(self, wishes, std::move(list.arrays),
               [&](auto comm, auto options, auto request, int*) {
                   return isthmusAlltoAllCoalesced(list.counts.size(), list.sends.data(),
                                                   list.receives.data(), list.counts.data(),
                                                   list.type, comm, options, request);
               });
}

isthmusNeighbors_t neighborsOf(const Ranks& sources, const Ranks& destinations) {
    return {static_cast<int>(sources.size()), sources.data(), static_cast<int>(destinations.size()),
            destinations.data()};
}

nb::object neighborAllToAll(nb::handle self, const Wishes& wishes, nb::handle send,
                            nb::handle receive, const Ranks& sources, const Ranks& destinations) {
    Pair pair = Pair::ofTwo("neighbor_all_to_all", send, receive);
    const std::size_t each = !destinations.empty() ? pair.send.elements() / destinations.size()
                             : !sources.empty()    ? pair.receive.elements() / sources.size()
                                                   : 0;
    pair.expect("send", pair.send, each * destinations.size());
    pair.expect("recv", pair.receive, each * sources.size());
    const Buffers on = pair.buffers();
    const isthmusNeighbors_t neighbors = neighborsOf(sources, destinations);
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusNeighborAlltoAll(on.send, on.receive, each, on.type, &neighbors, comm,
                                       options, request);
    });
}

nb::object neighborAllToAllV(nb::handle self, const Wishes& wishes, nb::handle send,
                             const Counts& sendCounts, nb::handle receive,
                             const Counts& receiveCounts, const Ranks& sources,
                             const Ranks& destinations, const PerhapsCounts& sendPlaces,
                             const PerhapsCounts& receivePlaces) {
    Pair pair = Pair::ofTwo("neighbor_all_to_all_v", send, receive);
    pair.expectRoom("send", pair.send,
                    extentOf(pair.call, sendCounts, sendPlaces, destinations.size(), "neighbors"));
    pair.expectRoom("recv", pair.receive,
                    extentOf(pair.call, receiveCounts, receivePlaces, sources.size(), "neighbors"));
    const Buffers on = pair.buffers();
    const isthmusNeighbors_t neighbors = neighborsOf(sources, destinations);
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusNeighborAlltoAllV(on.send, sendCounts.data(), dataOf(sendPlaces), on.receive,
                                        receiveCounts.data(), dataOf(receivePlaces), on.type,
                                        &neighbors, comm, options, request);
    });
}

}  // namespace

void defineListCollectives(nb::class_<Communicator>& type) {
    const auto send = nb::arg("send").none();
    const auto receive = nb::arg("recv").none();
    const auto perhapsReceive = nb::arg("recv").none() = nb::none();
    const auto op = nb::arg("op") = static_cast<int>(isthmusSum);
    const auto sources = nb::arg("sources");
    const auto destinations = nb::arg("destinations");
    defineCall(type, "all_reduce_coalesced", &allReduce,
               "all_reduce of many arrays of one type, as one call with few messages; lists of "
               "arrays of the same sizes on every rank.",
               send, perhapsReceive, op);
    defineCall(type, "broadcast_coalesced", &broadcast,
               "broadcast of many arrays, as one call: read at the root, written elsewhere.", send,
               nb::arg("root") = 0);
    defineCall(type, "all_gather_coalesced", &allGather, "all_gather of many arrays, as one call.",
               send, receive);
    defineCall(type, "reduce_scatter_coalesced", &reduceScatter,
               "reduce_scatter of many arrays, as one call.", send, receive, op);
    defineCall(type, "all_to_all_coalesced", &allToAll, "all_to_all of many arrays, as one call.",
               send, perhapsReceive);
    defineCall(type, "neighbor_all_to_all", &neighborAllToAll,
               "Block i of send goes to rank destinations[i], block i of recv comes from "
               "sources[i]; every rank names its own edges of a graph.",
               send, receive, sources, destinations);
    defineCall(type, "neighbor_all_to_all_v", &neighborAllToAllV,
               "neighbor_all_to_all with sendcounts[i] elements to, and recvcounts[i] from, the "
               "i-th neighbor.",
               send, nb::arg("sendcounts"), receive, nb::arg("recvcounts"), sources, destinations,
               nb::arg("sdispls") = nb::none(), nb::arg("rdispls") = nb::none());
}

}  // namespace isthmus::python
