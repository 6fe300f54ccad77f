"""The environment is read at two places; everybody else gets values (STYLE.md of the project, section 6).

usage: check_getenv.py ROOT
"""

import re
import sys

from source_files import finish, read, source_files

# tests/examples is what a user would write.
ALLOWED = ("comm/base/knobs.cc", "comm/bootstrap/launch_facts.cc", "tests/examples/")
READS = re.compile(r"\b(secure_getenv|getenv|environ)\b\s*(\(|\[|;|,|\)|\+|!|=|$)", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def main(root):
    problems = []
    paths = source_files(root, (".cc", ".hpp", ".h", ".cu", ".c"))
    for path in paths:
        if path.startswith(ALLOWED):
            continue
        # Comments are blanked, newlines kept, so that line numbers stay right.
        text = COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), read(root, path))
        for found in READS.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            problems.append(f"{path}:{line}: reads the environment ({found.group(1)}); use environmentVariable() or Options")
    finish(problems, len(paths), "getenv")


if __name__ == "__main__":
    main(sys.argv[1])
