"""CPU tensors in memory that the ranks of a node map. Last of all: from the first case on, every tensor of
this world that is large enough lies there."""

import os
import re

import torch
import torch.distributed as dist
from cases_errors import refused
from data import same
from harness import case

import isthmus.torch

LARGE = 300_000  # elements: more than the least, and no round number


def _is_shared(tensor):
    """True when the kernel says that the tensor's first byte lies in the library's memory file."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            begin, end = (int(part, 16) for part in re.match(r"(\w+)-(\w+)", line).groups())
            if begin <= tensor.data_ptr() < end:
                return "isthmus-arena" in line
    return False


def _pattern(rank):
    return torch.arange(LARGE, dtype=torch.float32) % 97 + rank


@case("shared tensors: only large ones, and results are right")
def shared_tensors(world):
    refused(ValueError, "least_bytes", lambda: isthmus.torch.share_cpu_tensors(0))
    isthmus.torch.share_cpu_tensors()
    small, large = torch.ones(10), torch.ones(LARGE)
    assert not _is_shared(small) and _is_shared(large)
    wanted = sum(_pattern(rank) for rank in range(world.size))
    for _ in range(5):  # from the second time on in blocks that were freed
        tensor = _pattern(world.rank)
        assert _is_shared(tensor)
        dist.all_reduce(tensor)
        same(tensor, wanted)
        gathered = torch.empty(LARGE * world.size)
        dist.all_gather_into_tensor(gathered, _pattern(world.rank))
        same(gathered, torch.cat([_pattern(rank) for rank in range(world.size)]))


@case("shared tensors: a model and its optimizer train as before")
def shared_training(world):
    isthmus.torch.share_cpu_tensors()
    def losses(group):
        torch.manual_seed(5)
        model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
        wrapped = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
        optimizer = torch.optim.Adam(wrapped.parameters(), lr=1e-3)
        torch.manual_seed(world.rank)
        seen = []
        for _ in range(6):
            optimizer.zero_grad()
            loss = wrapped(torch.rand(32, 64)).square().mean()
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        assert _is_shared(next(model.parameters()))
        return torch.tensor(seen)

    torch.testing.assert_close(losses(None), losses(world.gloo), rtol=1e-5, atol=0)


@case("shared tensors: resize, copies and files")
def shared_storage(world):
    isthmus.torch.share_cpu_tensors()
    tensor = _pattern(world.rank)
    tensor.resize_(2 * LARGE)
    same(tensor[:LARGE].clone(), _pattern(world.rank))
    assert _is_shared(tensor)
    path = os.path.join(world.folder, f"tensor-{world.rank}.pt")
    torch.save(_pattern(world.rank), path)
    same(torch.load(path), _pattern(world.rank))
    moved = _pattern(world.rank).share_memory_()  # torch's own sharing
    assert not _is_shared(moved)
    same(moved, _pattern(world.rank))


class _Rows(torch.utils.data.Dataset):
    def __init__(self, table):
        self.table = table

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        row = self.table[index].clone()
        self.table[index] = -1  # in the worker's own copy
        return row, torch.zeros(LARGE)[:4] + index


@case("shared tensors: forked workers read them and change nothing")
def shared_forks(world):
    isthmus.torch.share_cpu_tensors()
    table = (torch.arange(64 * 1000, dtype=torch.float32) + world.rank).reshape(64, 1000)
    assert _is_shared(table)
    loader = torch.utils.data.DataLoader(_Rows(table), batch_size=8, num_workers=2,
                                         multiprocessing_context="fork")
    got = torch.cat([rows for rows, _ in loader])
    wanted = (torch.arange(64 * 1000, dtype=torch.float32) + world.rank).reshape(64, 1000)
    same(got, wanted)
    same(table, wanted)
    dist.all_reduce(table)
    same(table, wanted * world.size + sum(range(world.size)) - world.size * world.rank)
