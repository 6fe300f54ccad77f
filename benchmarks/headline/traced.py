"""Prints the model of the headline as `isthmus place --model` reads it."""

import json

import torch
from model import BYTES, CONTEXT, HEADS, make_model

import isthmus.torch

if __name__ == "__main__":
    tokens = torch.zeros(1, CONTEXT, dtype=torch.long)
    split = {"qkv": "columns", "project": "rows", "up": "columns", "down": "rows"}
    print(json.dumps(isthmus.torch.trace(make_model(), tokens, chain="layers", split=split, heads=HEADS,
                                         name="byte-level GPT", sequence=CONTEXT), indent=1))
    assert BYTES == 256
