#!/usr/bin/env python3
"""Runs isthmus and its peers side by side on this machine: random data, one run, sides in turn.

Each cell is the median over rounds of the median over iterations of the slowest rank. Before and after each round a
probe tells where the machine's processors are; a round during which they moved is repeated, and marked when that did
not help.

  benchmarks/peers/run.py                                 one node of 2 and of 4 ranks against MPI
  benchmarks/peers/run.py --layouts 2,4,2x2@5gbit,2x4@5gbit,4x2@2gbit,2x2@1gbit --programs all --json FILE --svg FILE
  benchmarks/peers/run.py --figures --json FILE           the figures that README promises

Emulated nodes need root. benchmarks/gate.py compares two such files.
"""
import argparse
import json
import os
import platform
import sys
import time

import figures
import matrix
import report
from layouts import Layout
from sides import Sides, Unavailable

COLLECTIVES = "all_reduce,all_gather,reduce_scatter,all_to_all,uneven_all_to_all,broadcast,barrier"


def size_of(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    unit = units.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def sizes_of(text):
    try:
        return [size_of(size) for size in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"sizes {text!r}: numbers with commas between them, as 8,64K,1M") from None


def collectives_of(text):
    known = COLLECTIVES.split(",")
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"no collective {unknown[0]!r}; there are {', '.join(known)}")
    return text.split(",")


def layouts_of(text):
    try:
        return [Layout.of(layout) for layout in text.split(",")]
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None


def programs_of(text):
    names = list(matrix.PROGRAMS) if text == "all" else text.split(",")
    unknown = [name for name in names if name not in matrix.PROGRAMS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no program {unknown[0]!r}; there are {', '.join(matrix.PROGRAMS)} and all")
    return names


def figures_of(text):
    unknown = [name for name in text.split(",") if name not in figures.PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no part {unknown[0]!r}; there are {', '.join(figures.PARTS)}")
    return text.split(",")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", type=layouts_of, default=layouts_of("2,4"), help="4: ranks here; 2x4@5gbit: nodes")
    parser.add_argument("--collectives", type=collectives_of, default=COLLECTIVES)
    parser.add_argument("--sizes", type=sizes_of, default=sizes_of("8,1K,16K,64K,256K,1M,16M,64M"),
                        help="the whole operand, as nccl-tests counts")
    parser.add_argument("--programs", type=programs_of, default=programs_of("arena,malloc,openmpi,mpich"),
                        help=", ".join(matrix.PROGRAMS) + " or all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figures", type=figures_of, nargs="?", const=list(figures.PARTS), metavar="PARTS",
                        help="the promised figures only: all, or " + ", ".join(figures.PARTS))
    parser.add_argument("--json", metavar="FILE", help="write everything there too")
    parser.add_argument("--svg", metavar="FILE", help="draw time over bound, a line for each program")
    parser.add_argument("--isthmus", metavar="PROGRAM")
    parser.add_argument("--build", metavar="FOLDER")
    return parser.parse_args()


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def machine():
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
             if line.startswith("model name")]
    return {"processor": names[0] if names else platform.machine(), "processors": len(os.sched_getaffinity(0)),
            "kernel": platform.release(), "date": time.strftime("%Y-%m-%d")}


def table(sides, args):
    """Rows measured so far are kept when somebody presses Ctrl-C."""
    found = matrix.Matrix(sides, args.programs, args.rounds, say)
    rows = []
    print(report.heading(args.programs), flush=True)
    try:
        for layout in args.layouts:
            for row in found.measure(layout, args.collectives, args.sizes):
                rows.append(row)
                print(report.line(row, args.programs), flush=True)
    except KeyboardInterrupt:
        say("interrupted; what was measured so far follows")
    print(report.summary(rows))
    return {"machine": machine(), "programs": args.programs, "rows": rows, "missing": found.missing}


def main():
    args = arguments()
    try:
        sides = Sides(args.isthmus, args.build)
        if args.figures:
            document = {"machine": machine(), "figures": figures.measure(sides, args.figures, say)}
            print(figures.text(document["figures"]))
        else:
            document = table(sides, args)
    except Unavailable as reason:
        print(f"peers: {reason}", file=sys.stderr)
        return 2
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
    if args.svg and document.get("rows"):
        with open(args.svg, "w", encoding="utf-8") as file:
            file.write(report.svg(document["rows"], args.programs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
