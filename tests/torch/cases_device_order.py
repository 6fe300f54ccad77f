"""Tensors of a device: who waits for whom, what stays alive, what is refused, what failures say."""

import time

import torch
import torch.distributed as dist
from cases_device import device_group, ended, inputs_of, room, total
from cases_errors import refused
from data import same, values
from device import fake
from harness import Skip, case


def sum_of_ranks(world):
    return float(sum(range(world.size)))


@case("device order: the collective waits for the producer, the consumer for it", ranks=3)
def produced_late(world):
    with device_group() as group:
        for is_async in (False, True):
            mine = room(5000)
            fake.ops.sleep(0, 60 * (world.rank + 1))
            mine.fill_(world.rank + 1)
            assert not fake.ops.is_idle(0), "the device was too fast for this test"
            work = dist.all_reduce(mine, group=group, async_op=is_async)
            ended(work, is_async)
            mine.mul_(2)
            same(mine.cpu(), torch.full((5000,), 2 * (sum_of_ranks(world) + world.size)))


@case("device order: issuing does not wait for the device", ranks=3)
def issued_at_once(world):
    with device_group() as group:
        mine = torch.full((10,), float(world.rank), device="fake:0")
        fake.ops.sleep(0, 300)
        began = time.monotonic()
        work = dist.all_reduce(mine, group=group, async_op=True)
        took = time.monotonic() - began
        assert not work.is_completed()
        work.wait()
        assert took < 0.25, f"issuing took {took:.3f} s"
        same(mine.cpu(), torch.full((10,), sum_of_ranks(world)))


@case("device order: wait() is for the stream that is current then", ranks=3)
def waits_on_current(world):
    with device_group() as group:
        for step in range(5):
            with fake.stream(1):
                mine = torch.full((3000,), float(world.rank + step), device="fake:0")
                work = dist.all_reduce(mine, group=group, async_op=True)
            with fake.stream(2):
                work.wait()
                copy = mine + 0
            with fake.stream(2):
                wanted = sum_of_ranks(world) + world.size * step
                same(copy.cpu(), torch.full((3000,), wanted))
            del mine, work


@case("device order: many in flight, waited in any order, among calls in host memory", ranks=3)
def many(world):
    with device_group("cpu:isthmus,fake:isthmus") as group:
        fake.ops.sleep(0, 40 * world.rank)  # the ranks' devices are late by unequal times
        works = []
        for step in range(16):
            mine = torch.full((100 * step + 1,), float(world.rank + step), device="fake:0")
            works.append((step, mine, dist.all_reduce(mine, group=group, async_op=True)))
            host = torch.full((7,), float(world.rank * step))
            if step % 3 == 0:  # begins after what was issued before it, on every rank
                dist.broadcast(host, step % world.size, group=group)
                same(host, torch.full((7,), float(step % world.size * step)))
            else:
                works.append((-step, host, dist.all_reduce(host, group=group, async_op=True)))
        for step, tensor, work in reversed(works):
            work.wait()
            each = step if step >= 0 else 0
            wanted = sum_of_ranks(world) * (1 if step >= 0 else -step) + world.size * each
            same(tensor.cpu(), torch.full(tensor.shape, wanted))


@case("device order: tensors that nobody keeps are not reused too early", ranks=3)
def dropped(world):
    with device_group() as group:
        for step in range(6):
            mine = torch.full((4096,), float(world.rank), device="fake:0")
            fake.ops.sleep(0, 10)
            out = room((world.size, 4096))
            work = dist.all_gather_into_tensor(out, mine, group=group, async_op=True)
            del mine
            others = [torch.full((4096,), 9.0, device="fake:0") for _ in range(3)]
            kept = [out] if step % 2 else []
            work.wait()
            del work, out
            more = [torch.full((world.size, 4096), 8.0, device="fake:0") for _ in range(3)]
            for each in others:
                same(each.cpu(), torch.full((4096,), 9.0))
            for each in more:
                same(each.cpu(), torch.full((world.size, 4096), 8.0))
            for each in kept:
                same(each.cpu(), torch.arange(world.size).float()[:, None].expand(-1, 4096).contiguous())


