"""Torch's own tests of distributed backends on isthmus, with gloo in the same run:

    python tests/torch/upstream/run.py --package build/torch_plugin [--ranks 2,3,4,8] [NAME...]

NAME may hold * and ?; --short takes the tests of `short.txt`. Prints every test whose verdict differs
between the two or that fails, then the passed of each backend and world size; the last line is
`N passed, N failed, N skipped` for isthmus. Exits 1 if isthmus fails a test that gloo does not fail,
or passes none."""

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BACKENDS = ("gloo", "isthmus")


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", help="folder that holds the package isthmus; default: installed")
    parser.add_argument("--ranks", default="2,3,4,8", help="world sizes, with commas between")
    parser.add_argument("--short", action="store_true", help="only the tests of short.txt")
    parser.add_argument("--test-seconds", type=float, default=90, help="limit of one test")
    parser.add_argument("--seconds", type=float, default=3600, help="limit of all")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--json", metavar="FILE", help="writes every verdict there")
    parser.add_argument("--keep-log", metavar="FILE", help="what the ranks print")
    parser.add_argument("--list", action="store_true", help="names, exclusions and changes; no run")
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def environment(package):
    paths = [HERE, *([os.path.abspath(package)] if package else []), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONWARNINGS": "ignore",
        "CUDA_VISIBLE_DEVICES": "",  # or torch skips all for want of a device per rank
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }


def all_names(env, ranks=4):
    text = "import suite, json; print(json.dumps([suite.names(), suite.EXCLUDED, suite.CHANGES]))"
    done = subprocess.run([sys.executable, "-c", text], env={**env, "WORLD_SIZE": str(ranks)},
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120)
    return json.loads(done.stdout.splitlines()[-1])


def chosen_names(chosen, env):
    names, excluded, changes = all_names(env)
    if chosen.short:
        with open(os.path.join(HERE, "short.txt"), encoding="utf-8") as file:
            wanted = [line.split("#")[0].strip() for line in file]
        wanted = [line for line in wanted if line]
        unknown = [line for line in wanted if not fnmatch.filter(names, line)]
        if unknown:
            print(f"not in this torch: {', '.join(unknown)}")
    else:
        wanted = chosen.names or ["*"]
    return [n for n in names if any(fnmatch.fnmatch(n, each) for each in wanted)], excluded, changes


def run_world(ranks, names, chosen, env, log):
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as report:
        left = max(1.0, chosen.seconds - (time.time() - BEGAN))
        subprocess.run(
            [sys.executable, os.path.join(HERE, "world.py"), "--backends", chosen.backends,
             "--test-seconds", str(chosen.test_seconds), "--until", str(time.time() + left),
             "--log", log, str(ranks), report.name, *names],
            env=env, check=True, timeout=left + 3 * chosen.test_seconds + 60,
            stderr=subprocess.DEVNULL)
        return [json.loads(line) for line in report]


def last_error(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (errors or lines or [""])[0][:160]


def tell(ranks, rows):
    """Prints one world size; returns (passed, failed, skipped) of isthmus."""
    verdicts = {}
    for name, backend, verdict, text, seconds in rows:
        verdicts.setdefault(name, {})[backend] = (verdict, text, seconds)
    failed = 0
    for name, both in verdicts.items():
        ours = both.get("isthmus", ("", "", 0.0))
        theirs = both.get("gloo", ("", "", 0.0))
        if ours[0] == "fail" and theirs[0] != "fail":
            failed += 1
        if ours[0] == "skip":
            print(f"skip {name}\n  {ours[1]}")  # as tools/run_suites.py reads it
        if "fail" in (ours[0], theirs[0]) or (theirs[0] and ours[0] and theirs[0] != ours[0]):
            print(f"  {name}: gloo {theirs[0] or '-'}, isthmus {ours[0] or '-'}: "
                  f"{last_error(ours[1] if ours[0] != 'pass' else theirs[1])}")
    counts = {}
    for _, backend, verdict, _, seconds in rows:
        each = counts.setdefault(backend, {"pass": 0, "fail": 0, "skip": 0, "excluded": 0, "s": 0.0})
        each[verdict] += 1
        each["s"] += seconds
    for backend, each in counts.items():
        print(f"{ranks} ranks, {backend:8} {each['pass']:4} passed {each['fail']:3} failed "
              f"{each['skip']:4} skipped {each['excluded']:3} excluded {each['s']:6.0f} s", flush=True)
    ours = counts.get("isthmus", {"pass": 0, "skip": 0})
    return ours["pass"], failed, ours["skip"]


BEGAN = time.time()


def main():
    chosen = options()
    env = environment(chosen.package)
    names, excluded, changes = chosen_names(chosen, env)
    if chosen.list:
        print("\n".join(names))
        for title, reasons in (("excluded", excluded), ("changed", changes)):
            for name, reason in reasons.items():
                print(f"{title}: {name}: {reason}")
        return 0
    totals = [0, 0, 0]
    everything = []
    with tempfile.TemporaryDirectory(prefix="isthmus-upstream-") as folder:
        log = chosen.keep_log or os.path.join(folder, "log")
        for ranks in map(int, chosen.ranks.split(",")):
            rows = run_world(ranks, names, chosen, env, log)
            everything += [[ranks, *row] for row in rows]
            totals = [a + b for a, b in zip(totals, tell(ranks, rows), strict=True)]
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=0)
    print(f"took {time.time() - BEGAN:.0f} s")
    print("{} passed, {} failed, {} skipped".format(*totals))
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
