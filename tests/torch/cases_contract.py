"""What torch asks of every backend: a case for each test of its suites that any backend may join
(collectives, point to point, process group; test/distributed of torch 2.14 and later), under its name.
Torch's code is not in the wheel and none of it is here.

Not here, for want of a GPU: test_collective_preserves_current_device, test_all_gather_mixed_devices,
test_all_to_all_rejects_mixed_devices, test_sync_barrier_blocks_host_on_stream (cases_device_order.py has
the like on a device of tests), test_split_group, test_split_group_full_partition. Not kept:
test_work_wait_is_stream_ordered, as our wait() blocks the host like gloo's;
test_noncontiguous_all_to_all_error, as we take such tensors: "strided" cases check their values."""

import itertools
import math
import warnings

import torch
import torch.distributed as dist
from data import TORCH, same
from harness import Skip, case

Op = dist.ReduceOp
COUNTS = (0, 4)
TYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.int8, torch.uint8, torch.int32, torch.int64,
]
FLOAT_OPS = {Op.SUM: sum, Op.PRODUCT: math.prod, Op.MIN: min, Op.MAX: max}
INTEGER_OPS = {
    **FLOAT_OPS,
    Op.BAND: lambda two: two[0] & two[1],
    Op.BOR: lambda two: two[0] | two[1],
    Op.BXOR: lambda two: two[0] ^ two[1],
}


def contract(name):
    return case(f"contract: {name}", ranks=2)


def single(new, old):
    """The name of 2.13 and later, or the one before."""
    return getattr(dist, new, None) or getattr(dist, old)


def filled(rank, count, dtype):
    """Rank 0 holds 1, rank 1 holds 2."""
    return torch.full((count,), rank + 1).to(dtype)


def both(count, dtype):
    return [filled(rank, count, dtype) for rank in range(2)]


def end(work, is_async):
    """A call that was asked to wait returns nothing to wait for."""
    assert (work is not None) == is_async, work
    if is_async:
        work.wait()
        assert work.is_completed()


def forms(types=TYPES):
    return itertools.product(COUNTS, types, (False, True))


def reductions():
    for count, dtype, is_async in forms():
        ops = FLOAT_OPS if dtype.is_floating_point else INTEGER_OPS
        for op, combine in ops.items():
            yield count, dtype, is_async, op, torch.full((count,), combine([1, 2])).to(dtype)
        if dtype.is_floating_point:
            yield count, dtype, is_async, Op.AVG, torch.full((count,), 1.5).to(dtype)


def broadcast(world, count, dtype, is_async):
    mine = filled(world.rank, count, dtype)
    end(dist.broadcast(mine, 0, async_op=is_async), is_async)
    same(mine, filled(0, count, dtype))


def all_gather(world, count, dtype, is_async):
    mine = filled(world.rank, count, dtype)
    got = [torch.empty_like(mine) for _ in range(2)]
    end(dist.all_gather(got, mine, async_op=is_async), is_async)
    for one, wanted in zip(got, both(count, dtype), strict=True):
        same(one, wanted)


def all_gather_single(world, count, dtype, is_async):
    got = torch.empty(2 * count, dtype=dtype)
    call = single("all_gather_single", "all_gather_into_tensor")
    end(call(got, filled(world.rank, count, dtype), async_op=is_async), is_async)
    same(got, torch.cat(both(count, dtype)))


def gather(world, count, dtype, is_async):
    mine = filled(world.rank, count, dtype)
    got = [torch.empty_like(mine) for _ in range(2)] if world.rank == 0 else None
    end(dist.gather(mine, got, 0, async_op=is_async), is_async)
    for one, wanted in zip(got or [], both(count, dtype)):
        same(one, wanted)


def scatter(world, count, dtype, is_async):
    got = torch.empty(count, dtype=dtype)
    parts = both(count, dtype) if world.rank == 0 else None
    end(dist.scatter(got, parts, 0, async_op=is_async), is_async)
    same(got, filled(world.rank, count, dtype))


