"""A job that runs as it was placed: rank numbers, groups and meshes of an isthmus.Placement."""

import os
import socket

_RANK_VARIABLES = ("RANK", "ISTHMUS_RANK", "ROLE_RANK")  # of torchrun and of isthmus run


def _own_node(placement, host):
    """This machine's name in the placement: the host's, whole or up to its first dot."""
    names = placement.nodes
    host = host or socket.gethostname()
    for name in (host, host.partition(".")[0]):
        if name in names:
            return name
    shortened = [name for name in names if name.partition(".")[0] == host.partition(".")[0]]
    if len(shortened) == 1:
        return shortened[0]
    raise ValueError(f"isthmus: this host is {host!r}, the placement has {', '.join(names)}; say host=")


def _own_device(placement, node, local_rank):
    """The index of the device that the process with this number on its node has."""
    devices = placement.devices_of(node)
    if local_rank >= len(devices):
        raise ValueError(f"isthmus: local rank {local_rank} on {node}, where the placement has "
                         f"{len(devices)} ranks")
    return devices[local_rank]


def _number(name):
    text = os.environ.get(name)
    if text is None:
        raise ValueError(f"isthmus: {name} is not set; start the ranks with torchrun or isthmus run")
    return int(text)


def _point_to_master(placement, was_rank):
    """Rank 0 keeps torch's store, unless the launcher does: whoever has become rank 0 is where the
    others must look for it."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" or "MASTER_ADDR" not in os.environ:
        return
    node = placement.ranks[0].node
    here = was_rank == 0 or os.environ.get("GROUP_RANK") == "0"
    if here and node == _own_node(placement, None):
        return
    try:
        found = socket.getaddrinfo(node, None, type=socket.SOCK_STREAM)
    except OSError:
        return  # one host with a made-up name: the address that the launcher gave will do
    os.environ["MASTER_ADDR"] = found[0][4][0]


def relabel(placement, host=None):
    """Gives this process the rank that the placement has for its host and device: sets RANK (and
    ISTHMUS_RANK, ROLE_RANK, and MASTER_ADDR where rank 0 moves). Before init_process_group; whatever
    then computes coordinates from ranks, tensor fastest, follows the placement. Returns the rank.

    The device is LOCAL_RANK's among those of the node. ``host``: this machine's name in the placement,
    if it is not the host's. ValueError when the placement has no such place or another world size."""
    size = _number("WORLD_SIZE")
    if size != len(placement.ranks):
        raise ValueError(f"isthmus: {size} ranks were started, {len(placement.ranks)} are placed")
    was = _number("RANK")
    node = _own_node(placement, host)
    rank = placement.rank_at(node, _own_device(placement, node, _number("LOCAL_RANK")))
    _point_to_master(placement, was)
    for name in _RANK_VARIABLES:
        if name in os.environ:
            os.environ[name] = str(rank)
    return rank


def _placed_ranks(placement, host=None):
    """The placed rank of each rank of the world: a collective of the default group."""
    import torch.distributed as dist

    try:
        node = _own_node(placement, host)
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        mine = (placement.rank_at(node, _own_device(placement, node, local_rank)), node, local_rank)
    except ValueError as wrong:
        mine = (None, str(wrong), 0)  # told to all: one that raises alone would leave them waiting
    everywhere = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, mine)
    return everywhere


def check(placement, host=None):
    """Raises RuntimeError, the same on every rank, unless every rank of the world runs where it was
    placed; the text names the first that does not. Collective."""
    everywhere = _placed_ranks(placement, host)
    if len(everywhere) != len(placement.ranks):
        raise RuntimeError(f"isthmus: the world has {len(everywhere)} ranks, "
                           f"{len(placement.ranks)} are placed")
    away = [(rank, found) for rank, found in enumerate(everywhere) if found[0] != rank]
    if not away:
        return
    rank, (seat, where, local_rank) = away[0]
    if seat is None:
        raise RuntimeError(f"isthmus: rank {rank}: {where.removeprefix('isthmus: ')}")
    raise RuntimeError(
        f"isthmus: rank {rank} is on {placement.ranks[seat]} (local rank {local_rank}), its place is "
        f"{placement.ranks[rank]}; {len(away)} of {len(everywhere)} ranks are elsewhere. "
        "isthmus.torch.relabel(placement) before init_process_group gives every process the rank of its place"
    )


