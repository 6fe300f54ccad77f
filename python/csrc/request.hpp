#pragma once

#include <memory>

#include "python/csrc/communicator.hpp"

namespace isthmus::python {

/// What Python holds of a call: isthmus.Request.
struct Request {
    nb::object owner;  ///< keeps the communicator
    Communicator* communicator = nullptr;
    std::shared_ptr<Pending> pending;
};

/// Starts a call the way its caller wishes: waits for it here, or gives a Request. `self` is the
/// Communicator.
nb::object run(nb::handle self, const Wishes& wishes, std::vector<Array> arrays,
               const StartCall& begin);

/// Binds a method that takes Wishes by keyword after its own arguments.
template <typename... Own, typename... Names>
void defineCall(nb::class_<Communicator>& type, const char* name,
                nb::object (*function)(nb::handle, const Wishes&, Own...), const char* doc,
                const Names&... names) {
    type.def(
        name,
        [function](nb::handle self, Own... own, bool wait, std::optional<double> timeout,
                   int priority, std::optional<std::string> callName,
                   std::optional<std::string> algorithm, bool isPersistent, bool isDeterministic,
                   bool roundsOnce) {
            return function(self,
                            Wishes{wait, timeout, priority, std::move(callName),
                                   std::move(algorithm), isPersistent, isDeterministic, roundsOnce},
                            std::forward<Own>(own)...);
        },
        names..., nb::kw_only(), nb::arg("wait") = true, nb::arg("timeout") = nb::none(),
        nb::arg("priority") = 0, nb::arg("name") = nb::none(), nb::arg("algorithm") = nb::none(),
        nb::arg("persistent") = false, nb::arg("deterministic") = false,
        nb::arg("one_rounding") = false, doc);
}

void defineRequests(nb::module_& module);
void defineCollectives(nb::class_<Communicator>& type);
void defineListCollectives(nb::class_<Communicator>& type);
void defineUnequalCollectives(nb::class_<Communicator>& type);
void definePointToPoint(nb::class_<Communicator>& type);
void defineCommunicators(nb::module_& module);
void defineMemory(nb::module_& module);

}  // namespace isthmus::python
