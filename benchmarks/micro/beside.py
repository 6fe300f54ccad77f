#!/usr/bin/env python3
"""Our transports over UCX and libfabric beside the libraries' own programs, two processes on this machine.

The library's program (ucx_perftest, fi_pingpong), the bare device (micro_rma_device) and the whole transport
(micro_transport_latency) take turns; medians over rounds, with the least and the most. Messages go to and fro, half a
round trip each: 8 bytes tell what we add, 1 MiB which share of the bandwidth is left.

  benchmarks/micro/beside.py --build build                       all that is here
  benchmarks/micro/beside.py --build build ucx@posix --rounds 9 --json FILE
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

MEGABYTE = 1 << 20
ADDED_US = 0.3  # at most
SHARE = 0.9  # at least
WAYS = ("ucx@posix", "ucx@tcp", "ofi@shm", "ofi@tcp")
PROVIDERS = {"shm": "shm", "tcp": "tcp;ofi_rxm"}


class Missing(Exception):
    """Something that a measurement needs is not here."""


def output_of(command, env=None):
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    if ended.returncode != 0:
        raise Missing(f"{os.path.basename(command[0])}: {(ended.stderr or ended.stdout).strip()[-200:]}")
    return ended.stdout


def pair(server, client, env):
    """What the client prints."""
    if shutil.which(server[0]) is None:
        raise Missing(f"{server[0]} is not installed (ucx-utils, libfabric-bin)")
    with subprocess.Popen(server, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as waiting:
        try:
            time.sleep(0.5)
            return output_of(client, env)
        finally:
            waiting.terminate()


def ucx_us(device, size):
    rounds = "100000" if size < MEGABYTE else "1000"
    env = dict(os.environ, UCX_TLS=f"{device},self")
    common = ["ucx_perftest", "-p", "14557"]
    text = pair(common, [*common, "127.0.0.1", "-t", "ucp_am_lat", "-s", str(size), "-n", rounds, "-w", "1000", "-f"],
                env)
    return float(text.strip().split("\n")[-1].split()[1])  # iterations, then the median


def ofi_us(device, size):
    rounds = "100000" if size < MEGABYTE else "1000"
    common = ["fi_pingpong", "-p", PROVIDERS.get(device, device), "-e", "rdm", "-S", str(size), "-I", rounds]
    text = pair(common, [*common, "127.0.0.1"], None)
    return float(text.strip().split("\n")[-1].split()[6])  # usec/xfer, a mean: there is no median


def library_us(way, size):
    name, device = way.split("@")
    return (ucx_us if name == "ucx" else ofi_us)(device, size)


def figures_of(text, *patterns):
    found = [re.search(pattern, text) for pattern in patterns]
    if None in found:
        raise Missing(f"no figures in {text!r}")
    return [float(each.group(1)) for each in found]


def measure(build, way, rounds):
    """Lists of us, one for each round."""
    micro = os.path.join(build, "benchmarks", "micro")
    taken = {name: [] for name in ("library 8 B", "device 8 B", "ours 8 B", "library 1 MiB", "ours 1 MiB")}
    for _ in range(rounds):
        taken["library 8 B"].append(library_us(way, 8))
        taken["device 8 B"] += figures_of(output_of([f"{micro}/micro_rma_device", way, "1"]), r"one way ([\d.]+) us")
        taken["library 1 MiB"].append(library_us(way, MEGABYTE))
        ours = figures_of(output_of([f"{micro}/micro_transport_latency", way, "1"]), r"one way ([\d.]+) us",
                          r"1 MiB ([\d.]+) us")
        taken["ours 8 B"].append(ours[0])
        taken["ours 1 MiB"].append(ours[1])
    return taken


def row_of(way, taken):
    middle = {name: statistics.median(values) for name, values in taken.items()}
    added = middle["ours 8 B"] - middle["library 8 B"]
    share = middle["library 1 MiB"] / middle["ours 1 MiB"]
    return {"way": way, "us": taken, "added_us": added, "share": share,
            "holds": added <= ADDED_US and share >= SHARE}


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def line_of(row):
    cells = [f"{row['way']:<10}"]
    cells += [f"{name} {spread(values)}" for name, values in row["us"].items()]
    cells += [f"we add {row['added_us']:.2f} us (at most {ADDED_US})",
              f"of the bandwidth {100 * row['share']:.0f} % (at least {100 * SHARE:.0f})"]
    return "; ".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="TRANSPORT@DEVICE", help=", ".join(WAYS))
    parser.add_argument("--build", default="build", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="write every figure there too")
    args = parser.parse_args()
    rows = []
    for way in args.ways or WAYS:
        try:
            rows.append(row_of(way, measure(args.build, way, args.rounds)))
            print(line_of(rows[-1]), flush=True)
        except (Missing, subprocess.TimeoutExpired, OSError) as reason:
            print(f"{way:<10}; not measured: {reason}", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
