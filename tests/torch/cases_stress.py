"""Lives of groups under load: made and ended many times, forked amid calls, overlapping, one rank far ahead.
A few repetitions by default; TESTS_WHOLE=1 in the environment asks for all."""

import contextlib
import gc
import os
import random
import time

import torch
import torch.distributed as dist
from data import same
from harness import case, count_of

KILOBYTES = os.sysconf("SC_PAGE_SIZE") // 1024


def _resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * KILOBYTES


class Grown:
    """What a stretch of a case left behind in this process: descriptors, threads, kilobytes."""

    def __init__(self):
        self._before = self._now()

    @staticmethod
    def _now():
        gc.collect()
        kinds = [len(os.listdir(f"/proc/self/{each}")) for each in ("fd", "task")]
        return [*kinds, _resident()]

    def check(self, kilobytes):
        until = time.monotonic() + 5  # threads of groups that are gone end by themselves
        while True:
            grown = [now - then for now, then in zip(self._now(), self._before, strict=True)]
            if (grown[0] <= 0 and grown[1] <= 0) or time.monotonic() > until:
                break
            time.sleep(0.05)
        assert grown[0] <= 0 and grown[1] <= 0 and grown[2] <= kilobytes, (
            f"descriptors, threads, kilobytes grew by {grown}"
        )


@case("stress: groups made and destroyed again and again")
def groups_again(world):
    rounds = count_of(40, 1000)
    grown = None
    for turn in range(rounds):
        if turn == rounds // 2:
            grown = Grown()
        with world.fresh_group() as group:
            mine = torch.full((100,), float(world.rank + turn))
            dist.all_reduce(mine, group=group)
            same(mine, torch.full((100,), 6.0 + 4 * turn))
    world.meet()
    grown.check(kilobytes=count_of(2048, 8192))


@case("stress: groups dropped with a call in flight and without a word")
def groups_dropped(world):
    import isthmus.torch

    store = dist.PrefixStore("dropped", dist.distributed_c10d._get_default_store())
    rounds = count_of(20, 1000)
    grown = None
    for turn in range(rounds):
        if turn == rounds // 2:
            grown = Grown()
        # As torch does it, but for the registry that would keep the group.
        group = dist.ProcessGroup(dist.PrefixStore(str(turn), store), world.rank, world.size)
        isthmus.torch._operators().attach(group.boxed(), 20_000, f"dropped {turn}", [], False, False)
        plain = group._get_backend(torch.device("cpu"))
        mine = torch.full((1000,), float(world.rank + turn))
        works = [plain.allreduce([mine]), plain.barrier()] if turn % 2 else [plain.allreduce([mine])]
        if turn % 3 == 0:
            works[-1].wait()
        del group, plain
        if turn % 5 == 0:  # nobody keeps the call either: its group may wait for it, and no longer
            del works
            continue
        for work in works:
            work.wait()
        same(mine, torch.full((1000,), 6.0 + 4 * turn))
        del work, works
    world.meet()
    grown.check(kilobytes=count_of(2048, 8192))


@case("stress: forks while calls are in flight")  # HANG-10
def forks(world):
    for turn in range(count_of(15, 200)):
        tensors = [torch.full((3000,), float(world.rank + turn + each)) for each in range(8)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        child = os.fork()
        if child == 0:
            del works, tensors  # ends what it has of them, as the end of a worker does
            told = 0
            with contextlib.suppress(RuntimeError):
                dist.barrier()
                told = 1
            os._exit(told)
        for each, work in enumerate(works):
            work.wait()
            same(tensors[each], torch.full((3000,), 6.0 + 4 * (turn + each)))
        assert os.waitpid(child, 0)[1] == 0


def _issue(kind, size, group, members, turn, rank):
    """Starts one call; returns it with a function that says whether its result is right."""
    mine = torch.full((size,), float(rank + turn))
    if kind == 0:
        work = dist.all_reduce(mine, group=group, async_op=True)
        return work, lambda: same(mine, torch.full((size,), float(sum(members) + len(members) * turn)))
    if kind == 1:
        root = members[turn % len(members)]
        work = dist.broadcast(mine, root, group=group, async_op=True)
        return work, lambda: same(mine, torch.full((size,), float(root + turn)))
    whole = torch.empty(size * len(members))
    work = dist.all_gather_into_tensor(whole, mine, group=group, async_op=True)
    wanted = [torch.full((size,), float(member + turn)) for member in members]
    return work, lambda: same(whole, torch.cat(wanted))


@case("stress: three groups overlap, eight calls in flight in each, in any order")  # PERF-11
def overlapping(world):
    groups = {}
    for members in ([0, 1, 2], [1, 2, 3], [0, 1, 2, 3]):
        made = dist.new_group(members, backend="isthmus")
        if world.rank in members:
            groups[tuple(members)] = made
    until = time.monotonic() + count_of(3, 60)
    own = random.Random(world.rank)  # each rank mixes the groups in its own way
    goes_on = torch.ones(1)
    turn = 0
    while goes_on.item():
        plans = {}
        for members in groups:
            shared = random.Random(1000 * turn + len(members) + members[0])
            plans[members] = [(shared.randrange(3), shared.choice([1, 7, 300, 20_000])) for _ in range(8)]
        begun = []
        while any(plans.values()):
            members = own.choice([each for each in plans if plans[each]])
            kind, size = plans[members].pop(0)
            begun.append(_issue(kind, size, groups[members], list(members), turn, world.rank))
        own.shuffle(begun)
        for work, check in begun:
            work.wait()
            check()
        turn += 1
        goes_on.fill_(float(time.monotonic() < until))
        dist.broadcast(goes_on, 0, group=world.gloo)
    assert turn >= 3
    for group in groups.values():
        dist.destroy_process_group(group)


@case("stress: one rank far ahead with small calls costs bounded memory")  # PERF-01
def far_ahead(world):
    calls = count_of(3000, 20_000)

    def run():
        before = _resident()
        if world.rank != 0:
            world.meet()  # rank 0 has begun all of its calls
        works = []
        for step in range(calls):
            mine = torch.full((4,), float(world.rank + step % 100))
            works.append((dist.all_reduce(mine, async_op=True), mine, step % 100))
        if world.rank == 0:
            world.meet()
        most = _resident()
        for work, mine, step in works:
            work.wait()
            assert mine[3].item() == 6.0 + 4 * step
        return most - before

    # The tensor, torch's work with its title and inputs, ours, and the library's: a few KB a call.
    assert run() < 8 * calls
    grown = Grown()
    run()
    world.meet()
    grown.check(kilobytes=8192)
