"""Runs the README as a reader would: writes its files, then runs its commands one block after another.

A block ```LANGUAGE file=NAME is written to NAME, a block ```sh run is run by bash in the same folder;
`needs=nodes` or `needs=mpirun` skips it where that is missing. Ends with `N passed, N failed, N skipped`.

usage: check_readme.py CHECKOUT"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_SECONDS = 120


def blocks_of(text):
    """(words behind the language, content) of each block, in order."""
    return [(match[2].split(), match[3]) for match in BLOCK.finditer(text)]


def why_not(need, checkout):
    """None if what a block needs is here, else what is missing."""
    if need == "nodes":
        tried = subprocess.run([checkout / ".venv/bin/isthmus", "run", "--nodes", "2x1", "true"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=60)
        return None if tried.returncode == 0 else f"no emulated nodes: {tried.stdout.strip()[-200:]}"
    return None if shutil.which(need) else f"{need} is missing"


def run_block(script, folder):
    """Exit code and output; the whole process group is ended at the limit."""
    process = subprocess.Popen(["bash", "-e", "-c", script], cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=LIMIT_SECONDS)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return -1, process.communicate()[0] + f"\nstill ran after {LIMIT_SECONDS} s"


def main():
    checkout = Path(sys.argv[1]).resolve()
    if not (checkout / ".venv/bin/isthmus").exists():
        print("skipped: isthmus is not installed in .venv; run tools/setup")
        return 77
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory(prefix="isthmus-readme-") as folder:
        (Path(folder) / ".venv").symlink_to(checkout / ".venv")
        for words, content in blocks_of((checkout / "README.md").read_text()):
            names = [word.removeprefix("file=") for word in words if word.startswith("file=")]
            if names:
                (Path(folder) / names[0]).write_text(content)
            if "run" not in words:
                continue
            title = content.strip().splitlines()[-1].replace(" ", "_")
            needs = [word.removeprefix("needs=") for word in words if word.startswith("needs=")]
            missing = [reason for need in needs if (reason := why_not(need, checkout))]
            if missing:
                counts["skipped"] += 1
                print(f"skip {title}\n     {missing[0]}", flush=True)
                continue
            code, output = run_block(content, folder)
            counts["passed" if code == 0 else "failed"] += 1
            print(f"{'ok' if code == 0 else 'fail'}   {title}", flush=True)
            if code:
                print(f"{content}\nended with {code}; its output:\n{output[-4000:]}", flush=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
