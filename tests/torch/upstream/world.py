"""Runs torch's own tests on one world size: `world.py --backends A,B RANKS REPORT NAME...`.

Every rank of every test is forked from this process, which has imported torch once and never more than
one thread. A line of JSON per test and backend goes to REPORT; `run.py` reads it."""

import argparse
import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

POLL_SECONDS = 0.01
AFTER_A_DEATH_SECONDS = 10  # for the ranks that wait for one that is gone


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("ranks", type=int)
    parser.add_argument("report")
    parser.add_argument("--backends", required=True)
    parser.add_argument("--test-seconds", type=float, required=True)
    parser.add_argument("--until", type=float, required=True, help="time.time() of the last start")
    parser.add_argument("--log", required=True)
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def enter_rank(suite, pipe, log, arguments):
    """A freshly forked rank; never returns."""
    code = 1
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        suite.run_rank(*arguments, pipe)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the parent prints it
        traceback.print_exc()
        try:
            pipe.send(traceback.format_exc())
        except OSError:  # torch closes the pipe after the body of the test
            with open(last_words_of(os.getpid()), "w", encoding="utf-8") as file:
                file.write(traceback.format_exc())
        code = suite.ERROR_CODE
    end_as_programs_do(code)


def last_words_of(pid):
    """Where a rank writes an error that came when its pipe was closed already."""
    return os.path.join(os.environ["TEMP_DIR"], f"last-words-{pid}")


def end_as_programs_do(code):
    """What the end of an interpreter does, for a process that was forked out of the middle of one."""
    import atexit
    import threading

    sys.stdout.flush()
    sys.stderr.flush()
    threading._shutdown()
    atexit._run_exitfuncs()
    os._exit(code)


class Rank:
    def __init__(self, suite, log, arguments):
        self.pipe, theirs = multiprocessing.Pipe()
        self.code = None
        self.pid = os.fork()
        if self.pid == 0:
            self.pipe.close()
            enter_rank(suite, theirs, log, arguments)
        theirs.close()

    def poll(self):
        if self.code is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def said(self, seconds=0.0):
        with contextlib.suppress(EOFError, OSError):
            if self.pipe.poll(seconds):
                return self.pipe.recv()
        with contextlib.suppress(OSError), open(last_words_of(self.pid), encoding="utf-8") as file:
            return file.read()
        return ""


def wait_for(ranks, seconds, codes_of_health, any_end):
    """Until all have ended or the time is over; tracebacks of those that have not."""
    until = time.monotonic() + seconds
    while True:
        codes = [rank.poll() for rank in ranks]
        if None not in codes:
            return ""
        if not any_end and any(c is not None and c not in codes_of_health for c in codes):
            until = min(until, time.monotonic() + AFTER_A_DEATH_SECONDS)
            codes_of_health = {*codes_of_health, *codes}
        if time.monotonic() > until:
            break
        time.sleep(POLL_SECONDS)
    import torch.testing._internal.common_distributed as common

    stuck = ""
    for number, rank in enumerate(ranks):
        if rank.poll() is None:
            try:
                rank.pipe.send(common.MultiProcessTestCase.Event.GET_TRACEBACK)
            except OSError:
                continue
            stuck += f"rank {number} was still here:\n{rank.said(3)}\n"
    return stuck


def run_ranks(suite, backend, name, chosen, folder):
    """The exit codes of the ranks, and what those that failed or were stuck had to say."""
    for inner in ("barrier", "test_dir"):
        os.mkdir(os.path.join(folder, inner))
    os.environ["TEMP_DIR"] = folder
    os.environ["INIT_METHOD"] = f"file://{folder}/shared"
    with open(chosen.log, "a", encoding="utf-8") as log:
        log.write(f"==== {name} on {backend}, {chosen.ranks} ranks\n")
    rendezvous = os.path.join(folder, "rendezvous")
    ranks = [
        Rank(suite, chosen.log, (backend, rank, name, rendezvous)) for rank in range(chosen.ranks)
    ]
    healthy = {0, *suite.SKIP_CODES}
    stuck = wait_for(ranks, chosen.test_seconds, healthy, name in suite.ANY_END)
    for rank in ranks:
        rank.kill()
    said = "".join(
        f"rank {number}: {rank.said()}"
        for number, rank in enumerate(ranks)
        if rank.code == suite.ERROR_CODE
    )
    for rank in ranks:
        rank.pipe.close()
    return [rank.code for rank in ranks], said + stuck


def run_test(suite, backend, name, chosen):
    """(verdict, text): "pass", "fail" or "skip"."""
    reason = suite.why_skipped(name)
    if reason is not None:
        return "skip", reason
    # Not TemporaryDirectory: it removes the folder at the end of every rank that was forked.
    folder = tempfile.mkdtemp(prefix="isthmus-upstream-")
    try:
        codes, text = run_ranks(suite, backend, name, chosen, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    any_end = name in suite.ANY_END
    if text:
        return "fail", f"{text}exit codes {codes}"
    if all(code in suite.SKIP_CODES for code in codes):
        return "skip", suite.SKIP_CODES[codes[0]]
    if any_end or not any(codes):
        return "pass", ""
    return "fail", f"exit codes {codes}"


def main():
    chosen = options()
    os.environ["WORLD_SIZE"] = str(chosen.ranks)
    import suite

    with open(chosen.report, "w", encoding="utf-8") as report:
        for name in chosen.names or suite.names():
            for backend in chosen.backends.split(","):
                if backend != "gloo" and name in suite.EXCLUDED:
                    verdict, text, seconds = "excluded", suite.EXCLUDED[name], 0.0
                elif time.time() > chosen.until:
                    verdict, text, seconds = "fail", "not run: the time for all tests is over", 0.0
                else:
                    began = time.monotonic()
                    verdict, text = run_test(suite, backend, name, chosen)
                    seconds = time.monotonic() - began
                report.write(json.dumps([name, backend, verdict, text, seconds]) + "\n")
                report.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