def all_to_all(world, count, dtype, is_async):
    got = [torch.empty(count, dtype=dtype) for _ in range(2)]
    parts = [filled(world.rank, count, dtype) for _ in range(2)]
    end(dist.all_to_all(got, parts, async_op=is_async), is_async)
    for one, wanted in zip(got, both(count, dtype), strict=True):
        same(one, wanted)


def all_to_all_single(world, count, dtype, is_async):
    got = torch.empty(2 * count, dtype=dtype)
    mine = torch.cat([filled(world.rank, count, dtype)] * 2)
    end(dist.all_to_all_single(got, mine, async_op=is_async), is_async)
    same(got, torch.cat(both(count, dtype)))


MOVES = [broadcast, all_gather, all_gather_single, gather, scatter, all_to_all, all_to_all_single]


def _add_move(move):
    @contract(f"test_{move.__name__}")
    def run(world):
        for form in forms():
            move(world, *form)


for _move in MOVES:
    _add_move(_move)


@contract("test_float8_transport")
def float8(world):
    for move in MOVES:
        for dtype, is_async in itertools.product(
            (torch.float8_e4m3fn, torch.float8_e5m2), (False, True)
        ):
            move(world, 4, dtype, is_async)


@contract("test_gather_single")
def gather_single(world):
    if not hasattr(dist, "gather_single"):
        raise Skip("this torch has no gather_single")
    for count, dtype, is_async in forms():
        for shape in ((2 * count,), (2, count)):
            got = torch.empty(shape, dtype=dtype) if world.rank == 0 else None
            work = dist.gather_single(
                filled(world.rank, count, dtype), got, dst=0, async_op=is_async
            )
            end(work, is_async)
            if got is not None:
                same(got, torch.cat(both(count, dtype)).view(shape))
    if world.rank == 0:
        raises((RuntimeError, ValueError), dist.gather_single, torch.ones(4), torch.empty(4), dst=0)


@contract("test_gather_into_tensor_deprecated")
def gather_into_tensor(world):
    if not hasattr(dist, "gather_into_tensor"):
        raise Skip("this torch has no gather_into_tensor")
    got = torch.empty(8) if world.rank == 0 else None
    with warnings.catch_warnings(action="ignore"):
        dist.gather_into_tensor(filled(world.rank, 4, torch.float32), got, dst=0)
    if got is not None:
        same(got, torch.cat(both(4, torch.float32)))


