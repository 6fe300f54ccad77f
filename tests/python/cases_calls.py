"""Every call on arrays of numpy; expected values are computed here, from the ranks' numbers alone."""

import isthmus
import numpy as np
import world
from isthmus import Op
from world import case, equal

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COUNT = 1003


def numbers(rank, dtype, count=COUNT):
    """Small whole numbers, so that sums and products are exact in every type."""
    return ((np.arange(count) * 7 + rank * 3) % 3 + 1).astype(dtype)


def of_all(comm, dtype, count=COUNT):
    return np.stack([numbers(rank, dtype, count) for rank in range(comm.size)])


@case
def all_reduce_of_every_type(comm):
    for dtype in INTEGERS + FLOATS:
        everything = of_all(comm, dtype)
        for op, reduce in ((Op.SUM, np.sum), (Op.PROD, np.prod), (Op.MIN, np.min), (Op.MAX, np.max)):
            found = np.zeros(COUNT, dtype)
            comm.all_reduce(numbers(comm.rank, dtype), found, op)
            equal(found, reduce(everything, axis=0).astype(dtype))


@case
def all_reduce_of_bits(comm):
    for dtype in INTEGERS:
        everything = of_all(comm, dtype)
        for op, reduce in ((Op.BAND, np.bitwise_and), (Op.BOR, np.bitwise_or), (Op.BXOR, np.bitwise_xor)):
            found = numbers(comm.rank, dtype)
            comm.all_reduce(found, op=op)
            equal(found, reduce.reduce(everything, axis=0))


@case
def averages_and_complex_numbers(comm):
    found = np.full(COUNT, comm.rank, "float64")
    comm.all_reduce(found, op=Op.AVG)
    equal(found, np.full(COUNT, (comm.size - 1) / 2))
    for dtype in ("complex64", "complex128"):
        found = np.full(COUNT, comm.rank + 2j, dtype)
        comm.all_reduce(found)
        equal(found, np.full(COUNT, comm.size * (comm.size - 1) / 2 + 2j * comm.size, dtype))
    flags = np.array([comm.rank == 1, False, True])
    comm.all_reduce(flags)
    equal(flags, np.array([True, False, True]))
    with world.refused("avg"):
        comm.all_reduce(np.zeros(3, "int32"), op=Op.AVG)


@case
def premultiplied_sums(comm):
    op = comm.premul_sum(np.array([comm.rank + 1.0]))
    found = np.ones(COUNT)
    comm.all_reduce(found, op=op)
    equal(found, np.full(COUNT, comm.size * (comm.size + 1) / 2))
    comm.free_op(op)
    with world.refused("unknown reduction"):
        comm.all_reduce(found, op=op)


@case
def shapes_do_not_matter(comm):
    found = np.full((3, 4, 5), comm.rank, "float32")
    comm.all_reduce(found)
    equal(found, np.full((3, 4, 5), comm.size * (comm.size - 1) / 2, "float32"))
    alone = np.array(comm.rank)  # no dimension
    comm.all_reduce(alone)
    assert alone == comm.size * (comm.size - 1) // 2
    comm.all_reduce(np.zeros((0, 7)))


@case
def broadcast_and_reduce_from_every_root(comm):
    for root in range(comm.size):
        found = numbers(comm.rank, "float32")
        comm.broadcast(found, root=root)
        equal(found, numbers(root, "float32"))
        apart = np.zeros(COUNT, "int16")
        comm.broadcast(numbers(root, "int16") if comm.rank == root else None, apart, root)
        equal(apart, numbers(root, "int16"))
        total = numbers(comm.rank, "int64")
        comm.reduce(total, root=root)
        everything = of_all(comm, "int64")
        equal(total, everything.sum(axis=0) if comm.rank == root else everything[comm.rank])


@case
def gathers(comm):
    everything = of_all(comm, "float64")
    found = np.zeros_like(everything)
    comm.all_gather(everything[comm.rank], found)
    equal(found, everything)
    in_place = np.zeros_like(everything)
    in_place[comm.rank] = numbers(comm.rank, "float64")
    comm.all_gather(in_place[comm.rank], in_place)
    equal(in_place, everything)
    for root in range(comm.size):
        found = np.zeros_like(everything) if comm.rank == root else None
        comm.gather(numbers(comm.rank, "float64"), found, root)
        if comm.rank == root:
            equal(found, everything)


