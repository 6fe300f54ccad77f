#!/usr/bin/env python3
"""Runs isthmus and its peers side by side on this machine: random data, one run, sides in turn.

Each row is the median over rounds of the median over iterations of the slowest rank. Before and after each
program a probe tells where the machine's processors are; a row during which they moved is marked.

  benchmarks/peers/run.py                            one node: arena and malloc against Open MPI
  benchmarks/peers/run.py --gloo                     also torch with gloo and with isthmus, in the same processes
  benchmarks/peers/run.py --figures --json FILE      the figures that README promises
"""
import argparse
import json
import statistics
import sys

import figures
from sides import Sides, Unavailable, placement_of

COLLECTIVES = "all_reduce,all_gather,reduce_scatter,all_to_all,broadcast"


def size_of(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    unit = units.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collectives", default=COLLECTIVES)
    parser.add_argument("--sizes", default="8,1K,64K,1M,16M", help="the whole operand, as nccl-tests counts")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gloo", action="store_true", help="also through torch, where it is installed")
    parser.add_argument("--figures", action="store_true", help="the promised figures only")
    parser.add_argument("--json", metavar="FILE", help="write everything there too")
    parser.add_argument("--isthmus", metavar="PROGRAM")
    parser.add_argument("--build", metavar="FOLDER")
    return parser.parse_args()


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def measured(sides, missing, name, call):
    """Median time of one program, or nothing where it cannot run; the reason is told once."""
    if name in missing:
        return None
    try:
        return call()["p50_us"]
    except Unavailable as reason:
        missing[name] = str(reason)
        say(f"without {name}: {reason}")
        return None


def compare(sides, missing, collective, size, ranks, rounds):
    programs = {
        "arena": lambda: sides.isthmus(collective, size, ranks, "arena"),
        "malloc": lambda: sides.isthmus(collective, size, ranks, "malloc"),
        "openmpi": lambda: sides.openmpi(collective, size, ranks),
    }
    times = {name: [] for name in programs}
    placements = [placement_of(sides.probe())]
    for _ in range(rounds):
        for name, call in programs.items():
            time = measured(sides, missing, name, call)
            placements.append(placement_of(sides.probe()))
            if time is not None:
                times[name].append(time)
    row = {"collective": collective, "bytes": size, "ranks": ranks, "placements": placements}
    for name in programs:
        row[name + "_us"] = statistics.median(times[name]) if times[name] else None
    return row


def ratio(row, ours, theirs):
    if row.get(ours) and row.get(theirs):
        return f"{row[theirs] / row[ours]:.2f}"
    return "-"


def cell(value):
    return "-" if value is None else f"{value:.2f}"


def print_row(row):
    places = sorted(set(row["placements"]))
    print(f"{row['collective']:<15} {row['ranks']:>5} {row['bytes']:>10} {cell(row['arena_us']):>12} "
          f"{cell(row['malloc_us']):>12} {cell(row['openmpi_us']):>12} {ratio(row, 'arena_us', 'openmpi_us'):>8} "
          f"{ratio(row, 'malloc_us', 'openmpi_us'):>8}  {places[0] if len(places) == 1 else 'moved: ' + ' '.join(places)}",
          flush=True)


def table(sides, args):
    print(f"{'collective':<15} {'ranks':>5} {'bytes':>10} {'arena us':>12} {'malloc us':>12} {'openmpi us':>12} "
          f"{'arena x':>8} {'malloc x':>8}  placement")
    rows, missing = [], {}
    for ranks in args.ranks.split(","):
        for collective in args.collectives.split(","):
            for size in args.sizes.split(","):
                rows.append(compare(sides, missing, collective, size_of(size), int(ranks), args.rounds))
                print_row(rows[-1])
    return rows, missing


def gloo_table(sides, args):
    sizes = [size_of(size) for size in args.sizes.split(",") if size_of(size) >= 1 << 10]
    rows = []
    print(f"\n{'torch':<15} {'ranks':>5} {'bytes':>10} {'isthmus us':>12} {'shared us':>12} {'gloo us':>12} {'x':>8} {'shared x':>8}")
    for ranks in args.ranks.split(","):
        for size in sizes:
            for result in sides.torch(args.collectives.split(","), size, int(ranks)).values():
                result["ranks"] = int(ranks)
                rows.append(result)
                print(f"{result['collective']:<15} {ranks:>5} {size:>10} {result['isthmus_us']:>12.1f} "
                      f"{result['shared_us']:>12.1f} {result['gloo_us']:>12.1f} "
                      f"{result['gloo_us'] / result['isthmus_us']:>8.2f} "
                      f"{result['gloo_us'] / result['shared_us']:>8.2f}", flush=True)
    return rows


def main():
    args = arguments()
    document = {}
    try:
        sides = Sides(args.isthmus, args.build)
        if args.figures:
            document["figures"] = figures.measure(sides, say)
            print(figures.text(document["figures"]))
        else:
            document["rows"], document["missing"] = table(sides, args)
            if args.gloo:
                document["torch"] = gloo_table(sides, args)
    except Unavailable as reason:
        print(f"peers: {reason}", file=sys.stderr)
        return 2
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
