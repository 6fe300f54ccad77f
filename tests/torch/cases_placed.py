"""Placements: what isthmus.place answers, and worlds that run as placed or otherwise."""

import os
import subprocess
import sys
import tempfile

from cases_exit import pretend_installed

SECONDS = 100

# scheduler.md, section 5: 3+3+2 with tensor 2, data 2, pipe 2 costs 5,800 bytes, the usual order 6,200.
ANSWERS = """
import os, sys, isthmus
program = os.environ["PLACED_PROGRAM"]
axes = {"tensor": 2, "data": 2, "pipe": 2}
sent = {"tensor": 3200, "data": 800, "pipe": 200}
placed = isthmus.place(axes, bytes=sent, nodes="3+3+2", program=program)
assert placed.max_node_egress == 5800 and placed.optimal and placed.degrees["tensor"] == 2
assert placed.degrees["context"] == 1 and placed.axes == ("pipe", "data", "tensor")
assert sorted(map(str, placed.ranks)) == [f"node{n}:{d}" for n, d in
                                         [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]]
assert placed.groups("tp") == [[0, 1], [2, 3], [4, 5], [6, 7]]
assert placed.groups("pipe") == [[0, 4], [1, 5], [2, 6], [3, 7]] and placed.group_of(5, "data") == [5, 7]
path = sys.argv[1]
placed.save(path)
again = isthmus.Placement.load(path)
assert again.ranks == placed.ranks and "tensor 2" in repr(again)
hosts = [seat.node for seat in placed.ranks]
devices = [seat.device for seat in placed.ranks]
assert placed.moved(hosts, devices) == []
hosts[3] = "elsewhere"
assert [move[0] for move in placed.moved(hosts, devices)] == [3]
free = isthmus.place("tensor,data", bytes={"tensor": 100, "data": 1}, nodes="2x4", program=program)
assert free.max_node_egress == 1
topology = {"isthmus_topology": 1, "nodes": [{"name": "b", "devices": 2}, {"name": "a", "devices": 2}]}
own = isthmus.place({"data": 4}, bytes={"data": 8}, topology=topology, program=program)
assert own.nodes == ["a", "b"] and own.devices_of("b") == [0, 1] and own.rank_at("c", 0) is None
for wrong in ({"axes": {"tensr": 2}}, {"axes": {"tensor": 3}}):
    try:
        isthmus.place(bytes={"tensor": 1}, nodes="2", program=program, **wrong)
    except ValueError as error:
        assert "tensr" in str(error) or "devices" in str(error), error
    else:
        raise AssertionError("was not refused")
try:
    own.no_such_number
except AttributeError as error:
    assert "max_node_egress" in str(error)
print("every answer is right", flush=True)
"""

# Two tensor groups of two on one host, whose devices were dealt in another order than ranks are.
HAND_MADE = """
import socket
import isthmus
DEVICES = [2, 0, 3, 1]  # of ranks 0 to 3
placement = isthmus.Placement({
    "isthmus_placement": 1, "degrees": {"tensor": 2, "data": 2}, "nodes": "4",
    "topology": {"nodes": [{"name": socket.gethostname(), "devices": 4}]},
    "ranks": [{"rank": rank, "node": socket.gethostname(), "device": DEVICES[rank],
               "coordinates": {"tensor": rank % 2, "data": rank // 2}} for rank in range(4)]})
"""

AS_LAUNCHED = HAND_MADE + """
import os, torch, torch.distributed as dist, isthmus.torch
dist.init_process_group("isthmus")
try:
    isthmus.torch.init_placed(placement)
except RuntimeError as error:
    text = str(error)
    host = socket.gethostname()
    assert f"rank 0 is on {host}:0 (local rank 0), its place is {host}:2" in text, text
    assert "4 of 4 ranks are elsewhere" in text and "relabel" in text, text
else:
    raise AssertionError("ranks that are elsewhere were not seen")
# Rank r of the world has device r, where the placement has the rank whose device that is.
mesh = placement.device_mesh("cpu")
assert mesh.mesh_dim_names == ("data", "tensor") and mesh.mesh.tolist() == [[2, 0], [3, 1]], mesh
turned = placement.device_mesh("cpu", ("tensor", "data"))
assert turned.mesh.tolist() == [[2, 3], [0, 1]], turned
mine = torch.tensor([float(dist.get_rank())])
dist.all_reduce(mine, group=mesh.get_group("tensor"))
assert mine.item() == {0: 2.0, 2: 2.0, 1: 4.0, 3: 4.0}[dist.get_rank()]
for wrong in (("tensor",), ("tensor", "date")):
    try:
        placement.device_mesh("cpu", wrong)
    except ValueError:
        continue
    raise AssertionError(f"a mesh of {wrong}")
if dist.get_rank() == 0:
    print("every rank saw where it is", flush=True)
dist.destroy_process_group()
"""

