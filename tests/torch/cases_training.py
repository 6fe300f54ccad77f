"""Data parallel training against gloo in the same processes."""

import torch
import torch.distributed as dist
from data import same
from harness import case
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 8


def model():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4))


def batch(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(8, 16, generator=generator), torch.randn(8, 4, generator=generator)


def curve(wrapped, optimizer, rank, steps=STEPS):
    losses = []
    for step in range(steps):
        inputs, wanted = batch(rank, step)
        # float(): torch 2.11 takes no backward of a bfloat16 output against a float target.
        loss = nn.functional.mse_loss(wrapped(inputs).float(), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def close(ours, theirs, rtol=1e-5):
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=rtol, atol=1e-7)
    assert ours[-1] != ours[0], "nothing was learnt"


def data_parallel(world, group, hook=None, **options):
    wrapped = DistributedDataParallel(model(), process_group=group, **options)
    if hook is not None:
        wrapped.register_comm_hook(group, hook)
    return curve(wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.1), world.rank)


@case("DDP: loss curve equals gloo's")
def ddp(world):
    for options in ({}, {"bucket_cap_mb": 0.01}, {"find_unused_parameters": True}):
        close(
            data_parallel(world, dist.group.WORLD, **options),
            data_parallel(world, world.gloo, **options),
        )


@case("DDP: communication hooks")
def ddp_hooks(world):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    # We round bf16 sums once, gloo at every addition: half a unit in the last place of 8 bits each.
    for hook, rtol in (
        (default_hooks.allreduce_hook, 1e-5),
        (default_hooks.bf16_compress_hook, 2e-3),
    ):
        close(
            data_parallel(world, dist.group.WORLD, hook),
            data_parallel(world, world.gloo, hook),
            rtol,
        )


@case("DDP: accumulation with no_sync, static graph")
def ddp_accumulates(world):
    def gradients(group):
        wrapped = DistributedDataParallel(model(), process_group=group)
        for _ in range(2):
            with wrapped.no_sync():
                wrapped(batch(world.rank, 0)[0]).sum().backward()
            wrapped(batch(world.rank, 1)[0]).sum().backward()
        return torch.cat([p.grad.flatten() for p in wrapped.parameters()])

    ours, theirs = gradients(dist.group.WORLD), gradients(world.gloo)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    close(
        data_parallel(world, dist.group.WORLD, static_graph=True),
        data_parallel(world, world.gloo, static_graph=True),
    )


@case("DDP: complex parameters")  # NUM-14
def ddp_complex(world):
    class Rotation(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64))

        def forward(self, inputs):
            return (self.factor * inputs).abs().square().sum()

    def gradient(wrap, inputs):
        module = Rotation()
        wrapped = wrap(module) if wrap else module
        wrapped(inputs).backward()
        return module.factor.grad

    inputs = [torch.full((2,), complex(r, 1.0)) for r in range(world.size)]
    ours = gradient(DistributedDataParallel, inputs[world.rank])
    alone = torch.stack([gradient(None, each) for each in inputs]).mean(0)
    torch.testing.assert_close(ours, alone)


@case("DDP: ranks with other parameters are told so")  # NUM-27
def ddp_mismatch(world):
    with world.fresh_group(seconds=10) as group:
        module = model()
        if world.rank == 2:
            module.append(nn.Linear(4, 4))
        try:
            DistributedDataParallel(module, process_group=group)
        except RuntimeError as error:
            assert "isthmus" in str(error) or "inconsistent" in str(error), error
        else:
            raise AssertionError("DDP started with different models")
        world.meet()


def sharded(world, group, **options):
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    mesh = DeviceMesh.from_group(group, "cpu")
    module = model()
    for layer in module:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh, **options)
    fully_shard(module, mesh=mesh, **options)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    losses = curve(module, optimizer, world.rank)
    return losses, module


@case("FSDP2: loss curve equals gloo's")
def fsdp(world):
    ours, module = sharded(world, dist.group.WORLD)
    theirs, _ = sharded(world, world.gloo)
    close(ours, theirs)
    full = module[0].weight.full_tensor()
    copies = [torch.empty_like(full) for _ in range(world.size)]
    dist.all_gather(copies, full.contiguous())
    for copy in copies:
        same(copy, full)


@case("FSDP2: mixed precision and memory of the group")
def fsdp_mixed(world):
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    ours, module = sharded(world, dist.group.WORLD, mp_policy=policy)
    theirs, _ = sharded(world, world.gloo, mp_policy=policy)
    close(ours, theirs)
    if hasattr(module, "set_allocate_memory_from_process_group_for_comm"):
        module.set_allocate_memory_from_process_group_for_comm(True)
        again = curve(module, torch.optim.SGD(module.parameters(), lr=0.0), world.rank, steps=2)
        assert all(loss == loss for loss in again)


@case("ZeRO-1 optimizer")
def zero(world):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def losses(group):
        wrapped = DistributedDataParallel(model(), process_group=group)
        optimizer = ZeroRedundancyOptimizer(
            wrapped.parameters(), torch.optim.SGD, process_group=group, lr=0.1, momentum=0.9
        )
        return curve(wrapped, optimizer, world.rank)

    close(losses(dist.group.WORLD), losses(world.gloo))


@case("DDP with DataLoader workers forked after init")
def workers(world):
    from torch.utils.data import DataLoader, TensorDataset

    generator = torch.Generator().manual_seed(world.rank)
    data = TensorDataset(torch.randn(64, 16, generator=generator), torch.randn(64, 4))
    loader = DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="fork")
    wrapped = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    for _ in range(3):
        for inputs, wanted in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(wrapped(inputs), wanted).backward()
            optimizer.step()
    mine = torch.cat([p.detach().flatten() for p in wrapped.parameters()])
    copies = [torch.empty_like(mine) for _ in range(world.size)]
    dist.all_gather(copies, mine)
    for copy in copies:
        same(copy, mine)
