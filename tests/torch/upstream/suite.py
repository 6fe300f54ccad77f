"""Torch's own tests of distributed backends, as they lie in its wheel, made to run on ours.

The tests ask in many places whether the backend is called "gloo" before they run at all. So they are
imported under that name, and told the true one afterwards; what else is changed stands in `CHANGES`."""

import os

os.environ["BACKEND"] = "gloo"  # read by decorators while the tests are imported

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.testing._internal.common_distributed as common  # noqa: E402

RANKS = int(os.environ["WORLD_SIZE"])
MINOR = tuple(int(part) for part in torch.__version__.split(".")[:2])

if RANKS >= 4:  # torch asks for 8, for groups that need no more than 4
    common.skip_if_small_worldsize = lambda test: test

import torch.testing._internal.distributed.distributed_test as upstream  # noqa: E402

SKIP_CODES = {skip.exit_code: skip.message for skip in common.TEST_SKIPS.values()}
ERROR_CODE = common.MultiProcessTestCase.TEST_ERROR_EXIT_CODE

_ASKS_GLOO = "takes its CPU branch only when the backend is called gloo: called so after the group is made"

# What is changed for a test besides the name, and why; --list prints it.
CHANGES = {
    "test_accumulate_gradients_no_sync": _ASKS_GLOO,
    "test_accumulate_gradients_no_sync_allreduce_hook": _ASKS_GLOO,
    "test_accumulate_gradients_no_sync_allreduce_with_then_hook": _ASKS_GLOO,
    "test_accumulate_gradients_no_sync_grad_is_view": _ASKS_GLOO,
    "test_ddp_logging_data_cpu": "torch's ProcessGroup calls every backend that it does not carry itself "
    '"custom"; that word is checked and the registered name put in its place',
}

_GLOO_ALONE = "torch up to 2.13 refuses monitored_barrier unless the backend is called gloo, before it calls us"

# Tests that gloo passes and that cannot be run on another backend: name -> reason.
EXCLUDED = {}
if MINOR <= (2, 13):
    EXCLUDED |= {
        "test_monitored_barrier_failure_order": _GLOO_ALONE,
        "test_monitored_barrier_gloo": _GLOO_ALONE,
        "test_monitored_barrier_gloo_subgroup": _GLOO_ALONE,
        "test_monitored_barrier_wait_all_ranks": _GLOO_ALONE,
    }

# Lets ranks end as they like; torch ignores their exit codes as well.
ANY_END = {"test_ddp_has_finalized"}


def _allow(name):
    for feature in ("gpu", "cuda", "ddp", "subgroup", "plugin"):
        common.DistTestCases.backend_feature[feature].add(name)
    for names in (
        upstream.PROFILING_SUPPORTED_BACKENDS,
        upstream.CUDA_PROFILING_SUPPORTED_BACKENDS,
        upstream.SEND_RECV_PROFILING_SUPPORTED_BACKENDS,
    ):
        if name not in names:
            names.append(name)


def _report_registered_name():
    """DDP's logger with the name that the user gave, where torch says "custom"."""
    ddp = upstream.DistributedDataParallel
    original = ddp._get_ddp_logging_data

    def with_name(self):
        data = dict(original(self))
        assert data["backend_name"] == "custom", data["backend_name"]
        data["backend_name"] = dist.get_backend()
        return data

    ddp._get_ddp_logging_data = with_name


class Suite(upstream.TestDistBackend, upstream.DistributedTest._DistTestBase):
    def run_test(self, test_name, parent_pipe):
        backend = upstream.BACKEND
        assert dist.get_backend() == backend, dist.get_backend()
        if backend != "gloo":
            change = CHANGES.get(test_name)
            if change is _ASKS_GLOO:
                upstream.BACKEND = "gloo"
            elif change is not None:
                _report_registered_name()
        super().run_test(test_name, parent_pipe)


def names():
    return sorted(name for name in dir(Suite) if name.startswith("test_"))


def why_skipped(name):
    """The reason that torch's decorators give for not running `name`, or None."""
    test = getattr(Suite, name)
    if not getattr(test, "__unittest_skip__", False):
        return None
    reason = test.__unittest_skip_why__
    # On CPU tensors gloo does it as well, and so do we.
    return None if reason.startswith("Only MPI supports") else reason


def run_rank(backend, rank, name, rendezvous, pipe):
    """One rank of one test, in a process of its own; ends by SystemExit."""
    if backend != "gloo":
        import isthmus.torch

        isthmus.torch.register()
        _allow(backend)
    upstream.BACKEND = backend
    os.environ["RANK"] = str(rank)
    Suite._run(rank, name, rendezvous, pipe)
