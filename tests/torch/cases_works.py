"""Works and futures as torch's own code uses them."""

import datetime
import gc
import time

import torch
import torch.distributed as dist
from cases_errors import backend, refused, still_works
from data import TORCH, counting, same
from harness import case


def total(world):
    return float(sum(range(world.size)))


@case("work: wait, completion, result, future")
def work(world):
    mine = torch.full((1000,), float(world.rank))
    handle = dist.all_reduce(mine, async_op=True)
    value = handle.get_future().then(lambda done: done.value()[0].sum().item()).wait()
    assert value == 1000 * total(world)
    assert handle.wait() and handle.is_completed() and handle.is_success()
    same(handle.result()[0], torch.full((1000,), total(world)))
    late = handle.get_future()
    assert late.done() and late.value()[0].data_ptr() == mine.data_ptr()
    assert handle.get_future_result().wait() == 0  # success
    assert handle._get_duration() >= 0


@case("work: an early drop does not cancel")
def dropped(world):
    kept = [torch.full((50_000,), float(world.rank + step)) for step in range(8)]
    for tensor in kept:
        dist.all_reduce(tensor, async_op=True)
    gc.collect()
    dist.barrier()
    until = time.monotonic() + 10
    for step, tensor in enumerate(kept):
        wanted = total(world) + world.size * step
        while tensor[-1].item() != wanted and time.monotonic() < until:
            time.sleep(0.01)
        same(tensor, torch.full_like(tensor, wanted))


@case("work: many in flight, waited in any order")
def many(world):
    tensors = [torch.full((n,), float(world.rank)) for n in range(1, 120)]
    handles = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for handle in reversed(handles):
        handle.wait()
    for tensor in tensors:
        same(tensor, torch.full_like(tensor, total(world)))


@case("work: polling completes without a wait")
def polled(world):
    mine = torch.ones(10)
    handle = dist.all_reduce(mine, async_op=True)
    until = time.monotonic() + 10
    while not handle.is_completed() and time.monotonic() < until:
        time.sleep(0.001)
    assert handle.is_completed()
    same(mine, torch.full((10,), float(world.size)))


@case("work: a wait that is too short leaves the call going")
def short_wait(world):
    mine = torch.ones(4)
    if world.rank == 0:
        time.sleep(0.6)
    handle = dist.all_reduce(mine, async_op=True)
    if world.rank != 0:
        refused(RuntimeError, "timed out|goes on", handle.wait, datetime.timedelta(milliseconds=50))
    handle.wait()
    same(mine, torch.full((4,), float(world.size)))


@case("work: errors reach future, exception and wait")
def failing(world):
    with world.fresh_group(seconds=2) as group:
        still_works(world, group)
        if world.rank != 3:
            handle = dist.all_reduce(torch.ones(4), async_op=True, group=group)
            future = handle.get_future()
            refused(RuntimeError, "all_reduce", handle.wait)
            assert handle.is_completed() and not handle.is_success()
            refused(RuntimeError, "all_reduce", future.wait)
            assert handle.get_future_result().wait() != 0
            assert group._get_backend(torch.device("cpu")) is not None
        world.meet()


@case("sequence numbers begin at 0 and rise by one")
def sequence(world):
    with world.fresh_group() as group:
        asked = counting(group)
        assert asked._get_sequence_number_for_group() == 0
        for step in range(1, 4):
            handle = dist.all_reduce(torch.ones(1), group=group, async_op=True)
            handle.wait()
            assert asked._get_sequence_number_for_group() == step
            if TORCH >= (2, 15):  # Python sees a work's number
                assert handle._get_sequence_number() == step


@case("profiler sees our titles")
def profiled(world):
    with torch.autograd.profiler.profile() as seen:
        dist.all_reduce(torch.ones(3))
        dist.all_gather([torch.ones(1) for _ in range(world.size)], torch.ones(1))
        dist.barrier()
    names = {event.name for event in seen.function_events}
    assert {"isthmus:all_reduce", "isthmus:all_gather", "isthmus:barrier"} <= names, names


@case("backend: name, options, memory")
def described(world):
    plain = backend()
    assert plain.name() == "isthmus" and dist.get_backend() == "isthmus"
    assert plain.supports_coalescing and not plain.supports_splitting
    if TORCH >= (2, 15):  # Python sees no options before
        one, other = plain.options, plain.options
        one._timeout = datetime.timedelta(seconds=1)
        assert other._timeout != one._timeout, "options must be a copy"
    assert plain.supports_tensor_alloc(torch.device("cpu"))
    shared = plain.allocate_tensor(1000, dtype=torch.bfloat16, device=torch.device("cpu"))
    assert shared.shape == (1000,) and shared.dtype == torch.bfloat16
    shared.fill_(world.rank)
    dist.all_reduce(shared)
    same(shared, torch.full((1000,), total(world), dtype=torch.bfloat16))
    refused(RuntimeError, "twice", lambda: [plain._start_coalescing() for _ in range(2)])
    plain._end_coalescing()
