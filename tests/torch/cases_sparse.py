"""Sums of sparse tensors, bit for bit as gloo adds them."""

import warnings

import torch
import torch.distributed as dist
from cases_errors import refused
from data import same
from harness import case
from torch import nn
from torch.nn.parallel import DistributedDataParallel

Op = dist.ReduceOp


def sparse(rank, shape, dense_dims, entries, dtype=torch.float32):
    """Random entries, some of them twice: what an embedding's gradient looks like."""
    generator = torch.Generator().manual_seed(17 * rank + entries)
    sparse_shape = shape[: len(shape) - dense_dims]
    indices = torch.stack(
        [torch.randint(0, size, (entries,), generator=generator) for size in sparse_shape]
    )
    values = torch.randn((entries, *shape[len(sparse_shape) :]), generator=generator)
    return torch.sparse_coo_tensor(indices, (values * 8).to(dtype), shape, check_invariants=True)


def equal(ours, theirs):
    assert ours.layout == theirs.layout == torch.sparse_coo
    same(ours.coalesce().indices(), theirs.coalesce().indices())
    same(ours.coalesce().values(), theirs.coalesce().values())


@case("sparse all_reduce: bits equal gloo's")
def sparse_sums(world):
    shapes = [((7,), 0), ((5, 6), 0), ((9, 4), 1), ((3, 4, 2), 0), ((6, 2, 3), 2)]
    for shape, dense_dims in shapes:
        for dtype in (torch.float32, torch.float64, torch.int64):
            for is_async in (False, True):
                entries = 3 * world.rank + 1  # another number on each rank
                ours, theirs = (
                    sparse(world.rank, shape, dense_dims, entries, dtype) for _ in range(2)
                )
                work = dist.all_reduce(ours, async_op=is_async)
                if work is not None:
                    work.wait()
                dist.all_reduce(theirs, group=world.gloo)
                equal(ours, theirs)
                total = sum(
                    sparse(rank, shape, dense_dims, 3 * rank + 1, dtype).to_dense().double()
                    for rank in range(world.size)
                )
                torch.testing.assert_close(ours.to_dense().double(), total, rtol=1e-5, atol=1e-5)


@case("sparse all_reduce: no entries on some ranks, and on all")
def sparse_empty(world):
    for holders in ((), (1,), (0, 3)):
        entries = 4 if world.rank in holders else 0
        ours, theirs = (sparse(world.rank, (5, 3), 1, entries) for _ in range(2))
        dist.all_reduce(ours)
        dist.all_reduce(theirs, group=world.gloo)
        equal(ours, theirs)
        assert (ours.coalesce()._nnz() > 0) == bool(holders)


@case("sparse all_reduce: between other calls, in another order on each rank")
def sparse_order(world):
    inputs = [sparse(world.rank, (8, 2), 1, 3) for _ in range(3)]
    wanted = sum(sparse(rank, (8, 2), 1, 3).to_dense() for rank in range(world.size))
    with world.fresh_group() as other:
        works = [dist.all_reduce(inputs[0], async_op=True)]
        dense = torch.ones(5)
        groups = [dist.group.WORLD, other] if world.rank % 2 else [other, dist.group.WORLD]
        for group, mine in zip(groups, inputs[1:], strict=True):
            works.append(dist.all_reduce(mine, group=group, async_op=True))
        dist.all_reduce(dense)
        same(dense, torch.full((5,), float(world.size)))
        future = works[0].get_future()
        for work in reversed(works):
            work.wait()
        torch.testing.assert_close(future.wait()[0].to_dense(), wanted)
    for mine in inputs:
        torch.testing.assert_close(mine.to_dense(), wanted)


@case("sparse all_reduce: what cannot be added is refused, sizes that differ on every rank")
def sparse_refused(world):
    eye = torch.eye(4).to_sparse()
    refused(ValueError, "only be added", dist.all_reduce, eye, Op.MAX)
    refused(NotImplementedError, "SparseCPU", dist.broadcast, eye, 0)  # torch's own words
    with warnings.catch_warnings(action="ignore"):  # that CSR tensors are new
        rows = torch.eye(4).to_sparse_csr()
    refused(NotImplementedError, "SparseCsrCPU", dist.all_reduce, rows)
    mine = sparse(world.rank, (4 + (world.rank == 2), 3), 1, 2)
    refused(ValueError, "sizes differ|rank 2", dist.all_reduce, mine)
    again = sparse(world.rank, (4, 3), 1, 2)  # the group goes on: all were told
    dist.all_reduce(again)
    total = sum(sparse(rank, (4, 3), 1, 2).to_dense() for rank in range(world.size))
    torch.testing.assert_close(again.to_dense(), total)


@case("sparse all_reduce: a rank that does not come ends it by the timeout")
def sparse_timeout(world):
    with world.fresh_group(seconds=2) as group:
        if world.rank != 1:
            mine = sparse(world.rank, (4,), 0, 2)
            refused(RuntimeError, "timeout|rank 1", dist.all_reduce, mine, group=group)
        world.meet()
        group.abort()


@case("sparse gradients of DDP: bits equal gloo's")
def sparse_gradients(world):
    def train(group):
        torch.manual_seed(3)
        module = nn.Embedding(50, 4, sparse=True)
        wrapped = DistributedDataParallel(module, process_group=group)
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
        generator = torch.Generator().manual_seed(world.rank)
        for _ in range(4):
            words = torch.randint(0, 50, (6,), generator=generator)
            optimizer.zero_grad()
            wrapped(words).square().sum().div(3).backward()
            assert module.weight.grad.is_sparse
            optimizer.step()
        return module.weight.detach()

    same(train(dist.group.WORLD), train(world.gloo))
