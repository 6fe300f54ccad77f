"""Lists of tensors in one call, and what the options of a group do to its sums."""

import torch
import torch.distributed as dist
from cases_errors import refused
from data import FLOATS, LAYOUTS, Strided, counting, same, values
from harness import case

from isthmus.torch import Options

# A few that travel together, one that goes alone, nothing.
SHAPES = [(3,), (0,), (2, 5), (1,), (40_000,), (1000,)]


def calls_of(body):
    """How many calls of the library a body makes here."""
    asked = counting(dist.group.WORLD)
    before = asked._get_sequence_number_for_group()
    body()
    return asked._get_sequence_number_for_group() - before


def together(call, arguments, **more):
    with dist._coalescing_manager(async_ops=True) as manager:
        for each in arguments:
            call(*each, **more)
    manager.wait()


@case("coalesced all-reduce of any sizes, types and layouts is one call")
def coalesced_all_reduce(world):
    for dtype in (*FLOATS, torch.int32, torch.bool, torch.complex64):
        mine = [values(world.rank, shape, dtype) for shape in SHAPES]
        got = [each.clone() for each in mine]
        assert calls_of(lambda: together(dist.all_reduce, [(each,) for each in got])) == 1
        for place, shape in enumerate(SHAPES):
            every = torch.stack([values(q, shape, dtype) for q in range(world.size)])
            same(got[place], every.any(0) if dtype is torch.bool else every.sum(0).to(dtype))
    views = [Strided(values(world.rank, 34, torch.float32), layout) for layout in LAYOUTS]
    dist.all_reduce_coalesced([each.view for each in views])
    wanted = sum(values(q, 34, torch.float32) for q in range(world.size))
    for each in views:
        each.check(wanted)
    both = [torch.full((4,), float(world.rank)), torch.full((50_000,), float(world.rank))]
    together(dist.all_reduce, [(each,) for each in both], op=dist.ReduceOp.MAX)
    same(both[1], torch.full((50_000,), 3.0))
    scaled = [torch.ones(4), torch.ones(40_000)]
    dist.all_reduce_coalesced(scaled, dist._make_nccl_premul_sum(0.5))
    same(scaled[0], torch.full((4,), 2.0))
    same(scaled[1], torch.full((40_000,), 2.0))
    refused((TypeError, ValueError), "type", lambda: dist.all_reduce_coalesced(
        [torch.ones(1), torch.ones(1).long()]))


@case("coalesced all-gather and reduce-scatter are a call for each type")
def coalesced_movement(world):
    size = world.size
    for dtypes, calls in (([torch.float32] * 6, 1), ([torch.float32, torch.int8] * 3, 2)):
        pairs = list(zip(SHAPES, dtypes))
        mine = [values(world.rank, shape, dtype) for shape, dtype in pairs]
        got = [torch.zeros(size * one.numel(), dtype=one.dtype) for one in mine]
        lists = list(zip(got, mine))
        assert calls_of(lambda: together(dist.all_gather_into_tensor, lists)) == calls
        for place, (shape, dtype) in enumerate(pairs):
            same(got[place], torch.cat([values(q, shape, dtype).flatten() for q in range(size)]))
        blocks = [values(world.rank, size * one.numel(), one.dtype) for one in mine]
        got = [torch.zeros(one.numel(), dtype=one.dtype) for one in mine]
        lists = list(zip(got, blocks))
        assert calls_of(lambda: together(dist.reduce_scatter_tensor, lists)) == calls
        for place, one in enumerate(mine):
            whole = sum(values(q, size * one.numel(), one.dtype).view(size, -1) for q in range(size))
            same(got[place], whole[world.rank].to(one.dtype))
    refused(ValueError, "output 1 has 5 elements", lambda: together(
        dist.all_gather_into_tensor, [(torch.zeros(size), torch.ones(1)), (torch.zeros(5), torch.ones(1))]))
    # In place: the own block of the output, the own block of the input.
    whole = [torch.full((size, 3), float(world.rank)), torch.full((size, 20_000), float(world.rank))]
    together(dist.all_gather_into_tensor, [(each, each[world.rank]) for each in whole])
    for each in whole:
        same(each, torch.arange(float(size))[:, None].expand_as(each))
    together(dist.reduce_scatter_tensor, [(each[world.rank], each) for each in whole])
    for each in whole:
        same(each[world.rank], torch.full(each.shape[1:], float(size * world.rank)))


def uneven(rank, dtype=torch.float32):
    generator = torch.Generator().manual_seed(rank)
    return (torch.randn(5001, generator=generator) * 10.0**rank).to(dtype)


@case("options of a group make its sums deterministic, or rounded once")  # NUM-12
def options_of_groups(world):
    fold = uneven(0)
    for rank in range(1, world.size):
        fold = fold + uneven(rank)
    with world.fresh_group(pg_options=Options(deterministic=True)) as group:
        got = uneven(world.rank)
        dist.all_reduce(got, group=group)
        same(got, fold)
        several = list(uneven(world.rank).split([1, 5000]))
        dist.all_reduce_coalesced(several, group=group)
        same(torch.cat(several), fold)
        block = torch.zeros(1250)
        dist.reduce_scatter_tensor(block, uneven(world.rank)[:5000].clone(), group=group)
        same(block, fold[world.rank * 1250 : (world.rank + 1) * 1250])
        received = torch.zeros(1)  # messages have no sums, and take no offence
        if world.rank == 0:
            dist.send(torch.ones(1), 1, group=group)
        elif world.rank == 1:
            dist.recv(received, 0, group=group)
            same(received, torch.ones(1))
        dist.barrier(group)
    # 256 and three times 2/3: each alone is less than half a unit of a bfloat16 of 256, and lost.
    with world.fresh_group(pg_options=Options(one_rounding=True)) as group:
        got = torch.full((100,), 256.0 if world.rank == 0 else 2 / 3, dtype=torch.bfloat16)
        dist.all_reduce(got, group=group)
        same(got, torch.full((100,), 258.0, dtype=torch.bfloat16))
    refused(TypeError, "isthmus.torch.Options", lambda: world.fresh_group(
        pg_options={"deterministic": True}).__enter__())
