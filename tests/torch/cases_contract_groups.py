"""The contract of cases_contract.py, second part: point to point and process groups."""

import math

import torch
import torch.distributed as dist
from cases_contract import COUNTS, TYPES, contract, raises
from data import TORCH, counting, same


def full(count, dtype, value):
    return torch.full((count,), value).to(dtype)


def exchanged(world, count, dtype):
    other = 1 - world.rank
    mine = full(count, dtype, world.rank)
    return other, mine, torch.empty_like(mine), full(count, dtype, other)


@contract("test_send_recv")
def send_recv(world):
    for count in COUNTS:
        for dtype in TYPES:
            other, mine, got, wanted = exchanged(world, count, dtype)
            if world.rank == 0:
                dist.send(mine, other)
                assert dist.recv(got, other) == other
            else:
                assert dist.recv(got, other) == other
                dist.send(mine, other)
            same(got, wanted)


@contract("test_isend_irecv")
def isend_irecv(world):
    for count in COUNTS:
        for dtype in TYPES:
            other, mine, got, wanted = exchanged(world, count, dtype)
            works = [dist.isend(mine, other), dist.irecv(got, other)]
            for work in works if world.rank == 0 else reversed(works):
                work.wait()
            same(got, wanted)


@contract("test_batch_isend_irecv")
def batch(world):
    other = 1 - world.rank
    for dtype in TYPES:
        for receives_first in (False, True):
            for pairs in (1, 2):
                sends = [full(1, dtype, world.rank + 100 * i) for i in range(pairs)]
                gets = [torch.empty_like(sends[0]) for _ in range(pairs)]
                calls = []
                for send, get in zip(sends, gets, strict=True):
                    pair = [dist.P2POp(dist.isend, send, other), dist.P2POp(dist.irecv, get, other)]
                    calls += reversed(pair) if receives_first else pair
                for work in dist.batch_isend_irecv(calls):
                    work.wait()
                for i, get in enumerate(gets):
                    same(get, full(1, dtype, other + 100 * i))


@contract("test_async_work_lifetime (point to point)")
def dropped_send(world):
    other, mine, got, wanted = exchanged(world, 4, torch.float32)
    dist.isend(mine, other)  # nobody keeps it
    dist.irecv(got, other).wait()
    same(got, wanted)


@contract("test_new_group_rank_normalization")
def rank_normalization(world):
    numbers = [torch.tensor(0), torch.tensor(1)] if TORCH >= (2, 15) else [0, 1]  # 2.11 takes them as they are
    group = dist.new_group(ranks=numbers, backend="isthmus")
    assert dist.get_process_group_ranks(group) == [0, 1]
    mine = torch.tensor([world.rank])
    dist.broadcast(mine, 0, group=group)
    same(mine, torch.tensor([0]))
    if TORCH >= (2, 15):  # 2.11 takes it
        raises(ValueError, dist.new_group, ranks=[0, 0])
    dist.destroy_process_group(group)


@contract("test_sequence_numbers, test_work_sequence_number")
def sequence_numbers(world):
    with world.fresh_group() as group, world.fresh_group() as other:
        asked = counting(group)
        assert asked._get_sequence_number_for_group() == 0
        for number in range(1, 4):
            work = dist.all_reduce(torch.ones(1), group=group, async_op=True)
            if TORCH >= (2, 15):  # Python sees a work's number
                assert work._get_sequence_number() == number
            assert asked._get_sequence_number_for_group() == number
            work.wait()
        assert counting(other)._get_sequence_number_for_group() == 0


@contract("test_work_duration")
def work_duration(world):
    work = dist.all_reduce(torch.ones(1024), async_op=True)
    work.wait()
    duration = work._get_duration()
    assert duration > 0 and math.isfinite(duration)


@contract("test_different_group_initialization_order")
def initialization_order(world):
    full_group = dist.new_group([0, 1], backend="isthmus")
    alone = dist.new_group([0], backend="isthmus")
    if world.rank == 0:
        mine = torch.ones(1)
        dist.all_reduce(mine, group=alone)
        same(mine, torch.ones(1))
    dist.barrier(group=full_group)
    for group in (alone, full_group):
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)


@contract("test_wait_unregisters_work")
def registry(world):
    from torch._C import _distributed_c10d as native
    from torch.distributed import _functional_collectives as functional

    with functional.allow_inflight_collective_as_graph_input_ctx():
        before = native._get_work_registry_size()
        work = dist.all_reduce(torch.ones(1), async_op=True)
        assert native._get_work_registry_size() == before + 1
        work.wait()
        assert native._get_work_registry_size() == before


@contract("test_async_work_lifetime")
def lifetime(world):
    mine = full(4, torch.float32, world.rank + 1)
    dist.all_reduce(mine, async_op=True)  # nobody keeps the work
    dist.barrier()
    same(mine, torch.full((4,), 3.0))
    dist.all_reduce(torch.ones(4), async_op=True)  # nor the tensor
    dist.barrier()


@contract("test_work_future, test_work_result_future")
def futures(world):
    from torch._C._distributed_c10d import WorkResult

    mine = full(4, torch.float32, world.rank + 1)
    work = dist.all_reduce(mine, async_op=True)
    value = work.get_future().wait()
    same(value[0], torch.full((4,), 3.0))
    same(mine, value[0])
    assert WorkResult(work.get_future_result().wait()) == WorkResult.SUCCESS
    assert work.is_completed()
