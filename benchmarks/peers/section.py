#!/usr/bin/env python3
"""Writes README's table of peers from the JSON of one run of benchmarks/peers/run.py.

  benchmarks/peers/section.py benchmarks/accepted.json README.md           writes what stands between the two marks
  benchmarks/peers/section.py benchmarks/accepted.json README.md --check   1 when README says something else
"""
import argparse
import json
import sys

from report import lost, size_text

MARKS = ("<!-- peers: written by benchmarks/peers/section.py -->", "<!-- peers: end -->")
KINDS = {"arena": "arena", "malloc": "ordinary"}
WHOLE = 1 << 20  # from here on a share of the bound says something


def unique(values):
    return list(dict.fromkeys(values))


def number(value):
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def cell(value, is_won):
    return f"{number(value)}" if is_won else f"**{number(value)}**"


def table(heading, lines):
    return ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading),
            *("| " + " | ".join(line) + " |" for line in lines), ""]


def ratios(rows, sizes):
    """A line for each collective and kind of buffer: best peer / ours by size, bold where a peer is faster."""
    found = {(row["collective"], row["bytes"]): row for row in rows}
    for collective in unique(row["collective"] for row in rows):
        for kind, name in KINDS.items():
            line = []
            for size in sizes:
                ratio = found.get((collective, size), {}).get("ratio", {}).get(kind)
                line.append("" if ratio is None else cell(ratio, ratio >= 1))
            if any(line):
                yield [collective, name, *line]


def shares(rows, sizes):
    """A line for each collective: the share of the bound that arena buffers reach, in percent."""
    found = {(row["collective"], row["bytes"]): row for row in rows}
    for collective in unique(row["collective"] for row in rows):
        line = []
        for size in sizes:
            row = found.get((collective, size), {})
            ours, bound = row.get("p50_us", {}).get("arena"), row.get("bound_us")
            line.append(f"{100 * bound / ours:.0f}" if ours and bound else "")
        if any(line):
            yield [collective, *line]


def torch(rows, sizes):
    """A line for each collective and kind of tensor: gloo / isthmus, both called from torch."""
    found = {(row["collective"], row["bytes"]): row for row in rows}
    for collective in unique(row["collective"] for row in rows):
        for kind, name in (("ordinary", "ordinary"), ("shared", "of our allocator")):
            line = []
            for size in sizes:
                row = found.get((collective, size), {})
                ours, gloo = row.get("torch_us", {}).get(kind), row.get("p50_us", {}).get("gloo")
                line.append(cell(gloo / ours, gloo >= ours) if ours and gloo else "")
            if any(line):
                yield [collective, name, *line]


def title(layout):
    return f"{layout.replace('@', ' nodes x ranks at ')}" if "@" in layout else f"one node, {layout} ranks"


def section(document):
    rows, machine = document["rows"], document["machine"]
    still = [row for row in rows if len(row["places"]) == 1]
    lines = [f"{machine['date']}, {machine['processors']} virtual cores of {machine['processor']}, Linux "
             f"{machine['kernel']}; random data, programs in turn, medians; "
             f"{len(rows) - len(still)} of {len(rows)} rows with processors that moved meanwhile. "
             "Times are the best peer's (of Open MPI, Open MPI with han, MPICH, gloo) by ours: above 1 we are faster, "
             "bold a peer is. Arena buffers can be mapped by the node's other ranks, ordinary ones cannot.", ""]
    for layout in unique(row["layout"] for row in rows):
        mine = [row for row in rows if row["layout"] == layout]
        sizes = sorted({row["bytes"] for row in mine})
        large = [size for size in sizes if size >= WHOLE]
        named = [size_text(size) if size else "none" for size in sizes]
        lines += [f"**{title(layout)}**", ""]
        lines += table(["best peer / isthmus", "buffers", *named], ratios(mine, sizes))
        for heading, body, columns in ((["from torch: gloo / isthmus", "tensors"], torch(mine, sizes), named),
                                       (["% of the bound, arena"], shares(mine, large), map(size_text, large))):
            body = list(body)
            if body:
                lines += table([*heading, *columns], body)
    behind, cells = lost(rows), sum(len(row["ratio"]) for row in rows)
    lines.append(f"Not won: {len(behind)} of {cells} cells" + (", the bold ones." if behind else "."))
    return "\n".join(lines)


def placed(readme, text):
    """README with the section between its marks; ValueError without them."""
    first, last = (readme.find(mark) for mark in MARKS)
    if first < 0 or last < first:
        raise ValueError(f"no lines {MARKS[0]!r} and {MARKS[1]!r} in this order")
    return f"{readme[:first]}{MARKS[0]}\n{text}\n{readme[last:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("readme")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    args = parser.parse_args()
    try:
        with open(args.run, encoding="utf-8") as file:
            text = section(json.load(file))
        with open(args.readme, encoding="utf-8") as file:
            before = file.read()
        after = placed(before, text)
    except (OSError, ValueError, KeyError) as reason:
        print(f"section: {args.run}, {args.readme}: {reason}", file=sys.stderr)
        return 2
    if args.check:
        if after != before:
            print(f"section: {args.readme} says something else than {args.run}; write it without --check",
                  file=sys.stderr)
        return int(after != before)
    with open(args.readme, "w", encoding="utf-8") as file:
        file.write(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
