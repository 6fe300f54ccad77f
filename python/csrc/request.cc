#include "python/csrc/request.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/csrc/callbacks.hpp"
#include "python/csrc/errors.hpp"

namespace isthmus::python {

namespace {

std::optional<Milliseconds> limitOf(std::optional<double> seconds) {
    if (!seconds) return {};
    if (*seconds == 0) return Milliseconds(0);
    return Milliseconds(millisecondsOf(seconds));
}

/// A receive gives the rank that it came from, every other call nothing.
nb::object outcomeOf(Communicator& communicator, const Pending& pending) {
    communicator.checkReductions();
    pending.checkOutcome();
    return pending.sourceRank() < 0 ? nb::none() : nb::object(nb::int_(pending.sourceRank()));
}

void checkOutcome(const Request& request) {
    request.communicator->checkReductions();
    request.pending->checkOutcome();
}

nb::object wait(const Request& request, std::optional<double> timeout) {
    if (request.pending->wait(limitOf(timeout)))
        return outcomeOf(*request.communicator, *request.pending);
    raise(isthmusTimeout, "wait: not done yet; the call goes on until its own deadline");
}

bool test(const Request& request) {
    request.pending->settle(Milliseconds(0));
    checkOutcome(request);
    return request.pending->isDone();
}

void start(const Request& request) {
    request.communicator->handle();
    request.pending->start();
}

void cancel(const Request& request) {
    if (!request.pending->isDone()) request.communicator->handle();
    request.pending->cancel();
}

std::size_t waitAny(const std::vector<Request>& requests, std::optional<double> timeout) {
    if (requests.empty()) refuse("wait_any: there is no request");
    const auto limit = limitOf(timeout);
    const auto until = std::chrono::steady_clock::now() + limit.value_or(Milliseconds(0));
    for (;;) {
        // Each gives its turn to the engine, which moves all of them.
        for (std::size_t index = 0; index < requests.size(); ++index) {
            if (!requests[index].pending->settle(Milliseconds(index == 0 ? 1 : 0))) continue;
            checkOutcome(requests[index]);
            return index;
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (limit && std::chrono::steady_clock::now() >= until)
            raise(isthmusTimeout, "wait_any: none is done yet");
    }
}

void waitAll(const std::vector<Request>& requests, std::optional<double> timeout) {
    const auto limit = limitOf(timeout);
    const auto until = std::chrono::steady_clock::now() + limit.value_or(Milliseconds(0));
    for (const Request& request : requests) {
        auto left = limit;
        if (left) {
            left =
                std::max(Milliseconds(0),
                         std::chrono::ceil<Milliseconds>(until - std::chrono::steady_clock::now()));
        }
        if (!request.pending->wait(left)) raise(isthmusTimeout, "wait_all: not all are done yet");
    }
    for (const Request& request : requests) checkOutcome(request);
}

}  // namespace

nb::object run(nb::handle self, const Wishes& wishes, std::vector<Array> arrays,
               const StartCall& begin) {
    auto& communicator = nb::cast<Communicator&>(self);
    if (wishes.wait && !wishes.isPersistent) {
        const auto pending = communicator.start(wishes, std::move(arrays), begin);
        pending->wait(std::nullopt);
        return outcomeOf(communicator, *pending);
    }
    auto pending = communicator.start(wishes, std::move(arrays), begin);
    return nb::cast(Request{nb::borrow(self), &communicator, std::move(pending)});
}

void defineRequests(nb::module_& module) {
    nb::class_<Request>(module, "Request",
                        "A call in flight. It goes on, and its arrays stay alive, also when this "
                        "object is dropped.")
        .def("wait", &wait, nb::arg("timeout") = nb::none(),
             "Waits until the call is done, at most `timeout` seconds (None: until the call's own "
             "deadline). Raises Error with what the call ended with, or with Result.TIMEOUT when "
             "only the waiting ended. Gives the source of a receive.")
        .def("test", &test, "True when the call is done; raises Error when it failed.")
        .def("cancel", &cancel, "Takes back a receive that has not begun.")
        .def(
            "add_done_callback", &callWhenDone, nb::arg("function"),
            "Calls function(request) once the call is done, on a thread of isthmus; exceptions are "
            "printed. Of a persistent call: when the start before this is done.")
        .def("start", &start, "Runs a persistent call, with what is in its arrays now.")
        .def_prop_ro(
            "done", [](const Request& request) { return request.pending->isDone(); },
            "True when wait() or test() saw the call end; a persistent call is done until started.")
        .def_prop_ro(
            "source",
            [](const Request& request) -> std::optional<int> {
                const int source = request.pending->sourceRank();
                return source < 0 || !request.pending->isDone() ? std::nullopt
                                                                : std::optional(source);
            },
            "The rank that a finished receive came from, else None.");
    module.def("wait_all", &waitAll, nb::arg("requests"), nb::arg("timeout") = nb::none(),
               "Waits for all of them, then raises the first failure in their order.");
    module.def("wait_any", &waitAny, nb::arg("requests"), nb::arg("timeout") = nb::none(),
               "Waits until one is done and gives its index; raises when it failed.");
}

}  // namespace isthmus::python
