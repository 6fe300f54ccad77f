"""How much of an all-reduce goes on while its caller computes, by OSU's formula, beside Open MPI."""
import contextlib
import statistics

import mpi
from layouts import Layout, Nodes
from rows import row_of
from sides import Unavailable

CALLS = {"2": {1 << 20: 200, 16 << 20: 30, 64 << 20: 12}, "2x1@1gbit": {1 << 20: 30, 16 << 20: 4, 64 << 20: 2}}
ROUNDS = 3


def _words(layout):
    return [f"{size}:{max(2, calls // 10)}:{calls}" for size, calls in CALLS[layout.text].items()]


def _openmpi(sides, layout):
    with contextlib.ExitStack() as stack:
        nodes = None if layout.is_here else stack.enter_context(Nodes(sides.program, layout, sides.folder))
        try:
            return mpi.as_ranks(sides, "openmpi", "mpi_overlap.c", _words(layout), layout, nodes, True)
        except Unavailable:
            return {}


def _median(rounds, size, name):
    values = [one[size][name] for one in rounds if size in one]
    return statistics.median(values) if values else None


def _rows(sides, layout):
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append({row["bytes"]: row for row in sides.as_ranks("overlap", _words(layout), layout, is_bound=True)})
        theirs.append(_openmpi(sides, layout))
    for size in CALLS[layout.text]:
        values = [one[size]["overlap"] for one in ours]
        detail = f"{min(values):.0f}-{max(values):.0f}; of a fixed amount of computing " \
                 f"{_median(ours, size, 'overlap_of_turns'):.0f} %; alone {_median(ours, size, 'alone_us') / 1e3:.2f} ms " \
                 f"on {_median(ours, size, 'processors'):.2f} processors a rank"
        if _median(theirs, size, "overlap") is not None:
            detail += f"; Open MPI {_median(theirs, size, 'overlap'):.0f} % and " \
                      f"{_median(theirs, size, 'overlap_of_turns'):.0f} %, " \
                      f"alone {_median(theirs, size, 'alone_us') / 1e3:.2f} ms"
        yield row_of(f"overlap, all_reduce {size >> 20} MB, {layout.text}", statistics.median(values), 90, "%", True,
                     detail)


def _inside(sides, say):
    say("overlap with computing, 2 ranks here")
    yield from _rows(sides, Layout.of("2"))


def _over_nodes(sides, say):
    say("overlap with computing, 2 nodes at 1 Gbit/s")
    yield from _rows(sides, Layout.of("2x1@1gbit"))


PARTS = {"overlap": _inside, "overlap_over_nodes": _over_nodes}
