"""Cases that every rank of a job runs together; a file of cases ends with ``world.main()``.

The ranks tell each other after each case whether it held, over a communicator of its own, and rank 0
prints one line: ``ok NAME``, ``skip NAME: REASON`` or ``fail NAME``. The texts of failures go to
standard error. After a failure the communicator of the cases is made anew."""

import contextlib
import sys
import traceback

import isthmus
import numpy

CASE_SECONDS = 10
_cases = []


class Skip(Exception):
    """Raised by a case that cannot run here; its text says why, the same on every rank."""


def case(body):
    _cases.append(body)
    return body


def needs(name):
    """The module, or a Skip that names it."""
    try:
        return __import__(name)
    except ImportError:
        raise Skip(f"{name} is not installed") from None


def equal(found, expected):
    """Exactly the same, shape and type included."""
    expected = numpy.asarray(expected)
    assert found.dtype == expected.dtype, f"{found.dtype} instead of {expected.dtype}"
    if not numpy.array_equal(found, expected):
        raise AssertionError(f"found {found!r}, expected {expected!r}")


@contextlib.contextmanager
def refused(words, code=isthmus.Result.INVALID_ARGUMENT):
    """The block raises isthmus.Error with this code, whose text has these words."""
    try:
        yield
    except isthmus.Error as error:
        assert error.code == code, f"{error.code!r} instead of {code!r}: {error}"
        assert words in str(error), f"{words!r} is not in {str(error)!r}"
    else:
        raise AssertionError(f"nothing was raised; expected {words!r}")


def _outcome(body, communicator):
    try:
        body(communicator)
        return 0, ""
    except Skip as reason:
        return 1, str(reason)
    except BaseException:  # noqa: BLE001 - one rank's failure is told to all
        print(f"{body.__name__}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        return 2, ""


def main():
    verdicts = isthmus.Communicator(name="verdicts", timeout=3 * CASE_SECONDS)
    communicator = isthmus.Communicator(name="cases", timeout=CASE_SECONDS)
    failed = False
    for body in _cases:
        outcome, reason = _outcome(body, communicator)
        worst = numpy.array([outcome])
        verdicts.all_reduce(worst, op=isthmus.Op.MAX)
        if verdicts.rank == 0:
            word = ("ok", "skip", "fail")[worst[0]]
            print(f"{word} {body.__name__}{': ' + reason if reason else ''}", flush=True)
        if worst[0] == 2:
            failed = True
            with contextlib.suppress(isthmus.Error):
                communicator.abort()
            communicator = isthmus.Communicator(name="cases", timeout=CASE_SECONDS)
    sys.exit(1 if failed else 0)
