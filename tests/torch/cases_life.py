"""Groups that begin and end: destroy with work in flight, abort, fork, many groups, other ranks' order."""

import contextlib
import os
import threading
import time

import torch
import torch.distributed as dist
from cases_errors import refused
from data import same
from harness import case


def _new(seconds=10):
    import datetime

    return dist.new_group(backend="isthmus", timeout=datetime.timedelta(seconds=seconds))


@case("destroy lets work in flight end")
def destroy_in_flight(world):
    group = _new()
    tensors = [torch.full((1_000_000,), float(world.rank + step)) for step in range(8)]
    for tensor in tensors:
        dist.all_reduce(tensor, group=group, async_op=True)
    dist.destroy_process_group(group)
    for step, tensor in enumerate(tensors):
        same(tensor, torch.full_like(tensor, 6.0 + 4 * step))


@case("destroy when a rank left before its part ends at once")
def destroy_after_left(world):
    group = _new(seconds=20)
    dist.barrier(group)
    world.meet()  # all have seen the barrier's end: a failure of the group would end it too
    began = time.monotonic()
    handle = None
    if world.rank != 2:
        handle = dist.all_reduce(torch.ones(1000), group=group, async_op=True)
    # Raises where the call was still in flight: else its end was known before.
    with contextlib.suppress(RuntimeError):
        dist.destroy_process_group(group)
    assert time.monotonic() - began < 8
    if handle is not None:
        refused(RuntimeError, "all_reduce|rank 2", handle.wait)
    group._get_backend(torch.device("cpu")).shutdown()
    world.meet()


@case("destroy when a rank never comes ends by the timeout, with the error")
def destroy_alone(world):
    group = _new(seconds=2)
    dist.barrier(group)
    if world.rank != 2:
        handle = dist.all_reduce(torch.ones(1000), group=group, async_op=True)
        began = time.monotonic()
        refused(RuntimeError, "timeout|all_reduce|rank 2", dist.destroy_process_group, group)
        assert time.monotonic() - began < 8
        refused(RuntimeError, "timeout|all_reduce|rank 2", handle.wait)
    world.meet()
    dist.destroy_process_group(group)  # again: what torch itself keeps of it goes now
    world.meet()


@case("abort ends a wait on another thread, and the group")
def abort(world):
    with world.fresh_group(seconds=15) as group:
        dist.barrier(group)
        if world.rank == 0:
            time.sleep(0.3)
        else:
            handle = dist.all_reduce(torch.ones(4), group=group, async_op=True)
            plain = group._get_backend(torch.device("cpu"))
            stopper = threading.Timer(0.3, plain.abort)
            stopper.start()
            began = time.monotonic()
            refused(RuntimeError, "", handle.wait)
            assert time.monotonic() - began < 5
            stopper.join()
            refused(RuntimeError, "", dist.all_reduce, torch.ones(1), group=group)
            plain.abort()
        world.meet()


@case("shutdown twice, calls afterwards")
def shutdown_twice(world):
    group = _new()
    dist.barrier(group)
    plain = group._get_backend(torch.device("cpu"))
    dist.destroy_process_group(group)
    plain.shutdown()
    plain.shutdown()
    plain.abort()
    refused(RuntimeError, "destroyed", plain.allreduce, [torch.ones(1)])


@case("the wrong torch is named before anything is opened")
def another_torch(world):
    from isthmus.torch import loader

    built = loader.built_versions(loader.folder())
    assert tuple(map(int, torch.__version__.split(".")[:2])) in built
    words = f"built for torch {built[0][0]}.{built[0][1]}|found torch 2.1.0+cpu; install"
    refused(ImportError, words, loader.path_for, "2.1.0+cpu")
    refused(ImportError, "no torch at all", loader.path_for, "2.15.0", world.folder)


@case("many groups, first used in another order")
def many_groups(world):
    groups = [_new() for _ in range(30)]
    order = torch.randperm(30, generator=torch.Generator().manual_seed(5)).tolist()
    for index in order:
        mine = torch.full((2,), float(world.rank + index))
        dist.all_reduce(mine, group=groups[index])
        same(mine, torch.full((2,), 6.0 + 4 * index))
    for group in groups:
        dist.destroy_process_group(group)


@case("threads use different groups at once")
def threads(world):
    groups = [_new() for _ in range(3)]
    wrong = []

    def work(index):
        try:
            for step in range(30):
                mine = torch.full((50 + index,), float(world.rank + step))
                dist.all_reduce(mine, group=groups[index])
                same(mine, torch.full_like(mine, 6.0 + 4 * step))
        except BaseException as error:  # noqa: BLE001 - told below
            wrong.append(error)

    running = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(30)
    assert not wrong, wrong
    for group in groups:
        dist.destroy_process_group(group)


@case("a forked child is harmless and is told")
def fork(world):
    dist.all_reduce(torch.ones(4))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(4))
            answer = "no error"
        except RuntimeError as error:
            answer = str(error)
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    answer = os.read(read, 4096).decode()
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    assert "not usable after fork" in answer, answer
    mine = torch.full((4,), float(world.rank))
    dist.all_reduce(mine)
    same(mine, torch.full((4,), 6.0))


@case("thousands of small calls with changing roots")  # NUM-23
def churn(world):
    choice = torch.Generator().manual_seed(99)
    for step in range(1500):
        kind = int(torch.randint(0, 5, (1,), generator=choice))
        root = int(torch.randint(0, world.size, (1,), generator=choice))
        n = [1, 2, 3, 64, 4096][int(torch.randint(0, 5, (1,), generator=choice))]
        mine = torch.full((n,), float(world.rank + step))
        if kind == 0:
            dist.broadcast(mine, root)
            wanted = float(root + step)
        elif kind == 1:
            dist.all_reduce(mine)
            wanted = 6.0 + 4 * step
        elif kind == 2:
            dist.reduce(mine, root)
            wanted = 6.0 + 4 * step if world.rank == root else float(world.rank + step)
        elif kind == 3:
            whole = torch.empty(world.size * n)
            dist.all_gather_into_tensor(whole, mine)
            mine, wanted = whole[root * n : (root + 1) * n], float(root + step)
        else:
            dist.barrier()
            wanted = float(world.rank + step)
        assert mine[0].item() == wanted and mine[-1].item() == wanted, (step, kind, root, n)