RELABELLED = HAND_MADE + """
import os, torch, torch.distributed as dist, isthmus.torch
assert isthmus.torch.relabel(placement) == DEVICES.index(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("isthmus")  # an unmodified program, from here on
rank = dist.get_rank()
assert rank == DEVICES.index(int(os.environ["LOCAL_RANK"]))
placed = isthmus.torch.init_placed(placement)
assert placed.rank_on("tensor") == rank % 2 == placed.get_model_parallel_rank()
assert placed.rank_on("dp") == rank // 2 and placed.get_data_parallel_world_size() == 2
assert placed.world_size("pipe") == 1 and placed.stage_ranks() == [rank]
assert placed.group("data") is placed.group("dp") is placed.get_data_parallel_group()
assert placed.mesh.mesh.tolist() == [[0, 1], [2, 3]]
mine = torch.tensor([float(rank)])
dist.all_reduce(mine, group=placed.group("data"))
assert mine.item() == (2.0 if rank % 2 == 0 else 4.0)
if rank == 0:
    print("every rank is where it was placed", flush=True)
dist.destroy_process_group()
"""

# Two emulated nodes of two, started round-robin: neighbours in rank are not on one node, tensor groups are.
ON_NODES = """
import os, socket, torch, torch.distributed as dist, isthmus, isthmus.torch
placement = isthmus.place({"tensor": 2, "data": 2}, bytes={"tensor": 100, "data": 1}, nodes="2x2",
                          program=os.environ["PLACED_PROGRAM"])
was = int(os.environ["RANK"])
placed = isthmus.torch.init_placed(placement)
rank = dist.get_rank()
node = int(os.environ["GROUP_RANK"])
assert socket.gethostname() == f"node{node}" and rank // 2 == node, (rank, node)
hosts = [None, None]
dist.all_gather_object(hosts, node, group=placed.group("tensor"))
assert hosts == [node, node]
with isthmus.Communicator() as other:  # joins by the same variables
    assert other.rank == rank
try:
    isthmus.torch.relabel(isthmus.place("data=3", bytes="data=1", nodes="3", program=os.environ["PLACED_PROGRAM"]))
except ValueError as error:
    assert "4 ranks were started, 3 are placed" in str(error)
else:
    raise AssertionError("another world size was taken")
moved = torch.tensor([int(was != rank)])
dist.all_reduce(moved)
if rank == 0:
    print(f"{moved.item()} of 4 ranks were given another number", flush=True)
dist.destroy_process_group()
"""

