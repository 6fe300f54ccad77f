"""Requests, communicators and threads."""

import gc
import threading
import time
import weakref

import isthmus
import numpy as np
import world
from isthmus import Op, Result
from world import case, equal, refused


@case
def requests_of_calls(comm):
    found = np.full(100000, float(comm.rank))
    request = comm.all_reduce(found, wait=False)
    assert request.wait() is None and request.done and request.test()
    equal(found, np.full(100000, comm.size * (comm.size - 1) / 2))
    request.wait()  # once more changes nothing
    several = [comm.all_reduce(np.full(5, i), out := np.zeros(5, int), wait=False) for i in range(20)]
    isthmus.wait_all(several, timeout=5)
    assert all(each.done for each in several)
    equal(out, np.full(5, 19 * comm.size))


@case
def waiting_ends_before_the_call(comm):
    if comm.rank == 0:
        request = comm.recv(found := np.zeros(3), 1, wait=False)
        assert not request.test()
        with refused("the call goes on", Result.TIMEOUT):
            request.wait(timeout=0.01)
        assert not request.done and request.source is None
    comm.barrier()
    if comm.rank == 1:
        comm.send(np.ones(3), 0)
    if comm.rank == 0:
        assert request.wait(timeout=5) == 1 and request.source == 1
        equal(found, np.ones(3))


@case
def memory_stays_until_the_call_is_done(comm):
    class Watched(np.ndarray):
        pass

    if comm.rank == 0:
        array = np.zeros(1000).view(Watched)
        watched = weakref.ref(array)
        request = comm.recv(array, 1, tag=3, wait=False)
        del array
        gc.collect()
        assert watched() is not None, "the array went while its call is in flight"
        request.cancel()
        with refused("cancel", Result.ABORTED):
            request.wait()
        gc.collect()
        assert watched() is None, "the array stays after its call is over"
        array = np.zeros(1000).view(Watched)
        watched = weakref.ref(array)
        comm.recv(array, 1, tag=4, wait=False)  # the request is dropped at once
        del array
        gc.collect()
        assert watched() is not None
    comm.barrier()
    if comm.rank == 1:
        comm.send(np.ones(1000), 0, tag=4)
    comm.barrier()
    if comm.rank == 0:
        until = time.monotonic() + 5
        while watched() is not None and time.monotonic() < until:
            comm.recv(np.zeros(0), 0, tag=9, wait=False).cancel()  # any call looks after old ones
            gc.collect()
        assert watched() is None, "a dropped request keeps its array for ever"


@case
def persistent_calls(comm):
    data, found = np.zeros(50), np.zeros(50)
    request = comm.all_reduce(data, found, persistent=True)
    assert request.done
    for turn in range(3):
        data[:] = turn + comm.rank
        request.start()
        request.wait()
        equal(found, np.full(50, turn * comm.size + comm.size * (comm.size - 1) / 2))
    with refused("not persistent"):
        done = comm.barrier(wait=False)
        done.wait()
        done.start()


@case
def callbacks_when_done(comm):
    seen, thread = [], threading.Event()

    def note(request):
        seen.append((request.done, threading.get_ident()))
        thread.set()

    found = np.full(3000, float(comm.rank))
    request = comm.all_reduce(found, wait=False)
    request.add_done_callback(note)
    assert thread.wait(5), "the callback was not called"
    assert seen == [(True, seen[0][1])] and seen[0][1] != threading.get_ident(), seen
    equal(found, np.full(3000, comm.size * (comm.size - 1) / 2))
    thread.clear()
    request.add_done_callback(note)  # it is over
    assert thread.wait(5) and len(seen) == 2
    # A failed call has its callback too; what a callback raises disturbs nobody.
    ends = []
    taken_back = comm.recv(np.zeros(1), comm.rank, tag=50, wait=False)
    taken_back.add_done_callback(lambda _: 1 / 0)
    taken_back.add_done_callback(lambda request: (ends.append(request.done), thread.set()))
    thread.clear()
    taken_back.cancel()
    assert thread.wait(5) and ends == [True]
    with refused("cancel", Result.ABORTED):
        taken_back.wait()
    # A callback may call.
    comm.barrier()
    if comm.rank == 0:
        thread.clear()
        request = comm.recv(letters := bytearray(2), 0, tag=51, wait=False)
        request.add_done_callback(lambda _: (comm.recv(letters, 0, tag=52), thread.set()))
        comm.send(b"ab", 0, tag=51)
        comm.send(b"cd", 0, tag=52)
        assert thread.wait(5) and letters == b"cd"


@case
def any_of_several(comm):
    if comm.rank == 0:
        arrays = [np.zeros(1) for _ in range(comm.size)]
        requests = [comm.recv(arrays[q], q, tag=20, wait=False) for q in range(1, comm.size)]
        with refused("none is done", Result.TIMEOUT):
            isthmus.wait_any(requests, timeout=0.01)
    comm.barrier()
    if comm.rank == comm.size - 1:
        comm.send(np.array([42.0]), 0, tag=20)
    if comm.rank == 0:
        assert isthmus.wait_any(requests, timeout=5) == comm.size - 2
        assert arrays[-1][0] == 42
        for request in requests[:-1]:
            request.cancel()


