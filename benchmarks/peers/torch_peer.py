"""Times torch collectives over gloo and isthmus in the same processes, iteration by iteration in turn.

Started as ranks (isthmus run, torchrun). Rank 0 prints one JSON line per collective with the median, over
iterations, of the slowest rank: gloo and isthmus on ordinary tensors, and `shared`, isthmus on tensors of
its own allocator.

usage: torch_peer.py --collectives all_reduce,reduce_scatter --bytes 67108864 --iterations 10
"""
import argparse
import json
import statistics
import time

import isthmus.torch
import torch
import torch.distributed as dist


def operation(name, group, whole, block):
    """A call without arguments; `whole` is the nccl-tests operand, `block` one rank's part of it."""
    other = whole.clone() if name.endswith("all_to_all") else None
    ranks, me = dist.get_world_size(), dist.get_rank()
    # Those of `isthmus bench all_to_all --uneven`.
    uneven = [block.numel() * (2 * ((me + peer) % ranks) + 1) // ranks for peer in range(ranks)]
    total = sum(uneven)
    calls = {
        "all_reduce": lambda: dist.all_reduce(whole, group=group),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, block, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(block, whole, group=group),
        "all_to_all": lambda: dist.all_to_all_single(other, whole, group=group),
        "uneven_all_to_all": lambda: dist.all_to_all_single(other[:total], whole[:total], uneven, uneven,
                                                            group=group),
        "broadcast": lambda: dist.broadcast(whole, 0, group=group),
    }
    return calls[name]


def slowest(seconds, group):
    times = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(times, op=dist.ReduceOp.MAX, group=group)
    return times.tolist()


def shared(tensor, group):
    """The same values where node peers can map them."""
    plain = group._get_backend(torch.device("cpu"))
    copy = plain.allocate_tensor(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(tensor)


def measure(name, groups, size, iterations):
    ranks = dist.get_world_size()
    whole = torch.rand(size // 4)
    block = torch.rand(whole.numel() // ranks)
    ours = groups["isthmus"]
    calls = {side: operation(name, group, whole, block) for side, group in groups.items()}
    calls["shared"] = operation(name, ours, shared(whole, ours), shared(block, ours))
    seconds = {side: [] for side in calls}
    for iteration in range(-1, iterations):  # -1 warms up
        for side, call in calls.items():
            dist.barrier(group=groups["gloo"])
            start = time.perf_counter()
            call()
            if iteration >= 0:
                seconds[side].append(time.perf_counter() - start)
    result = {"collective": name, "bytes": size}
    for side in calls:
        result[side + "_us"] = 1e6 * statistics.median(slowest(seconds[side], groups["gloo"]))
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collectives", default="all_reduce,reduce_scatter")
    parser.add_argument("--bytes", default="67108864")
    parser.add_argument("--iterations", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(1)
    isthmus.torch.register()  # an installed package is found without
    dist.init_process_group("gloo")
    groups = {"gloo": dist.group.WORLD, "isthmus": dist.new_group(backend="isthmus")}
    for name in args.collectives.split(","):
        for size in args.bytes.split(","):
            result = measure(name, groups, int(size), args.iterations)
            if dist.get_rank() == 0:
                print(json.dumps(result), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
