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

# The world of the program made and destroyed again and again, groups dropped without a word, forks amid
# calls; nothing may be left of them. All thousand rounds: TESTS_WHOLE=1 in the environment.
AGAIN = """
import gc
gc.freeze()
def counts():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
rounds = 1000 if "TESTS_WHOLE" in os.environ else 12
before = None
for turn in range(rounds):
    if turn == rounds // 2:
        before = counts()
    dist.destroy_process_group()
    dist.init_process_group("isthmus", init_method=f"file://{sys.argv[2]}-{turn}", rank=rank, world_size=2)
    group = dist.new_group(backend="isthmus")
    works = [dist.all_reduce(torch.full((1000,), 1.0), async_op=True, group=g) for g in (group, None)]
    if turn % 4 == 0:
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    for work in works:
        work.wait()
        assert work.result()[0][0] == 2
    del group, works, work
    gc.collect()
after = counts()
assert after[0] <= before[0] + 2 and after[1] <= before[1], (before, after)
"""

# Rank 1 is interrupted in calls that rank 0 comes to when it hears of it: every way to wait ends by
# KeyboardInterrupt within a second, the calls themselves go on, and a handler that raises nothing ends nothing.
INTERRUPTED = """
import contextlib, signal, threading, time
heard = sys.argv[2] + "-heard-"
def interrupt():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    return time.monotonic()
def tell(turn):
    open(heard + str(turn), "w").close()
def wait_for_word_of(turn):
    until = time.monotonic() + 30
    while not os.path.exists(heard + str(turn)):
        assert time.monotonic() < until, f"rank 1 was not interrupted in turn {turn}"
        time.sleep(0.01)
full = [torch.full((5000,), float(rank)) for _ in range(9)]
plain = dist.group.WORLD._get_backend(torch.device("cpu"))
sparse = torch.eye(3).to_sparse()
def batch():
    peer, tensors = 1 - rank, (full[3].clone(), full[3])
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, tensors[0], peer), dist.P2POp(dist.irecv, tensors[1], peer)])
    for work in works:
        work.wait()
def coalesced():
    with dist._coalescing_manager():
        dist.all_reduce(full[4])
        dist.all_reduce(full[5])
waits = [
    lambda: dist.all_reduce(full[0]),
    lambda: dist.all_reduce(full[1], async_op=True).wait(),
    lambda: dist.recv(full[2], 0) if rank else dist.send(full[2], 1),
    batch,
    coalesced,
    dist.barrier,
    lambda: dist.barrier(async_op=True).wait(),
    lambda: dist.all_reduce(sparse),
    lambda: plain.monitored_barrier(__import__("datetime").timedelta(seconds=20)),
    lambda: dist.all_reduce(full[6]),
]
last = len(waits) - 1
for turn, wait in enumerate(waits):
    if rank == 0:
        wait_for_word_of(turn)
        wait()
        continue
    if turn == last:
        signal.signal(signal.SIGINT, lambda *_: tell(last))
    began = interrupt()
    try:
        wait()
        assert turn == last, f"turn {turn} was not interrupted"
    except KeyboardInterrupt:
        assert turn < last and time.monotonic() - began < 1.2, turn
        tell(turn)
signal.signal(signal.SIGINT, signal.default_int_handler)
dist.barrier()
for turn, tensor in enumerate(full[:7]):
    assert tensor[-1] == {2: 0, 3: 1 - rank}.get(turn, 1), (turn, tensor)
assert sparse.to_dense().equal(2 * torch.eye(3))
alone = dist.new_group(backend="isthmus")
dist.barrier(alone)
if rank == 1:
    kept = dist.all_reduce(torch.ones(9), group=alone, async_op=True)
    began = interrupt()
    try:
        dist.destroy_process_group(alone)
        raise AssertionError("destroy was not interrupted")
    except KeyboardInterrupt:
        assert time.monotonic() - began < 1.2
        tell("destroy")
else:
    wait_for_word_of("destroy")
"""

# A wait for a future is torch's own and hears of nothing before the call has ended; a work's hears at once.
FUTURE = """
import datetime, signal, threading, time
group = dist.new_group(backend="isthmus", timeout=datetime.timedelta(seconds=3))
dist.barrier(group)
def interrupted(wait):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        try:
            wait()
        except RuntimeError:  # of the call's limit; the handler runs as soon as Python does
            for _ in range(50):
                time.sleep(0.1)
    except KeyboardInterrupt:
        return time.monotonic() - began
if rank == 1:
    work = dist.all_reduce(mine, group=group, async_op=True)
    assert interrupted(work.wait) < 1.2
    took = interrupted(work.get_future().wait)
    assert 1.2 < took < 4, took
dist.barrier()
"""

# A barrier and then the end of the program at once, early or late by a little: each time two new processes,
# forked from programs that have imported torch and not us, that end as Python ends.
LEAVING = """
import gc, os, random, sys, time, torch, torch.distributed as dist
gc.freeze()  # what torch made at its import is no part of what the processes clean up: a second each
rank, path = int(sys.argv[1]), sys.argv[2]
for turn in range(1000 if "TESTS_WHOLE" in os.environ else 5):
    child = os.fork()
    if child == 0:
        shared, own = random.Random(turn), random.Random(2 * turn + rank)
        dist.init_process_group("isthmus", init_method=f"file://{path}-{turn}", rank=rank, world_size=2)
        if shared.random() < 0.5:
            kept = dist.all_reduce(torch.ones(shared.choice([3, 100_000])), async_op=True)
        dist.barrier()
        time.sleep(own.choice([0, 0, 0.0005, 0.003]))
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0, f"turn {turn}"
"""
SILENT = "nothing at all"

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
    "exit: worlds again and again": (AGAIN, 0, None),
    "exit: an interrupt ends a wait within a second": (INTERRUPTED, 0, None),
    "exit: an interrupt in a future's wait is heard when the call has ended": (FUTURE, 0, None),
    "exit: a barrier is the last thing": (LEAVING, 0, SILENT),
    "exit: with a callback that runs longer than the end waits": (
        "import time\n"
        "dist.all_reduce(mine, async_op=True).get_future().then(lambda f: time.sleep(2.5))\n",
        0,
        None,
    ),
    "exit: rank 0 left while new groups are made": (LEFT, 1, "rank 0"),
}


def _shared_memory():
    """Names of ours, but for those of processes that are at work: other tests may run."""
    names = [name for name in os.listdir("/dev/shm") if "isthmus" in name]
    return {name for name in names if not any(os.path.exists(f"/proc/{part}") for part in re.findall(r"\d+", name))}


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
        command = [sys.executable, "-c", code if code is LEAVING else BEGIN + code]
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
                _, errors = process.communicate(timeout=1800 if "TESTS_WHOLE" in os.environ else 90)
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
    if last is SILENT and errors:
        wrong.append(f"process {rank} printed: {errors[-600:]}")
    elif last is not None and last is not SILENT and last not in (errors.strip().splitlines() or [""])[-1]:
        wrong.append(f"process {rank}: the last line has no {last!r}: {errors[-600:]}")
    return wrong
