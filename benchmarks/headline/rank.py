"""A rank of the headline: trains a step of the program that the driver names, and tells what it cost.

Started by run.py on every rank of the emulated nodes; rank 0 is told what to do through a socket."""

import os
import sys
import time
import traceback
from multiprocessing.connection import Client
from pathlib import Path

import torch
import torch.distributed as dist
from model import PARAMETERS, batch_of, loss_of, make_model, optimizer_of, read_text
from programs import Placed, Program

import isthmus.torch


def sent_bytes():
    """What left through the cards of this node, as its kernel counts it."""
    total = 0
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        card, _, counters = line.partition(":")
        if card.strip() != "lo":
            total += int(counters.split()[8])
    return total


class Rank:
    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.here = int(os.environ["LOCAL_WORLD_SIZE"])
        self.text = read_text()
        self.programs, self.steps = {}, {}

    def make(self, name, placed):
        if placed is not None:
            return Placed(isthmus.Placement(placed["placement"]), placed["micro_batch"])
        kind, backend = name.split("/")
        return Program(kind, backend, self.here)

    def reference(self, plan):
        """The losses of one process: rank 0 trains with all processors, the others wait."""
        if self.rank != 0:
            return None
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        model = make_model()
        optimizer = optimizer_of(model)
        losses = []
        for step, sequences in enumerate(plan):
            tokens, wanted = batch_of(self.text, step, sequences)
            loss = loss_of(model(tokens), wanted)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
        torch.set_num_threads(1)
        return losses

    def train(self, name, plan, placed=None):
        """The last step of the plan, which has the sequences of each; a program that is new does those
        before it first. Seconds of the slowest rank, the mean loss, bytes out of each node."""
        if name not in self.programs:
            self.programs[name], self.steps[name] = self.make(name, placed), 0
        while self.steps[name] < len(plan) - 1:
            self.programs[name].step(batch_of(self.text, self.steps[name], plan[self.steps[name]]))
            self.steps[name] += 1
        batch = batch_of(self.text, self.steps[name], plan[-1])
        dist.barrier()
        before = sent_bytes()
        dist.barrier()  # nobody sends before all have read
        began = time.perf_counter()
        loss = self.programs[name].step(batch)
        seconds = time.perf_counter() - began
        self.steps[name] += 1
        dist.barrier()
        mine = {"seconds": seconds, "loss": loss, "bytes": sent_bytes() - before,
                "is_first": self.rank % self.here == 0}
        everywhere = [None] * self.size
        dist.all_gather_object(everywhere, mine)
        losses = [each["loss"] for each in everywhere if each["loss"] is not None]
        return {"seconds": max(each["seconds"] for each in everywhere), "loss": sum(losses) / len(losses),
                "bytes": [each["bytes"] for each in everywhere if each["is_first"]]}

    def idle_bytes(self):
        """What the measuring of a step sends by itself, so that it can be taken off."""
        dist.barrier()
        before = sent_bytes()
        dist.barrier()
        dist.barrier()
        mine = {"bytes": sent_bytes() - before, "is_first": self.rank % self.here == 0}
        everywhere = [None] * self.size
        dist.all_gather_object(everywhere, mine)
        return [each["bytes"] for each in everywhere if each["is_first"]]


def main():
    torch.set_num_threads(1)
    isthmus.torch.register()  # a package that is only on the path has no entry points
    dist.init_process_group("gloo")
    rank = Rank()
    if sum(weight.numel() for weight in make_model().parameters()) != PARAMETERS:
        sys.exit("headline: the model has another number of parameters")
    driver = Client(sys.argv[1], family="AF_UNIX") if rank.rank == 0 else None
    while True:
        order = [driver.recv() if driver else None]
        dist.broadcast_object_list(order)
        if order[0] is None:
            break
        what, arguments = order[0]
        try:
            answer = getattr(rank, what)(**arguments)
        except Exception:  # noqa: BLE001 - the driver prints it and ends the job
            print(traceback.format_exc(), file=sys.stderr, flush=True)
            os._exit(1)
        if driver:
            driver.send(answer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
