"""The torch.distributed backend "isthmus".

``torch.distributed.init_process_group("isthmus")`` is enough: both functions here are entry
points, found by torch. ``register()`` may be called any number of times."""

import atexit
import dataclasses

from isthmus.torch import loader

_EXIT_GRACE_MS = 1000  # what a program's end may cost when calls are still in flight

_ready = False


@dataclasses.dataclass(frozen=True)
class Options:
    """What every call of a group does, the same on all its ranks: ``init_process_group("isthmus",
    pg_options=Options(deterministic=True))``, or of ``new_group``.

    ``deterministic``: sums have the same bits whatever the layout, the transport and the size.
    ``one_rounding``: sums of float16 and bfloat16 travel as float32 and are rounded once."""

    deterministic: bool = False
    one_rounding: bool = False


def _operators():
    """Loads the glue for this torch; its functions are torch operators."""
    import torch

    global _ready
    if not _ready:
        torch.ops.load_library(loader.path_for(torch.__version__))
        # Registered after torch's own handlers, so it runs before them, while Python still lives.
        atexit.register(_at_exit, torch.ops.isthmus.shutdown_all)
        _ready = True
    return torch.ops.isthmus


def _at_exit(shutdown_all):
    """Ends our threads. A callback on a future that still runs is waited for, as Python waits for its
    own threads: a callback that came back into an interpreter that is gone would end the process.
    In pieces, so that an interrupt from the keyboard gets through."""
    while not shutdown_all(_EXIT_GRACE_MS):
        pass


def _wishes(given):
    """What ``pg_options`` says. Torch hands on its own ``Backend.Options`` of another group, which
    wish nothing."""
    from torch._C._distributed_c10d import Backend

    if isinstance(given, Options):
        return given
    if given is None or isinstance(given, getattr(Backend, "Options", ())):
        return Options()
    raise TypeError(
        f"isthmus: pg_options is an isthmus.torch.Options, not a {type(given).__qualname__}"
    )


def _create(options, backend_options):
    """Makes the backend of one process group. The group given to the operator is a temporary one:
    it carries store, rank and size, in every version of torch."""
    import torch
    import torch.distributed as dist

    wishes = _wishes(backend_options)

    group = dist.ProcessGroup(options.store, options.group_rank, options.group_size)
    timeout_ms = max(1, int(options.timeout.total_seconds() * 1000))
    _operators().attach(
        group.boxed(),
        timeout_ms,
        options.group_id,
        list(options.global_ranks_in_group),
        wishes.deterministic,
        wishes.one_rounding,
    )
    return group._get_backend(torch.device("cpu"))


def _announce(dist):
    if "isthmus" not in dist.Backend.backend_list:
        dist.Backend.register_backend(
            "isthmus", _create, extended_api=True, devices=["cpu", "cuda"]
        )


def register():
    """Tells torch.distributed about the backend. Entry point of group torch.distributed.backends."""
    import torch.distributed as dist

    if not dist.is_available():
        raise ImportError("isthmus: this torch was built without torch.distributed")
    _operators()
    _announce(dist)


def share_cpu_tensors(least_bytes=64 * 1024):
    """Puts every CPU tensor of at least ``least_bytes`` that is made from now on into memory that the
    ranks of this node map: parameters, gradients, DDP's buckets. Collectives on such tensors inside a
    node read and write them in place; on others they go through a copy.

    Call it before the model is made. Not in that memory: tensors made earlier, ``from_numpy``,
    ``share_memory_()`` and what DataLoader workers send. Forked workers may read and write what they
    inherit; it is theirs alone. Raises ValueError when ``least_bytes`` is not positive."""
    _operators().share_cpu_tensors(least_bytes)


def __getattr__(name):
    """What has to do with placements is in modules of its own, read when it is asked for."""
    if name in ("check", "init_placed", "relabel"):
        from isthmus.torch import placed

        return getattr(placed, name)
    if name == "trace":
        from isthmus.torch import tracing

        return tracing.trace
    raise AttributeError(f"module 'isthmus.torch' has no attribute {name!r}")


def _autoload():
    """Entry point of group torch.backends, which torch runs at import. Up to 2.13 nothing else finds
    the backend; later versions ask register() when the name is used. Opens no library and never
    fails: whoever asks for the backend gets the error."""
    try:
        import torch

        if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14):
            return
        import torch.distributed as dist

        if dist.is_available():
            _announce(dist)
    except Exception:  # noqa: BLE001 - an import of torch must not break because we are installed
        pass