@case
def scatters(comm):
    blocks = np.arange(comm.size * COUNT, dtype="int32").reshape(comm.size, COUNT)
    for root in range(comm.size):
        found = np.zeros(COUNT, "int32")
        comm.scatter(blocks + root if comm.rank == root else None, found, root)
        equal(found, blocks[comm.rank] + np.int32(root))
    found = np.zeros(COUNT, "int32")
    comm.reduce_scatter(blocks * (comm.rank + 1), found)
    equal(found, blocks[comm.rank] * np.int32(comm.size * (comm.size + 1) // 2))


@case
def all_to_all(comm):
    def block(source, target):
        return np.full(17, source * 100 + target, "uint16")

    found = np.zeros((comm.size, 17), "uint16")
    comm.all_to_all(np.stack([block(comm.rank, q) for q in range(comm.size)]), found)
    equal(found, np.stack([block(q, comm.rank) for q in range(comm.size)]))
    with world.refused("cannot be shared equally"):
        comm.all_to_all(np.zeros(comm.size + 1))


@case
def unequal_blocks(comm):
    counts = [3 * rank for rank in range(comm.size)]  # rank 0 has nothing
    mine = numbers(comm.rank, "float32", counts[comm.rank])
    all_of_them = np.concatenate([numbers(q, "float32", counts[q]) for q in range(comm.size)])
    packed = np.zeros(sum(counts), "float32")
    comm.all_gather_v(mine, packed, counts)
    equal(packed, all_of_them)
    # The last rank's block first, one element free between blocks.
    ends = np.cumsum([count + 1 for count in reversed(counts)])
    places = [int(end) - count - 1 for end, count in zip(reversed(ends), counts)]
    spread = np.full(ends[-1], -1, "float32")
    comm.all_gather_v(mine, spread, counts, places)
    for q in range(comm.size):
        equal(spread[places[q] : places[q] + counts[q]], numbers(q, "float32", counts[q]))
    assert (spread == -1).sum() == comm.size
    root = comm.size - 1
    packed = np.zeros(sum(counts), "float32") if comm.rank == root else None
    comm.gather_v(mine, packed, counts, root=root)
    if comm.rank == root:
        equal(packed, all_of_them)
    found = np.zeros(counts[comm.rank], "float32")
    comm.scatter_v(packed, counts, found, root=root)
    equal(found, mine)
    comm.reduce_scatter_v(all_of_them, found, counts)
    equal(found, mine * np.float32(comm.size))


@case
def all_to_all_with_counts(comm):
    def count(source, target):
        return (source + 2 * target) % 5

    def block(source, target):
        return np.full(count(source, target), source * 10 + target, "int64")

    send = np.concatenate([block(comm.rank, q) for q in range(comm.size)])
    receive_counts = [count(q, comm.rank) for q in range(comm.size)]
    found = np.zeros(sum(receive_counts), "int64")
    comm.all_to_all_v(send, [count(comm.rank, q) for q in range(comm.size)], found, receive_counts)
    equal(found, np.concatenate([block(q, comm.rank) for q in range(comm.size)]))


@case
def messages(comm):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    found = np.zeros(COUNT, "float32")
    sent = comm.send(numbers(comm.rank, "float32"), right, tag=7, wait=False)
    assert comm.recv(found, left, tag=7) == left
    sent.wait()
    equal(found, numbers(left, "float32"))
    if comm.rank == 0:
        sources = set()
        for _ in range(comm.size - 1):
            source = comm.recv(found, isthmus.ANY_SOURCE, tag=8)
            equal(found, numbers(source, "float32"))
            sources.add(source)
        assert sources == set(range(1, comm.size)), sources
    else:
        comm.send(numbers(comm.rank, "float32"), 0, tag=8)


@case
def small_floats_of_ml_dtypes(comm):
    types = world.needs("ml_dtypes")
    found = np.full(COUNT, comm.rank + 1, types.bfloat16)
    comm.all_reduce(found)
    equal(found, np.full(COUNT, comm.size * (comm.size + 1) // 2, types.bfloat16))
    for dtype in (types.float8_e4m3fn, types.float8_e5m2):
        found = np.zeros((comm.size, 5), dtype)
        comm.all_gather(np.full(5, comm.rank + 0.5, dtype), found)
        equal(found, np.stack([np.full(5, q + 0.5, dtype) for q in range(comm.size)]))
        with world.refused("can be moved but not reduced"):
            comm.all_reduce(found)


@case
def memory_of_the_arena(comm):
    found = isthmus.empty((COUNT, 2), "int32")
    assert found.shape == (COUNT, 2) and not found.any()
    found[:] = comm.rank
    comm.all_reduce(found)
    equal(found, np.full((COUNT, 2), comm.size * (comm.size - 1) // 2, "int32"))
    assert isthmus.empty(0).shape == (0,)


@case
def algorithms_by_name(comm):
    found = np.ones(COUNT)
    comm.all_reduce(found, algorithm="ring", name="by name", priority=3)
    equal(found, np.full(COUNT, float(comm.size)))
    with world.refused("no-such-one"):
        comm.all_reduce(found, algorithm="no-such-one")


world.main()
