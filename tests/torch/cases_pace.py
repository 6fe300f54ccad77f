"""What calls cost where it is easily too much: more ranks than cores, waiting, the first call of a kind.
Beside gloo in turn, or by bounds that a paused machine does not pass: the best of several tries counts."""

import statistics
import time

import torch
import torch.distributed as dist
from data import same
from harness import case


def _seconds(call, times):
    began = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - began


def _slowest(world, seconds):
    """Of all ranks: a call is over when the last one has it."""
    most = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(most, dist.ReduceOp.MAX, group=world.gloo)
    return most.item()


@case("pace: four times as many ranks as cores, at most twice gloo's time", ranks=8)  # PERF-03
def crowded(world):
    for elements, times in ((2, 40), (1 << 18, 4)):
        tensor = torch.ones(elements)
        best = {}
        for _ in range(4):
            for name, group in (("gloo", world.gloo), ("isthmus", None)):
                world.meet()
                took = _slowest(world, _seconds(lambda: dist.all_reduce(tensor, group=group), times))
                best[name] = min(took, best.get(name, took))
        assert best["isthmus"] <= 2 * best["gloo"], (elements, best)


# Three ranks: a world of its own, without the groups that other cases have left.
@case("pace: a rank that waits costs nothing, in a call and for a work", ranks=3)  # PERF-03
def waiting(world):
    tensor = torch.full((4,), float(world.rank))
    waits = (dist.barrier, lambda: dist.all_reduce(tensor, async_op=True).wait())
    for wait in waits:
        world.meet()
        if world.rank == 0:
            time.sleep(3)  # the beginning costs some milliseconds of its own
        before, began = time.process_time(), time.perf_counter()
        wait()
        spent, took = time.process_time() - before, time.perf_counter() - began
        assert world.rank == 0 or took > 2, took
        assert spent < 0.02 * max(took, 3), f"{spent:.3f} s of processor in {took:.2f} s"
    same(tensor, torch.full((4,), 3.0))


def _kinds(world, group):
    size, rank = world.size, world.rank
    one, all_of_it = torch.ones(16), torch.ones(16 * size)
    result, whole = torch.empty(16), torch.empty(16 * size)
    kinds = {
        "all_reduce": lambda: dist.all_reduce(one, group=group),
        "broadcast": lambda: dist.broadcast(one, 0, group=group),
        "reduce": lambda: dist.reduce(one, 0, group=group),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, one, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(result, all_of_it, group=group),
        "all_to_all": lambda: dist.all_to_all_single(whole, all_of_it, group=group),
        "barrier": lambda: dist.barrier(group),
    }
    for low in range(size):
        for high in range(low + 1, size):
            if rank == low:
                kinds[f"pair {low} {high}"] = lambda peer=high: dist.send(one, peer, group=group)
            elif rank == high:
                kinds[f"pair {low} {high}"] = lambda peer=low: dist.recv(result, peer, group=group)
            else:
                kinds[f"pair {low} {high}"] = lambda: None
    return kinds


@case("pace: the first call of a kind, and of a pair, costs little")  # PERF-07
def first_calls(world):
    most = {}
    for _ in range(3):
        with world.fresh_group() as group:
            meeting = _seconds(lambda: dist.barrier(group), 1)
            most["meeting"] = min(meeting, most.get("meeting", meeting))
            for name, call in _kinds(world, group).items():
                world.meet()
                first = _seconds(call, 1)
                # Beyond what later calls cost: connections, plans, pages.
                later = statistics.median(_seconds(call, 1) for _ in range(15))
                most[name] = min(first - later, most.get(name, first))
    assert most.pop("meeting") < 1, "the ranks of a group met late"
    slow = {name: seconds for name, seconds in most.items() if seconds > 0.02}
    assert not slow, slow
