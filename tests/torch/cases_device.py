"""Tensors of a device: through host memory and back, in the order of streams. The device is one of
tests whose streams are late at random, so whoever does not wait sees spoiled memory."""

import contextlib
import datetime
import functools
import operator

import torch
import torch.distributed as dist
from data import same, values
from device import fake
from harness import GROUP_SECONDS, case

Op = dist.ReduceOp
LATE = 1500  # microseconds at most, before every task of a stream


@contextlib.contextmanager
def device_group(backend="cpu:gloo,fake:isthmus", seconds=GROUP_SECONDS):
    fake.ops.delay(LATE)
    group = dist.new_group(backend=backend, timeout=datetime.timedelta(seconds=seconds))
    try:
        yield group
    finally:
        fake.ops.delay(0)
        dist.destroy_process_group(group)


def inputs_of(world, shape, dtype=torch.float32, salt=0):
    """Every rank's input, known here; and this rank's on the device."""
    everybody = [values(rank, shape, dtype, salt) for rank in range(world.size)]
    return everybody, fake.put(everybody[world.rank])


def total(tensors):
    return functools.reduce(operator.add, tensors)


def room(like, dtype=torch.float32):
    return torch.zeros(like, dtype=dtype, device="fake:0")


def ended(work, is_async):
    assert (work is not None) == is_async
    if is_async:
        assert work.wait()


@case("device: sums, averages and others of every kind", ranks=3)
def reductions(world):
    with device_group() as group:
        for salt, dtype in enumerate((torch.float32, torch.bfloat16, torch.int64, torch.bool)):
            for is_async in (False, True):
                everybody, mine = inputs_of(world, 1027, dtype, salt)
                ended(dist.all_reduce(mine, group=group, async_op=is_async), is_async)
                plus = operator.or_ if dtype == torch.bool else operator.add
                same(mine.cpu(), functools.reduce(plus, everybody))
        everybody, mine = inputs_of(world, (8, 6))
        dist.all_reduce(mine, Op.MAX, group=group)
        same(mine.cpu(), functools.reduce(torch.maximum, everybody))
        everybody, mine = inputs_of(world, (8, 6))
        dist.all_reduce(mine, Op.AVG, group=group)
        assert torch.allclose(mine.cpu(), total(everybody) / world.size)  # a third has no exact float
        everybody, mine = inputs_of(world, 33)
        dist.all_reduce(mine, dist._make_nccl_premul_sum(0.5), group=group)
        same(mine.cpu(), total(everybody) * 0.5)
        for root in range(world.size):
            everybody, mine = inputs_of(world, 100, salt=root)
            dist.reduce(mine, root, group=group)
            if world.rank == root:
                same(mine.cpu(), total(everybody))


@case("device: reduce_scatter as a list, as a tensor, of unequal parts", ranks=3)
def scattered_sums(world):
    size, rank = world.size, world.rank
    with device_group() as group:
        everybody, mine = inputs_of(world, (size, 50))
        out = room(50)
        dist.reduce_scatter_tensor(out, mine.view(-1), group=group)
        same(out.cpu(), total(everybody)[rank])
        everybody, mine = inputs_of(world, (size, 50), salt=1)
        ended(dist.reduce_scatter(out, list(mine.unbind()), group=group, async_op=True), True)
        same(out.cpu(), total(everybody)[rank])
        everybody, mine = inputs_of(world, 6, salt=2)  # parts of 1, 2 and 3
        parts = list(mine.split([1, 2, 3]))
        out = room(rank + 1)
        dist.reduce_scatter(out, parts, group=group)
        same(out.cpu(), total(everybody).split([1, 2, 3])[rank])


@case("device: broadcast, gather, scatter", ranks=3)
def rooted(world):
    size, rank = world.size, world.rank
    with device_group() as group:
        for root in range(size):
            for dtype in (torch.float32, torch.complex64, torch.uint8):
                everybody, mine = inputs_of(world, (7, 5), dtype, root)
                dist.broadcast(mine, root, group=group)
                same(mine.cpu(), everybody[root])
            everybody, mine = inputs_of(world, 40, salt=root)
            outs = [room(40) for _ in range(size)] if rank == root else None
            dist.gather(mine, outs, root, group=group)
            for got, wanted in zip(outs or [], everybody):
                same(got.cpu(), wanted)
            everybody, mine = inputs_of(world, (size, 9), salt=root)
            out = room(9)
            dist.scatter(out, list(mine.unbind()) if rank == root else None, root, group=group)
            same(out.cpu(), everybody[root][rank])


@case("device: all_gather as a list, as a tensor, of unequal parts", ranks=3)
def gathered(world):
    size, rank = world.size, world.rank
    with device_group() as group:
        everybody, mine = inputs_of(world, 17)
        outs = [room(17) for _ in range(size)]
        ended(dist.all_gather(outs, mine, group=group, async_op=True), True)
        for got, wanted in zip(outs, everybody):
            same(got.cpu(), wanted)
        whole = room((size, 17))
        whole[rank].copy_(mine)  # in place: the input is this rank's part of the output
        dist.all_gather_into_tensor(whole, whole[rank], group=group)
        same(whole.cpu(), torch.stack(everybody))
        outs = [room(r + 1) for r in range(size)]
        dist.all_gather(outs, torch.full((rank + 1,), float(rank), device="fake:0"), group=group)
        for r, got in enumerate(outs):
            same(got.cpu(), torch.full((r + 1,), float(r)))


