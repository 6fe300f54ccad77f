"""Types of the compiled module. `Array`: what has the buffer protocol or DLPack, in host memory."""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Protocol, TypedDict, Unpack

class _Buffer(Protocol):
    def __buffer__(self, flags: int, /) -> memoryview: ...

class _Dlpack(Protocol):
    def __dlpack__(self, **more: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class _Options(TypedDict, total=False):
    """Of every call, by keyword."""

    wait: bool
    timeout: float | None
    priority: int
    name: str | None
    algorithm: str | None
    persistent: bool
    deterministic: bool
    one_rounding: bool

class _Compiled(Protocol):
    @property
    def address(self) -> int: ...

Array = _Buffer | _Dlpack
ANY_SOURCE: int

class Result(IntEnum):
    SUCCESS = 0
    INVALID_ARGUMENT = 1
    MISMATCH = 2
    TIMEOUT = 3
    PEER_LOST = 4
    ABORTED = 5
    CONFIGURATION = 6
    RESOURCE = 7
    UNSUPPORTED = 8
    INTERNAL_ERROR = 70

class Op(IntEnum):
    SUM = 0
    PROD = 1
    MIN = 2
    MAX = 3
    AVG = 4
    BAND = 5
    BOR = 6
    BXOR = 7

class Error(RuntimeError):
    code: Result

class Request:
    def wait(self, timeout: float | None = ...) -> int | None: ...
    def test(self) -> bool: ...
    def cancel(self) -> None: ...
    def add_done_callback(self, function: Callable[[Request], Any]) -> None: ...
    def start(self) -> None: ...
    @property
    def done(self) -> bool: ...
    @property
    def source(self) -> int | None: ...

class Communicator:
    def __init__(self, *, name: str | None = ..., timeout: float | None = ...) -> None: ...
    @staticmethod
    def from_unique_id(
        id: bytes, rank: int, size: int, *, name: str | None = ..., timeout: float | None = ...
    ) -> Communicator: ...
    @staticmethod
    def from_all_gather(
        all_gather: Callable[[bytes], Iterable[bytes]],
        rank: int,
        size: int,
        *,
        name: str | None = ...,
        timeout: float | None = ...,
    ) -> Communicator: ...
    def split(
        self, color: int, key: int = ..., *, name: str | None = ..., timeout: float | None = ...
    ) -> Communicator | None: ...
    def close(self) -> None: ...
    def abort(self, reason: str | None = ...) -> None: ...
    def __enter__(self) -> Communicator: ...
    def __exit__(self, type: Any, value: Any, traceback: Any) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nodes(self) -> list[int]: ...
    @property
    def closed(self) -> bool: ...
    def async_error(self) -> tuple[Result, str] | None: ...
    def wire_counters(self) -> dict[str, int]: ...
    def event_fd(self) -> int: ...
    def progress(self) -> None: ...
    def premul_sum(self, scalar: Array) -> int: ...
    def reduction(
        self,
        name: str,
        function: Callable[[bytes, bytearray, str], Any] | int | _Compiled,
        commutative: bool = ...,
    ) -> int: ...
    def free_op(self, op: int) -> None: ...
    def all_reduce(
        self,
        send: Array,
        recv: Array | None = ...,
        op: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def broadcast(
        self,
        send: Array | None,
        recv: Array | None = ...,
        root: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def reduce(
        self,
        send: Array,
        recv: Array | None = ...,
        op: int = ...,
        root: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def all_gather(self, send: Array, recv: Array, **options: Unpack[_Options]) -> Request | None: ...
    def reduce_scatter(
        self,
        send: Array,
        recv: Array,
        op: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def all_to_all(
        self,
        send: Array,
        recv: Array | None = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def gather(
        self,
        send: Array,
        recv: Array | None = ...,
        root: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def scatter(
        self,
        send: Array | None,
        recv: Array,
        root: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def barrier(self, **options: Unpack[_Options]) -> Request | None: ...
    def all_reduce_coalesced(
        self,
        send: Sequence[Array],
        recv: Sequence[Array] | None = ...,
        op: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def broadcast_coalesced(
        self,
        send: Sequence[Array],
        root: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def all_gather_coalesced(
        self,
        send: Sequence[Array],
        recv: Sequence[Array],
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def reduce_scatter_coalesced(
        self,
        send: Sequence[Array],
        recv: Sequence[Array],
        op: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def all_to_all_coalesced(
        self,
        send: Sequence[Array],
        recv: Sequence[Array] | None = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def neighbor_all_to_all(
        self,
        send: Array,
        recv: Array,
        sources: Sequence[int],
        destinations: Sequence[int],
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def neighbor_all_to_all_v(
        self,
        send: Array,
        sendcounts: Sequence[int],
        recv: Array,
        recvcounts: Sequence[int],
        sources: Sequence[int],
        destinations: Sequence[int],
        sdispls: Sequence[int] | None = ...,
        rdispls: Sequence[int] | None = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def all_gather_v(
        self,
        send: Array,
        recv: Array,
        recvcounts: Sequence[int],
        displs: Sequence[int] | None = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def reduce_scatter_v(
        self,
        send: Array,
        recv: Array,
        recvcounts: Sequence[int],
        op: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def all_to_all_v(
        self,
        send: Array,
        sendcounts: Sequence[int],
        recv: Array,
        recvcounts: Sequence[int],
        sdispls: Sequence[int] | None = ...,
        rdispls: Sequence[int] | None = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def gather_v(
        self,
        send: Array,
        recv: Array | None,
        recvcounts: Sequence[int],
        displs: Sequence[int] | None = ...,
        root: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def scatter_v(
        self,
        send: Array | None,
        sendcounts: Sequence[int],
        recv: Array,
        displs: Sequence[int] | None = ...,
        root: int = ...,
        **options: Unpack[_Options],
    ) -> Request | None: ...
    def send(self, send: Array, peer: int, tag: int = ..., **options: Unpack[_Options]) -> Request | None: ...
    def recv(self, recv: Array, peer: int, tag: int = ..., **options: Unpack[_Options]) -> Request | int: ...

def allocate(nbytes: int) -> memoryview: ...
def unique_id() -> bytes: ...
def version() -> str: ...
def wait_all(requests: Sequence[Request], timeout: float | None = ...) -> None: ...
def wait_any(requests: Sequence[Request], timeout: float | None = ...) -> int: ...
