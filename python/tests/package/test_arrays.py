"""Arrays of other packages."""
import ctypes

import numpy as np
import pytest
import tilusc
from programs import SCALE
from tilusc.arrays import describe, fits


class Dlpack:
    """An array that offers DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Cuda:
    """An address that says it is of a GPU."""

    def __init__(self, array, **changes):
        self.__cuda_array_interface__ = {**array.__array_interface__, **changes}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32,
                                   np.uint32, np.int64, np.uint64])
def test_dlpack_is_the_same_memory(dtype):
    array = np.zeros((3, 4), dtype)
    own, other = describe(array), describe(Dlpack(array))
    assert own[:5] == other[:5]
    assert own.address == array.ctypes.data and own.size == array.nbytes and own.device is None


def test_strides():
    array = np.zeros((4, 6), np.float32)
    for view, contiguous in ((array[1:], True), (array[:, 1:], False), (array.T, False), (array[::2], False)):
        assert describe(view).contiguous is contiguous
        assert describe(Dlpack(view)).contiguous is contiguous
        assert describe(view).address == describe(Dlpack(view)).address


def test_dlpack_array_is_changed():
    x, y = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    tilusc.jit(SCALE)(Dlpack(x), Dlpack(y), 2.0, 128)
    assert np.array_equal(y, 2 * x)


def test_read_only_arrays_are_known():
    array = np.zeros(4, np.float32)
    assert not describe(array).readonly and not describe(Dlpack(array)).readonly
    array.flags.writeable = False
    assert describe(array).readonly
    try:
        array.__dlpack__(max_version=(1, 0))
    except (TypeError, BufferError):
        pytest.skip("NumPy before 2.1 has no DLPack of read-only arrays")
    assert describe(Dlpack(array)).readonly


def test_older_dlpack():
    class Older(Dlpack):
        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    array = np.zeros((3, 4), np.float32)
    assert describe(Older(array))[:5] == describe(array)[:5]


def test_cuda_interface_is_on_a_gpu():
    array = np.zeros(4, np.float32)
    assert describe(Cuda(array)).device == 0
    with pytest.raises(tilusc.ArgumentError, match="different places: cuda:0, host memory"):
        tilusc.jit(SCALE, engine="gpu")(Cuda(array), array, 1.0, 128)


def test_byte_order_and_odd_types_are_refused():
    for array in (np.zeros(4, ">f4"), np.zeros(4, np.complex64), np.zeros(4, "S3")):
        with pytest.raises(tilusc.ArgumentError, match="no type here"):
            describe(array)


@pytest.mark.parametrize("have, want, good", [
    ("f16", "f16", True), ("f16", "bf16", False), ("u16", "bf16", True), ("i16", "f16", False), ("i32", "u32", True),
    ("u8", "u4", True), ("i32", "f6e3m2", True), ("f32", "u4", False), ("u8", "f8e4m3", True), ("f8e4m3", "f8e5m2", False),
    ("i64", "i32", False), ("f32", "i32", False), ("u8", "i8", True)])
def test_types_that_fit(have, want, good):
    assert fits(have, want) is good


def test_null_dlpack_strides_are_row_major():
    assert describe(Dlpack(np.zeros(8, np.uint8))).contiguous
    assert ctypes.sizeof(ctypes.c_void_p) == 8
