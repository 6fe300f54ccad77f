"""Trains a small byte-level GPT on English text, on one or many processes.

    torchrun --nproc-per-node=4 benchmarks/train/gpt.py --backend=isthmus --parallel=fsdp2
    isthmus run --nodes 2x2 --rate 1gbit .venv/bin/python benchmarks/train/gpt.py --backend=gloo

Every setting below can be given as --name=value. The same seed gives the same model and the same
batches on every backend, so that two loss curves can be compared.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    backend: str = "isthmus"  # isthmus or gloo
    parallel: str = "ddp"  # ddp or fsdp2
    steps: int = 40
    warmup: int = 5  # steps that do not count for times and bytes
    batch: int = 1  # sequences per rank and step
    context: int = 64  # bytes per sequence
    layers: int = 4
    heads: int = 6
    width: int = 384
    learning_rate: float = 1e-3
    seed: int = 1337
    bucket_mb: float = 4.0  # DDP's bucket: smaller ones overlap better with the backward pass
    threads: int = 0  # of torch per rank; 0: the processors over the ranks of this node
    data: str = ""  # a text file; empty: the Bible of bible-kjv, else the licences of Debian
    log_every: int = 5
    checkpoint: str = ""  # a file written at the end, and every save_every steps
    save_every: int = 0
    resume: bool = False  # go on from the checkpoint
    json: str = ""  # a file for the figures


def read_config(arguments):
    config = Config()
    kinds = {field.name: type(getattr(config, field.name)) for field in fields(Config)}
    for argument in arguments:
        if argument in ("-h", "--help"):
            print(__doc__)
            for field in fields(Config):
                print(f"  --{field.name}={getattr(config, field.name)}")
            sys.exit(0)
        name, equals, value = argument.partition("=")
        name = name.removeprefix("--")
        if not argument.startswith("--") or not equals or name not in kinds:
            sys.exit(f"gpt.py: unknown setting {argument!r}; known are {', '.join(kinds)} (--name=value)")
        try:
            is_true = value.lower() in ("1", "true", "yes")
            setattr(config, name, is_true if kinds[name] is bool else kinds[name](value))
        except ValueError:
            sys.exit(f"gpt.py: --{name} wants {kinds[name].__name__}, not {value!r}")
    if config.parallel not in ("ddp", "fsdp2"):
        sys.exit(f"gpt.py: --parallel is ddp or fsdp2, not {config.parallel!r}")
    if config.steps <= config.warmup:
        sys.exit(f"gpt.py: --steps={config.steps} leaves nothing after --warmup={config.warmup}")
    return config


def read_text(path):
    """The bytes to train on, as one tensor of integers."""
    if path:
        data = Path(path).read_bytes()
    elif shutil.which("bible"):
        told = subprocess.run(["bible", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=True, timeout=60)
        data = told.stdout
    else:
        folder = Path("/usr/share/common-licenses")
        data = b"".join(file.read_bytes() for file in sorted(folder.iterdir()) if not file.is_symlink())
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).long()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.norm_mlp = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm_mlp(x))))


class Gpt(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.token = nn.Embedding(256, config.width)
        self.position = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config.width, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, 256, bias=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:  # smaller where a residual branch ends, as GPT-2 does
                is_end = name.endswith(("project.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * config.layers) ** 0.5 if is_end else 0.02)

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def distribute(model, config):
    if config.parallel == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    return nn.parallel.DistributedDataParallel(
        model, gradient_as_bucket_view=True, bucket_cap_mb=config.bucket_mb)


def batch_of(text, config, step, rank):
    """The sequences of one rank and step: a function of the seed, so that a resumed run goes on alike."""
    chance = torch.Generator().manual_seed(config.seed + 1_000_003 * step + rank)
    starts = torch.randint(len(text) - config.context - 1, (config.batch,), generator=chance)
    window = text[starts[:, None] + torch.arange(config.context + 1)]
    return window[:, :-1], window[:, 1:]


def whole_state(model, optimizer):
    """Model and optimizer without shards, the same for DDP and FSDP2; collective."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    return get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


def save(path, model, optimizer, losses):
    model_state, optimizer_state = whole_state(model, optimizer)
    losses = mean_of_ranks(losses)
    if dist.get_rank() == 0:
        partial = f"{path}.partial"
        torch.save({"model": model_state, "optimizer": optimizer_state, "losses": losses}, partial)
        os.replace(partial, path)