@case("device order: calls on one tensor follow each other without a wait", ranks=3)
def chained(world):
    size = world.size
    with device_group() as group:
        for is_async in (True, False):
            mine = torch.full((3000,), float(world.rank), device="fake:0")
            fake.ops.sleep(0, 20 * world.rank)
            first = [dist.all_reduce(mine, group=group, async_op=True) for _ in range(3)]
            whole = room((size, 3000))
            last = dist.all_gather_into_tensor(whole, mine, group=group, async_op=is_async)
            ended(last, is_async)
            wanted = torch.full((3000,), sum_of_ranks(world) * size**2)
            same(whole.cpu(), wanted.expand(size, -1).contiguous())
            for work in first:
                work.wait()
            same(mine.cpu(), wanted)


@case("device order: what is written later comes later; what is read before is read before", ranks=3)
def overwritten(world):
    size, rank = world.size, world.rank
    with device_group() as group:
        for step in range(4):
            table = torch.full((size + 1, 2000), -1.0, device="fake:0")
            table[rank].fill_(rank + step)
            works = [
                dist.all_gather_into_tensor(table[:size], table[rank], group=group, async_op=True),
                dist.all_reduce(table[1], group=group, async_op=True),
                dist.broadcast(table[1:], step % size, group=group, async_op=True),
            ]
            for work in reversed(works):
                work.wait()
            rows = torch.tensor([float(r + step) for r in range(size)] + [-1.0])
            rows[1] *= size
            same(table.cpu(), rows[:, None].expand(-1, 2000).contiguous())
        # Rank 0 sends what it has and receives into the same memory: nothing waits for the other rank.
        mine = torch.full((200_000,), float(rank), device="fake:0")
        if rank < 2:
            works = [dist.isend(mine, 1 - rank, group), dist.irecv(mine, 1 - rank, group)]
            for work in works:
                work.wait()
            same(mine.cpu(), torch.full((200_000,), float(1 - rank)))
            works = [dist.irecv(mine, 0, group) if rank else dist.isend(mine, 1, group)]
            works += [dist.isend(mine, 0, group) if rank else dist.irecv(mine, 1, group)]
            for work in works:
                work.wait()
            same(mine.cpu(), torch.full((200_000,), 1.0))


@case("device order: results wait for those who still read what they replace", ranks=3)
def read_late(world):
    with device_group() as group:
        mine, before = torch.full((3000,), float(world.rank), device="fake:0"), room(3000)
        if world.rank == 0:
            dist.send(mine, 1, group)
        elif world.rank == 1:
            fake.ops.sleep(0, 100)
            before.copy_(mine, non_blocking=True)
            work = dist.irecv(mine, 0, group)
            work.wait()
            same(before.cpu(), torch.ones(3000))
            same(mine.cpu(), torch.zeros(3000))


@case("device order: works dropped at once go on", ranks=3)
def forgotten(world):
    with device_group() as group:
        tensors = [torch.full((999,), float(world.rank), device="fake:0") for _ in range(8)]
        for tensor in tensors:
            dist.all_reduce(tensor, group=group, async_op=True)
        last = torch.ones(1, device="fake:0")
        dist.all_reduce(last, group=group)  # began after them; their copies back came before its own
        same(last.cpu(), torch.full((1,), float(world.size)))
        until = time.monotonic() + 10
        wanted = torch.full((999,), sum_of_ranks(world))
        while time.monotonic() < until and not all(bool((each.cpu() == wanted).all()) for each in tensors):
            time.sleep(0.01)
        for tensor in tensors:
            same(tensor.cpu(), wanted)


@case("device order: completion, synchronize, futures and their callbacks", ranks=3)
def completion(world):
    with device_group() as group:
        mine = torch.full((2000,), float(world.rank), device="fake:0")
        work = dist.all_reduce(mine, group=group, async_op=True)
        later = work.get_future().then(lambda done: done.value()[0] * 3)
        work.synchronize()
        assert work.is_completed() and work.is_success()
        with fake.stream(3):  # no stream waits for it: the host did
            same(mine.cpu(), torch.full((2000,), sum_of_ranks(world)))
        tripled = later.wait()
        same(tripled.cpu(), torch.full((2000,), 3 * sum_of_ranks(world)))
        future = work.get_future()
        assert future.done() and future.value()[0].data_ptr() == mine.data_ptr()
        assert work.get_future_result().wait() == 0
        until = time.monotonic() + 10
        polled = torch.full((2000,), float(world.rank), device="fake:0")
        work = dist.all_reduce(polled, group=group, async_op=True)
        while not work.is_completed() and time.monotonic() < until:
            time.sleep(0.0005)
        with fake.stream(4):  # completed: the device has it
            same(polled.cpu(), torch.full((2000,), sum_of_ranks(world)))
        ones = [torch.ones(n, device="fake:0") for n in (4, 900)]
        with dist._coalescing_manager(group, device=torch.device("fake:0"), async_ops=True) as batch:
            for each in ones:
                dist.broadcast(each.mul_(world.rank + 1), 1, group=group)
        for each in batch.works if hasattr(batch, "works") else [batch]:
            with fake.stream(5):
                each.wait()
                for one in ones:
                    same(one.cpu(), torch.full_like(one.cpu(), 2.0))


