#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "python/csrc/errors.hpp"
#include "python/csrc/joining.hpp"
#include "python/csrc/request.hpp"

namespace isthmus::python {

namespace {

/// isthmusConfig_t with what it points to.
struct Config {
    Config(std::optional<std::string> callerName, std::optional<double> timeout)
        : name(std::move(callerName)), timeoutMs(millisecondsOf(timeout)) {}

    isthmusConfig_t forC() const {
        isthmusConfig_t config = ISTHMUS_CONFIG_INITIALIZER;
        config.name = name ? name->c_str() : nullptr;
        config.timeout_ms = timeoutMs;
        return config;
    }

    std::optional<std::string> name;
    std::int64_t timeoutMs;
};

void fromEnvironment(Communicator* self, std::optional<std::string> name,
                     std::optional<double> timeout) {
    new (self) Communicator(join([config = Config(std::move(name), timeout)](isthmusComm_t* comm) {
        const isthmusConfig_t settings = config.forC();
        return isthmusCommInitEnv(comm, &settings);
    }));
}

nb::bytes uniqueId() {
    isthmusUniqueId id;
    check(isthmusGetUniqueId(&id));
    return nb::bytes(id.internal, sizeof(id.internal));
}

nb::object fromId(const nb::bytes& id, int rank, int size, std::optional<std::string> name,
                  std::optional<double> timeout) {
    isthmusUniqueId unique;
    if (id.size() != sizeof(unique.internal)) {
        refuse("a unique id has " + std::to_string(sizeof(unique.internal)) + " bytes, this one " +
               std::to_string(id.size()));
    }
    std::memcpy(unique.internal, id.c_str(), sizeof(unique.internal));
    const isthmusComm_t comm =
        join([unique, rank, size, config = Config(std::move(name), timeout)](isthmusComm_t* made) {
            const isthmusConfig_t settings = config.forC();
            return isthmusCommInitRankConfig(made, size, unique, rank, &settings);
        });
    return nb::cast(new Communicator(comm), nb::rv_policy::take_ownership);
}

/// A callable of Python under isthmusAllGatherFn; its exception waits for the call's end.
struct AllGather {
    nb::callable function;
    int ranks = 0;
    nb::object type;
    nb::object value;
    nb::object trace;
};

int allGather(const void* send, void* receive, std::size_t bytes, void* context) {
    const nb::gil_scoped_acquire locked;
    auto& self = *static_cast<AllGather*>(context);
    try {
        const nb::object all = self.function(nb::bytes(static_cast<const char*>(send), bytes));
        std::size_t filled = 0;
        for (const nb::handle each : all) {
            const nb::bytes theirs(each);
            if (theirs.size() != bytes || filled == static_cast<std::size_t>(self.ranks))
                throw nb::value_error("the all-gather gave blocks of another size or number");
            std::memcpy(static_cast<char*>(receive) + filled++ * bytes, theirs.c_str(), bytes);
        }
        if (filled != static_cast<std::size_t>(self.ranks))
            throw nb::value_error("the all-gather gave too few blocks");
        return 0;
    } catch (nb::python_error& error) {
        self.type = nb::borrow(error.type());
        self.value = nb::borrow(error.value());
        self.trace = nb::borrow(error.traceback());
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
        nb::python_error raised;
        self.type = nb::borrow(raised.type());
        self.value = nb::borrow(raised.value());
    }
    return 1;
}

nb::object fromAllGather(nb::callable function, int rank, int size, std::optional<std::string> name,
                         std::optional<double> timeout) {
    AllGather context{std::move(function), size, {}, {}, {}};
    const Config config(std::move(name), timeout);
    const isthmusConfig_t settings = config.forC();
    isthmusComm_t comm = nullptr;
    isthmusResult_t result = isthmusSuccess;
    std::string text;
    {
        // On this thread: MPI may allow no other.
        const nb::gil_scoped_release released;
        result = isthmusCommInitAllGather(&comm, size, rank, &allGather, &context, &settings);
        if (result != isthmusSuccess) text = isthmusGetLastError(nullptr);
    }
    if (context.value.is_valid()) {
        if (comm != nullptr) isthmusCommDestroy(comm);
        PyErr_Restore(context.type.release().ptr(), context.value.release().ptr(),
                      context.trace.release().ptr());
        throw nb::python_error();
    }
    if (result != isthmusSuccess) raise(result, text);
    return nb::cast(new Communicator(comm), nb::rv_policy::take_ownership);
}

nb::object split(Communicator& self, int color, int key, std::optional<std::string> name,
                 std::optional<double> timeout) {
    const isthmusComm_t parent = self.handle();
    const isthmusComm_t comm =
        join([parent, color, key, config = Config(std::move(name), timeout)](isthmusComm_t* made) {
            const isthmusConfig_t settings = config.forC();
            return isthmusCommSplit(parent, color, key, made, &settings);
        });
    if (comm == nullptr) return nb::none();
    return nb::cast(new Communicator(comm), nb::rv_policy::take_ownership);
}

void leaveBlock(Communicator& self, nb::handle type, nb::handle, nb::handle) {
    if (type.is_none()) return self.close();
    // The others learn of it at once instead of at their deadlines.
    if (!self.isClosed()) {
        const isthmusComm_t comm = self.handle();
        const nb::gil_scoped_release released;
        isthmusCommAbort(comm);
    }
    self.leave(Milliseconds(0));
}

std::vector<int> nodes(Communicator& self) {
    std::vector<int> all(static_cast<std::size_t>(self.ranks()));
    self.use([&](isthmusComm_t comm) { return isthmusCommNodes(comm, all.data()); });
    return all;
}

nb::object asyncError(Communicator& self) {
    isthmusResult_t result = isthmusSuccess;
    std::string text;
    self.use([&](isthmusComm_t comm) {
        const isthmusResult_t asked = isthmusCommGetAsyncError(comm, &result);
        text = isthmusGetLastError(nullptr);
        return asked;
    });
    if (result == isthmusSuccess) return nb::none();
    return nb::make_tuple(result, text);
}

nb::dict wireCounters(Communicator& self) {
    isthmusWireCounters_t counters = {};
    counters.size = sizeof(counters);
    self.use([&](isthmusComm_t comm) { return isthmusWireCounters(comm, &counters); });
    nb::dict all;
    all["sent_payload"] = counters.sent_payload;
    all["received_payload"] = counters.received_payload;
    all["sent_total"] = counters.sent_total;
    all["received_total"] = counters.received_total;
    return all;
}

int eventFd(Communicator& self) {
    int descriptor = -1;
    self.use([&](isthmusComm_t comm) { return isthmusEventFd(comm, &descriptor); });
    return descriptor;
}

}  // namespace

void defineCommunicators(nb::module_& module) {
    const auto name = nb::arg("name") = nb::none();
    const auto timeout = nb::arg("timeout") = nb::none();
    nb::class_<Communicator> type(
        module, "Communicator",
        "An agreed set of ranks. Made and called by all of them, in the same order. Times are "
        "seconds. A context manager: a block that ends well closes it, one that raises aborts it.");
    type.def("__init__", &fromEnvironment, nb::kw_only(), name, timeout,
             "Joins the job that isthmus run, torchrun, mpirun, mpiexec or srun started; alone, a "
             "world of one rank. `timeout`: of each call, and of this.");
    type.def_static(
        "from_unique_id", &fromId, nb::arg("id"), nb::arg("rank"), nb::arg("size"), nb::kw_only(),
        name, timeout,
        "Joins the ranks that hold the same unique_id(), whose maker stays alive meanwhile.");
    type.def_static(
        "from_all_gather", &fromAllGather, nb::arg("all_gather"), nb::arg("rank"), nb::arg("size"),
        nb::kw_only(), name, timeout,
        "Joins by a callable that gets bytes and gives those of all ranks in rank order, such as "
        "mpi4py's COMM_WORLD.allgather; it is called from inside this only.");
    type.def("split", &split, nb::arg("color"), nb::arg("key") = 0, nb::kw_only(), name, timeout,
             "Ranks of one color form a communicator, ordered by (key, rank); color < 0: None.");
    type.def_prop_ro("rank", &Communicator::rank);
    type.def_prop_ro("size", &Communicator::ranks);
    type.def_prop_ro("nodes", &nodes, "The node of each rank, from 0 by first rank.");
    type.def_prop_ro("closed", &Communicator::isClosed);
    type.def("close", &Communicator::close, "Waits for this rank's calls, then leaves.");
    type.def("abort", &Communicator::abort, nb::arg("reason") = nb::none(),
             "Fails every call in flight, here and elsewhere; errors there end with `reason`.");
    type.def("async_error", &asyncError, "None while healthy, else (Result, text) of the cause.");
    type.def("wire_counters", &wireCounters,
             "Bytes that this process sent to and received from other nodes.");
    type.def("event_fd", &eventFd, "A descriptor that is readable when a call may have finished.");
    type.def(
        "progress", [](Communicator& self) { self.use(&isthmusProgress); },
        "Moves everything forward once; for event loops.");
    type.def("__enter__", [](nb::object self) { return self; });
    type.def("__exit__", &leaveBlock, nb::arg("type").none(), nb::arg("value").none(),
             nb::arg("traceback").none());
    defineOperations(type);
    defineCollectives(type);
    defineListCollectives(type);
    defineUnequalCollectives(type);
    definePointToPoint(type);
    module.def("unique_id", &uniqueId, "Bytes that let ranks find each other; carries a key.");
}

}  // namespace isthmus::python
