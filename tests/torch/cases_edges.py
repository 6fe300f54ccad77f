"""Shapes and storages that trip libraries: strided, empty, scalar, aliased, one rank, many dtypes of
bad lists, NaN."""

import torch
import torch.distributed as dist
from cases_errors import backend
from data import LAYOUTS, Strided, same, values
from harness import case

SIZES = [2, 18, 1004]


def tensors(world, n, salt):
    return [values(r, n, torch.float32, salt) for r in range(world.size)]


def layouts():
    for layout in LAYOUTS:
        for n in SIZES:
            for is_async in (False, True):
                yield layout, n, is_async


def end(work):
    if work is not None:
        work.wait()


@case("strided: reductions")  # NUM-01
def strided_reductions(world):
    for layout, n, is_async in layouts():
        inputs = tensors(world, n, n)
        total = torch.stack(inputs).sum(0)
        view = Strided(inputs[world.rank], layout)
        end(dist.all_reduce(view.view, async_op=is_async))
        view.check(total)
        view = Strided(inputs[world.rank], layout)
        end(dist.reduce(view.view, 1, async_op=is_async))
        view.check(total if world.rank == 1 else inputs[world.rank])
        rows = [values(r, (world.size, n), torch.float32, n) for r in range(world.size)]
        wanted = torch.stack([each[world.rank] for each in rows]).sum(0)
        got = Strided(torch.zeros(n), layout)
        source = [Strided(row, layout) for row in rows[world.rank]]
        end(dist.reduce_scatter(got.view, [each.view for each in source], async_op=is_async))
        got.check(wanted)
        got = Strided(torch.zeros(n), layout)
        whole = Strided(rows[world.rank].flatten(), layout)
        end(dist.reduce_scatter_tensor(got.view, whole.view, async_op=is_async))
        got.check(wanted)


@case("strided: broadcast, scatter, gather")  # NUM-01
def strided_rooted(world):
    for layout, n, is_async in layouts():
        inputs = tensors(world, n, n)
        view = Strided(inputs[world.rank], layout)
        end(dist.broadcast(view.view, 2, async_op=is_async))
        view.check(inputs[2])
        got = Strided(torch.zeros(n), layout)
        parts = [Strided(each, layout) for each in inputs]
        is_root = world.rank == 0
        end(
            dist.scatter(
                got.view, [p.view for p in parts] if is_root else None, 0, async_op=is_async
            )
        )
        got.check(inputs[world.rank])
        outs = [Strided(torch.zeros(n), layout) for _ in inputs]
        mine = Strided(inputs[world.rank], layout)
        end(
            dist.gather(mine.view, [o.view for o in outs] if is_root else None, 0, async_op=is_async)
        )
        for rank, out in enumerate(outs if is_root else []):
            out.check(inputs[rank])


@case("strided: all_gather, all_to_all, send and receive")  # NUM-01
def strided_exchanges(world):
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for layout, n, is_async in layouts():
        inputs = tensors(world, n, n)
        mine = Strided(inputs[world.rank], layout)
        outs = [Strided(torch.zeros(n), layout) for _ in inputs]
        end(dist.all_gather([o.view for o in outs], mine.view, async_op=is_async))
        for rank, out in enumerate(outs):
            out.check(inputs[rank])
        whole = Strided(torch.zeros(world.size * n), layout)
        end(dist.all_gather_into_tensor(whole.view, mine.view, async_op=is_async))
        whole.check(torch.cat(inputs))
        if layout != "transposed":  # rows of a transposed tensor are not what splits count
            to = Strided(torch.zeros(world.size * n), layout)
            source = Strided(inputs[world.rank].repeat(world.size), layout)
            end(dist.all_to_all_single(to.view, source.view, async_op=is_async))
            to.check(torch.cat(inputs))
        outs = [Strided(torch.zeros(n), layout) for _ in inputs]
        end(dist.all_to_all([o.view for o in outs], [mine.view] * world.size, async_op=is_async))
        for rank, out in enumerate(outs):
            out.check(inputs[rank])
        got = Strided(torch.zeros(n), layout)
        sent = dist.isend(mine.view, right)
        dist.recv(got.view, left)
        sent.wait()
        got.check(inputs[left])


def every_operation(world, tensor):
    """Calls all collectives with `tensor` on each rank; returns the all-reduced one."""
    size = world.size
    reduced = tensor.clone()
    dist.all_reduce(reduced, dist.ReduceOp.MAX)
    dist.reduce(tensor.clone(), 0, dist.ReduceOp.MAX)
    dist.broadcast(tensor.clone(), 1)
    parts = [torch.empty_like(tensor) for _ in range(size)]
    dist.all_gather(parts, tensor)
    dist.gather(tensor, parts if world.rank == 0 else None, 0)
    dist.scatter(tensor.clone(), parts if world.rank == 0 else None, 0)
    dist.all_to_all(parts, [tensor] * size)
    dist.reduce_scatter(tensor.clone(), [tensor] * size, dist.ReduceOp.MAX)
    sent = dist.isend(tensor, (world.rank + 1) % size)
    dist.recv(torch.empty_like(tensor), (world.rank - 1) % size)
    sent.wait()
    return reduced


