"""Trains the same model over gloo and over isthmus, and prints both beside each other; tools/demo calls it."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv/bin/python"
ISTHMUS = ROOT / ".venv/bin/isthmus"
NODES = "2x2"
RANKS = 4
# A run that takes longer than this has gone wrong: it needs about a minute.
LIMIT_SECONDS = 240
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
# The curves differ by the order of additions only.
LARGEST_DIFFERENCE = 1e-3


def options():
    parser = argparse.ArgumentParser(prog="tools/demo", description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--parallel", choices=["ddp", "fsdp2"], default="ddp")
    return parser.parse_args()


def title(text):
    print(f"\n== {text}", flush=True)


def run(command, **more):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, text=True,
                          timeout=LIMIT_SECONDS + 30, **more)


def show_machine():
    title("the machine")
    told = run([ISTHMUS, "info"], stdout=subprocess.PIPE, check=True)
    print("\n".join(told.stdout.splitlines()[:10]), flush=True)


def why_no_nodes(rate):
    """None if nodes can be emulated here, else what is missing."""
    tried = run([ISTHMUS, "run", "--nodes", "2x1", "--rate", rate, "true"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if tried.returncode == 0:
        return None
    lines = tried.stdout.strip().splitlines()
    return lines[-1] if lines else f"isthmus run ended with {tried.returncode}"


def train(backend, where, asked):
    title(f"training with {backend}")
    with tempfile.TemporaryDirectory(prefix="isthmus-demo-") as folder:
        figures = Path(folder) / "figures.json"
        ended = run([ISTHMUS, "run", *where, "--limit", LIMIT_SECONDS, PYTHON,
                     ROOT / "benchmarks/train/gpt.py", f"--backend={backend}",
                     f"--parallel={asked.parallel}", f"--steps={asked.steps}", f"--json={figures}"])
        if ended.returncode != 0:
            sys.exit(f"tools/demo: training with {backend} ended with exit code {ended.returncode}")
        return json.loads(figures.read_text())


def difference(gloo, isthmus):
    return max(abs(a - b) / abs(a) for a, b in zip(gloo["losses"], isthmus["losses"], strict=True))


def print_training(gloo, isthmus, where):
    title(f"the same {gloo['steps']} steps, {where}")
    apart = difference(gloo, isthmus)
    rows = [
        ("loss, first step", "loss_first", "{:.4f}", 1),
        ("loss, last step", "loss_last", "{:.4f}", 1),
        ("step time, ms", "step_ms", "{:.0f}", 1),
        ("tokens/s", "tokens_per_s", "{:.0f}", 1),
        ("MB a step between nodes", "wire_bytes_per_step", "{:.2f}", 1e6),
    ]
    print(f"{'':24} {'gloo':>10} {'isthmus':>10} {'gloo / isthmus':>16}")
    for name, key, form, unit in rows:
        values = [figures[key] for figures in (gloo, isthmus)]
        if None in values:
            continue
        shown = [form.format(value / unit) for value in values]
        ratio = "" if key.startswith("loss") or not values[1] else f"{values[0] / values[1]:.2f}"
        print(f"{name:24} {shown[0]:>10} {shown[1]:>10} {ratio:>16}")
    print(f"largest difference of the two curves: {apart:.1e} of the loss"
          + ("" if apart <= LARGEST_DIFFERENCE else "  <- NOT EQUAL"), flush=True)
    return apart


def bench(where):
    """The results of each collective, as nccl-tests names them."""
    found = {}
    for collective in COLLECTIVES:
        told = run([ISTHMUS, "bench", collective, *where, "-b", "64K", "-e", "16M", "-f", "16", "-w", "1",
                    "-n", "4", "--wire", "--format", "json"], stdout=subprocess.PIPE)
        if told.returncode != 0:
            sys.exit(f"tools/demo: isthmus bench {collective} ended with exit code {told.returncode}")
        found[collective] = json.loads(told.stdout)["results"]
    return found


def print_bench(results):
    print(f"{'collective':16} {'bytes':>10} {'time, ms':>10} {'GB/s':>8} {'bytes of a card':>16} {'bound':>10} "
          f"{'of the bound':>13}")
    for collective, rows in results.items():
        for row in rows:
            half = row["out_of_place"]
            wire = [half.get(key) for key in ("wire_bytes", "wire_bound_bytes", "of_bound")]
            shown = [f"{value:.0f}" if value is not None else "-" for value in wire[:2]]
            share = f"{wire[2]:.0%}" if wire[2] else "-"
            print(f"{collective:16} {row['size']:>10} {half['time'] / 1000:>10.2f} {half['alg_bw']:>8.3f} "
                  f"{shown[0]:>16} {shown[1]:>10} {share:>13}")


def main():
    asked = options()
    show_machine()
    reason = why_no_nodes(asked.rate)
    if reason is None:
        where = f"2 emulated nodes x 2 ranks at {asked.rate}"
        run_where = bench_where = ["--nodes", NODES, "--rate", asked.rate]
    else:
        where = "4 ranks of this machine, NO emulated nodes"
        run_where, bench_where = ["-n", RANKS], ["--ranks", RANKS]
        print(f"\nNodes cannot be emulated here: {reason}\nFour ranks of this machine train instead.")
    gloo = train("gloo", run_where, asked)
    isthmus = train("isthmus", run_where, asked)
    apart = print_training(gloo, isthmus, where)
    title(f"bandwidths, {where}")
    results = bench(bench_where)
    print_bench(results)
    if asked.json:
        asked.json.write_text(json.dumps({
            "emulated": reason is None, "rate": asked.rate if reason is None else None,
            "train": {"gloo": gloo, "isthmus": isthmus, "loss_difference": apart,
                      "step_time_ratio": gloo["step_ms"] / isthmus["step_ms"]},
            "bench": results}, indent=2) + "\n")
    return 0 if apart <= LARGEST_DIFFERENCE else 1


if __name__ == "__main__":
    sys.exit(main())
