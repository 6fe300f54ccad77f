"""Tests of the Python module: `python run.py --package build/torch_plugin --isthmus PROGRAM`.

Runs each file of cases as a job of ranks, and the cases of single processes (cases_life). Prints one
line per case and ends with `N passed, N failed, N skipped`; exits 1 if any failed."""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE_SECONDS = 100
JOBS = {"cases_calls.py": 4, "cases_lists.py": 4, "cases_arrays.py": 2, "cases_requests.py": 4}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", required=True, help="folder that holds the package isthmus")
    parser.add_argument("--isthmus", required=True, help="the program isthmus")
    parser.add_argument("patterns", nargs="*", help="parts of the names of files; default: all")
    return parser.parse_args()


def environment(package):
    return os.environ | {"PYTHONPATH": package, "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1",
                         "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def run_job(file, ranks, asked):
    """(word, name, text) of each case; a job that ends badly without a failed case is one."""
    began = time.monotonic()
    command = [asked.isthmus, "run", "-n", str(ranks), sys.executable, str(HERE / file)]
    try:
        ended = subprocess.run(command, env=environment(asked.package), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               timeout=FILE_SECONDS)
        code, output, errors = ended.returncode, ended.stdout, ended.stderr
    except subprocess.TimeoutExpired as late:
        code, output, errors = -1, (late.stdout or b"").decode(), (late.stderr or b"").decode()
        errors += f"\nstill ran after {FILE_SECONDS} s"
    found = re.findall(r"^\[0\] (ok|skip|fail) (\w+)(?:: (.*))?$", output, re.MULTILINE)
    cases = [(word, name, text) for word, name, text in found]
    if code != 0 and not any(word == "fail" for word, _, _ in cases) or not cases:
        cases.append(("fail", file, f"the job ended with {code}"))
    if any(word == "fail" for word, _, _ in cases):
        print(errors[-6000:], flush=True)
    print(f"{file}: {len(cases)} cases in {time.monotonic() - began:.1f} s", flush=True)
    return cases


def main():
    asked = options()
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: numpy is not installed")
        return 77
    import cases_life

    def wanted(name):
        return not asked.patterns or any(pattern in name for pattern in asked.patterns)

    counts = {"ok": 0, "fail": 0, "skip": 0}
    jobs = [run_job(file, ranks, asked) for file, ranks in JOBS.items() if wanted(file)]
    if wanted("cases_life"):
        jobs.append(cases_life.run(environment(asked.package)))
    for word, name, text in (case for job in jobs for case in job):
        counts[word] += 1
        print(f"{word:4} {name}")
        if text:
            print(f"     {text}")
    print(f"{counts['ok']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    return 1 if counts["fail"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
