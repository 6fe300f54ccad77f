"""Every collective against results worked out here from all ranks' inputs: types, sizes, operations,
synchronous and asynchronous."""

import functools
import operator

import torch
import torch.distributed as dist
from data import COMPLEX, COUNTS, FLOATS, MOVED_ONLY, TYPES, same, values
from harness import case

Op = dist.ReduceOp


def finish(work, is_async):
    if is_async:
        assert work.wait(), "wait() said no"
        assert work.is_completed()
    else:
        assert work is None


def folded(inputs, op, dtype):
    """The reduction, left to right; 16-bit floats are added in 32 bits and rounded once."""
    wide = [each.float() if dtype in (torch.float16, torch.bfloat16) else each for each in inputs]
    if dtype == torch.bool:
        both = op in (Op.PRODUCT, Op.MIN, Op.BAND)
        plain = operator.and_ if both else operator.xor if op == Op.BXOR else operator.or_
        return functools.reduce(plain, wide)
    how = {
        Op.SUM: torch.add,
        Op.AVG: torch.add,
        Op.PRODUCT: torch.mul,
        Op.MIN: torch.minimum,
        Op.MAX: torch.maximum,
        Op.BAND: torch.bitwise_and,
        Op.BOR: torch.bitwise_or,
        Op.BXOR: torch.bitwise_xor,
    }[op]
    total = functools.reduce(how, wide)
    if op == Op.AVG:
        total = total / len(inputs)
    return total.to(dtype)


def operations(dtype):
    if dtype in COMPLEX:
        return [Op.SUM, Op.AVG]
    if dtype.is_floating_point:
        return [Op.SUM, Op.AVG, Op.PRODUCT, Op.MIN, Op.MAX]
    return [Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX, Op.BAND, Op.BOR, Op.BXOR]


def reductions(world):
    salt = 0
    for dtype in [*TYPES, *COMPLEX]:
        for op in operations(dtype):
            for is_async in (False, True):
                salt += 1
                yield dtype, op, COUNTS[salt % len(COUNTS)], is_async, salt


