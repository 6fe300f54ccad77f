"""Larger uses of torch.distributed: plans of tensor parallelism, pipelines, checkpoints, compiled
collectives, exchange of tokens."""

import os

import torch
import torch.distributed as dist
from cases_parallel import mesh_of
from data import same
from harness import case
from torch import nn


@case("sequence parallel plan: norms on shards of the sequence, loss on shards of the vocabulary")
def sequence_parallel(world):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
        loss_parallel,
        parallelize_module,
    )

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(9)
            self.embed, self.norm = nn.Embedding(16, 8), nn.LayerNorm(8)
            self.up, self.down, self.out = nn.Linear(8, 32), nn.Linear(32, 8), nn.Linear(8, 16)

        def forward(self, words):
            return self.out(self.norm(self.down(self.up(self.embed(words)).relu())))

    mesh = mesh_of((world.size,), ("tensor",))
    words = torch.randint(0, 16, (2, 8), generator=torch.Generator().manual_seed(1))
    wanted = torch.randint(0, 16, (16,), generator=torch.Generator().manual_seed(2))
    plain, cut = Block(), Block()
    parallelize_module(
        cut,
        mesh,
        {
            "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "up": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
            "norm": SequenceParallel(),
            "out": ColwiseParallel(
                input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False
            ),
        },
    )
    parallelize_module(
        cut, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel(output_layouts=Shard(1))}
    )
    loss = nn.functional.cross_entropy(plain(words).flatten(0, 1), wanted)
    loss.backward()
    with loss_parallel():
        ours = nn.functional.cross_entropy(cut(words).flatten(0, 1), wanted)
        ours.backward()
    torch.testing.assert_close(ours.full_tensor(), loss, rtol=1e-5, atol=1e-6)
    for (name, theirs), mine in zip(plain.named_parameters(), cut.parameters(), strict=True):
        got = mine.grad.full_tensor() if hasattr(mine.grad, "full_tensor") else mine.grad
        torch.testing.assert_close(got, theirs.grad, rtol=1e-4, atol=1e-5, msg=name)


def pipeline_losses(world, schedule_class, chunks, group):
    """Losses at the last stage and this rank's gradients; `chunks` stages a rank."""
    from torch.distributed.pipelining import PipelineStage

    stages = world.size * chunks
    torch.manual_seed(11)
    layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(stages)]
    inputs = torch.randn(8, 8, generator=torch.Generator().manual_seed(1))
    wanted = torch.randn(8, 8, generator=torch.Generator().manual_seed(2))
    mine = [world.rank + world.size * chunk for chunk in range(chunks)]
    made = [
        PipelineStage(layers[index], index, stages, torch.device("cpu"), group=group)
        for index in mine
    ]
    schedule = schedule_class(
        made if chunks > 1 else made[0], n_microbatches=4, loss_fn=nn.functional.mse_loss
    )
    losses = []
    if world.rank == 0:
        schedule.step(inputs)
    elif world.rank == world.size - 1:
        schedule.step(target=wanted, losses=losses)
    else:
        schedule.step()
    gradients = torch.cat([p.grad.flatten() for index in mine for p in layers[index].parameters()])
    return torch.tensor([loss.item() for loss in losses]), gradients


@case("pipelines: GPipe, 1F1B, interleaved, looped breadth first; bits equal gloo's")
def pipelines(world):
    from torch.distributed import pipelining

    for schedule, chunks in (
        (pipelining.ScheduleGPipe, 1),
        (pipelining.Schedule1F1B, 1),
        (pipelining.ScheduleInterleaved1F1B, 2),
        (pipelining.ScheduleLoopedBFS, 2),
    ):
        ours = pipeline_losses(world, schedule, chunks, dist.group.WORLD)
        theirs = pipeline_losses(world, schedule, chunks, world.gloo)
        for mine, other in zip(ours, theirs, strict=True):
            same(mine, other)
        assert len(ours[0]) == (4 if world.rank == world.size - 1 else 0)


