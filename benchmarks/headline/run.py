#!/usr/bin/env python3
"""ZeRO-3 and its relatives on gloo, the same programs on isthmus, and a job that isthmus has placed, while
the links between four emulated nodes become slower: the same model, batches and losses in one run.

  benchmarks/headline/run.py --quick                  two rates, a minute or two
  benchmarks/headline/run.py --json FILE --svg FILE   all of it, about 25 minutes on 2 idle cores, 18 GB of memory
  benchmarks/headline/run.py --rates 500mbit --batches 8 --programs fsdp2/gloo,placed
"""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import report
from job import Failed, Nodes, Ranks
from predict import sent_per_node

ROOT = Path(__file__).resolve().parent.parent.parent
NODES, RANKS_OF_NODE = 4, 2
RATES = ("10gbit", "5gbit", "2gbit", "1gbit", "500mbit", "200mbit")
PROGRAMS = ("fsdp2/gloo", "ddp/gloo", "hsdp/gloo", "tpdp/gloo",
            "fsdp2/isthmus", "ddp/isthmus", "hsdp/isthmus", "tpdp/isthmus", "placed")
# Curves differ by the order of additions only.
LARGEST_DIFFERENCE = 1e-4
WARM = 1  # steps at each point that are not counted: the first over a new rate, or of a program


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default=",".join(RATES))
    parser.add_argument("--batches", default="8,16", help="sequences of a step, of all ranks")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--steps", type=int, default=2, help="that are counted, of each program at each point")
    parser.add_argument("--quick", action="store_true", help="two rates, one batch, a step")
    parser.add_argument("--json", metavar="FILE", type=Path)
    parser.add_argument("--svg", metavar="FILE", type=Path)
    parser.add_argument("--limit", type=int, default=1500, help="seconds the whole may take")
    parser.add_argument("--isthmus", default=str(ROOT / ".venv/bin/isthmus"), metavar="PROGRAM")
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"))
    parser.add_argument("--package", metavar="FOLDER", help="holds the package isthmus; default: installed")
    asked = parser.parse_args()
    if asked.quick:
        asked.rates, asked.batches, asked.steps = "1gbit,200mbit", "8", 1
    asked.rates, asked.programs = asked.rates.split(","), asked.programs.split(",")
    asked.batches = [int(each) for each in asked.batches.split(",")]
    unknown = [each for each in asked.programs if each not in PROGRAMS]
    if unknown:
        parser.error(f"no program {unknown[0]!r}; there are {', '.join(PROGRAMS)}")
    return asked


def say(text):
    print(f"headline: {text}", file=sys.stderr, flush=True)


class Placer:
    """Asks `isthmus place` for each topology that was measured: degrees, order and cut are its."""

    def __init__(self, asked):
        self._asked = asked
        self._names = {}  # what is trained: its name
        told = subprocess.run([asked.python, str(Path(__file__).with_name("traced.py"))], check=True, text=True,
                              stdout=subprocess.PIPE, timeout=120, env=Nodes(None, 0, 0, None, asked.package).environment())
        self._model = json.loads(told.stdout)

    def _place(self, topology, batch, micro_batch):
        from isthmus import place

        job = {"isthmus_job": 1, "global_batch": batch, "micro_batch": micro_batch, "precision": "f32",
               "gradient_precision": "f32", "master_weights": False, "pipe_copies": "each"}
        return place({"tensor": None, "data": None, "pipe": None}, model=self._model, job=job,
                     topology=topology, program=self._asked.isthmus)

    def place(self, topology, batch):
        """The placement with the fewest bytes between nodes, then the least predicted time, over the sizes
        that a micro-batch may have."""
        best = None
        for micro_batch in (1, 2, 4):
            placement = self._place(topology, batch, micro_batch)
            worth = (placement.max_node_egress, placement.predicted["step_seconds"])
            if best is None or worth < best[0]:
                best = (worth, placement, micro_batch)
        _, placement, micro_batch = best
        trained = json.dumps([placement.degrees, micro_batch, [str(seat) for seat in placement.ranks],
                              [stage["layers"] for stage in placement.document.get("stages", [])]])
        name = self._names.setdefault(trained, f"placed {len(self._names)}" if self._names else "placed")
        return {"placement": placement.document, "micro_batch": micro_batch, "name": name}


