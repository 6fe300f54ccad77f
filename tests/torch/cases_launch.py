"""Programs as launchers start them: restarted after a loss, and on two nodes."""

import os
import subprocess
import sys
import tempfile

from cases_exit import pretend_installed

# Saves what it has after each step and goes on from there, as a program that may be restarted does.
TRAIN = """
import os, signal, sys, torch, torch.distributed as dist
path = sys.argv[1]
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("isthmus")
rank, size = dist.get_rank(), dist.get_world_size()
state = torch.load(path) if os.path.exists(path) else {"step": 0, "total": torch.zeros(4)}
for step in range(state["step"], 6):
    mine = torch.full((4,), float(rank + step))
    dist.all_reduce(mine)
    state = {"step": step + 1, "total": state["total"] + mine}
    if rank == 0:
        torch.save(state, path + ".new")
        os.replace(path + ".new", path)
    dist.barrier()
    if attempt == 0 and step == 2 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
if rank == 0:
    total = state["total"][0].item()
    print(f"finished attempt {attempt} with {total}", flush=True)
dist.destroy_process_group()
"""
RANKS = 3
TOTAL = float(sum(rank + step for rank in range(RANKS) for step in range(6)))

# BOOT-01: the name of the first node means loopback there, as Debian's hosts files have it; the others know it rightly.
NAMED = """
import datetime, os, torch, torch.distributed as dist
first, address = os.environ["GROUP_RANK"] == "0", os.environ["MASTER_ADDR"]
assert "node1" in open("/etc/hosts").read(), "this is not the node's own file"
with open("/etc/hosts", "a") as hosts:
    hosts.write(("127.0.1.1" if first else address) + " head\\n")
for name in [name for name in os.environ if name.startswith("ISTHMUS_")]:
    del os.environ[name]
os.environ["MASTER_ADDR"] = "head"
if WHAT == "unknown":
    del os.environ["LOCAL_WORLD_SIZE"]
if WHAT == "nameless":
    os.environ["MASTER_ADDR"] = address
    with open("/etc/hosts", "w") as hosts:
        hosts.write("127.0.0.1 localhost\\n")
dist.init_process_group("isthmus", timeout=datetime.timedelta(seconds=20))
total = torch.ones(1000)
dist.all_reduce(total)
assert total[-1] == dist.get_world_size(), total[-1]
dist.destroy_process_group()
"""

# name -> what is known of the ranks of each node
NODES = {
    "two nodes: the first one's name means loopback there": "known",
    "two nodes: the same where nobody says how many ranks a node has": "unknown",
    "two nodes: their names are known to nobody": "nameless",  # BOOT-22
}
SCRIPTS = ["torchrun: a rank is killed, the job restarts and finishes", *NODES]


def on_nodes(what):
    program = os.environ.get("PLACED_PROGRAM", "")
    if not program:
        return "skip", "the program isthmus was not given (--isthmus)"
    with tempfile.TemporaryDirectory(prefix="isthmus-launch-") as folder:
        pretend_installed(folder)
        paths = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        command = [program, "run", "--nodes", "2x1", "--limit", "80", sys.executable, "-c",
                   f"WHAT = {what!r}\n{NAMED}"]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == 2 and "isthmus run:" in done.stderr:
        return "skip", f"no emulated nodes on this machine: {done.stderr.strip()}"
    if done.returncode != 0:
        return "fail", f"ended with {done.returncode}: {done.stderr[-900:]}"
    return "ok", ""


def run(name):
    if name in NODES:
        return on_nodes(NODES[name])
    with tempfile.TemporaryDirectory(prefix="isthmus-launch-") as folder:
        pretend_installed(folder)
        script = os.path.join(folder, "train.py")
        with open(script, "w") as file:
            file.write(TRAIN)
        command = [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts", "1",
            "--monitor-interval", "0.1", "--nproc-per-node", str(RANKS), script,
            os.path.join(folder, "state"),
        ]
        paths = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        try:
            done = subprocess.run(
                command, env={**os.environ, "PYTHONPATH": paths}, text=True, timeout=150,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        except subprocess.TimeoutExpired as late:
            return "fail", f"torchrun did not end: {(late.stderr or b'')[-800:]!r}"
    wanted = f"finished attempt 1 with {TOTAL}"
    if done.returncode != 0 or wanted not in done.stdout:
        return "fail", f"ended with {done.returncode}, wanted {wanted!r}: {done.stdout[-300:]} {done.stderr[-800:]}"
    return "ok", ""