def load(path, model, optimizer):
    """Takes the checkpoint up; the losses of the steps it has seen, as means of the ranks."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_state_dict

    saved = torch.load(path, map_location="cpu", weights_only=True)
    set_state_dict(model, optimizer, model_state_dict=saved["model"],
                   optim_state_dict=saved["optimizer"], options=StateDictOptions(full_state_dict=True))
    return saved["losses"]


def sent_bytes():
    """Bytes that left through the cards of this node, as its kernel counts them (loopback aside).

    /proc/net/dev is that of the network namespace of the reader, whatever is mounted on /sys."""
    total = 0
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        card, _, counters = line.partition(":")
        if card.strip() != "lo":
            total += int(counters.split()[8])
    return total


class Wire:
    """Bytes between nodes: one rank of each node reads its cards; None in a job of one node."""

    def __init__(self):
        local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self.is_several = local_ranks < dist.get_world_size()
        self.is_reader = int(os.environ.get("LOCAL_RANK", "0")) == 0
        self.before = 0

    def start(self):
        dist.barrier()
        self.before = sent_bytes()
        dist.barrier()  # nobody sends before all have read

    def per_step(self, steps):
        dist.barrier()
        mine = sent_bytes() - self.before if self.is_reader else 0
        total = torch.tensor([mine], dtype=torch.int64)
        dist.all_reduce(total)
        return total.item() / steps if self.is_several else None


def mean_of_ranks(losses):
    values = torch.tensor(losses, dtype=torch.float64)
    dist.all_reduce(values)
    return (values / dist.get_world_size()).tolist()


def train(config):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(config.seed)
    text = read_text(config.data)
    model = Gpt(config)
    parameters = sum(weight.numel() for weight in model.parameters())
    model = distribute(model, config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, betas=(0.9, 0.95), fused=True)
    losses = load(config.checkpoint, model, optimizer) if config.resume else []
    first = len(losses)
    if rank == 0:
        print(f"gpt: {parameters / 1e6:.1f} M parameters, {len(text) / 1e6:.1f} MB of text, {ranks} ranks, "
              f"{config.backend}, {config.parallel}, steps {first} to {config.steps}", flush=True)
    wire, times = Wire(), []
    for step in range(first, config.steps):
        if step == first + config.warmup:
            wire.start()
        tokens, wanted = batch_of(text, config, step, rank)
        began = time.perf_counter()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - began)
        losses.append(loss.item())
        if rank == 0 and (step + 1) % config.log_every == 0:
            print(f"step {step + 1:4}/{config.steps}  loss of rank 0 {losses[-1]:.4f}  "
                  f"{statistics.median(times[-config.log_every:]) * 1000:.0f} ms", flush=True)
        if config.checkpoint and config.save_every and (step + 1) % config.save_every == 0:
            save(config.checkpoint, model, optimizer, losses)
    measured = times[config.warmup :]
    wire_bytes = wire.per_step(len(measured)) if measured else None
    if config.checkpoint:
        save(config.checkpoint, model, optimizer, losses)
    curve = mean_of_ranks(losses)
    step_ms = statistics.median(measured or times or [float("nan")]) * 1000
    return {
        "backend": config.backend, "parallel": config.parallel, "ranks": ranks, "parameters": parameters,
        "steps": config.steps, "loss_first": curve[0], "loss_last": curve[-1], "losses": curve,
        "step_ms": step_ms, "tokens_per_s": ranks * config.batch * config.context / step_ms * 1000,
        "wire_bytes_per_step": wire_bytes,
    }


def main():
    config = read_config(sys.argv[1:])
    local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    processors = len(os.sched_getaffinity(0))
    torch.set_num_threads(config.threads or max(1, processors // local_ranks))
    if "RANK" not in os.environ:  # a world of one needs no launcher
        os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1",
                          MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    dist.init_process_group(config.backend)
    try:
        figures = train(config)
        if dist.get_rank() == 0:
            wire = figures["wire_bytes_per_step"]
            print(f"gpt: loss {figures['loss_first']:.4f} to {figures['loss_last']:.4f}, "
                  f"{figures['step_ms']:.0f} ms a step, {figures['tokens_per_s']:.0f} tokens/s, "
                  + (f"{wire / 1e6:.1f} MB a step between nodes" if wire is not None else "one node"), flush=True)
            if config.json:
                Path(config.json).write_text(json.dumps(figures, indent=2) + "\n")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
