#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python/csrc/errors.hpp"
#include "python/csrc/request.hpp"
#include "python/csrc/shapes.hpp"

namespace isthmus::python {

namespace {

nb::object send(nb::handle self, const Wishes& wishes, nb::handle array, int peer, int tag) {
    Pair pair = Pair::reading("send", array);
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int*) {
        return isthmusSend(on.send, on.sendElements, on.type, peer, tag, comm, options, request);
    });
}

nb::object receive(nb::handle self, const Wishes& wishes, nb::handle array, int peer, int tag) {
    Pair pair = Pair::writing("recv", array);
    const Buffers on = pair.buffers();
    return run(self, wishes, pair.take(), [&](auto comm, auto options, auto request, int* source) {
        return isthmusRecv(on.receive, on.receiveElements, on.type, peer, tag, source, comm,
                           options, request);
    });
}

}  // namespace

void definePointToPoint(nb::class_<Communicator>& type) {
    const auto tag = nb::arg("tag") = 0;
    defineCall(type, "send", &send,
               "Sends the array to rank peer, whose next recv of this rank and tag gets it.",
               nb::arg("send").none(), nb::arg("peer"), tag);
    defineCall(type, "recv", &receive,
               "Receives into the array from rank peer (ANY_SOURCE: from whoever is first) and "
               "gives the rank that it came from.",
               nb::arg("recv").none(), nb::arg("peer"), tag);
}

}  // namespace isthmus::python