@case("checkpoints: save, load on another layout, save while training goes on")
def checkpoints(world):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = mesh_of((world.size,), ("all",))
    whole = torch.arange(12.0 * 4).reshape(12, 4)
    saved = {"weight": distribute_tensor(whole, mesh, [Shard(0)]), "step": 7}
    path = os.path.join(world.folder, "checkpoint")
    checkpoint.save(saved, checkpoint_id=path)
    for placement in (Shard(1), Replicate()):
        loaded = {"weight": distribute_tensor(torch.zeros(12, 4), mesh, [placement]), "step": 0}
        checkpoint.load(loaded, checkpoint_id=path)
        same(loaded["weight"].full_tensor(), whole)
        assert loaded["step"] == 7
    # Another group plans the save: on a thread, while calls go on in this one.
    planners = dist.new_group(backend="cpu:isthmus")
    later = path + "-later"
    saving = checkpoint.async_save(saved, checkpoint_id=later, process_group=planners)
    total = torch.ones(1000)
    for _ in range(20):
        dist.all_reduce(total)
        total /= world.size
    same(total, torch.ones(1000))
    saving.result(timeout=30)
    loaded = {"weight": distribute_tensor(torch.zeros(12, 4), mesh, [Shard(0)]), "step": 0}
    checkpoint.load(loaded, checkpoint_id=later)
    same(loaded["weight"].full_tensor(), whole)
    dist.destroy_process_group(planners)


def _compiled_step(inputs, weight, group):
    import torch.distributed._functional_collectives as functional

    # 2.13 and later have the second name for it.
    gather = getattr(functional, "all_gather_single", functional.all_gather_tensor)
    scatter = getattr(functional, "reduce_scatter_single", functional.reduce_scatter_tensor)
    # Products and collectives only: the compiler then needs no C++ compiler of the machine.
    product = functional.all_reduce(inputs @ weight, "sum", group)
    parts = gather(product, 0, group)
    mine = scatter(parts, "sum", 0, group)
    return functional.wait_tensor(functional.broadcast(mine, 1, group))


@case("functional collectives under torch.compile: eager, aot_eager, inductor")
def compiled(world):
    inputs = torch.full((4, 4), float(world.rank + 1))
    weight = torch.eye(4)
    wanted = _compiled_step(inputs, weight, world.gloo)
    same(wanted, torch.full((4, 4), 10.0 * world.size))
    same(_compiled_step(inputs, weight, dist.group.WORLD), wanted)
    for compiler in ("eager", "aot_eager", "inductor"):
        # One compiler at work is enough: the calls of the other ranks are the same.
        if compiler == "inductor" and world.rank != 0:
            compiler = "eager"
        torch._dynamo.reset()
        step = torch.compile(_compiled_step, backend=compiler, fullgraph=True)
        with world.fresh_group(seconds=50) as group:
            for _ in range(2):
                same(step(inputs, weight, group), wanted)
    torch._dynamo.reset()


@case("mixture of experts: uneven exchange of tokens under autograd")
def experts(world):
    import torch.distributed._functional_collectives as functional
    import torch.distributed.nn.functional as differentiable

    generator = torch.Generator().manual_seed(5)
    counts = torch.randint(0, 4, (world.size, world.size), generator=generator)
    sends, gets = counts[world.rank].tolist(), counts[:, world.rank].tolist()

    def step(group, exchange):
        tokens = torch.randn(
            sum(sends), 3, generator=torch.Generator().manual_seed(world.rank), requires_grad=True
        )
        expert = torch.full((3, 3), float(world.rank + 1), requires_grad=True)
        arrived = exchange(tokens, gets, sends, group)
        back = exchange(arrived @ expert, sends, gets, group)
        back.square().sum().backward()
        return back.detach(), tokens.grad, expert.grad

    def by_function(tokens, outputs, inputs, group):
        return functional.wait_tensor(
            functional.all_to_all_single_autograd(tokens, outputs, inputs, group)
        )

    def by_module(tokens, outputs, inputs, group):
        result = torch.empty(sum(outputs), tokens.shape[1])
        return differentiable.all_to_all_single(result, tokens, outputs, inputs, group=group)

    for exchange in (by_function, by_module):
        ours, theirs = (step(group, exchange) for group in (dist.group.WORLD, world.gloo))
        for mine, other in zip(ours, theirs, strict=True):
            same(mine, other)
    assert sum(sends) > 0