# The GPT of benchmarks/headline (width 384, sequence 128): numbers from the formulas of arXiv 2205.05198, section 4,
# and by counting what torch's own layers keep.
TRACED = """
import torch, isthmus, isthmus.torch, os, sys
sys.path.insert(0, os.environ["HEADLINE"])
import model as headline
whole = headline.make_model()
before = [weight.clone() for weight in whole.parameters()]
split = {"qkv": "columns", "project": "rows", "up": "columns", "down": "rows"}
tokens = torch.zeros(1, 128, dtype=torch.long)
traced = isthmus.torch.trace(whole, tokens, chain="layers", split=split, heads=6, sequence=128)
layers = {layer["name"]: layer for layer in traced["layers"]}
assert list(layers) == ["layers.embed", *(f"layers.block{n}" for n in range(8)), "layers.norm", "layers.head"]
d, s, f32 = 384, 128, 4
block = layers["layers.block3"]
assert sum(layer["parameters"] for layer in layers.values()) == 14_442_240
assert block["parameters"] == 12 * d * d + 13 * d and block["replicated_parameters"] == 6 * d
assert block["forward_flops"] == 24 * s * d * d + 4 * s * s * d
assert block["boundary_bytes"] == block["reduction_bytes"] == block["input_bytes"] == s * d * f32
assert block["tensor_forward"] == block["tensor_backward"] == 2
# Two norms keep their inputs, outputs, means and deviations; the products in between what is split.
assert block["replicated_activation_bytes"] == f32 * (4 * s * d + 4 * s)
# qkv 3, attention 1, four times the width before and after its function; scores and scaled q, k beside it.
assert block["split_activation_bytes"] >= f32 * 12 * s * d
assert layers["layers.head"]["forward_flops"] == 2 * s * d * 256 and layers["layers.embed"]["forward_flops"] == 0
assert layers["layers.embed"]["parameters"] == (256 + 128) * d and traced["element_bytes"] == 4
assert all(torch.equal(old, new) for old, new in zip(before, whole.parameters(), strict=True))
job = {"isthmus_job": 1, "global_batch": 8, "precision": "f32", "gradient_precision": "f32",
       "master_weights": False, "pipe_copies": "each"}
placed = isthmus.place({"data": 2, "pipe": 4}, model=traced, job=job, nodes="4x2", rate="1gbit",
                       program=os.environ["PLACED_PROGRAM"])
assert placed.max_node_egress == 2 * 8 * s * d * f32  # both ways, all sequences of a step

# Tied, frozen and loose parameters; layers by default; two samples and a layer that runs twice are refused.
class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Embedding(10, 4)
        self.middle = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)])
        self.last = torch.nn.Linear(4, 10, bias=False)
        self.last.weight = self.first.weight
        self.middle[0].weight.requires_grad = False
        self.scale = torch.nn.Parameter(torch.ones(4))
        self.runs = 1
    def forward(self, x):
        x = self.first(x) * self.scale
        for _ in range(self.runs):
            for layer in self.middle:
                x = layer(x)
        return self.last(x)
tied = Tied()
first, *middle, last = isthmus.torch.trace(tied, torch.zeros(1, 3, dtype=torch.long))["layers"]
assert first["parameters"] == 44 and [each["name"] for each in middle] == ["middle.0", "middle.1"]
assert middle[0]["frozen_parameters"] == 16 and middle[1]["parameters"] == 20
assert last["tied_to"] == "first" and last["tied_parameters"] == 40 and last["parameters"] == 0
assert "tensor_forward" not in first
for runs, samples, says in ((2, 1, "ran 2 times"), (1, 2, "has 2 samples")):
    tied.runs = runs
    try:
        isthmus.torch.trace(tied, torch.zeros(samples, 3, dtype=torch.long))
    except ValueError as error:
        assert says in str(error), error
    else:
        raise AssertionError(says)
print("every number is known", flush=True)
"""

SCRIPTS = {
    "placed: a module that is traced": (TRACED, None, "every number is known"),
    "placed: what isthmus.place answers": (ANSWERS, None, "every answer is right"),
    "placed: a world as it was launched": (AS_LAUNCHED, "torchrun", "every rank saw where it is"),
    "placed: a world that is relabelled": (RELABELLED, "torchrun", "every rank is where it was placed"),
    "placed: emulated nodes, started in another order": (ON_NODES, "nodes", "2 of 4 ranks were given another number"),
}


def run(name):
    text, launcher, wanted = SCRIPTS[name]
    program = os.environ.get("PLACED_PROGRAM", "")
    if launcher != "torchrun" and not program:
        return "skip", "the program isthmus was not given (--isthmus)"
    with tempfile.TemporaryDirectory(prefix="isthmus-placed-") as folder:
        pretend_installed(folder)
        script = os.path.join(folder, "program.py")
        with open(script, "w") as file:
            file.write(text)
        before = {
            None: [sys.executable],
            "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"],
            "nodes": [program, "run", "--nodes", "2x2", "--order", "round-robin", sys.executable],
        }[launcher]
        paths = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        headline = os.path.join(os.path.dirname(__file__), "..", "..", "benchmarks", "headline")
        surroundings = {**os.environ, "PYTHONPATH": paths, "HEADLINE": os.path.abspath(headline)}
        if launcher == "nodes":
            del surroundings["GLOO_SOCKET_IFNAME"]
        try:
            done = subprocess.run([*before, script, os.path.join(folder, "answer.json")], env=surroundings,
                                  text=True, timeout=SECONDS, capture_output=True)
        except subprocess.TimeoutExpired as late:
            return "fail", f"did not end: {(late.stderr or b'')[-800:]!r}"
    if launcher == "nodes" and done.returncode == 2 and "isthmus run:" in done.stderr:
        return "skip", f"no emulated nodes on this machine: {done.stderr.strip()[-200:]}"
    if done.returncode != 0 or wanted not in done.stdout:
        return "fail", f"ended with {done.returncode}, wanted {wanted!r}: {done.stdout[-300:]} {done.stderr[-2500:]}"
    return "ok", ""
