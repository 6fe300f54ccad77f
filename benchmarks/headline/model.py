"""The model that the headline trains: a byte-level GPT as a chain of layers, whole or a part of it."""

import shutil
import subprocess
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, CONTEXT, BYTES = 384, 8, 6, 128, 256
SEED = 1337
PARAMETERS = 14_442_240  # 12 d^2 + 13 d a block, two tables of 256, positions, the last norm


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(BYTES, WIDTH)
        self.position = nn.Parameter(torch.empty(CONTEXT, WIDTH))

    def forward(self, tokens):
        return self.token(tokens) + self.position[: tokens.shape[1]]


class Block(nn.Module):
    """Heads are the slowest dimension of what `qkv` gives, so that a split of its columns splits heads."""

    def __init__(self):
        super().__init__()
        self.norm_attention = nn.LayerNorm(WIDTH)
        self.norm_mlp = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(batch, length, -1, 3, WIDTH // HEADS)
        query, key, value = qkv.permute(3, 0, 2, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(batch, length, -1))
        return x + self.down(F.gelu(self.up(self.norm_mlp(x))))


class Gpt(nn.Module):
    """The layers run one after another: all of them, or those that are left in `layers`."""

    def __init__(self):
        super().__init__()
        layers = {"embed": Embed()}
        layers |= {f"block{number}": Block() for number in range(LAYERS)}
        layers |= {"norm": nn.LayerNorm(WIDTH), "head": nn.Linear(WIDTH, BYTES, bias=False)}
        self.layers = nn.ModuleDict(layers)

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
        return x


def make_model():
    """The whole model, the same bits on every rank."""
    torch.manual_seed(SEED)
    model = Gpt()
    for name, weight in model.named_parameters():
        if weight.dim() == 2:  # smaller where a residual branch ends, as GPT-2 does
            is_end = name.endswith(("project.weight", "down.weight"))
            nn.init.normal_(weight, std=0.02 / (2 * LAYERS) ** 0.5 if is_end else 0.02)
    return model


def keep_layers(model, names):
    """The model with these layers only."""
    model.layers = nn.ModuleDict({name: model.layers[name] for name in names})
    return model


def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)


def loss_of(logits, wanted):
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def read_text():
    """English: the Bible of bible-kjv where it is installed, else the licences of Debian."""
    if shutil.which("bible"):
        told = subprocess.run(["bible", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=True, timeout=60)
        data = told.stdout
    else:
        folder = Path("/usr/share/common-licenses")
        data = b"".join(file.read_bytes() for file in sorted(folder.iterdir()) if not file.is_symlink())
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).long()


def batch_of(text, step, sequences):
    """All sequences of a step, the same on every rank: tokens and what follows each."""
    chance = torch.Generator().manual_seed(SEED + 1_000_003 * step)
    starts = torch.randint(len(text) - CONTEXT - 1, (sequences,), generator=chance)
    window = text[starts[:, None] + torch.arange(CONTEXT + 1)]
    return window[:, :-1], window[:, 1:]


def share_of(batch, part, parts):
    """The sequences of one of `parts` readers."""
    return tuple(each.chunk(parts)[part] for each in batch)
