"""Calls over lists of arrays and of neighbors, the options of sums, and reductions of the program."""

import ctypes
import math
import threading
import time

import isthmus
import numpy as np
import world
from isthmus import Op, Result
from world import case, equal, refused

SIZES = [3, 0, 1, 1003, 20_000]


def arrays(rank, dtype="float64", factor=1):
    return [(np.arange(size * factor) % 97 + 100 * rank).astype(dtype) for size in SIZES]


@case
def coalesced_reductions(comm):
    total = [sum(arrays(q)[i] for q in range(comm.size)) for i in range(len(SIZES))]
    found = [np.full(size, -1.0) for size in SIZES]
    comm.all_reduce_coalesced(arrays(comm.rank), found)
    for each, expected in zip(found, total):
        equal(each, expected)
    in_place = tuple(arrays(comm.rank, "int32"))
    request = comm.all_reduce_coalesced(in_place, op=Op.MAX, wait=False, name="several")
    request.wait()
    for each, expected in zip(in_place, arrays(comm.size - 1, "int32")):
        equal(each, expected)
    comm.all_reduce_coalesced([])
    blocks = [each.reshape(comm.size, -1) for each in arrays(comm.rank, "float32", comm.size)]
    found = [np.zeros(size, "float32") for size in SIZES]
    comm.reduce_scatter_coalesced(blocks, found)
    for i, each in enumerate(found):
        whole = sum(arrays(q, "float32", comm.size)[i].reshape(comm.size, -1) for q in range(comm.size))
        equal(each, whole[comm.rank])


@case
def coalesced_movement(comm):
    for root in range(comm.size):
        found = arrays(comm.rank, "int16")
        comm.broadcast_coalesced(found, root)
        for each, expected in zip(found, arrays(root, "int16")):
            equal(each, expected)
    found = [np.zeros((comm.size, size)) for size in SIZES]
    comm.all_gather_coalesced(arrays(comm.rank), found)
    for i, each in enumerate(found):
        equal(each, np.stack([arrays(q)[i] for q in range(comm.size)]))
    sent = [np.full((comm.size, n), comm.rank * 10) + np.arange(comm.size)[:, None] for n in (2, 0, 9000)]
    comm.all_to_all_coalesced(sent)
    for each in sent:
        equal(each, np.repeat(np.arange(comm.size)[:, None] * 10 + comm.rank, each.shape[1], axis=1))


@case
def coalesced_calls_of_what_does_not_fit(comm):
    ones = np.ones(4)
    with refused("send has 2 arrays, recv 1"):
        comm.all_reduce_coalesced([ones, ones], [ones.copy()])
    with refused("array 1: recv has 3 elements, expected 4"):
        comm.all_reduce_coalesced([ones, ones], [ones.copy(), np.ones(3)])
    with refused("array 1 is of float32, those before of float64"):
        comm.all_reduce_coalesced([ones, ones.astype("float32")])
    with refused("send is one array; a list of arrays is expected"):
        comm.all_reduce_coalesced(np.ones((2, 4)))
    with refused("recv is None"):
        comm.all_gather_coalesced([ones], None)
    with refused("the array is not contiguous"):
        comm.broadcast_coalesced([np.ones((4, 4)).T[1:]])
    frozen = np.ones(4)
    frozen.flags.writeable = False
    with refused("array 1: send: the array is read-only"):
        comm.all_reduce_coalesced([ones, frozen])
    for wrong in (3, [3], [[1.0]]):
        try:
            comm.all_reduce_coalesced(wrong)
        except TypeError:
            continue
        raise AssertionError(f"{wrong!r} was taken for a list of arrays")


@case
def neighbors_of_a_ring(comm):
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    sent = np.array([[comm.rank, -1], [comm.rank, 1]])  # leftwards, rightwards
    found = np.zeros((2, 2), sent.dtype)
    comm.neighbor_all_to_all(sent, found, [left, right], [left, right])
    equal(found, np.array([[left, 1], [right, -1]]))
    # A halo of rank + 1 elements to the right, nothing to the left, in places of one's own.
    found = np.full(comm.size + 3, -1.0)
    comm.neighbor_all_to_all_v(
        np.full(comm.rank + 1, float(comm.rank)), [comm.rank + 1, 0], found, [left + 1, 0],
        sources=[left, right], destinations=[right, left], rdispls=[2, 0])
    expected = np.full(comm.size + 3, -1.0)
    expected[2 : 3 + left] = left
    equal(found, expected)
    nothing = np.zeros(0)
    comm.neighbor_all_to_all(nothing, nothing.copy(), [], [])
    with refused("send has 3 elements, expected 2"):
        comm.neighbor_all_to_all(np.zeros(3), np.zeros(2), [left, right], [left, right])
    with refused("entries for 1 neighbors"):
        comm.neighbor_all_to_all_v(nothing, [0, 0], np.zeros(1), [0], [left], [right])
    with refused("not a rank"):
        comm.neighbor_all_to_all(np.zeros(1), np.zeros(1), [left], [comm.size])