@case("device order: a barrier of the device is after what the device was given", ranks=3)
def barrier(world):
    with device_group("fake:isthmus") as group:
        dist.all_reduce(room(1), group=group)
        for device_ids in (None, [0]):
            world.meet()
            fake.ops.sleep(0, 150 * world.rank)
            began = time.monotonic()
            dist.barrier(group, device_ids=device_ids)
            took = time.monotonic() - began
            assert took > 0.2, f"the barrier was over after {took:.3f} s, rank 2 was busy for 0.3 s"


@case("device: current device and stream stay as they are", ranks=3)
def current_device(world):
    with device_group() as group:
        fake.ops.set_device(1)
        try:
            with fake.stream(6, 0), fake.stream(7, 1):
                for is_async in (False, True):
                    mine = fake.put(values(world.rank, 10, torch.float32), 0)
                    ended(dist.all_reduce(mine, group=group, async_op=is_async), is_async)
                    dist.broadcast(mine, 0, group=group)
                    assert fake.ops.current_device() == 1
                    assert [fake.ops.current_stream(d) for d in (0, 1)] == [6, 7]
                other = torch.full((3,), float(world.rank), device="fake:1")
                dist.all_reduce(other, group=group)  # a second device of the same group
                same(other.cpu(), torch.full((3,), sum_of_ranks(world)))
                assert fake.ops.current_device() == 1
        finally:
            fake.ops.set_device(0)


@case("device: inside the capture of a graph everything is refused, with the way out", ranks=3)
def captured(world):
    if not hasattr(torch.Stream, "is_capturing"):
        raise Skip("this torch cannot ask a device of a plugin whether it records a graph")
    size = world.size
    with device_group("fake:isthmus") as group:
        mine, whole = torch.ones(size, device="fake:0"), room(size * size)
        calls = {
            "all_reduce": lambda: dist.all_reduce(mine, group=group),
            "broadcast": lambda: dist.broadcast(mine, 0, group=group),
            "all_gather_base": lambda: dist.all_gather_into_tensor(whole, mine, group=group),
            "all_to_all": lambda: dist.all_to_all_single(whole, whole, group=group),
            "send": lambda: dist.isend(mine, (world.rank + 1) % size, group),
            "barrier": lambda: dist.barrier(group),
        }
        work = dist.all_reduce(mine, group=group, async_op=True)
        before = fake.ops.pinned_allocations()
        with fake.capturing():
            for name, call in calls.items():
                words = f'{name} cannot be captured in a graph|outside|reduce-overhead|cuda:nccl'
                refused(RuntimeError, words, call)
            refused(RuntimeError, "all_reduce cannot be captured", work.wait)
        assert fake.ops.pinned_allocations() == before, "memory was pinned before the refusal"
        work.wait()
        same(mine.cpu(), torch.full((size,), float(size)))
        dist.all_reduce(mine, group=group)  # nothing was sent
        same(mine.cpu(), torch.full((size,), float(size * size)))


@case("device: tensors of several devices are refused by name", ranks=3)
def mixed(world):
    size = world.size
    with device_group("cpu:isthmus,fake:isthmus") as group:
        zero, one = (torch.ones(size, device=f"fake:{index}") for index in (0, 1))
        host = torch.ones(size)
        plain = group._get_backend(torch.device("fake:0"))
        both = "same device|fake:0|fake:1"
        refused(RuntimeError, "all_to_all|" + both, plain.alltoall_base, zero, one, [], [])
        refused(RuntimeError, "all_to_all|same device|fake:0|cpu", plain.alltoall_base, zero, host, [], [])
        words = "reduce_scatter|same device|cpu"
        refused(RuntimeError, words, plain.reduce_scatter, [zero], [[host] * size])
        refused(RuntimeError, "all_gather|" + both, dist.all_gather, [zero, one, zero], zero, group=group)
        refused(RuntimeError, "list|same device|cpu", plain.allgather, [[zero, host, zero]], [zero])
        refused(RuntimeError, "meta", plain.allreduce, [torch.ones(3, device="meta")])
        refused(RuntimeError, "expanded", plain.allreduce, torch.ones(1, device="fake:0").expand(4))
        # Outputs in host memory are fine where the input is on a device, as with torch's NCCL backend.
        everybody, mine = inputs_of(world, 5)
        outs = [torch.zeros(5) for _ in range(size)]
        plain.allgather([outs], [mine]).wait()
        for got, wanted in zip(outs, everybody):
            same(got, wanted)