@case
def ranks_that_disagree(comm):
    with isthmus.Communicator(name="disagree", timeout=5) as apart:
        with refused("disagree", Result.MISMATCH):
            apart.all_reduce(np.zeros(3 + (apart.rank == 1)))
        cause, text = apart.async_error()
        assert cause == Result.MISMATCH and "disagree" in text, text


@case
def deadlines_of_calls(comm):
    with isthmus.Communicator(name="late") as late:
        began = time.monotonic()
        if late.rank == 0:
            with refused("late", Result.TIMEOUT):
                late.recv(np.zeros(3), 1, timeout=0.2)
            assert 0.1 < time.monotonic() - began < 5
        comm.barrier()  # nobody leaves before


@case
def communicators_of_communicators(comm):
    half = comm.split(comm.rank % 2, key=-comm.rank, name="half")
    assert half.size == len(range(comm.rank % 2, comm.size, 2))
    assert half.rank == half.size - 1 - comm.rank // 2
    half.all_reduce(found := np.array([comm.rank]))
    assert found[0] == sum(range(comm.rank % 2, comm.size, 2))
    half.close()
    assert half.closed
    with refused("the communicator is closed"):
        half.barrier()
    assert comm.split(-1 if comm.rank == 0 else 0) is None or comm.rank > 0


@case
def communicators_by_id_and_by_all_gather(comm):
    identity = isthmus.unique_id() if comm.rank == 0 else bytes(128)
    comm.broadcast(identity if comm.rank == 0 else None, letters := bytearray(128), 0)
    with isthmus.Communicator.from_unique_id(bytes(letters), comm.rank, comm.size) as by_id:
        by_id.all_reduce(found := np.array([1]))
        assert found[0] == comm.size

    def gathered(block):
        comm.all_gather(block, everything := bytearray(len(block) * comm.size))
        return [bytes(everything[q * len(block) :][: len(block)]) for q in range(comm.size)]

    with isthmus.Communicator.from_all_gather(gathered, comm.rank, comm.size, name="ag") as made:
        made.all_reduce(found := np.array([2]), op=Op.PROD)
        assert found[0] == 2**comm.size
        assert made.nodes == comm.nodes
    for wrong, error in ((lambda _: 1 / 0, ZeroDivisionError), (lambda _: [], ValueError)):
        try:
            isthmus.Communicator.from_all_gather(wrong, comm.rank, comm.size)
        except error:
            continue
        raise AssertionError(f"no {error.__name__} came out of the all-gather")
    with refused("128 bytes"):
        isthmus.Communicator.from_unique_id(b"short", comm.rank, comm.size)


@case
def blocks_that_end_badly(comm):
    """Who leaves by an exception tells the others at once."""
    began = time.monotonic()
    try:
        with isthmus.Communicator(name="bad end", timeout=20) as apart:
            if apart.rank == 0:
                raise KeyError("of the block")
            apart.barrier()
    except KeyError:
        assert comm.rank == 0 and apart.closed
    except isthmus.Error as error:
        assert comm.rank != 0 and error.code == Result.ABORTED, error
    assert time.monotonic() - began < 5


@case
def threads_wait_side_by_side(comm):
    groups = [isthmus.Communicator(name=f"thread {i}") for i in range(4)]
    results = {}

    def work(index):
        for turn in range(50):
            groups[index].all_reduce(found := np.array([index + turn]))
            results[index, turn] = found[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert results == {(i, t): comm.size * (i + t) for i in range(4) for t in range(50)}
    # Two threads wait for one request, a third takes it back.
    seen = []
    request = comm.recv(np.zeros(1), (comm.rank + 1) % comm.size, tag=99, wait=False)

    def wait():
        try:
            request.wait()
        except isthmus.Error as error:
            seen.append(error.code)

    waiters = [threading.Thread(target=wait) for _ in range(2)]
    for each in waiters:
        each.start()
    time.sleep(0.1)
    request.cancel()
    for each in waiters:
        each.join(10)
    assert seen == [Result.ABORTED] * 2, seen
    for group in groups:
        group.close()


@case
def closing_waits_for_calls(comm):
    apart = isthmus.Communicator(name="closing")
    found = np.ones(200000)
    request = apart.all_reduce(found, wait=False)
    apart.close()
    equal(found, np.full(200000, float(comm.size)))
    assert request.done
    request.wait()
    apart.close()  # again changes nothing
    with refused("closed"):
        apart.abort()


def an_abort_says_why(comm):
    apart = isthmus.Communicator(name="given-up")
    if comm.rank == 0:
        apart.abort("the loss is not a number")
    why = '"given-up" was aborted by rank 0: the loss is not a number'
    with refused(why, isthmus.Result.ABORTED):
        apart.barrier()
    apart.abort()


world.main()
