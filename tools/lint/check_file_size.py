"""No source file is above 400 lines (STYLE.md of the project, section 2).

usage: check_file_size.py ROOT
"""

import sys

from source_files import finish, read, source_files

LIMIT_LINES = 400


def main(root):
    problems = []
    paths = source_files(root, (".cc", ".hpp", ".h", ".cu", ".py", ".c"))
    for path in paths:
        lines = read(root, path).count("\n")
        if lines > LIMIT_LINES:
            problems.append(f"{path}: {lines} lines, the limit is {LIMIT_LINES}: it holds more than one idea")
    finish(problems, len(paths), "file size")


if __name__ == "__main__":
    main(sys.argv[1])
