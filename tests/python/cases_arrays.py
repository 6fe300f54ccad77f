"""What is taken as an array, and what is refused, with which words; no call is left half started."""

import array

import numpy as np
import world
from isthmus import Result
from world import case, equal, needs, refused


@case
def plain_buffers(comm):
    data = bytearray(range(8))
    comm.all_gather(data[:2], target := bytearray(2 * comm.size))
    assert target == bytes([0, 1] * comm.size)
    numbers = array.array("d", [comm.rank, 1])
    comm.all_reduce(numbers)
    assert list(numbers) == [comm.size * (comm.size - 1) / 2, comm.size]
    view = memoryview(bytearray(16)).cast("q")
    view[0] = comm.rank
    comm.all_reduce(view)
    assert list(view) == [comm.size * (comm.size - 1) // 2, 0]
    comm.broadcast(b"root" if comm.rank == 0 else None, letters := bytearray(4), 0)
    assert letters == b"root"


@case
def arrays_with_gaps(comm):
    with refused("all_reduce: send: the array is not contiguous"):
        comm.all_reduce(np.zeros((4, 4))[:, :2])
    with refused("not contiguous"):
        comm.all_reduce(np.zeros((4, 3)).T)
    found = np.arange(12.0).reshape(3, 4)
    comm.all_reduce(found[1:2])  # rows are whole
    equal(found[0], np.arange(4.0))
    equal(found[1], comm.size * np.arange(4.0, 8.0))


@case
def arrays_that_may_not_be_written(comm):
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    with refused("all_reduce: recv: the array is read-only"):
        comm.all_reduce(np.zeros(4), frozen)
    with refused("read-only"):
        comm.all_reduce(b"12345678")
    comm.all_reduce(frozen, found := np.ones(4))  # to read from
    equal(found, np.zeros(4))


@case
def wrong_types_and_sizes(comm):
    with refused("send is of float64, recv of float32"):
        comm.all_reduce(np.zeros(4), np.zeros(4, "float32"))
    with refused("recv has 5 elements, expected 4"):
        comm.all_reduce(np.zeros(4), np.zeros(5))
    with refused(f"recv has 4 elements, expected {4 * comm.size}"):
        comm.all_gather(np.zeros(4), np.zeros(4))
    with refused(f"send has 4 elements, expected {4 * comm.size}"):
        comm.reduce_scatter(np.zeros(4), np.zeros(4))
    with refused(f"the blocks reach to {2 * comm.size}"):
        comm.all_gather_v(np.zeros(2), np.zeros(2 * comm.size - 1), [2] * comm.size)
    with refused(f"entries for {comm.size} ranks"):
        comm.all_gather_v(np.zeros(2), np.zeros(20), [2] * (comm.size + 1))
    with refused("ends beyond all memory"):
        comm.all_gather_v(np.zeros(2), np.zeros(20), [2] * comm.size, [2**64 - 1] * comm.size)
    for unknown in (">f4", "U3", "datetime64[s]", "object", "longdouble", "float32,int32"):
        with refused("element type"):
            comm.all_reduce(np.zeros(3, unknown))


@case
def what_is_no_array(comm):
    for nothing in ([1.0, 2.0], 3, "text", object()):
        try:
            comm.all_reduce(nothing)
        except TypeError as error:
            assert "is no array" in str(error), error
        else:
            raise AssertionError(f"{nothing!r} was taken for an array")
    with refused("all_reduce: send is None"):
        comm.all_reduce(None)
    with refused("not a rank of this communicator"):
        comm.broadcast(np.zeros(3), root=comm.size)
    with refused("not a rank of this communicator"):
        comm.send(np.zeros(3), -2)
    with refused("a timeout is"):
        comm.all_reduce(np.zeros(3), timeout=-1.0)


@case
def arrays_of_jax(comm):
    jax = needs("jax")
    mine = jax.numpy.full((2, 3), comm.rank + 1, "float32")
    found = np.zeros((2, 3), "float32")
    comm.all_reduce(mine, found)
    equal(found, np.full((2, 3), comm.size * (comm.size + 1) / 2, "float32"))
    equal(np.asarray(mine), np.full((2, 3), comm.rank + 1, "float32"))
    small = jax.numpy.full(4, comm.rank + 1, "bfloat16")
    comm.all_reduce(small, found := np.zeros(4, small.dtype))
    equal(found, np.full(4, comm.size * (comm.size + 1) / 2, small.dtype))
    for immutable in (mine, small):
        with refused("read-only"):
            comm.all_reduce(immutable)


@case
def tensors_of_torch(comm):
    torch = needs("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        tensor = torch.ones(3, 5, dtype=dtype)
        comm.all_reduce(tensor)
        expected = torch.ones(3, 5) if dtype is torch.bool else torch.full((3, 5), comm.size)
        assert torch.equal(tensor, expected.to(dtype)), (dtype, tensor)
    with refused("not contiguous"):
        comm.all_reduce(torch.zeros(4, 3).T)


@case
def arrays_of_another_device(comm):
    """A capsule that says it is on a CUDA device, as CuPy's would; its memory is never touched."""

    class OnDevice:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **_):
            import ctypes

            capsule = self.array.__dlpack__()
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            # DLTensor begins with the data pointer, then the kind of device.
            tensor = pointer(capsule, b"dltensor")
            ctypes.c_int32.from_address(tensor + ctypes.sizeof(ctypes.c_void_p)).value = 2
            return capsule

        def __dlpack_device__(self):
            return (2, 0)

    with refused("only memory of the host is served", Result.UNSUPPORTED):
        comm.all_reduce(OnDevice(np.zeros(4)))


world.main()
