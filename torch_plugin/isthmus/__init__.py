"""isthmus: topology-aware collectives over arrays of numpy, JAX on the CPU, torch and others.

``Communicator`` has the calls and words of ``isthmus.h``. The torch backend is in isthmus.torch and
is found by ``torch.distributed.init_process_group("isthmus")`` without an import."""

__version__ = "0.1.0"

_FROM_MODULE = (
    "ANY_SOURCE",
    "Communicator",
    "Error",
    "Op",
    "Request",
    "Result",
    "allocate",
    "unique_id",
    "version",
    "wait_all",
    "wait_any",
)
_FROM_PLACEMENT = ("Placement", "place")
__all__ = ["empty", *_FROM_PLACEMENT, *_FROM_MODULE]


def __getattr__(name):
    """Opens the compiled module when it is first needed: the torch backend works without it."""
    if name in _FROM_PLACEMENT:
        from isthmus import placement

        globals()[name] = getattr(placement, name)
        return globals()[name]
    if name not in _FROM_MODULE:
        raise AttributeError(f"module 'isthmus' has no attribute {name!r}")
    try:
        from isthmus import _communicator
    except ImportError as error:
        raise ImportError(
            f"isthmus.{name} is in the compiled module, which this Python cannot open ({error}); "
            "build isthmus with nanobind for it (pip install . in its source folder)"
        ) from error
    for each in _FROM_MODULE:
        globals()[each] = getattr(_communicator, each)
    return globals()[name]


def __dir__():
    return sorted({*globals(), *_FROM_PLACEMENT, *_FROM_MODULE})


def empty(shape, dtype="float32"):
    """A numpy array in memory that the ranks of this node map, so that calls on it need no copies.
    The memory is given back with the array and all its views."""
    import math

    import numpy

    dtype = numpy.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    memory = __getattr__("allocate")(math.prod(shape) * dtype.itemsize)
    return numpy.frombuffer(memory, numpy.uint8).view(dtype).reshape(shape)
