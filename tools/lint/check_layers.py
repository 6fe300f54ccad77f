"""Includes go down the layers, never up and never between siblings (DESIGN.md of the project, section 2).

usage: check_layers.py ROOT
"""

import re
import sys

from source_files import finish, read, source_files

LAYERS = {
    "comm/base": 0,
    "topology": 1,
    "comm/memory": 2,
    "comm/reduce": 2,
    "comm/bootstrap": 2,
    "comm/cuda": 3,
    "comm/transport": 3,
    "comm/plan": 3,
    "comm/algorithm": 4,
    "comm/cost": 4,
    "comm/proof": 4,
    "comm/engine": 5,
    "comm/selector": 6,
    "comm/communicator": 7,
    "comm/capi": 8,
    "scheduler": 9,
    "torch_plugin": 10,
    "python": 10,
    "tools": 10,
    "benchmarks": 10,
    "tests": 10,
}

# Installed headers: values that all layers speak of are at the bottom, handles are where they are made.
PUBLIC_HEADERS = {
    "isthmus.h": 0,
    "lists.h": 0,
    "status.hpp": 0,
    "types.hpp": 0,
    "store.hpp": 0,
    "memory.hpp": 0,
    "options.hpp": 0,
    "work.hpp": 7,
    "blocks.hpp": 0,
    "calls.hpp": 7,
    "lists.hpp": 7,
    "collective.hpp": 7,
    "communicator.hpp": 7,
    "premul_sum.hpp": 7,
    "reduction.hpp": 7,
}

# Two siblings that DESIGN.md itself lets meet: the simulator and the proofs run catalogue entries.
SIBLINGS_ALLOWED = {("comm/cost", "comm/algorithm"), ("comm/proof", "comm/algorithm")}

TOP = 10  # programs and tests: they may include each other's headers
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def layer_of(path):
    """The layer folder a file of ours is in, or None."""
    parts = path.split("/")
    for folder in ("/".join(parts[:2]), parts[0]):
        if folder in LAYERS:
            return folder
    return None


def number_of_file(path):
    if path.startswith("comm/include/isthmus/"):
        return PUBLIC_HEADERS.get(path.rsplit("/", 1)[1])
    folder = layer_of(path)
    return None if folder is None else LAYERS[folder]


def problem_of(path, bracket, target):
    """What is wrong with one include, or None."""
    number, folder = number_of_file(path), layer_of(path)
    if bracket == "<" and target.startswith("isthmus/"):
        header = PUBLIC_HEADERS.get(target[len("isthmus/") :])
        if header is None:
            return f"<{target}> is no known installed header (tools/lint/check_layers.py has the table)"
        return f"<{target}> is of layer {header}, above {number}" if header > number else None
    if target in ("Python.h",) and folder not in ("torch_plugin", "python"):
        return "Python lives in torch_plugin/ and python/ only"
    if re.match(r"(cuda|nvml|nccl)[_a-z]*\.h", target) and folder != "comm/cuda":
        return "CUDA lives in comm/cuda/ only"
    target_folder = layer_of(target)
    if target_folder is None:
        return None
    if bracket == "<":
        return f"<{target}> is ours but not installed: write it with quotes"
    if folder in ("torch_plugin", "python") and target_folder != folder:
        return f'"{target}": the torch glue and the Python module see installed headers only'
    if target_folder == folder or number == TOP or (folder, target_folder) in SIBLINGS_ALLOWED:
        return None
    if LAYERS[target_folder] == number:
        return f'"{target}" is a sibling ({target_folder}, layer {number})'
    if LAYERS[target_folder] > number:
        return f'"{target}" is above ({target_folder}, layer {LAYERS[target_folder]}; this is layer {number})'
    return None


def main(root):
    problems = []
    paths = source_files(root, (".cc", ".hpp", ".h", ".cu", ".py", ".c"))
    for path in paths:
        if path.endswith(".py"):
            if path.split("/")[0] in ("comm", "topology", "scheduler"):
                problems.append(f"{path}: Python has no place in the layers below the plugin and the tools")
            continue
        if path.endswith(".cu") and not path.startswith("comm/cuda/"):
            problems.append(f"{path}: device code lives in comm/cuda/ only")
        if path.startswith("comm/include/") and number_of_file(path) is None:
            problems.append(f"{path}: the table of installed headers does not know it")
            continue
        if number_of_file(path) is None:
            continue
        text = read(root, path)
        for found in INCLUDE.finditer(text):
            problem = problem_of(path, found.group(1), found.group(2))
            if problem:
                line = text.count("\n", 0, found.start(1)) + 1
                problems.append(f"{path}:{line}: {problem}")
    finish(problems, len(paths), "layers")


if __name__ == "__main__":
    main(sys.argv[1])
