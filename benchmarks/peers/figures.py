"""The figures that the project promises, measured in one run, each beside its limit."""
import statistics

import costs
import mpi
import overlap
from layouts import Layout
from rows import row_of
from sides import Unavailable, placement_of

MEGABYTE = 1 << 20


def _torch(sides, say):
    say("torch, 4 ranks, 64 MB: gloo and isthmus in turn")
    names = {"all_reduce": 5, "reduce_scatter": 8}
    results = sides.torch(names, [64 * MEGABYTE], 4)
    bound = sides.bounds(4, 64 * MEGABYTE)["all_reduce_us"] / 1e3
    for name, limit in names.items():
        result = results[name, 64 * MEGABYTE]
        ratio = result["gloo_us"] / result["isthmus_us"]
        detail = f"gloo {result['gloo_us'] / 1e3:.1f} ms, isthmus {result['isthmus_us'] / 1e3:.1f} ms, " \
                 f"on tensors of its allocator {result['shared_us'] / 1e3:.1f} ms " \
                 f"(x {result['gloo_us'] / result['shared_us']:.1f})"
        if name == "all_reduce":
            detail += f", sum in mapped memory without a library {bound:.1f} ms"
        yield row_of(f"torch {name} 64 MB, 4 ranks, gloo / ours", ratio, limit, "x", True, detail)


def _openmpi(sides, say, rounds=5):
    say("C API, arena, 2 ranks, 1 MB against Open MPI")
    ours, theirs, pair = [], [], Layout.of("2")
    for _ in range(rounds):
        ours.append(sides.isthmus("all_reduce", MEGABYTE, pair)["p50_us"])
        theirs.append(mpi.measure(sides, "openmpi", "all_reduce", [MEGABYTE], pair, None)[MEGABYTE]["p50_us"])
    mine, peer = statistics.median(ours), statistics.median(theirs)
    yield row_of("all_reduce 1 MB, 2 ranks, Open MPI / ours", peer / mine, 4, "x", True,
               f"Open MPI {peer:.1f} us, isthmus {mine:.1f} us")


def _nodes(sides, say):
    for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        say(f"{name} 64 MB over 2x2 at 5 Gbit/s")
        half = sides.over_nodes(name, 64 * MEGABYTE, "2x2", "5gbit")
        detail = f"{half['time'] / 1e3:.1f} ms, bound {half['bound_time'] / 1e3:.1f} ms, " \
                 f"{half['wire_bytes']} of {half['wire_bound_bytes']} bytes a card"
        yield row_of(f"{name} 64 MB, 2x2 at 5 Gbit/s, share of bound", 100 * half["of_bound"], 85, "%", True, detail)


def _latency(sides, say, rounds=5):
    say("all_reduce 8 B, 4 ranks")
    ours, theirs, meetings, four = [], [], [], Layout.of("4")
    for _ in range(rounds):
        ours.append(sides.isthmus("all_reduce", 8, four))
        theirs.append(mpi.measure(sides, "openmpi", "all_reduce", [8], four, None)[8]["mean_us"])
        meetings.append(sides.bounds(4, 4096)["meeting_us"])
    means = [one["mean_us"] for one in ours]
    middle = statistics.median(means)
    worst = max(one["max_us"] for one in ours)
    meeting = statistics.median(meetings)
    detail = f"{min(means):.1f}-{max(means):.1f}; of the slowest rank p50 " \
             f"{statistics.median(one['p50_us'] for one in ours):.1f}, p99 " \
             f"{statistics.median(one['p99_us'] for one in ours):.0f}, most {worst:.0f} us; a meeting of 4 processes " \
             f"without a library {meeting:.1f} us (x {middle / meeting:.2f}), Open MPI {statistics.median(theirs):.1f} us"
    yield row_of("all_reduce 8 B, 4 ranks, blocking", middle, 10, "us", False, detail)


def _communicators(sides, say):
    say("1000 communicators")
    result = sides.as_ranks("communicators", [1000], Layout.of("4"))[0]
    detail = f"grew by {result['descriptors']} descriptors, {result['threads']} threads, " \
             f"{result['resident_kb']} KB"
    row = row_of("1000 communicators of 2-4 ranks", result["seconds"], 10, "s", False, detail)
    grew = result["descriptors"] > 0 or result["threads"] > 0 or result["resident_kb"] > 8192
    row["holds"] = row["holds"] and not grew
    yield row


PARTS = {"torch": _torch, "openmpi": _openmpi, "nodes": _nodes, "latency": _latency, "communicators": _communicators,
         **overlap.PARTS, **costs.PARTS}


def measure(sides, names, say):
    """Every figure of these parts; one that cannot be measured here has no value and says why."""
    rows = []
    for name in names:
        before = sides.probe()
        try:
            found = list(PARTS[name](sides, say))
        except Unavailable as reason:
            found = [{"what": name, "value": None, "holds": None, "detail": str(reason)}]
        after = sides.probe()
        for row in found:
            row["placement"] = [placement_of(before), placement_of(after)]
        rows += found
    return rows


def _number(value):
    return f"{value:.2f}" if value >= 1 or value == 0 else f"{value:.3g}"


def text(rows):
    lines = [f"{'figure':<62} {'measured':>10} {'limit':>10}        placement"]
    for row in rows:
        place = "-".join(dict.fromkeys(row["placement"]))
        if row["value"] is None:
            lines.append(f"{row['what']:<62} {'-':>10} {'':>10}        {place:<9} {row['detail']}")
            continue
        sign = ">=" if row["at"] == "least" else "<="
        verdict = "ok" if row["holds"] else "MISSED"
        measured = f"{_number(row['value'])} {row['unit']}"
        limit = f"{sign} {row['limit']} {row['unit']}"
        lines.append(f"{row['what']:<62} {measured:>10} {limit:>10} {verdict:<6} {place:<9} {row['detail']}")
    return "\n".join(lines)
