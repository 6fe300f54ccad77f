"""What DDP, ZeRO and FSDP offer beyond the plain loop, against gloo in the same processes."""

import torch
import torch.distributed as dist
from cases_training import STEPS, batch, close, curve, data_parallel, model, sharded
from data import TORCH, same
from harness import case
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def both(world):
    return dist.group.WORLD, world.gloo


def parameters(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@case("DDP: bucket views, unused parameters, static graph")
def ddp_options(world):
    class Branches(nn.Module):
        """Every second call leaves one branch out."""

        def __init__(self):
            super().__init__()
            self.used, self.sometimes = model(), nn.Linear(16, 4)
            self.calls = 0

        def forward(self, inputs):
            self.calls += 1
            result = self.used(inputs)
            return result + self.sometimes(inputs) if self.calls % 2 else result

    def losses(group, **options):
        torch.manual_seed(5)
        wrapped = DistributedDataParallel(Branches(), process_group=group, **options)
        return curve(wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.1), world.rank)

    for options in (
        {"find_unused_parameters": True},
        {"find_unused_parameters": True, "gradient_as_bucket_view": True},
    ):
        close(*(losses(group, **options) for group in both(world)))
    for options in ({"gradient_as_bucket_view": True}, {"static_graph": True, "bucket_cap_mb": 0.01}):
        close(*(data_parallel(world, group, **options) for group in both(world)))


@case("DDP: hooks fp16, bf16, PowerSGD, quantization")
def ddp_hooks(world):
    from torch.distributed.algorithms.ddp_comm_hooks import (
        default_hooks,
        powerSGD_hook,
        quantization_hooks,
    )

    def power(group, hook):
        state = powerSGD_hook.PowerSGDState(
            group, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=0.5
        )
        wrapped = DistributedDataParallel(model(), process_group=group)
        wrapped.register_comm_hook(state, hook)
        return curve(wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.05), world.rank)

    # 16-bit sums are rounded once here and at every addition by gloo: a few units of their last place.
    hooks = [
        (default_hooks.fp16_compress_hook, 1e-3),
        (default_hooks.bf16_compress_hook, 5e-3),
        (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 1e-3),
    ]
    if TORCH >= (2, 15):  # that of 2.11 reads futures as NCCL's are, and fails on gloo as well
        hooks.append((quantization_hooks.quantization_perchannel_hook, 1e-5))
    for hook, rtol in hooks:
        close(*(data_parallel(world, group, hook) for group in both(world)), rtol)
    # Not batched_powerSGD_hook: torch 2.15 fails in it before it calls the group.
    close(*(power(group, powerSGD_hook.powerSGD_hook) for group in both(world)), 1e-4)


@case("DDP: join with uneven inputs")
def ddp_join(world):
    def train(group):
        wrapped = DistributedDataParallel(model(), process_group=group)
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
        with wrapped.join():
            for step in range(2 + world.rank):
                inputs, wanted = batch(world.rank, step)
                optimizer.zero_grad()
                nn.functional.mse_loss(wrapped(inputs), wanted).backward()
                optimizer.step()
        return parameters(wrapped)

    ours, theirs = (train(group) for group in both(world))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    copies = [torch.empty_like(ours) for _ in range(world.size)]
    dist.all_gather(copies, ours)
    for copy in copies:
        same(copy, ours)


@case("DDP: join ends all ranks early when asked to")
def ddp_join_throws(world):
    wrapped = DistributedDataParallel(model())
    try:
        with wrapped.join(throw_on_early_termination=True):
            for step in range(2 if world.rank == 1 else 6):
                wrapped(batch(world.rank, step)[0]).sum().backward()
    except RuntimeError as error:
        assert "exhausted" in str(error) and "inputs" in str(error), error
    else:
        raise AssertionError("nobody was told that rank 1 ran out of inputs")


@case("DDP and ZeRO: join together, momentum, consolidated state")
def zero_join(world):
    from torch.distributed.algorithms.join import Join
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def train(group):
        wrapped = DistributedDataParallel(model(), process_group=group)
        optimizer = ZeroRedundancyOptimizer(
            wrapped.parameters(), torch.optim.Adam, process_group=group, lr=0.01,
            parameters_as_bucket_view=True,
        )
        with Join([wrapped, optimizer]):
            for step in range(2 + world.rank % 2):
                optimizer.zero_grad()
                inputs, wanted = batch(world.rank, step)
                nn.functional.mse_loss(wrapped(inputs), wanted).backward()
                optimizer.step()
        optimizer.consolidate_state_dict(to=0)
        state = optimizer.state_dict()["state"] if world.rank == 0 else {}
        moments = [state[key]["exp_avg"].flatten() for key in sorted(state)]
        return torch.cat([parameters(wrapped), *moments])

    ours, theirs = (train(group) for group in both(world))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@case("post-local SGD, periodic averaging")
def local_sgd(world):
    from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook
    from torch.distributed.algorithms.model_averaging import averagers
    from torch.distributed.optim import PostLocalSGDOptimizer

    def train(group):
        wrapped = DistributedDataParallel(model(), process_group=group)
        state = post_localSGD_hook.PostLocalSGDState(
            process_group=group, subgroup=group, start_localSGD_iter=2
        )
        wrapped.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
        optimizer = PostLocalSGDOptimizer(
            torch.optim.SGD(wrapped.parameters(), lr=0.1),
            averagers.PeriodicModelAverager(period=2, warmup_steps=2, process_group=group),
        )
        curve(wrapped, optimizer, world.rank, STEPS)
        return parameters(wrapped)

    ours, theirs = (train(group) for group in both(world))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@case("FSDP1: full shard, gradient shard, hybrid")
def fsdp_one(world):
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    pairs = [[0, 1], [2, 3]]
    across = [[0, 2], [1, 3]]

    def hybrid(backend):
        def mine(lists):
            made = [dist.new_group(ranks, backend=backend) for ranks in lists]
            return next(g for g, ranks in zip(made, lists, strict=True) if world.rank in ranks)

        return mine(pairs), mine(across)

    def losses(group, strategy):
        wrapped = FullyShardedDataParallel(
            model(),
            process_group=group,
            sharding_strategy=strategy,
            auto_wrap_policy=ModuleWrapPolicy({nn.Linear}),
            device_id=torch.device("cpu"),
        )
        return curve(wrapped, torch.optim.Adam(wrapped.parameters(), lr=0.01), world.rank)

    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
        close(*(losses(group, strategy) for group in both(world)))
    close(*(losses(hybrid(name), ShardingStrategy.HYBRID_SHARD) for name in ("isthmus", "gloo")))


@case("FSDP2: shards on one axis, copies on the other (HSDP)")
def hybrid(world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def losses(mesh):
        module = model()
        for layer in module:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(module, mesh=mesh)
        return curve(module, torch.optim.AdamW(module.parameters(), lr=0.01), world.rank)

    ours = losses(init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards")))
    theirs, _ = sharded(world, world.gloo)
    close(ours, theirs)


@case("FSDP2: buffers of the group's memory give the same losses")
def group_memory(world):
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    def losses(uses_group_memory):
        module = model()
        fully_shard(module, mesh=DeviceMesh.from_group(dist.group.WORLD, "cpu"))
        if uses_group_memory:
            module.set_allocate_memory_from_process_group_for_comm(True)
        return curve(module, torch.optim.AdamW(module.parameters(), lr=0.01), world.rank)

    same(torch.tensor(losses(True)), torch.tensor(losses(False)))
