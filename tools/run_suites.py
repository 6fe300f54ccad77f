"""Runs the suites of the build in build/ and counts single cases; tools/test calls it."""

import argparse
import json
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
SUITES = ["lint", "unit", "proof", "conformance", "cluster", "python", "torch",
          "large", "examples"]
# Suite: the tests of it that --quick leaves out.
QUICK = {"lint": [], "unit": [], "proof": ["catalogue"], "conformance": []}
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
GOOD = {"OK", "SKIP", "EXPECTEDFAIL"}


def options():
    parser = argparse.ArgumentParser(prog="tools/test", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--suite", action="append", default=[])
    return parser.parse_args()


def tests_by_suite():
    """The tests of the build: {suite: [name]}."""
    told = subprocess.run(
        [sys.executable, "-m", "mesonbuild.mesonmain", "introspect", "--tests", str(BUILD)],
        check=True, stdout=subprocess.PIPE, text=True)
    found = {}
    for test in json.loads(told.stdout):
        for suite in test["suite"]:
            found.setdefault(suite.rpartition(":")[2], []).append(test["name"])
    return found


def run_meson(suite, names):
    """Runs the named tests of a suite with a line of progress a minute; {name: record of the log}."""
    command = [sys.executable, "-m", "mesonbuild.mesonmain", "test", "-C", str(BUILD), "--no-rebuild",
               "--suite", suite, "--logbase", suite, "--print-errorlogs", "--timeout-multiplier", "2",
               *names]
    log = BUILD / "meson-logs" / f"{suite}.json"
    for old in (log, log.with_suffix(".junit.xml")):
        old.unlink(missing_ok=True)
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        while True:
            try:
                process.wait(timeout=60)
                break
            except subprocess.TimeoutExpired:
                print(f"  {suite}: {time.monotonic() - began:.0f} s so far", flush=True)
    if not log.exists():
        return {}
    records = [json.loads(line) for line in log.read_text().splitlines() if line.strip()]
    return {re.split(r" / |:", record["name"])[-1]: record for record in records}


def count_gtest(groups):
    """Cases of one GoogleTest program from its XML: counts, and the reasons of those skipped."""
    counts, skips = Counter(), []
    for group in groups:
        for case in group.iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            skipped = case.find("skipped")
            failures = [*case.iter("failure"), *case.iter("error")]
            if failures:
                counts["failed"] += 1
                print(f"failed   {name}")
                for line in (failures[0].get("message") or failures[0].text or "").splitlines()[:12]:
                    print(f"         {line}")
            elif skipped is not None:
                counts["skipped"] += 1
                text = [line for line in (skipped.get("message") or skipped.text or "").splitlines() if line]
                skips.append((name, text[-1] if text else "no reason given"))
            elif case.get("status") == "notrun":
                counts["skipped"] += 1
                skips.append((name, "disabled"))
            else:
                counts["passed"] += 1
    return counts, skips


def count_printed(name, record):
    """Counts of a program that prints them as its last line, else of the program as one case."""
    lines = [line.strip() for line in record.get("stdout", "").splitlines() if line.strip()]
    told = COUNTS.match(lines[-1]) if lines else None
    if told:
        skips = [(line.split()[1], lines[at + 1] if at + 1 < len(lines) else "no reason given")
                 for at, line in enumerate(lines) if line.startswith("skip ")]
        return Counter(dict(zip(("passed", "failed", "skipped"), map(int, told.groups())))), skips
    if record["result"] == "SKIP":
        reason = lines[-1] if lines else "no reason given"
        return Counter(skipped=1), [(name, reason.removeprefix("skipped: "))]
    return Counter({"passed" if record["result"] in GOOD else "failed": 1}), []


def run_suite(suite, names):
    """Counts of one suite, and its skips with their reasons."""
    records = run_meson(suite, names)
    junit = BUILD / "meson-logs" / f"{suite}.junit.xml"
    groups = list(ElementTree.parse(junit).getroot()) if junit.exists() else []
    total, skips = Counter(), []
    for name in names:
        record = records.get(name)
        if record is None:
            print(f"{suite}: {name} did not run")
            total["failed"] += 1
            continue
        own = [group for group in groups if f".{record['name']}." in group.get("name", "")]
        counts, why = count_gtest(own) if own else count_printed(name, record)
        if record["result"] not in GOOD and not counts["failed"]:
            print(f"{suite}: {name} ended as {record['result']} although no case of it failed")
            counts["failed"] += 1
        if not counts.total():
            print(f"{suite}: {name} ran no case")
            counts["failed"] += 1
        total += counts
        skips += [(f"{name}: {case}", reason) for case, reason in why]
    return total, skips


def main():
    asked = options()
    found = tests_by_suite()
    if asked.list:
        for suite in sorted(found):
            print(f"{suite}: {' '.join(found[suite])}")
        return 0
    suites = asked.suite or ([*QUICK] if asked.quick else SUITES + sorted(set(found) - set(SUITES)))
    unknown = [suite for suite in suites if suite not in SUITES and suite not in found]
    if unknown:
        print(f"tools/test: no suite {unknown[0]!r}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 1
    total, skips, table = Counter(), [], []
    for suite in suites:
        began = time.monotonic()
        left_out = QUICK.get(suite, []) if asked.quick else []
        names = [name for name in found.get(suite, []) if name not in left_out]
        print(f"== {suite}", flush=True)
        counts, why = run_suite(suite, names) if names else (Counter(), [])
        if not counts["passed"] and not counts["failed"]:
            print(f"{suite}: this suite ran nothing")
            counts["failed"] += 1
        total += counts
        skips += [f"{suite}: {case}: {reason}" for case, reason in why]
        table.append((suite, counts, time.monotonic() - began))
    print()
    for line in skips:
        print(f"skipped  {line}")
    for suite, counts, seconds in table:
        print(f"{suite:12} {counts['passed']:5} passed {counts['failed']:4} failed "
              f"{counts['skipped']:4} skipped {seconds:7.1f} s")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped", flush=True)
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
