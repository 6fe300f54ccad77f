"""The files the lints look at: what git tracks, or every file when there is no git."""

import os
import subprocess
import sys

SKIPPED_FOLDERS = {".git", ".venv", "build", "shared", "__pycache__", "subprojects"}


def source_files(root, suffixes):
    """Relative paths of the sources under root with one of the suffixes, sorted."""
    listing = None
    if os.path.exists(os.path.join(root, ".git")):
        command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            listing = subprocess.run(command, check=True, capture_output=True).stdout
        except (OSError, subprocess.CalledProcessError):
            listing = None
    if listing is not None:
        paths = [path for path in listing.decode().split("\0") if path]
    else:
        paths = []
        for folder, folders, names in os.walk(root):
            folders[:] = [each for each in folders if each not in SKIPPED_FOLDERS and not each.startswith("build")]
            paths += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(
        path
        for path in set(paths)
        if path.endswith(suffixes)
        and not SKIPPED_FOLDERS.intersection(path.split("/"))
        and os.path.isfile(os.path.join(root, path))
    )


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def finish(problems, checked, what):
    """Prints the outcome and gives the exit code; a lint that saw nothing fails."""
    for problem in problems:
        print(problem)
    print(f"{what}: {checked} files, {len(problems)} problems")
    if checked == 0:
        print("no file was found: wrong root?")
    sys.exit(1 if problems or checked == 0 else 0)
