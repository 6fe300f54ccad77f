"""Runs programs for the tests of examples/: a case is a function that asserts, or raises Skip."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIMIT_SECONDS = 200  # ten times what they take on a quiet machine


class Skip(Exception):
    """What is missing."""


def needs(*names):
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise Skip(f"{name} is not installed")


class Programs:
    """How to start programs with the package and the program of a build folder."""

    def __init__(self, build, isthmus, folder):
        self.build, self.isthmus, self.folder = Path(build).resolve(), Path(isthmus).resolve(), folder
        self._give_entry_points()
        self.environment = os.environ | {
            "PYTHONPATH": f"{self.build / 'torch_plugin'}:{folder}", "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}

    def _give_entry_points(self):
        """What pip writes at an installation, so that torch finds the backend by its name."""
        project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())["project"]
        info = Path(self.folder) / f"isthmus-{project['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: isthmus\nVersion: {project['version']}\n")
        lines = [f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
                 for group, entries in project["entry-points"].items()]
        (info / "entry_points.txt").write_text("".join(lines))

    def run(self, *command, code=0, limit=LIMIT_SECONDS):
        """Output of a program, its standard error behind it; it must end with `code` in time; None: with
        any but 0."""
        try:
            ended = subprocess.run([str(part) for part in command], env=self.environment, cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, timeout=limit)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"still ran after {limit} s: {late.stdout} {late.stderr}") from None
        is_right = ended.returncode != 0 if code is None else ended.returncode == code
        assert is_right, (ended.returncode, ended.stdout[-3000:], ended.stderr[-3000:])
        return ended.stdout + ended.stderr

    def ranks(self, number, program, *arguments, code=0):
        """Output of `isthmus run` without the ranks' numbers; a .py is an example."""
        command = [EXAMPLES / program] if program.endswith(".py") else [program]
        if program.endswith(".py"):
            command.insert(0, sys.executable)
        output = self.run(self.isthmus, "run", "-n", number, *command, *arguments, code=code)
        return re.sub(r"^\[\d+\] ", "", output, flags=re.MULTILINE)

    def mpirun(self, number, program):
        if shutil.which("mpirun") is None:
            raise Skip("mpirun is missing")
        return self.run("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", number,
                        sys.executable, EXAMPLES / program)


def numbers_after(word, output):
    """Every number that follows the word."""
    return [float(found) for found in re.findall(rf"\b{word} ([-+.\de]+)", output)]


def run_cases(cases, build, isthmus):
    """Runs them, prints a line for each and the counts; the exit code."""
    counts = {"ok": 0, "fail": 0, "skip": 0}
    for body in cases:
        began, word, text = time.monotonic(), "ok", ""
        try:
            with tempfile.TemporaryDirectory(prefix="isthmus-examples-") as folder:
                body(Programs(build, isthmus, folder))
        except Skip as reason:
            word, text = "skip", str(reason)
        except Exception:  # noqa: BLE001 - the next case still runs
            word, text = "fail", traceback.format_exc()
        counts[word] += 1
        print(f"{word:4} {body.__name__:44} {time.monotonic() - began:6.1f} s", flush=True)
        if text:
            print(f"     {text}", flush=True)
    print(f"{counts['ok']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    return 1 if counts["fail"] or not sum(counts.values()) else 0