@case("empty tensors keep their place and shape")  # NUM-03
def empty(world):
    for shape in ((0,), (1, 0, 2), (0, 5)):
        for dtype in (torch.float32, torch.int64, torch.bool):
            before = torch.full((3,), float(world.rank))
            dist.all_reduce(before)
            assert every_operation(world, torch.empty(shape, dtype=dtype)).shape == shape
            after = torch.full((3,), 2.0 * world.rank)
            dist.all_reduce(after)
            same(before, torch.full((3,), 6.0))
            same(after, torch.full((3,), 12.0))


@case("scalars keep their shape")  # NUM-22
def scalars(world):
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
        mine = torch.tensor(world.rank + 1).to(dtype)
        largest = every_operation(world, mine)
        same(largest, torch.tensor(world.size).to(dtype))
        parts = [torch.zeros((), dtype=dtype) for _ in range(world.size)]
        dist.all_gather(parts, mine)
        same(parts[2], torch.tensor(3).to(dtype))
        whole = torch.zeros(world.size, dtype=dtype)
        dist.all_gather_into_tensor(whole, mine)
        same(whole, torch.arange(1, world.size + 1).to(dtype))


@case("one to nine elements around vector widths")  # NUM-22
def widths(world):
    for n in [*range(1, 10), 63, 64, 65, 4097]:
        for dtype in (torch.float32, torch.bfloat16, torch.int8):
            inputs = [values(r, n, dtype, n) for r in range(world.size)]
            mine = inputs[world.rank].clone()
            dist.all_reduce(mine)
            wanted = torch.stack([each.double() for each in inputs]).sum(0).to(dtype)
            same(mine, wanted)


@case("NaN from any rank wins")  # NUM-10
def nan(world):
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for guilty in range(world.size):
            for n in (1, 7, 65):
                mine = torch.full((n,), float(world.rank), dtype=dtype)
                if world.rank == guilty:
                    mine[n // 2] = float("nan")
                for op in (dist.ReduceOp.MIN, dist.ReduceOp.MAX):
                    got = mine.clone()
                    dist.all_reduce(got, op)
                    wanted = torch.full((n,), 0.0 if op == dist.ReduceOp.MIN else 3.0, dtype=dtype)
                    wanted[n // 2] = float("nan")
                    same(got, wanted)


@case("in place and aliased tensors")  # NUM-19
def aliased(world):
    n, size, rank = 6, world.size, world.rank
    whole = torch.full((size * n,), -1.0)
    own = whole[rank * n : (rank + 1) * n]
    own.fill_(float(rank))
    dist.all_gather_into_tensor(whole, own)
    same(whole, torch.arange(4.0).repeat_interleave(n))
    buffer = torch.arange(float(size * n))
    dist.reduce_scatter_tensor(buffer[rank * n : (rank + 1) * n], buffer)
    same(buffer[rank * n : (rank + 1) * n], torch.arange(float(size * n)).chunk(size)[rank] * size)
    buffer = torch.arange(float(size * n))  # the output is another rank's part: not the in-place form
    other = (rank + 1) % size
    dist.reduce_scatter_tensor(buffer[other * n : (other + 1) * n], buffer)
    same(buffer[other * n : (other + 1) * n], torch.arange(float(size * n)).chunk(size)[rank] * size)
    buffer = torch.full((size,), float(rank))
    dist.all_to_all_single(buffer, buffer)
    same(buffer, torch.arange(float(size)))
    pieces = torch.full((size, n), -1.0)
    dist.all_gather(list(pieces), torch.full((n,), float(rank)))  # rows of one tensor
    same(pieces.flatten(), torch.arange(4.0).repeat_interleave(n))


@case("lazy conjugates and inference tensors")
def unusual(world):
    mine = torch.full((4,), complex(world.rank, 1.0)).conj()
    got = [torch.zeros(4, dtype=torch.complex64) for _ in range(world.size)]
    backend().allgather([got], [mine]).wait()  # torch's Python functions refuse lazy conjugates
    same(got[3], torch.full((4,), complex(3.0, -1.0)))
    with torch.inference_mode():
        inferred = torch.ones(4, 2).t()
    work = dist.all_reduce(inferred, async_op=True)
    work.wait()
    same(inferred, torch.full((2, 4), 4.0))
    parameter = torch.nn.Parameter(torch.ones(3, 2).t())
    dist.all_reduce(parameter.data)
    same(parameter.detach(), torch.full((2, 3), 4.0))


@case("groups of one rank", ranks=4)  # NUM-05
def alone(world):
    with world.fresh_group(ranks=[world.rank], use_local_synchronization=True) as group:
        mine = torch.tensor([1.0, 2.0])
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
            dist.all_reduce(mine, op, group=group)
            same(mine, torch.tensor([1.0, 2.0]))
        got = torch.zeros(2)
        dist.reduce_scatter_tensor(got, mine, group=group)
        same(got, mine)
        got.zero_()
        dist.all_gather_into_tensor(got, mine, group=group)
        same(got, mine)
        got.zero_()
        dist.all_to_all_single(got, mine, group=group)
        same(got, mine)
        parts = [torch.zeros(2)]
        dist.gather(mine, parts, world.rank, group=group)
        same(parts[0], mine)
        got.zero_()
        dist.scatter(got, [mine], world.rank, group=group)
        same(got, mine)
        dist.barrier(group)
