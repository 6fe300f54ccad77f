"""Where the ranks of a job go: the answer of the program `isthmus place`, which does the search."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile

AXES = ("tensor", "context", "expert", "data", "pipe")  # the first changes from rank to rank
_SHORT = {"tp": "tensor", "cp": "context", "ep": "expert", "dp": "data", "pp": "pipe"}


@dataclasses.dataclass(frozen=True)
class Seat:
    """Where one rank runs: the name of its node, the index of its device there, and its coordinate
    on every axis."""

    node: str
    device: int
    coordinates: dict

    def __str__(self):
        return f"{self.node}:{self.device}"


class Placement:
    """What `isthmus place --json` answered. Ranks are numbered by their coordinates, tensor fastest,
    then context, expert, data, pipe."""

    def __init__(self, document):
        if not isinstance(document, dict) or document.get("isthmus_placement") != 1:
            raise ValueError('no placement of isthmus: "isthmus_placement" is not 1')
        self.document = document
        self.degrees = {axis: 1 for axis in AXES} | document["degrees"]
        self.ranks = []
        for each in sorted(document["ranks"], key=lambda rank: rank["rank"]):
            coordinates = {axis: 0 for axis in AXES} | each["coordinates"]
            self.ranks.append(Seat(each["node"], each["device"], coordinates))
        self.axes = tuple(axis for axis in reversed(AXES) if axis in document["degrees"])
        expected = 1
        for degree in self.degrees.values():
            expected *= degree
        if expected != len(self.ranks):
            raise ValueError(f"degrees make {expected} ranks, the placement has {len(self.ranks)}")

    @classmethod
    def load(cls, path):
        """From a file that `save` or `isthmus place --json` wrote."""
        with open(path, encoding="utf-8") as file:
            return cls(json.load(file))

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.document, file, indent=2)
            file.write("\n")

    def __getattr__(self, name):
        """Numbers that the program prints: max_node_egress, lower_bound, optimal, predicted, ..."""
        document = self.__dict__.get("document", {})
        if name in document:
            return document[name]
        raise AttributeError(f"a placement has no {name!r}; there are {', '.join(document)}")

    def __repr__(self):
        degrees = ", ".join(f"{axis} {self.degrees[axis]}" for axis in AXES if self.degrees[axis] > 1)
        return f"<isthmus.Placement: {degrees or 'one rank'} on {self.document.get('nodes', '?')}>"

    @property
    def nodes(self):
        """Names of the nodes that have ranks, in the placement's order."""
        return list(dict.fromkeys(seat.node for seat in self.ranks_by_seat()))

    def ranks_by_seat(self):
        """Seats in the order of nodes and devices."""
        order = [node["name"] for node in self.document["topology"]["nodes"]]
        return sorted(self.ranks, key=lambda seat: (order.index(seat.node), seat.device))

    def rank_at(self, node, device):
        """The rank that belongs on that device of the node; None where none does."""
        for rank, seat in enumerate(self.ranks):
            if (seat.node, seat.device) == (node, device):
                return rank
        return None

    def devices_of(self, node):
        """Indices of the devices of a node that have a rank, in their order."""
        return sorted(seat.device for seat in self.ranks if seat.node == node)

    def groups(self, axis):
        """All groups of ranks that differ in that coordinate only, in its order."""
        axis = _SHORT.get(axis, axis)
        if axis not in AXES:
            raise ValueError(f"no axis {axis!r}; there are {', '.join(AXES)}")
        found = {}
        for rank, seat in enumerate(self.ranks):
            rest = tuple(seat.coordinates[each] for each in AXES if each != axis)
            found.setdefault(rest, []).append(rank)
        return [sorted(group, key=lambda rank: self.ranks[rank].coordinates[axis])
                for group in found.values()]

    def group_of(self, rank, axis):
        """The group of that rank on the axis."""
        return next(group for group in self.groups(axis) if rank in group)

    def moved(self, hosts, devices=None):
        """Ranks that are not where they were placed, as (rank, placed seat, host, device); `hosts` has
        the node of each rank of a running job, `devices` the place of its device there."""
        away = []
        for rank, seat in enumerate(self.ranks):
            device = seat.device if devices is None else devices[rank]
            if rank >= len(hosts) or (hosts[rank], device) != (seat.node, seat.device):
                host = hosts[rank] if rank < len(hosts) else None
                away.append((rank, seat, host, device))
        return away

    def device_mesh(self, device_type="cpu", names=None):
        """A torch DeviceMesh of the job that runs, with a dimension for each axis of the placement, pipe
        first and tensor last, or for those of `names`. A rank whose number is another than the placed
        one (see isthmus.torch.relabel) stands where its device does. Collective."""
        from isthmus.torch import placed

        return placed.device_mesh(self, device_type, names)


def own_program():
    """The program `isthmus`: of this environment, else on PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "isthmus")
    found = beside if os.access(beside, os.X_OK) else shutil.which("isthmus")
    if found is None:
        raise FileNotFoundError("the program isthmus is neither beside this Python nor on PATH")
    return found


def _listed(given):
    """{"tensor": 2, "data": None} as tensor=2,data."""
    if not isinstance(given, dict):
        return given
    return ",".join(axis if value is None else f"{axis}={value}" for axis, value in given.items())


def _filed(given, folder, name):
    """The path of a JSON document: of a file, or of one that is written."""
    if not isinstance(given, dict):
        return os.fspath(given)
    path = os.path.join(folder, name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(given, file)
    return path


def place(axes=None, *, bytes=None, model=None, job=None, nodes=None, topology=None, rate=None,  # noqa: A002
          memory=None, cut=None, objective=None, top_k=None, spare=False, timeout=600, program=None):
    """Searches where ranks go so that the fewest bytes cross between nodes: `isthmus place --json`.

    ``axes``: degrees, ``{"tensor": 2, "data": None}`` (None: free) or text; ``bytes``: what one rank
    sends a step on each; or ``model`` and ``job``. The cluster: ``nodes`` in short ("4x8") with ``rate``
    and ``memory``, or ``topology``. Model, job and topology are paths or documents (dictionaries).
    ValueError has the program's text; ``timeout`` is in seconds; ``program`` is the path of another
    isthmus than that of this environment."""
    with tempfile.TemporaryDirectory(prefix="isthmus-place-") as folder:
        words = [program or own_program(), "place", "--json"]
        texts = {"--axes": _listed(axes), "--bytes": _listed(bytes), "--nodes": nodes, "--rate": rate,
                 "--memory": memory, "--cut": cut, "--objective": objective, "--top-k": top_k}
        for option, value in texts.items():
            if value is not None:
                words += [option, str(value)]
        files = {"--model": model, "--job": job, "--topology": topology}
        for option, given in files.items():
            if given is not None:
                words += [option, _filed(given, folder, option.removeprefix("--"))]
        ended = subprocess.run(words + ["--spare"] * spare, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=timeout, check=False)
    if ended.returncode != 0:
        raise ValueError(ended.stderr.strip() or f"isthmus place ended with {ended.returncode}")
    return Placement(json.loads(ended.stdout))
