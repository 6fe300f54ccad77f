"""Programs under torchrun: a rank is killed, the job starts again and finishes."""

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

SCRIPTS = ["torchrun: a rank is killed, the job restarts and finishes"]


def run(_name):
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