def device_mesh(placement, device_type, names=None):
    import torch
    from torch.distributed.device_mesh import DeviceMesh

    names = tuple(names or placement.axes)
    unknown = [name for name in names if name not in placement.degrees]
    if unknown:
        raise ValueError(f"isthmus: no axis {unknown[0]!r} in the placement")
    left_out = [axis for axis, degree in placement.degrees.items() if degree > 1 and axis not in names]
    if left_out:
        raise ValueError(f"isthmus: a mesh has all ranks; {left_out[0]} is split and not among its names")
    everywhere = _placed_ranks(placement)
    real = {found[0]: rank for rank, found in enumerate(everywhere)}
    if sorted(real, key=str) != sorted(range(len(placement.ranks)), key=str):
        check(placement)  # says who is nowhere
        raise RuntimeError("isthmus: some places of the placement have no rank")
    shape = [placement.degrees[name] for name in names]
    mesh = torch.empty(shape, dtype=torch.int)
    for rank, seat in enumerate(placement.ranks):
        mesh[tuple(seat.coordinates[name] for name in names)] = real[rank]
    return DeviceMesh(device_type, mesh, mesh_dim_names=names)


class Placed:
    """A world that runs as placed; its groups are made when they are first asked for, by their members
    alone, and kept."""

    def __init__(self, placement, device_type):
        import torch.distributed as dist

        self.placement = placement
        self.rank = dist.get_rank()
        self.coordinates = placement.ranks[self.rank].coordinates
        self._device_type = device_type
        self._groups, self._mesh = {}, None

    def world_size(self, axis):
        return len(self.placement.group_of(self.rank, axis))

    def rank_on(self, axis):
        """This rank's coordinate."""
        return self.placement.group_of(self.rank, axis).index(self.rank)

    def group(self, axis):
        """This rank's process group on the axis; of one rank where it is not split."""
        import torch.distributed as dist

        members = tuple(self.placement.group_of(self.rank, axis))
        if members not in self._groups:
            self._groups[members] = dist.new_group(
                list(members), use_local_synchronization=True, group_desc=f"placed_{axis}"
            )
        return self._groups[members]

    def stage_ranks(self):
        """The ranks of this rank's pipeline, first stage first."""
        return self.placement.group_of(self.rank, "pipe")

    @property
    def mesh(self):
        """The DeviceMesh of all axes of the placement. Collective at its first use."""
        if self._mesh is None:
            self._mesh = self.placement.device_mesh(self._device_type)
        return self._mesh


for _axis, _word in (("tensor", "model"), ("data", "data"), ("pipe", "pipe")):
    # As Megatron and veGiantModel call them.
    setattr(Placed, f"get_{_word}_parallel_world_size", lambda self, axis=_axis: self.world_size(axis))
    setattr(Placed, f"get_{_word}_parallel_rank", lambda self, axis=_axis: self.rank_on(axis))
    setattr(Placed, f"get_{_word}_parallel_group", lambda self, axis=_axis: self.group(axis))


def init_placed(placement, backend="isthmus", device_type="cpu", host=None, **more):
    """Relabels this process, starts torch.distributed with ``more`` for init_process_group, checks that
    every rank is in its place, and returns the groups of the axes (``Placed``). ``placement`` is an
    isthmus.Placement or a file of one. A world that exists already is checked as it is."""
    import torch.distributed as dist

    from isthmus.placement import Placement

    if not isinstance(placement, Placement):
        placement = Placement.load(placement)
    if not dist.is_initialized():
        relabel(placement, host)
        dist.init_process_group(backend, **more)
    check(placement, host)
    return Placed(placement, device_type)
