"""Tests of the torch backend: `python run.py --package build/torch_plugin [PATTERN...]`.

Prints one line per case and ends with `N passed, N failed, N skipped`; exits 1 if any failed."""

import argparse
import fnmatch
import multiprocessing
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = [
    "cases_collectives",
    "cases_edges",
    "cases_sparse",
    "cases_errors",
    "cases_lists",
    "cases_works",
    "cases_training",
    "cases_parallel",
    "cases_wrappers",
    "cases_programs",
    "cases_groups",
    "cases_contract",
    "cases_contract_groups",
    "cases_life",
    "cases_stress",
    "cases_pace",
    "cases_memory",
]
DEVICE_MODULES = ["cases_device", "cases_device_order"]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", help="folder that holds the package isthmus; default: installed")
    parser.add_argument("--device", help="library of the device of tests: runs its cases and no others")
    parser.add_argument("--isthmus", help="the program isthmus; without it cases that want it are skipped")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("patterns", nargs="*", help="names of cases, with * and ?")
    return parser.parse_args()


def report(name, answers, counts):
    verdicts = {verdict for verdict, _, _ in answers}
    kind = "fail" if "fail" in verdicts else "skip" if "skip" in verdicts else "ok"
    counts[kind] += 1
    seconds = max(seconds for _, _, seconds in answers)
    print(f"{kind:4} {name:44} {seconds:6.2f} s", flush=True)
    if kind == "skip":
        print("     " + next(text for verdict, text, _ in answers if verdict == "skip"))
    told = set()
    for rank, (verdict, text, _) in enumerate(answers):
        lines = text.rstrip().splitlines()[-12:]
        words = re.sub(r"\d", "", (lines or [""])[-1])  # the ranks mostly say the same
        if verdict != "fail" or words in told:
            continue
        told.add(words)
        print("\n".join(f"     rank {rank}: {line}" for line in lines), flush=True)
    return kind


def run_worlds(cases, modules, folder, counts):
    from harness import Ranks

    for size in sorted({case.ranks for case in cases}):
        ranks = None
        for case in (each for each in cases if each.ranks == size):
            ranks = ranks or Ranks(size, modules, folder)
            if report(case.name, ranks.run(case.name), counts) == "fail":
                ranks.kill()
                ranks = None
        if ranks is not None:
            wrong = ranks.close()
            verdict = ("fail", "\n".join(wrong), 0.0) if wrong else ("ok", "", 0.0)
            report(f"end of the world of {size}", [verdict], counts)


def main():
    chosen = options()
    sys.path.insert(0, HERE)
    if chosen.package:
        sys.path.insert(0, os.path.abspath(chosen.package))
    # Children read the same paths; one thread each, or four ranks fight for the cores.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        path for path in [*sys.path[:2], os.environ.get("PYTHONPATH", "")] if path
    )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # torch's advice is not about us
    multiprocessing.set_forkserver_preload(["torch", "torch.distributed", "preload"])
    if chosen.isthmus:
        os.environ["PLACED_PROGRAM"] = os.path.abspath(chosen.isthmus)
    modules = MODULES
    if chosen.device:
        modules = DEVICE_MODULES
        os.environ["FAKE_DEVICE_LIBRARY"] = os.path.abspath(chosen.device)
    for module in modules:
        __import__(module)
    import cases_exit
    import cases_launch
    import cases_placed
    from harness import all_cases

    patterns = chosen.patterns or ["*"]

    def wanted(names):
        return [n for n in names if any(fnmatch.fnmatch(n, pattern) for pattern in patterns)]

    # A module of cases may use the helpers of another without running its cases.
    cases = {case.name: case for case in all_cases() if case.body.__module__ in modules}
    programs = () if chosen.device else (cases_exit, cases_launch, cases_placed)
    scripts = {name: module for module in programs for name in module.SCRIPTS}
    if chosen.list:
        print("\n".join([*cases, *scripts]))
        return 0
    counts = {"ok": 0, "fail": 0, "skip": 0}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="isthmus-torch-") as folder:
        run_worlds([cases[name] for name in wanted(cases)], modules, folder, counts)
        for name in wanted(scripts):
            started = time.monotonic()
            verdict, text = scripts[name].run(name)
            report(name, [(verdict, text, time.monotonic() - started)], counts)
    print(f"took {time.monotonic() - began:.0f} s")
    print(f"{counts['ok']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    return 1 if counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
