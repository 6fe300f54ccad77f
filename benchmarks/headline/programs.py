"""The programs that are compared: each trains the same model on the same batches, split another way."""

import torch
import torch.distributed as dist
from model import HEADS, keep_layers, loss_of, make_model, optimizer_of, share_of
from torch.distributed.device_mesh import DeviceMesh

KINDS = ("fsdp2", "ddp", "hsdp", "tpdp")


class Groups:
    """Groups of one backend, made when first needed: all ranks, those of a node, and one of each node."""

    def __init__(self, backend, ranks_of_node):
        self.backend, self.here = backend, ranks_of_node
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.nodes = self.size // ranks_of_node
        self._made = {}

    def of(self, ranks):
        key = tuple(ranks)
        if key not in self._made:
            self._made[key] = dist.new_group(list(key), backend=self.backend, use_local_synchronization=True)
        return self._made[key]

    def world(self):
        return self.of(range(self.size))

    def inside(self):
        first = self.rank // self.here * self.here
        return self.of(range(first, first + self.here))

    def across(self):
        return self.of(range(self.rank % self.here, self.size, self.here))

    def mesh(self):
        """Nodes by ranks of a node."""
        return DeviceMesh.from_group([self.across(), self.inside()], "cpu",
                                     mesh=torch.arange(self.size).view(self.nodes, self.here),
                                     mesh_dim_names=("across", "inside"))


def split_heads_and_columns(model, mesh):
    """Tensor parallelism of the blocks, as Megatron splits them."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {"qkv": ColwiseParallel(), "project": RowwiseParallel(),
            "up": ColwiseParallel(), "down": RowwiseParallel()}
    for name, layer in model.layers.items():
        if name.startswith("block"):
            parallelize_module(layer, mesh, plan)
    return model


def copies(model, group, **more):
    """The same gradients on all ranks of the group; where tensors are split too, of their parts."""
    from torch.distributed.tensor.parallel.ddp import _pre_dp_module_transform

    if any(hasattr(weight, "placements") for weight in model.parameters()):
        _pre_dp_module_transform(model)
    return torch.nn.parallel.DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True, **more)


class Program:
    """One way to train: `step(batch)` is a whole step, the loss the mean of what this rank's readers saw."""

    def __init__(self, kind, backend, ranks_of_node):
        groups = Groups(backend, ranks_of_node)
        model = make_model()
        self.part, self.parts = groups.rank, groups.size
        if kind == "ddp":
            model = copies(model, groups.world())
        elif kind == "tpdp":
            self.part, self.parts = groups.rank // groups.here, groups.nodes
            mesh = DeviceMesh.from_group(groups.inside(), "cpu", mesh_dim_names=("tensor",))
            model = copies(split_heads_and_columns(model, mesh), groups.across())
        else:
            from torch.distributed.fsdp import fully_shard

            whole = DeviceMesh.from_group(groups.world(), "cpu") if kind == "fsdp2" else groups.mesh()
            for layer in model.layers.values():
                fully_shard(layer, mesh=whole)
            fully_shard(model, mesh=whole)
        self.model, self.optimizer = model, optimizer_of(model)

    def step(self, batch):
        tokens, wanted = share_of(batch, self.part, self.parts)
        loss = loss_of(self.model(tokens), wanted)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


class Placed:
    """Trains as an isthmus.Placement says: DTensor inside a stage, a pipeline of stages that were cut by it,
    copies by DDP; all groups of the backend isthmus."""

    def __init__(self, placement, micro_batch, backend="isthmus"):
        from torch.distributed.pipelining import PipelineStage

        degrees = placement.degrees
        if degrees["tensor"] > 1 and HEADS % degrees["tensor"]:
            raise ValueError(f"{HEADS} heads do not divide by {degrees['tensor']}")
        # Ranks are not relabelled here, the other programs run in the same world: a mesh of them does it.
        mesh = placement.device_mesh("cpu", ("pipe", "data", "tensor"))
        coordinates = dict(zip(mesh.mesh_dim_names, mesh.get_coordinate(), strict=True))
        ranks = {name: self._line(mesh.mesh, coordinates, name) for name in coordinates}
        groups = Groups(backend, 1)
        self.stage_number, self.stages = coordinates["pipe"], degrees["pipe"]
        self.part, self.parts = coordinates["data"], degrees["data"]
        self.micro_batch = micro_batch
        names = list(make_model().layers)
        mine = range(len(names))
        if self.stages > 1:
            mine = placement.document["stages"][self.stage_number]["layers"]
        model = keep_layers(make_model(), [names[number] for number in mine])
        if degrees["tensor"] > 1:
            inside = DeviceMesh.from_group(groups.of(ranks["tensor"]), "cpu", mesh_dim_names=("tensor",))
            split_heads_and_columns(model, inside)
        if degrees["data"] > 1:
            # Without unused parameters DDP sorts its buckets anew after the first step, and counts for it the
            # passes of all micro-batches; a stage that looks for them leaves them as they are.
            model = copies(model, groups.of(ranks["data"]), find_unused_parameters=self.stages > 1)
        self.model, self.optimizer = model, optimizer_of(model)
        self.group = groups.of(ranks["pipe"])
        self.stage = None
        if self.stages > 1:
            self.stage = PipelineStage(model, self.stage_number, self.stages, torch.device("cpu"),
                                       group=self.group)
        self._schedules = {}

    @staticmethod
    def _line(mesh, coordinates, name):
        """The ranks that differ from us in one coordinate."""
        place = tuple(slice(None) if each == name else value for each, value in coordinates.items())
        return mesh[place].tolist()

    def _schedule(self, sequences):
        from torch.distributed.pipelining import Schedule1F1B

        count = max(sequences // self.micro_batch, 1)
        if count not in self._schedules:
            self._schedules[count] = Schedule1F1B(self.stage, count, loss_fn=loss_of)
        return self._schedules[count]

    def step(self, batch):
        tokens, wanted = share_of(batch, self.part, self.parts)
        if self.stage is None:
            loss = loss_of(self.model(tokens), wanted)
            loss.backward()
            value = loss.item()
        else:
            schedule = self._schedule(len(tokens))
            is_last = self.stage_number == self.stages - 1
            losses = []
            if self.stage_number == 0:
                schedule.step(tokens)
            elif is_last:
                schedule.step(target=wanted, losses=losses)
            else:
                schedule.step()
            # Only the last stage knows; 0 of the others is left out of the mean.
            value = torch.stack(losses).mean().item() if is_last else None
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return value