@case("device: all_to_all as lists, as tensors, with splits and empty ones", ranks=3)
def exchanged(world):
    size, rank = world.size, world.rank
    with device_group() as group:
        everybody, mine = inputs_of(world, (size, 4))
        out = room((size, 4))
        ended(dist.all_to_all_single(out, mine, group=group, async_op=True), True)
        same(out.cpu(), torch.stack([each[rank] for each in everybody]))
        outs = [room(4) for _ in range(size)]
        dist.all_to_all(outs, list(mine.unbind()), group=group)
        for got, each in zip(outs, everybody):
            same(got.cpu(), each[rank])
        # Rank r sends r + p elements to place p, but nothing to itself.
        give = [0 if p == rank else rank + p for p in range(size)]
        take = [0 if r == rank else r + rank for r in range(size)]
        out, mine = room(sum(take)), torch.full((sum(give),), float(rank), device="fake:0")
        dist.all_to_all_single(out, mine, take, give, group=group)
        same(out.cpu(), torch.cat([torch.full((n,), float(r)) for r, n in enumerate(take)]))


@case("device: coalesced forms, and a batch of sends and receives", ranks=3)
def together(world):
    size, rank = world.size, world.rank
    with device_group() as group:
        pairs = [inputs_of(world, n, salt=n) for n in (5, 9, 70)]
        with dist._coalescing_manager(group, device=torch.device("fake:0"), async_ops=True) as batch:
            for _, mine in pairs:
                dist.all_reduce(mine, group=group)
        batch.wait()
        for everybody, mine in pairs:
            same(mine.cpu(), total(everybody))
        everybody = [[values(r, n, torch.float32, n) for n in (3, 8)] for r in range(size)]
        mine = [fake.put(each) for each in everybody[rank]]
        outs = [room((size, n)) for n in (3, 8)]
        group.allgather_into_tensor_coalesced(outs, mine).wait()
        for place, out in enumerate(outs):
            same(out.cpu(), torch.stack([each[place] for each in everybody]))
        sums = [room(n) for n in (3, 8)]
        sources = [each.expand(size, -1).contiguous() for each in mine]
        group.reduce_scatter_tensor_coalesced(sums, [source.view(-1) for source in sources]).wait()
        for place, out in enumerate(sums):
            same(out.cpu(), total([each[place] for each in everybody]))
        following, before = (rank + 1) % size, (rank - 1) % size
        mine, got = torch.full((30_000,), float(rank), device="fake:0"), room(30_000)
        batch = [dist.P2POp(dist.isend, mine, following, group), dist.P2POp(dist.irecv, got, before, group)]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        same(got.cpu(), torch.full((30_000,), float(before)))


@case("device: send and receive, from a known rank and from any", ranks=3)
def two_sided(world):
    with device_group() as group:
        mine = torch.full((100,), float(world.rank), device="fake:0")
        if world.rank == 0:
            seen = set()
            for _ in range(world.size - 1):
                got = room(100)
                source = dist.recv(got, group=group)
                same(got.cpu(), torch.full((100,), float(source)))
                seen.add(source)
            assert seen == {1, 2}
            dist.send(mine, 1, group=group)
        else:
            dist.send(mine, 0, group=group)
        if world.rank == 1:
            dist.recv(mine, 0, group=group)
            same(mine.cpu(), torch.zeros(100))
        # Each sends before it receives: a send must not hold up what follows.
        other = 1 - world.rank
        if other >= 0:
            big, got = torch.full((200_000,), float(world.rank), device="fake:0"), room(200_000)
            works = [dist.isend(big, other, group), dist.irecv(got, other, group)]
            for work in works:
                work.wait()
            same(got.cpu(), torch.full((200_000,), float(other)))


@case("device: layouts with gaps, lazily conjugated, empty, without dimensions", ranks=3)
def layouts(world):
    with device_group() as group:
        base = torch.ones(20, 3, device="fake:0")
        everybody = [values(rank, 20, torch.float32) for rank in range(world.size)]
        base[:, 1].copy_(fake.put(everybody[world.rank]))
        dist.all_reduce(base[:, 1], group=group)
        got = base.cpu()
        same(got[:, 1], total(everybody))
        assert bool((got[:, [0, 2]] == 1).all()), "a gap was written"
        everybody, mine = inputs_of(world, 12, torch.complex64)
        turned = mine.conj()
        outs = [room(12, torch.complex64) for _ in range(world.size)]
        # Not by torch's function, which looks at complex numbers as pairs and cannot do so here.
        group._get_backend(torch.device("fake:0")).allgather([outs], [turned]).wait()
        for out, each in zip(outs, everybody):
            same(out.cpu(), each.conj().resolve_conj())
        dist.all_reduce(room(0), group=group)
        one = torch.tensor(float(world.rank), device="fake:0")
        dist.all_reduce(one, group=group)
        assert one.item() == sum(range(world.size))


@case("device order: calls on other tensors do not wait for each other", ranks=3)
def independent(world):
    with device_group() as group:
        if world.rank == 0:
            slow, quick = (torch.ones(50, device="fake:0") for _ in range(2))
            late = dist.irecv(slow, 1, group)
            early = dist.irecv(quick, 2, group)
            early.wait()
            same(quick.cpu(), torch.full((50,), 2.0))
            assert not late.is_completed()
        if world.rank == 2:
            dist.send(torch.full((50,), 2.0, device="fake:0"), 0, group)
        world.meet()
        if world.rank == 1:
            dist.send(torch.full((50,), 1.0, device="fake:0"), 0, group)
        if world.rank == 0:
            late.wait()
            same(slow.cpu(), torch.full((50,), 1.0))
