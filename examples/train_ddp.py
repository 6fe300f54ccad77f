"""Trains a small character-level transformer with DistributedDataParallel, on one or many processes.

    python train_ddp.py                                       # one process
    torchrun --nproc-per-node=4 train_ddp.py --iters=60
    isthmus run --nodes 2x2 --rate 1gbit python train_ddp.py --backend=gloo
    torchrun --nproc-per-node=4 train_ddp.py --iters=90 --init_from=resume

Every name below can be given as --name=value. A step has the same batches whatever the number of
processes, so loss curves can be compared.
"""

import json
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

backend = "isthmus"  # or gloo
out_dir = "out"
init_from = "scratch"  # or resume
text = ""  # a file to train on; empty: sources of Python's own library
iters = 60
batch_size = 8
block_size = 64
gradient_accumulation_steps = 8  # over all processes
learning_rate = 1e-3
grad_clip = 1.0
eval_interval = 30
eval_iters = 4
eval_sleep = 0.0  # seconds more that rank 0 evaluates, while the others wait for it
checkpoint_interval = 30
seed = 1337

for argument in sys.argv[1:]:
    name, equals, value = argument.removeprefix("--").partition("=")
    known = globals().get(name)
    if not equals or name.startswith("_") or not isinstance(known, (int, float, str)):
        sys.exit(f"train_ddp.py: unknown setting {argument!r} (--name=value)")
    globals()[name] = type(known)(value)

ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    dist.init_process_group(backend)
rank, world_size = (dist.get_rank(), dist.get_world_size()) if ddp else (0, 1)
is_master = rank == 0
assert gradient_accumulation_steps % world_size == 0, "every process wants as many micro steps"
micro_steps = gradient_accumulation_steps // world_size
folder = Path(out_dir)


def prepare():
    """Writes train.bin, val.bin and meta.json, once."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "meta.json").exists():
        return
    library = Path(os.__file__).parent
    files = [Path(text)] if text else [library / "typing.py", library / "argparse.py"]
    characters = "".join(file.read_text() for file in files)[:200_000]
    alphabet = sorted(set(characters))
    tokens = numpy.array([alphabet.index(each) for each in characters], numpy.uint16)
    cut = len(tokens) * 9 // 10
    tokens[:cut].tofile(folder / "train.bin")
    tokens[cut:].tofile(folder / "val.bin")
    (folder / "meta.json").write_text(json.dumps({"alphabet": alphabet}))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.heads = heads

    def forward(self, x):
        batch, time_steps, width = x.shape
        parts = self.queries_keys_values(self.before_attention(x)).chunk(3, dim=-1)
        heads = (part.view(batch, time_steps, self.heads, -1).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, time_steps, width))
        return x + self.mlp(self.before_mlp(x))


class Transformer(nn.Module):
    def __init__(self, symbols, width=64, layers=2, heads=2):
        super().__init__()
        self.symbol, self.place = nn.Embedding(symbols, width), nn.Embedding(block_size, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.last_norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols)

    def forward(self, inputs, targets):
        x = self.symbol(inputs) + self.place(torch.arange(inputs.shape[1]))
        logits = self.head(self.last_norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def batch_of(split, number):
    """The batch with this number, the same wherever it is made."""
    data = numpy.memmap(folder / f"{split}.bin", numpy.uint16, "r")
    random = numpy.random.default_rng((seed, split == "val", number))
    starts = random.integers(len(data) - block_size - 1, size=batch_size)
    rows = numpy.stack([data[start : start + block_size + 1] for start in starts]).astype(numpy.int64)
    rows = torch.from_numpy(rows)
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    losses = [model(*batch_of("val", number)).item() for number in range(eval_iters)]
    model.train()
    time.sleep(eval_sleep)
    return sum(losses) / len(losses)


if is_master:
    prepare()
if ddp:
    dist.barrier()
torch.manual_seed(seed)
alphabet = json.loads((folder / "meta.json").read_text())["alphabet"]
raw_model = Transformer(len(alphabet))
optimizer = torch.optim.AdamW(raw_model.parameters(), lr=learning_rate)
first = 0
if init_from == "resume":
    checkpoint = torch.load(folder / "ckpt.pt", weights_only=True)
    raw_model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    first = checkpoint["iter"]
model = DistributedDataParallel(raw_model) if ddp else raw_model

for step in range(first, iters):
    if is_master and step % eval_interval == 0:
        print(f"iter {step} val {estimate_loss(raw_model):.4f}", flush=True)
    total = torch.zeros(1)
    for micro_step in range(micro_steps):
        # Only the last backward pass exchanges gradients.
        is_last = micro_step == micro_steps - 1
        with nullcontext() if is_last or not ddp else model.no_sync():
            number = step * gradient_accumulation_steps + micro_step * world_size + rank
            loss = model(*batch_of("train", number)) / micro_steps
            loss.backward()
        total += loss.detach()
    norm = nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if ddp:
        dist.all_reduce(total, dist.ReduceOp.AVG if backend == "isthmus" else dist.ReduceOp.SUM)
        total /= 1 if backend == "isthmus" else world_size  # gloo has no average
    if is_master:
        print(f"iter {step} loss {total.item():.9g} norm {norm.item():.9g}", flush=True)
    if is_master and (step + 1) % checkpoint_interval == 0:
        torch.save({"model": raw_model.state_dict(), "optimizer": optimizer.state_dict(),
                    "iter": step + 1}, folder / "ckpt.pt")

if ddp:
    dist.destroy_process_group()