@case
def sums_that_are_the_same_everywhere(comm):
    """The left fold over the ranks, in float32; then rounded once for 16 bits."""
    def mine(rank):
        return np.random.default_rng(rank).normal(size=4097).astype("float32") * np.float32(10.0**rank)

    fold = mine(0)
    for rank in range(1, comm.size):
        fold = fold + mine(rank)
    comm.all_reduce(found := mine(comm.rank), deterministic=True)
    equal(found, fold)
    comm.all_reduce_coalesced(lists := [mine(comm.rank)[:100], mine(comm.rank)[100:]], deterministic=True)
    equal(np.concatenate(lists), fold)
    # 256 + 3 * 2/3: each alone is less than half a unit of a float16 of 2048, and lost.
    small = np.full(99, 2048 if comm.rank == 0 else 2 / 3, "float16")
    comm.all_reduce(small, one_rounding=True)
    exact = 2048 + (comm.size - 1) * float(np.float16(2 / 3))
    equal(small, np.full(99, exact).astype("float16"))


@case
def reductions_of_the_program(comm):
    def larger(left, right, dtype):
        assert isinstance(left, bytes) and dtype == "float64"
        right_numbers = np.frombuffer(right, dtype)
        np.maximum(np.frombuffer(left, dtype), right_numbers, out=right_numbers)

    op = comm.reduction("larger", larger, commutative=True)
    found = np.arange(3000.0) * (-1) ** comm.rank
    comm.all_reduce(found, op=op)
    equal(found, np.arange(3000.0))
    comm.free_op(op)
    # The operand of the lowest rank: in any other order another one would come out.
    first = comm.reduction("left", lambda left, right, dtype: right.__setitem__(slice(None), left))
    found = np.full(1000, comm.rank)
    comm.all_reduce_coalesced([found[:500], found[500:]], op=first)
    equal(found, np.zeros(1000, int))
    waiting = [comm.all_reduce(np.full(64, comm.rank), op=first, wait=False) for _ in range(50)]
    isthmus.wait_all(waiting, timeout=10)


@case
def compiled_reductions(comm):
    """The address of a function of C: memmove(inout, in) would be "left"; ctypes makes one here."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                            ctypes.c_void_p)

    def add(left, right, count, dtype, context):
        numbers = ctypes.c_int32 * count
        theirs, mine = numbers.from_address(left), numbers.from_address(right)
        for i in range(count):
            mine[i] += theirs[i]

    compiled = kind(add)
    address = ctypes.cast(compiled, ctypes.c_void_p).value
    op = comm.reduction("add", address, commutative=True)
    comm.all_reduce(found := np.full(500, comm.rank + 1, "int32"), op=op)
    equal(found, np.full(500, comm.size * (comm.size + 1) // 2, "int32"))

    class Compiled:
        pass

    holder = Compiled()
    holder.address = address
    comm.all_reduce(found, op=comm.reduction("add2", holder, True))
    for wrong in ("text", 0, None):
        try:
            comm.reduction("wrong", wrong)
        except TypeError:
            continue
        raise AssertionError(f"{wrong!r} was taken for a function")


@case
def reductions_that_raise(comm):
    def fails(left, right, dtype):
        raise ZeroDivisionError("of the program")

    for function, kind in ((fails, ZeroDivisionError), (lambda left, right, dtype: right.clear(), ValueError)):
        began = time.monotonic()
        try:
            with isthmus.Communicator(name="raising", timeout=8) as apart:
                op = apart.reduction("fails", function, commutative=True)
                apart.all_reduce(np.ones(1000), op=op)
                apart.barrier()  # whoever combined nothing learns of it here
        except kind:
            pass
        except isthmus.Error as error:
            assert error.code in (Result.ABORTED, Result.PEER_LOST), error
        else:
            raise AssertionError("nothing was raised")
        assert time.monotonic() - began < 7
        comm.barrier()
    kept = []  # what a function keeps is its own
    with isthmus.Communicator(name="keeping", timeout=8) as apart:
        op = apart.reduction("keeps", lambda left, right, dtype: kept.append(np.frombuffer(right, dtype)))
        apart.all_reduce(np.full(8, 1.0), op=op)
    assert all(set(each) == {1.0} for each in kept), kept


@case
def reductions_while_other_threads_call(comm):
    """The function wants Python's lock, which nobody may hold who waits for the library."""
    def add(left, right, dtype):
        numbers = np.frombuffer(right, dtype)
        numbers += np.frombuffer(left, dtype)

    with isthmus.Communicator(name="busy", timeout=20) as apart:
        op = apart.reduction("add", add, commutative=True)
        over = threading.Event()

        def ask():
            while not over.is_set():
                apart.wire_counters()
                apart.async_error()
                apart.progress()

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            for turn in range(100):
                request = apart.all_reduce(found := np.full(20_000, float(turn)), op=op, wait=False)
                request.add_done_callback(lambda _: None)
                request.wait()
                assert math.isclose(found[-1], turn * comm.size)
        finally:
            over.set()
            asking.join(10)


world.main()
