"""Kinds of process groups: strings of devices, local synchronisation, debug mode, many meshes."""

import torch
import torch.distributed as dist
from cases_errors import barrier, refused
from data import same
from harness import case


def works(world, group, size=None):
    mine = torch.ones(5)
    dist.all_reduce(mine, group=group)
    same(mine, torch.full((5,), float(size or world.size)))


@case("device strings: every combination with our name")
def device_strings(world):
    for name in (
        "isthmus",
        "cpu:isthmus",
        "cpu:isthmus,cuda:isthmus",
        "cpu:gloo,cuda:isthmus",
        "cpu:isthmus,cuda:gloo",
    ):
        group = dist.new_group(backend=name)
        works(world, group)
        ours = "cpu:gloo" not in name
        backend = group._get_backend(torch.device("cpu"))
        assert (backend.name() == "isthmus") == ours, (name, backend.name())
        everybody = [None] * world.size
        dist.all_gather_object(everybody, world.rank, group=group)
        assert everybody == list(range(world.size))
        dist.barrier(group)
        dist.destroy_process_group(group)


@case("new_group with local synchronisation: only members call")
def local_synchronisation(world):
    # Each rank makes as many groups: torch counts them in the name that members must share.
    for halves in ([[1, 3], [0, 2]], [[0, 1], [2, 3]]):
        for members in halves:
            if world.rank in members:
                group = dist.new_group(members, backend="isthmus", use_local_synchronization=True)
                works(world, group, len(members))
                dist.destroy_process_group(group)
    world.meet()


@case("two ranks of a new group talk while the others do not call")
def two_of_four(world):
    with world.fresh_group() as group:
        mine = torch.full((3,), float(world.rank))
        if world.rank == 1:
            dist.send(mine, 3, group=group)
        elif world.rank == 3:
            dist.recv(mine, 1, group=group)
            same(mine, torch.full((3,), 1.0))
        world.meet()  # over gloo: ranks 0 and 2 have not called anything of this group yet
        works(world, group)


@case("a new group that is destroyed unused")
def unused(world):
    import time

    began = time.monotonic()
    for _ in range(10):
        with world.fresh_group():
            pass
    took = time.monotonic() - began
    assert took < 20, f"ten groups took {took:.1f} s"


@case("debug mode DETAIL: groups are wrapped, differences are told")
def detail(world):
    before = dist.get_debug_level()
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        group = dist.new_group(backend="isthmus")
        works(world, group)
        parts = [torch.zeros(2) for _ in range(world.size)]
        dist.all_gather(parts, torch.full((2,), float(world.rank)), group=group)
        assert [part[0].item() for part in parts] == [0.0, 1.0, 2.0, 3.0]
        text = refused(
            RuntimeError, "mismatch", dist.all_reduce, torch.ones(2 + (world.rank == 2)), group=group
        )
        assert "rank" in text.lower(), text
        world.meet()
        dist.destroy_process_group(group)
    finally:
        dist.set_debug_level(before)


@case("dozens of meshes, used in another order on each rank")
def meshes(world):
    from torch.distributed.device_mesh import init_device_mesh

    made = [
        init_device_mesh("cpu", shape, mesh_dim_names=("outer", "inner"))
        for shape in [(2, 2), (4, 1), (1, 4)] * 8
    ]
    order = torch.randperm(24, generator=torch.Generator().manual_seed(world.rank)).tolist()
    works_in_flight = []
    for index in order:
        for axis in ("outer", "inner"):
            group = made[index].get_group(axis)
            mine = torch.ones(3)
            works_in_flight.append((dist.all_reduce(mine, group=group, async_op=True), mine, group))
    for work, mine, group in works_in_flight:
        work.wait()
        same(mine, torch.full((3,), float(group.size())))


@case("monitored barrier in gloo's words")  # HANG-12
def monitored(world):
    def words(group, wait_all):
        """What rank 0 says when ranks 1 and 3 stay away, without names and numbers of time."""
        if world.rank in (1, 3):
            world.meet()
            return ""
        try:
            barrier(group, _seconds(1), wait_all)
            text = ""
        except RuntimeError as error:
            text = str(error)
        world.meet()
        return text

    for wait_all in (False, True):
        with world.fresh_group(seconds=10) as group:
            ours = words(group, wait_all)
        theirs = words(world.fresh_gloo(), wait_all)
        if world.rank != 0:
            continue
        missing = "Ranks 1, 3 failed to pass monitoredBarrier" if wait_all else (
            "Rank 1 failed to pass monitoredBarrier"
        )
        assert missing in ours, ours
        assert missing in theirs, theirs


def _seconds(count):
    import datetime

    return datetime.timedelta(seconds=count)


@case("all_reduce of layouts that are not contiguous: the view is added, gaps stay")
def layouts(world):
    base = torch.arange(24.0).reshape(2, 3, 4) + world.rank
    views = {
        "transposed": (lambda t: t.transpose(0, 2), True),
        "whole rows": (lambda t: t[1], True),
        # Gloo adds the memory from the first element on, gaps as well, and not the view.
        "every second": (lambda t: t[:, :, ::2], False),
        "column": (lambda t: t[:, 1], False),
    }
    wanted = sum(torch.arange(24.0).reshape(2, 3, 4) + rank for rank in range(world.size))
    for view, gloo_is_right in views.values():
        for is_async in (False, True):
            mine = base.clone()
            untouched = torch.ones_like(base, dtype=torch.bool)
            view(untouched).fill_(False)
            work = dist.all_reduce(view(mine), async_op=is_async)
            if work is not None:
                work.wait()
            same(view(mine), view(wanted))
            same(mine[untouched], base[untouched])
        if gloo_is_right:
            theirs = base.clone()
            dist.all_reduce(view(theirs), group=world.gloo)
            same(mine, theirs)
