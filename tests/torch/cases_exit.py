"""Programs as users write them: started as processes, judged by exit code and output."""

import os
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# No import of isthmus: torch finds the backend by its name, as it does once the package is installed.
BEGIN = """
import os, sys, torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("isthmus", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
mine = torch.full((10,), 1.0)
dist.all_reduce(mine)
assert mine[0] == 2
"""

# Rank 0, which serves the store, leaves while the other makes groups and has a callback under way that
# is longer than the end of a program waits for calls.
LEFT = """
import datetime, time
def slowly(future):
    time.sleep(2.5)
    return future.value()
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) if rank == 0 else None
port = torch.tensor([0 if store is None else store.port])
dist.all_reduce(port)
store = store or dist.TCPStore("127.0.0.1", int(port), is_master=False)
dist.destroy_process_group()
dist.init_process_group("isthmus", store=store, rank=rank, world_size=2)
dist.all_reduce(mine)
dist.all_reduce(torch.ones(9), async_op=True).get_future().then(slowly)
group = dist.new_group(backend="isthmus", timeout=datetime.timedelta(seconds=20))
if rank == 0:
    print("rank 0 leaves", file=sys.stderr, flush=True)
    os._exit(1)
dist.all_reduce(mine, group=group)
"""

# name -> (code after the beginning, exit code, text that the last line of stderr must have)
SCRIPTS = {
    "exit: without destroy": ("assert dist.get_backend() == 'isthmus'", 0, None),
    "exit: sys.exit with calls and a callback pending": (
        "dist.all_reduce(torch.ones(9), async_op=True).get_future().then(lambda f: f.value())\n"
        "kept = dist.all_reduce(torch.ones(1 << 20), async_op=True)\n"
        "sys.exit(0)",
        0,
        None,
    ),
    "exit: unhandled exception": ("raise ValueError('mine')", 1, "ValueError: mine"),
    "exit: os._exit": ("os._exit(0)", 0, None),
    "exit: with a callback that runs longer than the end waits": (
        "import time\n"
        "dist.all_reduce(mine, async_op=True).get_future().then(lambda f: time.sleep(2.5))\n",
        0,
        None,
    ),
    "exit: rank 0 left while new groups are made": (LEFT, 1, "rank 0"),
}


def _shared_memory():
    return {name for name in os.listdir("/dev/shm") if "isthmus" in name}


def pretend_installed(folder):
    """What pip writes beside a package, for the entry points; the package itself is on the path."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    info = os.path.join(folder, f"isthmus-{project['version']}.dist-info")
    os.mkdir(info)
    with open(os.path.join(info, "METADATA"), "w") as file:
        file.write(f"Metadata-Version: 2.1\nName: isthmus\nVersion: {project['version']}\n")
    with open(os.path.join(info, "entry_points.txt"), "w") as file:
        for group, entries in project["entry-points"].items():
            lines = "".join(f"{name} = {place}\n" for name, place in entries.items())
            file.write(f"[{group}]\n{lines}\n")


def run(name):
    code, wanted, last = SCRIPTS[name]
    before = _shared_memory()
    with tempfile.TemporaryDirectory(prefix="isthmus-exit-") as folder:
        pretend_installed(folder)
        paths = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-c", BEGIN + code]
        processes = [
            subprocess.Popen(
                [*command, str(rank), os.path.join(folder, "rendezvous")],
                env={**os.environ, "PYTHONPATH": paths},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        wrong = []
        for rank, process in enumerate(processes):
            try:
                _, errors = process.communicate(timeout=90)
            except subprocess.TimeoutExpired:
                process.kill()
                _, errors = process.communicate()
                wrong.append(f"process {rank} hung")
            wrong += _judge(rank, process.returncode, errors, wanted, last)
    left = _shared_memory() - before
    if left:
        wrong.append(f"left in /dev/shm: {sorted(left)}")
    return ("fail", "\n".join(wrong)) if wrong else ("ok", "")


def _judge(rank, code, errors, wanted, last):
    wrong = []
    if code != wanted:
        wrong.append(f"process {rank} ended with {code}, wanted {wanted}: {errors[-600:]}")
    if re.search("Segmentation|terminate called|Fatal Python error", errors):
        wrong.append(f"process {rank} crashed: {errors[-600:]}")
    if last is not None and last not in (errors.strip().splitlines() or [""])[-1]:
        wrong.append(f"process {rank}: the last line has no {last!r}: {errors[-600:]}")
    return wrong
