"""Every method of Communicator, Request and the module, with each argument replaced by what it is not.

Alone in its process: whatever is accepted must end, and what is not raises TypeError or isthmus.Error,
nothing else. Prints how many calls were made and how many of them were refused."""

import collections
import inspect
import sys

import isthmus
import numpy as np


class Odd:
    """Says that it is an array, and raises."""

    def __dlpack__(self, **_):
        raise RuntimeError("no memory today")

    def __dlpack_device__(self):
        return (1, 0)

    def __iter__(self):
        raise RuntimeError("no items today")


def frozen():
    array = np.zeros(4)
    array.flags.writeable = False
    return array


WRONG = [None, 3, -1, 2**70, 1.5, float("nan"), "text", b"abcd", [], [1], [[1.0]], [None], {}, object(), Odd(),
         [Odd()], np.zeros(()), np.zeros(0), np.zeros((4, 4))[:, :2], np.zeros(4, ">f8"), np.zeros(4, object),
         frozen(), [frozen()], np.zeros(5), [np.zeros(4), np.zeros(4, int)], isthmus.Op.AVG, lambda *_: None, type]


def ones():
    return np.ones(4)


def right():
    """Of each method, arguments that are right in a world of one."""
    return {
        "all_reduce": [ones(), ones(), isthmus.Op.SUM],
        "broadcast": [ones(), ones(), 0],
        "reduce": [ones(), ones(), 0, 0],
        "all_gather": [ones(), ones()],
        "reduce_scatter": [ones(), ones(), 0],
        "all_to_all": [ones(), ones()],
        "gather": [ones(), ones(), 0],
        "scatter": [ones(), ones(), 0],
        "barrier": [],
        "all_gather_v": [ones(), ones(), [4], [0]],
        "reduce_scatter_v": [ones(), ones(), [4], 0],
        "all_to_all_v": [ones(), [4], ones(), [4], [0], [0]],
        "gather_v": [ones(), ones(), [4], [0], 0],
        "scatter_v": [ones(), [4], ones(), [0], 0],
        "all_reduce_coalesced": [[ones()], [ones()], 0],
        "broadcast_coalesced": [[ones()], 0],
        "all_gather_coalesced": [[ones()], [ones()]],
        "reduce_scatter_coalesced": [[ones()], [ones()], 0],
        "all_to_all_coalesced": [[ones()], [ones()]],
        "neighbor_all_to_all": [ones(), ones(), [0], [0]],
        "neighbor_all_to_all_v": [ones(), [4], ones(), [4], [0], [0], [0], [0]],
        "premul_sum": [np.ones(1)],
        "reduction": ["name", lambda left, right, dtype: None, True],
        "free_op": [8],
        "split": [0, 0],
        "send": [ones(), 0, 0],
        "recv": [ones(), 0, 0],
    }


OPTIONS = ["wait", "timeout", "priority", "name", "algorithm", "persistent", "deterministic", "one_rounding"]
counts = collections.Counter()


def attempt(what, call, *arguments, **named):
    counts["made"] += 1
    if "-v" in sys.argv:
        print(what, file=sys.stderr, flush=True)
    try:
        made = call(*arguments, **named)
    except (TypeError, isthmus.Error):
        counts["refused"] += 1
    except RuntimeError as error:
        assert "today" in str(error), (what, error)
        counts["refused"] += 1
    else:
        if isinstance(made, isthmus.Request):
            made.test()
    sys.stdout.flush()


def communicator():
    return isthmus.Communicator(name="wrong", timeout=0.5)


def meet(comm, name):
    """The other end of a message."""
    if name == "recv":
        comm.send(ones(), 0, wait=False)
    elif name == "send":
        comm.recv(ones(), 0, wait=False)


def every_method():
    comm = communicator()
    for name, arguments in right().items():
        for place in range(len(arguments)):
            for wrong in WRONG:
                if comm.async_error() is not None:
                    comm = communicator()
                if name == "reduction" and place == 1 and isinstance(wrong, int):
                    continue  # it may be an address
                arguments = right()[name]
                arguments[place] = wrong
                meet(comm, name)
                attempt((name, place, wrong), getattr(comm, name), *arguments)
        for option in OPTIONS if name not in ("premul_sum", "reduction", "free_op", "split") else []:
            for wrong in WRONG:
                if comm.async_error() is not None:
                    comm = communicator()
                meet(comm, name)  # the timeout may be a thousand years
                attempt((name, option), getattr(comm, name), *right()[name], **{option: wrong})
        attempt((name, "too many"), getattr(comm, name), *arguments, 1, 2, 3, 4, 5, 6)
        attempt((name, "unknown"), getattr(comm, name), *arguments, nonsense=1)


def everything_else():
    comm = communicator()
    for wrong in WRONG:
        request = comm.barrier(wait=False)
        for call in (request.wait, request.add_done_callback, isthmus.wait_all, isthmus.wait_any,
                     isthmus.Communicator.from_unique_id, isthmus.Request):
            attempt((call, wrong), call, wrong)
        attempt("wait_any", isthmus.wait_any, [request, wrong])
        attempt("timeout", isthmus.wait_all, [request], wrong)
        if wrong is not None:  # none is the default
            attempt("name", isthmus.Communicator, timeout=wrong, name=wrong)
        if not isinstance(wrong, int):
            attempt("allocate", isthmus.allocate, wrong)
    attempt("allocate", isthmus.allocate, 2**70)
    attempt("allocate", isthmus.allocate, 2**60)
    attempt("allocate", isthmus.allocate, -1)


def missing():
    """Methods with arguments that have no line above."""
    known = {*right(), "from_unique_id", "from_all_gather"}
    methods = {name for name, value in inspect.getmembers(isthmus.Communicator)
               if not name.startswith("_") and callable(value)}
    return methods - known - {"abort", "async_error", "close", "event_fd", "progress", "wire_counters"}


assert not missing(), missing()
every_method()
everything_else()
after = isthmus.Communicator(name="after")
after.all_reduce(found := ones())
assert (found == 1).all()
print(f"{counts['made']} made, {counts['refused']} refused")
