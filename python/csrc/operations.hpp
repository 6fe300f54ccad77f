#pragma once

#include <isthmus/isthmus.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

namespace isthmus::python {

namespace nb = nanobind;

class Communicator;
struct PythonReduction;

/// The reductions that a program gave one communicator. They stay until the communicator is gone:
/// calls with one may go on after the operation was freed. Thread: with Python's lock.
class Reductions {
public:
    Reductions();
    ~Reductions();
    Reductions(const Reductions&) = delete;
    Reductions& operator=(const Reductions&) = delete;

    /// `function`: a callable of Python, the address of an isthmusReduction, or what has it as
    /// `address`.
    isthmusRedOp_t add(Communicator& communicator, const std::string& name, nb::object function,
                       bool isCommutative);

    /// When a function has raised since: aborts, as its ranks' results are none, and raises that.
    void check(Communicator& communicator);

private:
    std::vector<std::unique_ptr<PythonReduction>> all_;
};

void defineOperations(nb::class_<Communicator>& type);

}  // namespace isthmus::python
