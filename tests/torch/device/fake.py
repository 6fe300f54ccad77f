"""The device of tests as torch's device "fake": two of them, streams that are late, capture by a flag.

What is not here goes through the host, as torch's fallback does it."""

import contextlib
import os
import sys
import types

import torch

LIBRARY = "FAKE_DEVICE_LIBRARY"  # the environment names it: ranks are processes of their own

torch.ops.load_library(os.environ[LIBRARY])
ops = torch.ops.fake_device
torch.utils.rename_privateuse1_backend("fake")

_module = types.ModuleType("torch.fake")
_module.is_available = lambda: True
_module.device_count = ops.device_count
_module.current_device = ops.current_device
_module.set_device = lambda device: ops.set_device(torch.device(device).index)
_module._is_in_bad_fork = lambda: False
_module.manual_seed_all = lambda seed: None
_module._is_initialized = lambda: True
_module._lazy_init = lambda: None
torch._register_device_module("fake", _module)
sys.modules.setdefault("torch.fake", _module)


@contextlib.contextmanager
def stream(number, device=0):
    """Makes the numbered stream the current one."""
    before = ops.current_stream(device)
    ops.set_stream(device, number)
    try:
        yield
    finally:
        ops.set_stream(device, before)


@contextlib.contextmanager
def capturing(device=0):
    ops.capture(device, True)
    try:
        yield
    finally:
        ops.capture(device, False)


def put(tensor, device=0):
    """A copy on the device, made in the order of the current stream."""
    return tensor.to(f"fake:{device}")
