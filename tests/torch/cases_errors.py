"""What is refused, where, and in which words. A refusal happens before any byte moves: the group
works afterwards."""

import datetime
import time

import torch
import torch.distributed as dist
from data import TORCH, same
from harness import case

Op = dist.ReduceOp


def refused(kinds, words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kinds as error:
        for word in words.split("|"):
            assert word in str(error), f"{word!r} is not in: {error}"
        return str(error)
    raise AssertionError(f"not refused; wanted an error with {words!r}")


def still_works(world, group=None):
    mine = torch.full((3,), 1.0)
    dist.all_reduce(mine, group=group)
    same(mine, torch.full((3,), float(world.size)))


def backend():
    return dist.group.WORLD._get_backend(torch.device("cpu"))


@case("wrong arguments are refused at once")  # NUM-18
def wrong_arguments(world):
    half, single = torch.ones(4, dtype=torch.float16), torch.ones(4)
    size = world.size
    plain = backend()
    refused(TypeError, "Half|Float", plain.allgather, [[single.clone()] * size], [half])
    refused(TypeError, "Int|Float", plain.allgather, [[single.int()] * size], [single])
    refused(TypeError, "Long|Int", plain.allgather, [[half.int()] * size], [half.long()])
    refused(
        (ValueError, RuntimeError), "elements", plain.allgather, [[torch.ones(5)] * size], [single]
    )
    refused(
        (ValueError, RuntimeError),
        "",
        dist.all_gather_into_tensor,
        torch.ones(size * 4 + 1),
        single,
    )
    refused((ValueError, RuntimeError), "", dist.reduce_scatter_tensor, torch.ones(3), single)
    refused((ValueError, RuntimeError), "", dist.all_to_all_single, torch.ones(5), torch.ones(5))
    refused(
        (ValueError, RuntimeError),
        "splits add up",
        dist.all_to_all_single,
        single,
        single,
        [1] * size,
        [0] * size,
    )
    refused(
        ValueError,
        "root",
        plain.broadcast,
        [single],
        broadcast_options(size),
    )
    refused(NotImplementedError, "SparseCPU", dist.broadcast, torch.eye(3).to_sparse(), 0)
    refused(RuntimeError, "expanded", dist.all_reduce, torch.ones(1).expand(4))
    still_works(world)


def broadcast_options(root):
    options = dist.BroadcastOptions()
    options.rootRank = root
    return options


@case("operations that a type has not")  # NUM-08, NUM-14
def wrong_operations(world):
    for dtype in (torch.float32, torch.bfloat16):
        for op in (Op.BAND, Op.BOR, Op.BXOR):
            refused(ValueError, "integers", dist.all_reduce, torch.ones(2, dtype=dtype), op)
    for dtype in (torch.int32, torch.int64, torch.uint8, torch.bool):
        refused(RuntimeError, "AVG", dist.all_reduce, torch.ones(2).to(dtype), Op.AVG)
    both = torch.ones(2, dtype=torch.complex64)
    options = dist.AllreduceOptions()
    for op in (Op.MAX, Op.MIN, Op.PRODUCT, Op.BAND):
        options.reduceOp = op
        refused(ValueError, "ComplexFloat", backend().allreduce, [both], options)
    refused(RuntimeError, "Float8", dist.all_reduce, torch.ones(2).to(torch.float8_e5m2))
    still_works(world)


def disagree(world, calls, words):
    """Each rank makes its own of `calls`; all must get an error with `words`, soon."""
    with world.fresh_group(seconds=10) as group:
        still_works(world, group)
        world.meet()  # or the failure may reach a rank that is still inside the call before
        began = time.monotonic()
        refused(RuntimeError, words, calls[world.rank], group)
        assert time.monotonic() - began < 5, "the error came late"
        world.meet()
        refused(RuntimeError, "", dist.all_reduce, torch.ones(1), group=group)  # it stays failed


@case("ranks that disagree: count")  # NUM-26
def disagree_count(world):
    counts = [4, 4, 6, 4]
    disagree(
        world, [lambda g, n=n: dist.all_reduce(torch.ones(n), group=g) for n in counts], "all"
    )


@case("ranks that disagree: operation")  # NUM-26
def disagree_operation(world):
    def reduces(group):
        dist.reduce(torch.ones(4), 0, group=group)

    def all_reduces(group):
        dist.all_reduce(torch.ones(4), group=group)

    disagree(world, [all_reduces, reduces, all_reduces, all_reduces], "reduce")


@case("ranks that disagree: root")  # NUM-26
def disagree_root(world):
    roots = [0, 0, 0, 1]
    disagree(
        world, [lambda g, r=r: dist.broadcast(torch.ones(4), r, group=g) for r in roots], "broadcast"
    )


@case("ranks that disagree: type")  # NUM-26
def disagree_type(world):
    kinds = [torch.float32, torch.float32, torch.int32, torch.float32]
    disagree(
        world,
        [lambda g, k=k: dist.all_reduce(torch.ones(4, dtype=k), group=g) for k in kinds],
        "all",
    )


@case("ranks that disagree: dense and sparse")  # NUM-26
def disagree_layout(world):
    def dense(group):
        dist.all_reduce(torch.ones(4), group=group)

    def sparse(group):
        dist.all_reduce(torch.eye(4).to_sparse(), group=group)

    disagree(world, [dense, sparse, dense, dense], "all_reduce|all_gather|rank 1")


@case("a missing rank is named at the deadline")
def missing(world):
    with world.fresh_group(seconds=2) as group:
        still_works(world, group)
        if world.rank != 3:
            began = time.monotonic()
            refused(RuntimeError, " timeout ", dist.all_reduce, torch.ones(2), group=group)
            assert time.monotonic() - began < 8
        world.meet()


def barrier(group, timeout=None, wait_all_ranks=False):
    """torch's monitored_barrier, also where it refuses every backend but gloo."""
    if TORCH >= (2, 15):
        dist.monitored_barrier(group, timeout, wait_all_ranks)
    else:
        own = group._get_backend(torch.device("cpu"))
        own.monitored_barrier(timeout or datetime.timedelta(seconds=10), wait_all_ranks)


@case("monitored barrier names who is missing")  # HANG-12
def monitored(world):
    with world.fresh_group(seconds=10) as group:
        barrier(group)
        soon = datetime.timedelta(seconds=1)
        if world.rank == 0:
            refused(
                RuntimeError,
                "Ranks 1, 3 failed to pass monitoredBarrier in 1000 ms",
                barrier,
                group,
                soon,
                wait_all_ranks=True,
            )
        elif world.rank == 2:
            refused(
                RuntimeError,
                "check rank 0 logs for faulty rank",
                barrier,
                group,
                soon,
                wait_all_ranks=True,
            )
        world.meet()
        still_works(world, group)  # nothing of the data path was hurt
