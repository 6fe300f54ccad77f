"""Inputs that every rank can compute for every other, and strided tensors whose gaps are watched."""

import torch

TORCH = tuple(map(int, torch.__version__.split(".")[:2]))
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
TYPES = [*FLOATS, *INTEGERS, torch.bool]
COMPLEX = [torch.complex64, torch.complex128]
MOVED_ONLY = [torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32, torch.uint64]
COUNTS = [0, 1, 3, 17, 1027]


def values(rank, shape, dtype, salt=0):
    """Small whole numbers: every sum and product of a few is exact in every type."""
    generator = torch.Generator().manual_seed(1000 * salt + rank + 1)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    low = 0 if dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64) else -2
    raw = torch.randint(low, 4, shape, generator=generator)
    if dtype == torch.bool:
        return raw > 0
    if dtype.is_complex:
        other = torch.randint(low, 4, shape, generator=generator)
        return torch.complex(raw.double(), other.double()).to(dtype)
    if dtype.is_floating_point and dtype.itemsize == 1:
        return raw.float().to(dtype)
    return raw.to(dtype)


def counting(group):
    """What tells the sequence numbers of a group: before 2.15 the group itself asks only backends that torch knows."""
    return group if TORCH >= (2, 15) else group._get_backend(torch.device("cpu"))


def same(got, wanted):
    """Equal type, shape and bytes; NaN equals NaN."""
    assert got.dtype == wanted.dtype, f"type {got.dtype}, wanted {wanted.dtype}"
    assert got.shape == wanted.shape, f"shape {tuple(got.shape)}, wanted {tuple(wanted.shape)}"
    if got.dtype.is_floating_point and got.dtype.itemsize == 1:
        got, wanted = got.view(torch.uint8), wanted.view(torch.uint8)
    equal = (got == wanted) | ((got != got) & (wanted != wanted))
    assert bool(equal.all()), f"got {got.flatten()[:8]}, wanted {wanted.flatten()[:8]}"


LAYOUTS = ["contiguous", "column", "transposed", "every third", "offset"]


class Strided:
    """A tensor of a layout with given contents, in storage whose other elements are 1."""

    def __init__(self, contents, layout):
        n = contents.numel()
        self.layout = layout
        if layout == "contiguous":
            self.base = torch.ones(n, dtype=contents.dtype)
            self.view = self.base
        elif layout == "column":
            self.base = torch.ones(n, 2, dtype=contents.dtype)
            self.view = self.base[:, 0]
        elif layout == "transposed":
            self.base = torch.ones(2, max(1, n // 2), dtype=contents.dtype)
            self.view = self.base.t()
            assert self.view.numel() == n, "transposed needs an even count"
        elif layout == "every third":
            self.base = torch.ones(3 * n, dtype=contents.dtype)
            self.view = self.base[::3]
        else:
            self.base = torch.ones(n + 7, dtype=contents.dtype)
            self.view = self.base.narrow(0, 5, n)
        self.view.copy_(contents.view(self.view.shape))

    def check(self, contents):
        same(self.view.reshape(-1), contents.reshape(-1))
        marked = self.base.clone()
        Strided._like(self.view, marked).fill_(1)
        assert bool((marked == 1).all()), f"a gap of the layout {self.layout!r} was written"

    @staticmethod
    def _like(view, base):
        return base.as_strided(view.size(), view.stride(), view.storage_offset())
