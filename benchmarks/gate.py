#!/usr/bin/env python3
"""Compares the ratios of two runs of benchmarks/peers/run.py --json: the accepted one and a new one.

A cell is one layout, collective, size and kind of buffer; its ratio is the best peer's time by ours. Times of
different machines and minutes cannot be compared, ratios within one run can. Fails (1) when a cell lost more than
--loss of its accepted ratio; cells whose processors moved in either run are told and not judged.

  benchmarks/gate.py benchmarks/accepted.json new.json
"""
import argparse
import json
import sys


def cells(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if "rows" not in document:
        raise ValueError(f"{path}: no rows; it must be written by benchmarks/peers/run.py --json without --figures")
    return {(row["layout"], row["collective"], row["bytes"], memory): (ratio, len(row["places"]) == 1)
            for row in document["rows"] for memory, ratio in row["ratio"].items()}


def compare(accepted, new, loss):
    """(losses, cells judged, cells that moved)"""
    losses, judged, moved = [], 0, 0
    for cell in sorted(accepted.keys() & new.keys()):
        (before, was_still), (now, is_still) = accepted[cell], new[cell]
        if not (was_still and is_still):
            moved += 1
            continue
        judged += 1
        if now < before * (1 - loss):
            losses.append((cell, before, now))
    return losses, judged, moved


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("accepted")
    parser.add_argument("new")
    parser.add_argument("--loss", type=float, default=0.15, help="share of a ratio that may be lost (0.15)")
    args = parser.parse_args()
    try:
        losses, judged, moved = compare(cells(args.accepted), cells(args.new), args.loss)
    except (OSError, ValueError, KeyError) as reason:
        print(f"gate: {reason}", file=sys.stderr)
        return 2
    for (layout, collective, size, memory), before, now in losses:
        print(f"{layout} {collective} {size} {memory}: best peer / ours was {before:.2f}, is {now:.2f}")
    print(f"{judged} cells judged, {len(losses)} lost more than {100 * args.loss:.0f} %, {moved} moved")
    if judged == 0:
        print("gate: nothing to judge: the runs have no cell in common that stood still", file=sys.stderr)
        return 2
    return 1 if losses else 0


if __name__ == "__main__":
    sys.exit(main())