def describe(placed):
    document = placed["placement"]
    degrees = " x ".join(f"{axis} {degree}" for axis, degree in document["degrees"].items() if degree > 1)
    stages = [len(stage["layers"]) for stage in document.get("stages", [])]
    return (f"{degrees}, micro-batches of {placed['micro_batch']}, layers {'+'.join(map(str, stages))}; "
            f"{document['max_node_egress']} bytes out of the dearest node, {document['method']}")


class Headline:
    def __init__(self, asked, nodes, ranks):
        self.asked, self.nodes, self.ranks = asked, nodes, ranks
        self.placer = Placer(asked) if "placed" in asked.programs else None
        self.plan = []  # sequences of each step so far
        self.losses = {}  # of each program, by step
        self.points, self.topologies = [], {}

    def step(self, name, placed):
        who = placed["name"] if name == "placed" else name
        told = self.ranks.ask("train", name=who, plan=self.plan, placed=placed if name == "placed" else None)
        self.losses.setdefault(who, {})[len(self.plan) - 1] = told["loss"]
        return told

    def point(self, rate, batch):
        placed = None
        if self.placer:
            placed = self.placer.place(self.topologies[rate], batch)
            say(f"{rate}, batch {batch}: placed as {describe(placed)}")
        found = {name: [] for name in self.asked.programs}
        idle = self.ranks.ask("idle_bytes")
        for count in range(WARM + self.asked.steps):
            self.plan.append(batch)
            for name in self.asked.programs:
                told = self.step(name, placed)
                if count >= WARM:
                    found[name].append(told)
        for name, steps in found.items():
            per_node = [max(each) for each in zip(*(step["bytes"] for step in steps), strict=True)]
            point = {"rate": rate, "batch": batch, "program": name,
                     "seconds": [step["seconds"] for step in steps],
                     "step_seconds": statistics.median(step["seconds"] for step in steps),
                     "node_bytes": [sent - own for sent, own in zip(per_node, idle, strict=True)],
                     "predicted_node_bytes": sent_per_node(name, NODES, RANKS_OF_NODE, placed)}
            if name == "placed":
                point["predicted_seconds"] = placed["placement"]["predicted"]["step_seconds"]
                point["degrees"] = placed["placement"]["degrees"]
                point["micro_batch"] = placed["micro_batch"]
            self.points.append(point)
            say(report.line(point))

    def measure(self):
        for rate in self.asked.rates:
            self.nodes.change(rate)
            if self.placer:
                self.topologies[rate] = self.nodes.probe()
            for batch in self.asked.batches:
                self.point(rate, batch)
        self.nodes.change("none")
        return self.document(self.ranks.ask("reference", plan=self.plan))

    def document(self, reference):
        """What was measured. `reference` None: the ranks ended before one process had trained the same."""
        if reference is None:
            return {"nodes": NODES, "ranks_of_node": RANKS_OF_NODE, "points": self.points,
                    "topologies": self.topologies}
        differences = {}
        for name, losses in self.losses.items():
            differences[name] = max(abs(loss - reference[step]) / reference[step] for step, loss in losses.items())
        return {"nodes": NODES, "ranks_of_node": RANKS_OF_NODE, "points": self.points, "reference": reference,
                "loss_difference": differences, "topologies": self.topologies}


def main():
    asked = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nodes and ranks go, too
    if asked.package:
        sys.path.insert(0, asked.package)
    began = time.monotonic()
    headline = None
    try:
        with Nodes(asked.isthmus, NODES, RANKS_OF_NODE, asked.python, asked.package) as nodes:
            with Ranks(nodes, asked.limit) as ranks:
                headline = Headline(asked, nodes, ranks)
                document = headline.measure()
                ranks.end()
    except Failed as why:
        print(f"headline: {why}", file=sys.stderr)
        if asked.json and headline is not None:
            asked.json.write_text(json.dumps(headline.document(None), indent=2) + "\n")
            say(f"{asked.json} has the {len(headline.points)} points before that")
        return 2
    document["seconds"] = time.monotonic() - began
    print(report.text(document))
    if asked.json:
        asked.json.write_text(json.dumps(document, indent=2) + "\n")
    if asked.svg:
        asked.svg.write_text(report.picture(document))
    wrong = {name: apart for name, apart in document["loss_difference"].items() if apart > LARGEST_DIFFERENCE}
    for name, apart in wrong.items():
        print(f"headline: the losses of {name} are {apart:.1e} away from those of one process", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
