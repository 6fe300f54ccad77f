"""Tensors cut over ranks, pipelines, and objects."""

import torch
import torch.distributed as dist
from data import same
from harness import case
from torch import nn


def mesh_of(shape, names):
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", shape, mesh_dim_names=names)


@case("DTensor: every redistribution")
def redistribute(world):
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    mesh = mesh_of((world.size,), ("all",))
    whole = torch.arange(8.0 * 12).reshape(8, 12)
    for before in (Shard(0), Shard(1), Replicate()):
        for after in (Shard(0), Shard(1), Replicate()):
            spread = distribute_tensor(whole, mesh, [before])
            same(spread.redistribute(mesh, [after]).full_tensor(), whole)
    uneven = torch.arange(7.0 * 3).reshape(7, 3)
    same(distribute_tensor(uneven, mesh, [Shard(0)]).full_tensor(), uneven)
    from torch.distributed.tensor import DTensor

    for kind, factor in (("sum", 4.0), ("avg", 1.0), ("max", 1.0)):
        part = DTensor.from_local(whole, mesh, [Partial(kind)])
        for after in (Replicate(), Shard(0), Shard(1)):
            same(part.redistribute(mesh, [after]).full_tensor(), whole * factor)


@case("tensor parallel MLP on two ranks")
def tensor_parallel(world):
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = mesh_of((2, 2), ("data", "tensor"))

    def mlp():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))

    plain, cut = mlp(), mlp()
    parallelize_module(cut, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    inputs = torch.randn(5, 8, generator=torch.Generator().manual_seed(world.rank // 2))
    wanted, got = plain(inputs), cut(inputs)
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)
    wanted.square().sum().backward()
    got.square().sum().backward()
    for theirs, ours in zip(plain.parameters(), cut.parameters()):
        torch.testing.assert_close(ours.grad.full_tensor(), theirs.grad, rtol=1e-4, atol=1e-5)


@case("sequence parallel and sharded meshes together")
def two_dimensions(world):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = mesh_of((2, 2), ("data", "tensor"))
    torch.manual_seed(3)
    plain = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
    torch.manual_seed(3)
    cut = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
    parallelize_module(cut, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(cut, mesh=mesh["data"])
    rows = [torch.randn(4, 8, generator=torch.Generator().manual_seed(r)) for r in range(2)]
    got = cut(rows[world.rank // 2])
    got.square().mean().backward()
    (sum(plain(each).square().mean() for each in rows) / 2).backward()
    for theirs, ours in zip(plain.parameters(), cut.parameters()):
        torch.testing.assert_close(ours.grad.full_tensor(), theirs.grad, rtol=1e-4, atol=1e-5)


@case("pipeline of two stages, 1F1B", ranks=4)
def pipeline(world):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    mesh = mesh_of((2, 2), ("data", "stage"))
    group = mesh.get_group("stage")
    stage_index = group.rank()
    torch.manual_seed(11)
    layers = [nn.Sequential(nn.Linear(8, 16), nn.Tanh()), nn.Linear(16, 4)]
    inputs = torch.randn(8, 8, generator=torch.Generator().manual_seed(1))
    wanted = torch.randn(8, 4, generator=torch.Generator().manual_seed(2))

    def loss_of(output, target):
        return nn.functional.mse_loss(output, target)

    stage = PipelineStage(layers[stage_index], stage_index, 2, torch.device("cpu"), group=group)
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=loss_of)
    losses = []
    if stage_index == 0:
        schedule.step(inputs)
    else:
        schedule.step(target=wanted, losses=losses)
        whole = nn.Sequential(*_fresh_layers())
        expected = [
            loss_of(whole(x), y).item() for x, y in zip(inputs.chunk(4), wanted.chunk(4))
        ]
        torch.testing.assert_close(torch.tensor([x.item() for x in losses]), torch.tensor(expected))
    assert all(p.grad is not None for p in layers[stage_index].parameters())


def _fresh_layers():
    torch.manual_seed(11)
    return [nn.Sequential(nn.Linear(8, 16), nn.Tanh()), nn.Linear(16, 4)]


@case("object collectives")
def objects(world):
    mine = {"rank": world.rank, "text": "x" * (1000 * world.rank)}
    everybody = [None] * world.size
    dist.all_gather_object(everybody, mine)
    assert [each["rank"] for each in everybody] == list(range(world.size))
    assert len(everybody[3]["text"]) == 3000
    for root in range(world.size):
        box = [mine, root]
        dist.broadcast_object_list(box, root)
        assert box[0]["rank"] == root
        gathered = [None] * world.size if world.rank == root else None
        dist.gather_object(mine, gathered, root)
        if world.rank == root:
            assert [each["rank"] for each in gathered] == list(range(world.size))
        got = [None]
        dist.scatter_object_list(
            got, [("for", r) for r in range(world.size)] if world.rank == root else None, root
        )
        assert got[0] == ("for", world.rank)
    if world.rank == 0:
        dist.send_object_list([mine, "hello"], 1)
    elif world.rank == 1:
        box = [None, None]
        assert dist.recv_object_list(box, 0) == 0
        assert box[1] == "hello"


@case("subgroups: order, roots, overlap, global ranks")  # NUM-29
def subgroups(world):
    members = [[2, 3], [1, 3], [0, 1, 3]]
    groups = [dist.new_group(ranks, backend="isthmus") for ranks in members]
    for ranks, group in zip(members, groups):
        if world.rank not in ranks:
            continue
        mine = torch.full((3,), float(world.rank))
        dist.all_reduce(mine, group=group)
        same(mine, torch.full((3,), float(sum(ranks))))
        for place, root in enumerate(ranks):
            for named in ({"src": root}, {"group_src": place}):
                mine = torch.full((2,), float(world.rank))
                dist.broadcast(mine, group=group, **named)
                same(mine, torch.full((2,), float(root)))
            mine = torch.full((2,), float(world.rank))
            dist.reduce(mine, root, group=group)
            same(mine, torch.full((2,), float(sum(ranks) if world.rank == root else world.rank)))
            parts = [torch.zeros(1) for _ in ranks] if world.rank == root else None
            dist.gather(torch.tensor([float(world.rank)]), parts, root, group=group)
            if parts:
                assert [p.item() for p in parts] == [float(r) for r in ranks]
        everybody = [None] * len(ranks)
        dist.all_gather_object(everybody, world.rank, group=group)
        assert everybody == ranks
        if world.rank == ranks[0]:
            dist.send(torch.tensor([5.0]), ranks[-1], group=group)
        elif world.rank == ranks[-1]:
            got = torch.zeros(1)
            assert dist.recv(got, ranks[0], group=group) == ranks[0]
            assert got.item() == 5.0
    for ranks, group in zip(members, groups):
        if world.rank in ranks:
            dist.destroy_process_group(group)
