"""What a job costs besides the time of its calls: 16-bit sums, processors, memory, plans, start-up."""
import statistics

from layouts import Layout
from rows import row_of

MEGABYTE = 1 << 20


def _bfloat16(sides, say, rounds=5):
    say("all_reduce of 64 MB, bfloat16 and float in turn")
    times, pair = {"bfloat16": [], "float": []}, Layout.of("2")
    for _ in range(rounds):
        for element, found in times.items():
            found.append(sides.isthmus("all_reduce", 64 * MEGABYTE, pair, element=element)["p50_us"])
    more = [100 * (ours / theirs - 1) for ours, theirs in zip(times["bfloat16"], times["float"])]
    detail = f"{min(more):.0f} to {max(more):.0f}; " + ", ".join(
        f"{element} {statistics.median(found) / 1e3:.2f} ms" for element, found in times.items())
    yield row_of("all_reduce 64 MB of bf16, 2 ranks, time over that of f32", statistics.median(more), 10, "%", False,
                 detail)


def _processors(sides, say):
    for text in ("2", "2x1@1gbit"):
        say(f"10 s of an idle job, {text}")
        idle = sides.as_ranks("waiting", ["idle", 10], Layout.of(text))[0]
        yield row_of(f"processors that an idle job uses, {text}", round(idle["processors"], 3), 0, "", False,
                     f"{1e3 * idle['processors'] * idle['seconds']:.2f} ms in {idle['seconds']:.1f} s, both ranks")
    say("all_reduce of 16 MB over 50 Mbit/s")
    slow = sides.as_ranks("waiting", ["call", 16 * MEGABYTE], Layout.of("2x1@50mbit"))[0]
    yield row_of("processors that a job uses, 16 MB over 50 Mbit/s", slow["processors"], 0.15, "", False,
                 f"both ranks, in {slow['seconds']:.2f} s")


def _memory(sides, say):
    say("memory of 64 ranks")
    found = sides.in_one_process("many_ranks", "memory", 64)
    for name in ("inproc", "shm", "tcp"):
        yield row_of(f"memory a pair, 64 ranks as threads, {name}", found[f"{name}_bytes"] / 1024, 64, "KB", False)


def _plans(sides, say):
    say("plans of 64 to 256 ranks")
    for ranks in (64, 128, 256):
        found = sides.in_one_process("many_ranks", "plans", ranks)
        yield row_of(f"plan of {ranks} ranks, first call", found["first_us"], 1000, "us", False,
                     "worst of all collectives, 1 KB to 64 MB, nodes of 8 and of 1")
        yield row_of(f"plan of {ranks} ranks, cached", found["cached_us"], 1, "us", False)


def _start(sides, say, rounds=3):
    for of_node in (256, 8):
        say(f"start-up of 256 ranks, nodes of {of_node}")
        seconds = [sides.in_one_process("many_ranks", "start", 256, of_node)["seconds"] for _ in range(rounds)]
        yield row_of(f"start and one all_reduce, 256 ranks as threads, nodes of {of_node}", statistics.median(seconds), 2,
                     "s", False, f"{min(seconds):.2f}-{max(seconds):.2f}")


PARTS = {"bfloat16": _bfloat16, "processors": _processors, "memory": _memory, "plans": _plans, "start": _start}
