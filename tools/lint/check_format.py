"""What .clang-format says decides the looks; another version than 14 decides differently.

usage: check_format.py ROOT
"""

import os
import re
import shutil
import subprocess
import sys

from source_files import finish, source_files

VERSION = 14
PER_CALL = 64
SKIPPED = 77
PROBLEM = re.compile(r"^(.+?:\d+):\d+: (?:error|warning): code should be clang-formatted")


def clang_format():
    """The program of the wanted version, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path:
            told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
            if re.search(rf"version {VERSION}\.", told.stdout):
                return path
    return None


def main(root):
    program = clang_format()
    if program is None:
        print(f"skipped: clang-format {VERSION} is missing")
        sys.exit(SKIPPED)
    paths = source_files(root, (".cc", ".hpp", ".h", ".c", ".cu"))
    lines = {}
    for at in range(0, len(paths), PER_CALL):
        command = [program, "--dry-run", "--style=file", *paths[at:at + PER_CALL]]
        told = subprocess.run(command, cwd=root, capture_output=True, text=True)
        for line in told.stderr.splitlines():
            found = PROBLEM.match(line)
            if found:
                lines[found.group(1)] = None
        if told.returncode != 0:
            lines[told.stderr.strip()] = None
    finish([f"{place}: differs; run {os.path.basename(program)} -i" for place in lines], len(paths), "format")


if __name__ == "__main__":
    main(sys.argv[1])