def raises(kinds, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kinds as error:
        return str(error)
    raise AssertionError(f"{call.__name__} took what it has to refuse")


@contract("test_all_to_all_single_split_sizes")
def split_sizes(world):
    for is_async in (False, True):
        sends = [world.rank + 1, world.rank + 2]
        got = torch.empty(sum(sends))
        mine = torch.full((sum(sends),), float(world.rank))
        work = dist.all_to_all_single(got, mine, sends, sends, async_op=is_async)
        end(work, is_async)
        same(got, torch.tensor([0.0] * sends[0] + [1.0] * sends[1]))


@contract("test_all_reduce")
def all_reduce(world):
    for count, dtype, is_async, op, wanted in reductions():
        mine = filled(world.rank, count, dtype)
        end(dist.all_reduce(mine, op, async_op=is_async), is_async)
        same(mine, wanted)


@contract("test_reduce")
def reduce(world):
    for count, dtype, is_async, op, wanted in reductions():
        mine = filled(world.rank, count, dtype)
        end(dist.reduce(mine, 0, op, async_op=is_async), is_async)
        same(mine, wanted if world.rank == 0 else filled(1, count, dtype))


@contract("test_reduce_scatter")
def reduce_scatter(world):
    for count, dtype, is_async, op, wanted in reductions():
        got = torch.empty(count, dtype=dtype)
        parts = [filled(world.rank, count, dtype) for _ in range(2)]
        end(dist.reduce_scatter(got, parts, op, async_op=is_async), is_async)
        same(got, wanted)


@contract("test_reduce_scatter_single")
def reduce_scatter_single(world):
    call = single("reduce_scatter_single", "reduce_scatter_tensor")
    for count, dtype, is_async, op, wanted in reductions():
        got = torch.empty(count, dtype=dtype)
        mine = torch.cat([filled(world.rank, count, dtype)] * 2)
        end(call(got, mine, op, async_op=is_async), is_async)
        same(got, wanted)


@contract("test_barrier")
def barrier(world):
    for is_async in (False, True):
        work = dist.barrier(async_op=is_async)
        assert (work is not None) == is_async
        if is_async:
            work.wait()


@contract("test_all_reduce_coalesced")
def all_reduce_coalesced(world):
    for dtype, is_async in itertools.product(TYPES, (False, True)):
        mine = [filled(world.rank, count, dtype) for count in (1, 2, 3)]
        with warnings.catch_warnings(action="ignore"):
            work = dist.all_reduce_coalesced(mine, async_op=is_async)  # torch gives a future
        assert (work is not None) == is_async
        if is_async:
            work.wait()
        for one in mine:
            same(one, torch.full_like(one, 3))


@contract("test_coalescing_manager")
def coalescing_manager(world):
    gather_one = single("all_gather_single", "all_gather_into_tensor")
    scatter_one = single("reduce_scatter_single", "reduce_scatter_tensor")
    for is_async in (False, True):
        counts = (1, 2, 3)
        sums = [filled(world.rank, n, torch.float32) for n in counts]
        gathered = [torch.empty(2 * n) for n in counts]
        scattered = [torch.empty(n) for n in counts]
        for calls in (
            [(dist.all_reduce, (one,)) for one in sums],
            [(gather_one, (to, filled(world.rank, to.numel() // 2, torch.float32))) for to in gathered],
            [(scatter_one, (to, filled(world.rank, 2 * to.numel(), torch.float32))) for to in scattered],
        ):
            with dist._coalescing_manager(device=torch.device("cpu"), async_ops=is_async) as manager:
                for call, arguments in calls:
                    call(*arguments)
            assert len(manager.works) == int(is_async), manager.works
            manager.wait()
        for n, total, both_ranks, part in zip(counts, sums, gathered, scattered, strict=True):
            same(total, torch.full((n,), 3.0))
            same(both_ranks, torch.cat(both(n, torch.float32)))
            same(part, torch.full((n,), 3.0))


@contract("test_complex_collectives")
def complex_collectives(world):
    for dtype, is_async in itertools.product((torch.complex64, torch.complex128), (False, True)):
        broadcast(world, 4, dtype, is_async)
        for op, value in ((Op.SUM, 3), (Op.AVG, 1.5)):
            mine = filled(world.rank, 4, dtype)
            end(dist.all_reduce(mine, op, async_op=is_async), is_async)
            same(mine, torch.full((4,), value, dtype=dtype))
            mine = filled(world.rank, 4, dtype)
            end(dist.reduce(mine, 0, op, async_op=is_async), is_async)
            if world.rank == 0:
                same(mine, torch.full((4,), value, dtype=dtype))


@contract("test_mismatched_dtypes")
def mismatched_dtypes(world):
    one, two = torch.ones(4), torch.empty(8, dtype=torch.float64)
    kinds = (RuntimeError, TypeError, ValueError)
    raises(kinds, single("all_gather_single", "all_gather_into_tensor"), two, one)
    raises(kinds, single("reduce_scatter_single", "reduce_scatter_tensor"), one, two)
    raises(kinds, dist.all_to_all_single, two, one)
    barrier_work = dist.barrier(async_op=True)
    barrier_work.wait()  # nothing was begun: the order of calls is as before