def raw(tensor):
    """The tensor as torch's Python functions take it: they refuse complex AVG in some versions."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


@case("all_reduce of every type and operation")
def all_reduce(world):
    for dtype, op, n, is_async, salt in reductions(world):
        inputs = [values(r, n, dtype, salt) for r in range(world.size)]
        mine = inputs[world.rank].clone()
        finish(dist.all_reduce(raw(mine), op, async_op=is_async), is_async)
        same(mine, folded(inputs, op, dtype))


@case("reduce to every root")
def reduce(world):
    for dtype, op, n, is_async, salt in reductions(world):
        root = salt % world.size
        inputs = [values(r, n, dtype, salt) for r in range(world.size)]
        mine = inputs[world.rank].clone()
        finish(dist.reduce(raw(mine), root, op, async_op=is_async), is_async)
        wanted = folded(inputs, op, dtype) if world.rank == root else inputs[world.rank]
        same(mine, wanted)


@case("reduce_scatter, as tensor and as list")
def reduce_scatter(world):
    for dtype, op, n, is_async, salt in reductions(world):
        inputs = [values(r, (world.size, n), dtype, salt) for r in range(world.size)]
        wanted = folded([each[world.rank] for each in inputs], op, dtype)
        mine = inputs[world.rank]
        got = torch.empty(n, dtype=dtype)
        finish(
            dist.reduce_scatter_tensor(raw(got), raw(mine).flatten(0, 1), op, async_op=is_async),
            is_async,
        )
        same(got, wanted)
        got = torch.empty(n, dtype=dtype)
        pieces = [raw(piece).clone() for piece in mine]
        finish(dist.reduce_scatter(raw(got), pieces, op, async_op=is_async), is_async)
        same(got, wanted)


def movements():
    for salt, dtype in enumerate([*TYPES, *COMPLEX, *MOVED_ONLY]):
        for is_async in (False, True):
            yield dtype, COUNTS[(salt + is_async) % len(COUNTS)], is_async, salt


@case("broadcast from every root")
def broadcast(world):
    for dtype, n, is_async, salt in movements():
        for root in range(world.size):
            wanted = values(root, n, dtype, salt)
            mine = values(world.rank, n, dtype, salt)
            finish(dist.broadcast(mine, root, async_op=is_async), is_async)
            same(mine, wanted)


@case("all_gather, as tensor and as list")
def all_gather(world):
    for dtype, n, is_async, salt in movements():
        wanted = [values(r, n, dtype, salt) for r in range(world.size)]
        mine = wanted[world.rank].clone()
        got = torch.empty(world.size * n, dtype=dtype)
        finish(dist.all_gather_into_tensor(got, mine, async_op=is_async), is_async)
        for rank, piece in enumerate(got.chunk(world.size) if n else []):
            same(piece, wanted[rank])
        parts = [torch.empty(n, dtype=dtype) for _ in range(world.size)]
        finish(dist.all_gather(parts, mine, async_op=is_async), is_async)
        for rank, piece in enumerate(parts):
            same(piece, wanted[rank])


@case("gather and scatter at every root")
def gather_scatter(world):
    for dtype, n, is_async, salt in movements():
        root = salt % world.size
        is_root = world.rank == root
        pieces = [values(r, n, dtype, salt) for r in range(world.size)]
        parts = [torch.empty(n, dtype=dtype) for _ in range(world.size)] if is_root else None
        finish(dist.gather(pieces[world.rank].clone(), parts, root, async_op=is_async), is_async)
        for rank, piece in enumerate(parts or []):
            same(piece, pieces[rank])
        got = torch.empty(n, dtype=dtype)
        finish(dist.scatter(got, pieces if is_root else None, root, async_op=is_async), is_async)
        same(got, pieces[world.rank])


@case("all_to_all, as tensor and as list")
def all_to_all(world):
    for dtype, n, is_async, salt in movements():
        inputs = [values(r, (world.size, n), dtype, salt) for r in range(world.size)]
        mine = inputs[world.rank].clone()
        got = torch.empty(world.size, n, dtype=dtype)
        finish(dist.all_to_all_single(got, mine, async_op=is_async), is_async)
        for rank in range(world.size):
            same(got[rank], inputs[rank][world.rank])
        parts = [torch.empty(n, dtype=dtype) for _ in range(world.size)]
        finish(dist.all_to_all(parts, [row.clone() for row in mine], async_op=is_async), is_async)
        for rank, piece in enumerate(parts):
            same(piece, inputs[rank][world.rank])


@case("all_to_all_single with uneven splits")
def uneven_splits(world):
    # rows[i][j] go from i to j: with zeros, an empty row (rank 0 sends nothing) and a full column.
    rows = [[(3 * i + j) % 5 * (i > 0) for j in range(world.size)] for i in range(world.size)]
    for width, is_async in ((1, False), (6, True)):
        parts = [
            values(i, (sum(rows[i]), width), torch.float32, salt=9) for i in range(world.size)
        ]
        send = rows[world.rank]
        recv = [rows[i][world.rank] for i in range(world.size)]
        got = torch.empty(sum(recv), width)
        work = dist.all_to_all_single(
            got, parts[world.rank].clone(), recv, send, async_op=is_async
        )
        finish(work, is_async)
        wanted = [parts[i].split(rows[i])[world.rank] for i in range(world.size)]
        same(got, torch.cat(wanted))


@case("lists with a size for each rank")  # NUM-06
def uneven_lists(world):
    for sizes in ([1, 4, 7, 10], [0, 1, 5000, 7]):
        pieces = [values(r, sizes[r], torch.float32, 3) for r in range(world.size)]
        parts = [torch.empty(n) for n in sizes]
        dist.all_gather(parts, pieces[world.rank])
        for rank, piece in enumerate(parts):
            same(piece, pieces[rank])
        inputs = [[values(r, n, torch.float32, n) for n in sizes] for r in range(world.size)]
        got = torch.empty(sizes[world.rank])
        dist.reduce_scatter(got, inputs[world.rank])
        same(got, folded([each[world.rank] for each in inputs], Op.SUM, torch.float32))


@case("send and receive, any source, tags")
def send_recv(world):
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for dtype, n, _, salt in movements():
        wanted = values(left, n, dtype, salt)
        got = torch.empty(n, dtype=dtype)
        sent = dist.isend(values(world.rank, n, dtype, salt), right, tag=salt)
        assert dist.recv(got, left, tag=salt) == left
        sent.wait()
        same(got, wanted)
    for tag in (7, 8):  # received in the other order than sent
        dist.isend(torch.tensor([float(10 * world.rank + tag)]), right, tag=tag)
    for tag in (8, 7):
        got = torch.zeros(1)
        dist.recv(got, left, tag=tag)
        assert got.item() == 10 * left + tag
    if world.rank == 0:
        heard = set()
        for _ in range(1, world.size):
            got = torch.zeros(2)
            source = dist.recv(got)
            assert got.tolist() == [source, source]
            heard.add(source)
        assert heard == set(range(1, world.size))
    else:
        dist.send(torch.full((2,), float(world.rank)), 0)


@case("batch_isend_irecv and coalesced collectives")
def batches(world):
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    got = [torch.zeros(n) for n in (1, 5, 1000)]
    ops = [dist.P2POp(dist.irecv, tensor, left) for tensor in got]
    ops += [dist.P2POp(dist.isend, torch.full_like(t, float(world.rank)), right) for t in got]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for tensor in got:
        same(tensor, torch.full_like(tensor, float(left)))
    tensors = [torch.full((n,), float(world.rank)) for n in (3, 1, 2000)]
    with dist._coalescing_manager(async_ops=True) as together:
        for tensor in tensors:
            dist.all_reduce(tensor)
    together.wait()
    for tensor in tensors:
        same(tensor, torch.full_like(tensor, 6.0))
    outs = [torch.zeros(4 * n) for n in (2, 3)]
    with dist._coalescing_manager(async_ops=True) as together:
        for out in outs:
            dist.all_gather_into_tensor(out, torch.full((out.numel() // 4,), float(world.rank)))
    together.wait()
    for out in outs:
        same(out, torch.arange(4.0).repeat_interleave(out.numel() // 4))
    with dist._coalescing_manager(async_ops=True) as together:
        outs = [torch.zeros(2), torch.zeros(1)]
        for out in outs:
            dist.reduce_scatter_tensor(out, torch.ones(4 * out.numel()))
    together.wait()
    for out in outs:
        same(out, torch.full_like(out, 4.0))


@case("premultiplied sums")
def premultiplied(world):
    scale = dist._make_nccl_premul_sum(0.5)
    for dtype in FLOATS:
        mine = torch.full((5,), float(world.rank), dtype=dtype)
        dist.all_reduce(mine, scale)
        same(mine, torch.full((5,), 3.0, dtype=dtype))
    source = torch.full((8,), 2.0)
    got = torch.zeros(2)
    dist.reduce_scatter_tensor(got, source, dist._make_nccl_premul_sum(torch.tensor([0.25])))
    same(got, torch.full((2,), 2.0))
    same(source, torch.full((8,), 2.0))  # the input is only read


@case("functional collectives")
def functional(world):
    import torch.distributed._functional_collectives as funcol

    group = dist.group.WORLD
    mine = torch.full((4, 2), float(world.rank))
    same(funcol.all_reduce(mine, "sum", group) + 0, torch.full((4, 2), 6.0))
    same(funcol.all_reduce(mine, "avg", group) + 0, torch.full((4, 2), 1.5))
    gathered = funcol.all_gather_tensor(mine, 0, group) + 0
    same(gathered, torch.arange(4.0).repeat_interleave(4)[:, None].expand(16, 2))
    same(funcol.reduce_scatter_tensor(mine, "sum", 0, group) + 0, torch.full((1, 2), 6.0))
    moved = funcol.all_to_all_single(mine, None, None, group) + 0
    same(moved, torch.arange(4.0)[:, None].expand(4, 2))
    pair = funcol.all_reduce_coalesced([mine, mine + 1], "sum", group)
    same(pair[1] + 0, torch.full((4, 2), 10.0))
    pair = funcol.all_gather_into_tensor_coalesced([mine[:1], mine[:2]], group)
    same(pair[0] + 0, torch.arange(4.0)[:, None].expand(4, 2))
