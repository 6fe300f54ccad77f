"""What a rank keeps of weights, gradients and Adam's moments under FSDP2, measured beside what the
scheduler predicts for it: 10 million parameters, float32 and bfloat16, on 1, 2 and 4 ranks.

usage: memory_of_shards.py STATE_BYTES [--all]

STATE_BYTES is the program that asks the scheduler. Three points of six are measured; --all: all.
"""

import ctypes
import gc
import multiprocessing
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:
    print(f"skipped: torch {torch.__version__} has no fully_shard")
    sys.exit(77)

WIDTH = 1000
LAYERS = 10
SHARE = 0.20  # of the prediction; the rest is what allocator and backend keep
POINTS = (("f32", 1), ("f32", 4), ("bf16", 2))
OTHER_POINTS = (("f32", 2), ("bf16", 1), ("bf16", 4))
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def resident():
    """Bytes of this process that no file backs."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("no RssAnon in /proc/self/status")


def train(width, layers, kind, mesh):
    """One step; what comes back keeps all that lives between two steps."""
    model = nn.Sequential(*[nn.Linear(width, width, bias=False, dtype=kind) for _ in range(layers)])
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, width, dtype=kind)).sum().backward()
    optimizer.step()
    return model, optimizer


def rank_main(rank, ranks, folder, kind, answers):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks,
                            store=dist.FileStore(f"{folder}/store", ranks))
    mesh = init_device_mesh("cpu", (ranks,))
    warm = train(16, 2, TYPES[kind], mesh)  # threads, buffers and code that come once
    before = resident()
    kept = train(WIDTH, LAYERS, TYPES[kind], mesh)
    dist.barrier()
    answers.put((rank, resident() - before))
    dist.barrier()
    del kept, warm
    dist.destroy_process_group()


def measured(ranks, kind):
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=rank_main, args=(rank, ranks, folder, kind, answers))
                     for rank in range(ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(timeout=120)
        if any(process.exitcode != 0 for process in processes):
            for process in processes:
                process.kill()
            raise RuntimeError(f"{kind} on {ranks}: a rank failed")
        return [answers.get()[1] for _ in processes]


def predicted(program, ranks, kind):
    told = subprocess.run([program, str(WIDTH * WIDTH), str(LAYERS), kind, str(ranks)], check=True,
                          stdout=subprocess.PIPE, text=True)
    return int(told.stdout)


def main(program, points):
    failures = 0
    for kind, ranks in points:
        expected = predicted(program, ranks, kind)
        found = measured(ranks, kind)
        mean = sum(found) / len(found)
        is_good = abs(mean / expected - 1) <= SHARE
        failures += not is_good
        print(f"{'ok' if is_good else 'FAILED'} {kind} on {ranks}: {mean / 1e6:.1f} MB measured, "
              f"{expected / 1e6:.1f} MB predicted", flush=True)
    print(f"{len(points) - failures} passed, {failures} failed, 0 skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    sys.exit(main(sys.argv[1], POINTS + (OTHER_POINTS if "--all" in sys.argv[2:] else ())))
