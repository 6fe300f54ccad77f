"""Runs named cases on a world of ranks that is started once, each case on every rank.

Ranks are forked from a server that imported torch already, so a new world costs well under a second;
after a failure the world is replaced, because its ranks may no longer agree on where they are."""

import contextlib
import datetime
import faulthandler
import multiprocessing
import os
import signal
import time
import traceback
import warnings

WHOLE = "TESTS_WHOLE" in os.environ  # what is rare is tried as often as it takes
CASE_SECONDS = 900 if WHOLE else 60
GROUP_SECONDS = 100 if WHOLE else 20

_cases = []


class Skip(Exception):
    """Raised by a case that cannot run here; its text says why."""


def count_of(few, whole):
    """How often something is done: ``whole`` when TESTS_WHOLE is in the environment."""
    return whole if WHOLE else few


class Case:
    def __init__(self, name, body, ranks):
        self.name, self.body, self.ranks = name, body, ranks


def case(name, ranks=4):
    def add(body):
        _cases.append(Case(name, body, ranks))
        return body

    return add


def all_cases():
    return list(_cases)


class World:
    """What a case sees: its rank, our group (the default one) and gloo's with the same ranks."""

    def __init__(self, rank, size, gloo, folder):
        self.rank, self.size, self.gloo, self.folder = rank, size, gloo, folder
        self._names = 0

    @contextlib.contextmanager
    def fresh_group(self, seconds=GROUP_SECONDS, ranks=None, **more):
        """A group of its own, for cases that break theirs."""
        import torch.distributed as dist

        group = dist.new_group(
            ranks, backend="isthmus", timeout=datetime.timedelta(seconds=seconds), **more
        )
        try:
            yield group
        finally:
            if group is not dist.GroupMember.NON_GROUP_MEMBER:
                dist.destroy_process_group(group)

    def fresh_gloo(self):
        """Another group of gloo with all ranks, for cases that break theirs."""
        import torch.distributed as dist

        return dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=GROUP_SECONDS))

    def meet(self):
        """All ranks are here afterwards; over gloo, so that our own state does not matter."""
        import torch.distributed as dist

        dist.barrier(self.gloo)


def _rank_main(pipe, rank, size, port, modules, folder):
    import importlib

    import torch
    import torch.distributed as dist

    import isthmus.torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", FutureWarning)  # names that 2.11 has and 2.15 renamed
    for module in modules:
        importlib.import_module(module)
    isthmus.torch.register()
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    timeout = datetime.timedelta(seconds=GROUP_SECONDS)
    dist.init_process_group("isthmus", store=store, rank=rank, world_size=size, timeout=timeout)
    world = World(rank, size, dist.new_group(backend="gloo", timeout=timeout), folder)
    bodies = {each.name: each.body for each in all_cases()}
    pipe.send(("ready", "", 0.0))
    while (name := pipe.recv()) is not None:
        began = time.monotonic()
        faulthandler.dump_traceback_later(CASE_SECONDS - 5)  # where a case is stuck
        try:
            torch.manual_seed(1337)
            bodies[name](world)
            verdict, text = "ok", ""
        except Skip as why:
            verdict, text = "skip", str(why)
        except BaseException:  # noqa: BLE001 - the parent prints it
            verdict, text = "fail", traceback.format_exc()
        faulthandler.cancel_dump_traceback_later()
        pipe.send((verdict, text, time.monotonic() - began))
    dist.destroy_process_group()
    pipe.send(("bye", "", 0.0))


class Ranks:
    """The processes of one world. They are ended by their own process ids and no other way."""

    def __init__(self, size, modules, folder):
        import torch.distributed as dist

        context = multiprocessing.get_context("forkserver")
        self._store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.size = size
        self._pipes, self._processes = [], []
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_rank_main, args=(theirs, rank, size, self._store.port, modules, folder)
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)
        started = self._collect(time.monotonic() + 3 * CASE_SECONDS)
        if any(verdict != "ready" for verdict, _, _ in started):
            self.kill()
            raise RuntimeError(f"the ranks did not start: {started}")

    def _collect(self, until):
        answers = []
        for rank, pipe in enumerate(self._pipes):
            try:
                if pipe.poll(max(0.0, until - time.monotonic())):
                    answers.append(pipe.recv())
                else:
                    answers.append(("fail", f"rank {rank} did not answer in time", CASE_SECONDS))
            except EOFError:
                self._processes[rank].join(1)
                code = self._processes[rank].exitcode
                answers.append(("fail", f"rank {rank} died with exit code {code}", 0.0))
        return answers

    def run(self, name):
        for pipe in self._pipes:
            with contextlib.suppress(BrokenPipeError):
                pipe.send(name)
        return self._collect(time.monotonic() + CASE_SECONDS)

    def close(self):
        """Ends an orderly world; returns what went wrong."""
        answers = self.run(None)
        for process in self._processes:
            process.join(10)
        wrong = [text for verdict, text, _ in answers if verdict != "bye"]
        wrong += [
            f"rank {rank} ended with {process.exitcode}"
            for rank, process in enumerate(self._processes)
            if process.exitcode != 0
        ]
        self.kill()
        return wrong

    def kill(self):
        for process in self._processes:
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
            process.join(10)