@case("device: host memory is pinned once and used again", ranks=3)
def pooled(world):
    with device_group() as group:
        mine = torch.full((50_000,), float(world.rank), device="fake:0")
        pageable = fake.ops.pageable_copies()
        counts = []
        for step in range(12):
            works = [dist.broadcast(mine, 0, group=group, async_op=True) for _ in range(2)]
            for work in works:
                work.wait()
            same(mine.cpu(), torch.zeros(50_000))
            del works
            counts.append(fake.ops.pinned_allocations())
        assert counts[-1] - counts[3] <= 1, counts
        assert fake.ops.pageable_copies() == pageable, "a copy was not from pinned memory"


@case("device: a peer that does not call is named, and the device goes on", ranks=3)
def peer_missing(world):
    with device_group(seconds=2) as group:
        mine = torch.ones(100, device="fake:0")
        dist.all_reduce(mine, group=group)
        if world.rank != 2:
            work = dist.all_reduce(mine, group=group, async_op=True)
            future = work.get_future()
            refused(RuntimeError, "all_reduce|rank 2", work.wait)
            assert work.is_completed() and not work.is_success()
            refused(RuntimeError, "all_reduce", future.wait)
            refused(RuntimeError, "", lambda: dist.all_reduce(mine, group=group))
        world.meet()
        same(mine.cpu(), torch.full((100,), float(world.size)))
    with device_group() as group:
        dist.all_reduce(mine, group=group)
        same(mine.cpu(), torch.full((100,), float(world.size**2)))


@case("device: one that fails fails its rank and, at once, the others", ranks=3)
def device_fails(world):
    for is_async in (False, True):
        with device_group(seconds=15) as group:
            mine = torch.ones(100, device="fake:0")
            dist.all_reduce(mine, group=group)
            world.meet()
            if world.rank == 1:
                fake.ops.fail_next_wait()
            began = time.monotonic()
            words = "the device is lost"  # on every rank
            if is_async:
                refused(RuntimeError, words, dist.all_reduce(mine, group=group, async_op=True).wait)
            else:
                refused(RuntimeError, words, lambda: dist.all_reduce(mine, group=group))
            assert time.monotonic() - began < 8, "told by a timeout only"
            world.meet()


@case("device: a group destroyed with work in flight lets it end", ranks=3)
def destroyed(world):
    with device_group() as group:
        tensors = [torch.full((5000,), float(world.rank + step), device="fake:0") for step in (0, 1)]
        fake.ops.sleep(0, 100)
        works = [dist.all_reduce(each, group=group, async_op=True) for each in tensors]
    for step, (tensor, work) in enumerate(zip(tensors, works)):
        work.wait()
        same(tensor.cpu(), torch.full((5000,), sum_of_ranks(world) + world.size * step))


@case("device: data parallel training equals the average of all gradients", ranks=3)
def training(world):
    with device_group() as group:
        torch.manual_seed(5)
        model = torch.nn.Linear(6, 4)
        batches = [values(rank, (8, 6), torch.float32) for rank in range(world.size)]
        wanted = []
        for batch in batches:
            model.zero_grad()
            model(batch).square().sum().backward()
            wanted.append([each.grad.clone() for each in model.parameters()])
        model.zero_grad()
        moved = torch.nn.parallel.DistributedDataParallel(model.to("fake:0"), process_group=group)
        moved(fake.put(batches[world.rank])).square().sum().backward()
        for place, parameter in enumerate(moved.parameters()):
            mean = total([each[place] for each in wanted]) / world.size
            assert torch.allclose(parameter.grad.cpu(), mean, rtol=1e-5, atol=1e-5)
