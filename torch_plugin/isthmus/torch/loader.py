"""Finds the glue library for a version of torch, and refuses any other.

A library built for another minor version may load and then call the wrong virtual function, so
the choice is made here, before anything is opened."""

import os
import re

_NAME = re.compile(r"^_torch_(\d+)_(\d+)\.so$")


def folder():
    """Where the glue libraries are: beside this package's own files."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def built_versions(where):
    """The torch versions, as (major, minor), that `where` has a library for."""
    names = os.listdir(where) if os.path.isdir(where) else []
    return sorted((int(m[1]), int(m[2])) for m in map(_NAME.match, names) if m)


def path_for(torch_version, where=None):
    """The library for `torch_version` ("2.15.0+cpu"); ImportError says what is there instead."""
    where = where or folder()
    found = re.match(r"(\d+)\.(\d+)", torch_version)
    if found is None:
        raise ImportError(f"isthmus: cannot read the torch version {torch_version!r}")
    wanted = (int(found[1]), int(found[2]))
    built = built_versions(where)
    if wanted in built:
        return os.path.join(where, f"_torch_{wanted[0]}_{wanted[1]}.so")
    names = ", ".join(f"{major}.{minor}" for major, minor in built) or "no torch at all"
    last = f"{built[-1][0]}.{built[-1][1]}" if built else "2.15"
    raise ImportError(
        f"isthmus: built for torch {names}, found torch {torch_version}; "
        f"install a matching torch (pip install 'torch=={last}.*') or build isthmus for this one "
        "(pip install --no-build-isolation --force-reinstall . in its source folder)"
    )
