"""A layer of experts, one on each rank: tokens travel to their two experts and back by all-to-all.

    torchrun --nproc-per-node=4 moe.py
    isthmus run -n 4 python moe.py --load=one --steps=200
    isthmus run -n 4 python moe.py --backend=gloo

The first step is compared with the same layer computed densely in one process (outputs and all
gradients, 64-bit floats). --load: balanced; one (nearly all tokens to expert 0); empty (the last
rank has no tokens); capacity (an expert takes at most --capacity tokens of a rank); or several of
them with commas between.
"""

import argparse
import os

import torch
import torch.distributed as dist

TOKENS, WIDTH, CHOICES = 512, 64, 2
BALANCE = 0.01  # weight of the term that spreads tokens over experts


class AllToAll(torch.autograd.Function):
    """Rows by rank; the gradient goes the way back, with the splits exchanged."""

    @staticmethod
    def forward(context, rows, send_splits, receive_splits):
        context.splits = send_splits, receive_splits
        received = rows.new_empty(sum(receive_splits), rows.shape[1])
        dist.all_to_all_single(received, rows.contiguous(), receive_splits, send_splits)
        return received

    @staticmethod
    def backward(context, gradient):
        send_splits, receive_splits = context.splits
        return AllToAll.apply(gradient, receive_splits, send_splits), None, None


class SumOfRanks(torch.autograd.Function):
    """Adds over the ranks; every rank's loss has the sum in it, so gradients are added too."""

    @staticmethod
    def forward(_, values):
        total = values.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_, gradient):
        total = gradient.clone()
        dist.all_reduce(total)
        return total


def expert(rows, weights):
    return torch.tanh(rows @ weights[0]) @ weights[1]


def choose(tokens, gate, capacity):
    """For each token its experts, their weights (0: dropped), and the mean chance of each expert."""
    chances = torch.softmax(tokens @ gate, dim=1)
    weights, experts = chances.topk(CHOICES, dim=1)
    if capacity:
        one_hot = torch.nn.functional.one_hot(experts.flatten(), gate.shape[1])
        place = (one_hot.cumsum(0) * one_hot).sum(1).view_as(experts)
        weights = weights * (place <= capacity)
    return experts, weights, chances.sum(0)


def balance(chances, tokens):
    return BALANCE * (chances / max(tokens, 1)).pow(2).sum()


def layer(tokens, gate, mine, capacity):
    """The layer over all ranks; `mine` are the weights of this rank's expert."""
    ranks = dist.get_world_size()
    experts, weights, chances = choose(tokens, gate, capacity)
    token_of, slot_of = (weights > 0).nonzero(as_tuple=True)
    order = experts[token_of, slot_of].argsort(stable=True)
    token_of, slot_of = token_of[order], slot_of[order]
    send_counts = torch.bincount(experts[token_of, slot_of], minlength=ranks)
    receive_counts = torch.empty_like(send_counts)
    dist.all_to_all_single(receive_counts, send_counts)
    sent, received = send_counts.tolist(), receive_counts.tolist()
    arrived = AllToAll.apply(tokens[token_of], sent, received)
    returned = AllToAll.apply(expert(arrived, mine), received, sent)
    output = torch.zeros_like(tokens).index_add(
        0, token_of, returned * weights[token_of, slot_of].unsqueeze(1))
    return output, SumOfRanks.apply(chances)


def dense(everybody, gate, all_weights, capacity):
    """The same of all ranks' tokens, every expert computed on every token."""
    outputs, total = [], 0
    for tokens in everybody:
        experts, weights, chances = choose(tokens, gate, capacity)
        total = total + chances
        output = torch.zeros_like(tokens)
        for number, each in enumerate(all_weights):
            share = (weights * (experts == number)).sum(1, keepdim=True)
            output = output + share * expert(tokens, each)
        outputs.append(output)
    return outputs, total


def make_tokens(rank, ranks, step, load):
    random = torch.Generator().manual_seed(1000 * step + rank)
    count = 0 if load == "empty" and rank == ranks - 1 else TOKENS
    tokens = torch.randn(count, WIDTH, generator=random, dtype=torch.float64)
    if load == "one":
        tokens[:, 0] += 20  # what the gate looks at
    return tokens


def make_weights(ranks, load):
    random = torch.Generator().manual_seed(7)

    def matrix(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64) / WIDTH**0.5

    gate = matrix(WIDTH, ranks)
    if load == "one":
        gate[0] = torch.tensor([5.0] + [0.0] * (ranks - 1))
    return gate, [[matrix(WIDTH, WIDTH), matrix(WIDTH, WIDTH)] for _ in range(ranks)]


def compare(load, capacity, rank, ranks):
    """The largest difference from the dense layer, over outputs and gradients."""
    gate, all_weights = make_weights(ranks, load)
    everybody = [make_tokens(each, ranks, 0, load) for each in range(ranks)]
    results = []
    for is_dense in (False, True):
        leaves = [each.clone().requires_grad_() for each in everybody]
        own_gate = gate.clone().requires_grad_()
        own = [[w.clone().requires_grad_() for w in each] for each in all_weights]
        if is_dense:
            outputs, chances = dense(leaves, own_gate, own, capacity)
            loss = sum(output.sin().sum() for output in outputs)
            (loss + ranks * balance(chances, sum(map(len, everybody)))).backward()
            output = outputs[rank]
        else:
            output, chances = layer(leaves[rank], own_gate, own[rank], capacity)
            (output.sin().sum() + balance(chances, sum(map(len, everybody)))).backward()
            dist.all_reduce(own_gate.grad)
        results.append([output.detach(), leaves[rank].grad, own_gate.grad,
                        *(weight.grad for weight in own[rank])])
    # Without a single token an expert has no gradient at all in one way and zeros in the other.
    pairs = [(a, b) for a, b in zip(*results) if a is not None and b is not None and a.numel()]
    worst = torch.tensor([max(float((a - b).abs().max()) for a, b in pairs)])
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    return worst.item()


def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def train(load, capacity, steps, rank, ranks):
    """Megabytes that this process grew by after the first quarter of the steps."""
    gate, all_weights = make_weights(ranks, load)
    parameters = [gate.requires_grad_(), *(each.requires_grad_() for each in all_weights[rank])]
    optimizer = torch.optim.SGD(parameters, lr=1e-4)
    settled = 0
    for step in range(steps):
        tokens = make_tokens(rank, ranks, step, load)
        output, chances = layer(tokens, gate, parameters[1:], capacity)
        loss = output.pow(2).mean() if len(output) else output.sum()
        (loss + balance(chances, TOKENS * ranks)).backward()
        dist.all_reduce(gate.grad)
        optimizer.step()
        optimizer.zero_grad()
        if step == steps // 4:
            settled = resident_mb()
    growth = torch.tensor([resident_mb() - settled])
    dist.all_reduce(growth, dist.ReduceOp.MAX)
    return growth.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="isthmus")
    parser.add_argument("--load", default="balanced")
    parser.add_argument("--capacity", type=int, default=TOKENS * CHOICES // 8)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    dist.init_process_group(options.backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for load in options.load.split(","):
        if load not in ("balanced", "one", "empty", "capacity"):
            parser.error(f"unknown load {load!r}")
        capacity = options.capacity if load == "capacity" else 0
        difference = compare(load, capacity, rank, ranks)
        growth = train(load, capacity, options.steps, rank, ranks)
        if rank == 0:
            print(f"{ranks} ranks, {load}: difference {difference:.3e} growth {growth:.1f} MB", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
