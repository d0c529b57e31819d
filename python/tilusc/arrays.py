"""Arrays of other packages: torch tensors, NumPy arrays, `__cuda_array_interface__`, DLPack.

Nothing here imports one of them; they are known by what they offer."""
from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ._library import rt
from .errors import ArgumentError


class Array(NamedTuple):
    """Memory of an array."""

    address: int
    size: int                   # bytes
    dtype: str                  # "f16"
    device: Optional[int]       # of CUDA; None: host memory
    contiguous: bool            # row-major, without gaps
    owner: Any                  # keeps the memory
    readonly: bool = False
    shape: Tuple[int, ...] = ()


_NUMPY = {"f2": "f16", "f4": "f32", "f8": "f64", "b1": "u8",
          **{f"{kind}{size}": f"{kind}{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)}}
_NAMED = {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}       # of ml_dtypes
_DLPACK = {(0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (1, 16): "u16", (1, 32): "u32",
           (1, 64): "u64", (2, 16): "f16", (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16", (6, 8): "u8",
           (10, 8): "f8e4m3", (12, 8): "f8e5m2"}
_TORCH = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "uint8": "u8",
          "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
          "bool": "u8", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}


def torch_module() -> Optional[Any]:
    """Returns torch where something else has imported it."""
    return sys.modules.get("torch")


@functools.lru_cache(maxsize=None)
def torch_types() -> Dict[Any, str]:
    torch = sys.modules["torch"]
    return {getattr(torch, name): ours for name, ours in _TORCH.items() if hasattr(torch, name)}


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def describe(value: Any) -> Array:
    """Finds the memory of an array."""
    if is_tensor(value):
        return _of_torch(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _of_interface(value, value.__cuda_array_interface__, 0)
    if hasattr(value, "__array_interface__"):
        return _of_interface(value, value.__array_interface__, None)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value)
    raise ArgumentError(f"{type(value).__name__} is no array: neither a torch tensor, nor has it __dlpack__,"
                        " __cuda_array_interface__ or __array_interface__")


def _of_torch(tensor: Any) -> Array:
    dtype = torch_types().get(tensor.dtype)
    if dtype is None:
        raise ArgumentError(f"tensors of {tensor.dtype} have no type here")
    device = tensor.device
    if device.type not in ("cuda", "cpu"):
        raise ArgumentError(f"tensor is on {device}, not on a GPU or in host memory")
    return Array(tensor.data_ptr(), tensor.numel() * tensor.element_size(), dtype,
                 device.index if device.type == "cuda" else None, tensor.is_contiguous(), tensor, False,
                 tensor.shape)


def _of_interface(value: Any, interface: Dict[str, Any], device: Optional[int]) -> Array:
    if device is not None:
        device = getattr(getattr(value, "device", None), "id", 0)       # CuPy's
    name = getattr(getattr(value, "dtype", None), "name", "")
    dtype = _NAMED.get(name) or _NUMPY.get(interface["typestr"][1:])
    if dtype is None or interface["typestr"][0] == ">":
        order = "big-endian " if interface["typestr"][0] == ">" else ""
        raise ArgumentError(f"arrays of {order}{name or interface['typestr']} have no type here")
    size = int(interface["typestr"][2:])
    strides, shape = interface.get("strides"), interface["shape"]
    address, readonly = interface["data"]
    return Array(address, _bytes(shape, size), dtype, device, strides is None or strides == _row_major(shape, size),
                 value, bool(readonly), tuple(shape))


def _bytes(shape: Tuple[int, ...], size: int) -> int:
    for extent in shape:
        size *= extent
    return size


def _row_major(shape: Tuple[int, ...], size: int) -> Tuple[int, ...]:
    strides = []
    for extent in reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))


# ---- DLPack -----------------------------------------------------------------------

class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int),
                ("ndim", ctypes.c_int), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _DLVersioned(ctypes.Structure):
    """The beginning of DLManagedTensorVersioned, of DLPack 1.0."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_HOST, _CUDA, _CUDA_HOST, _MANAGED = 1, 2, 3, 13
_READ_ONLY = 1      # a flag
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def _capsule_of(value: Any, **options: Any) -> Any:
    """Asks for DLPack 1, which says what is read-only, or for the older one where that is not known."""
    try:
        return value.__dlpack__(max_version=(1, 0), **options)
    except TypeError:
        return value.__dlpack__(**options)


def _of_dlpack(value: Any) -> Array:
    """Reads the capsule, which frees the tensor with itself: it is not marked as taken over."""
    kind, _ = value.__dlpack_device__()
    capsule = _capsule_of(value, stream=1) if kind in (_CUDA, _MANAGED) else _capsule_of(value)
    readonly = False
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _DLVersioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        tensor, readonly = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    else:
        tensor = _DLTensor.from_address(_get_pointer(capsule, b"dltensor"))
    dtype = _DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise ArgumentError(f"DLPack's type of code {tensor.code} with {tensor.bits} bits has no type here")
    if tensor.device_type not in (_HOST, _CUDA, _CUDA_HOST, _MANAGED):
        raise ArgumentError(f"DLPack's device {tensor.device_type} is neither a GPU nor host memory")
    shape = tuple(tensor.shape[:tensor.ndim])
    size = tensor.bits // 8
    strides = tuple(s * size for s in tensor.strides[:tensor.ndim]) if tensor.strides else None
    device = tensor.device_id if tensor.device_type in (_CUDA, _MANAGED) else None
    return Array(tensor.data + tensor.byte_offset, _bytes(shape, size), dtype, device,
                 strides is None or strides == _row_major(shape, size), (value, capsule), readonly, shape)


# ---- types ------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def fits(have: str, want: str) -> bool:
    """Tells whether an array of a type is memory for a pointer to another one: the same; an integer of as many
    bits and either sign; integers for packed codes and for types that other packages lack."""
    if have == want:
        return True
    bits = rt().tilus_type_bits(want.encode())
    is_float = rt().tilus_type_is_float(want.encode())
    if have[0] not in "iu":
        return False
    if bits in (16, 32, 64) and (not is_float or want == "bf16"):
        return have[1:] == str(bits)
    return bits not in (16, 32, 64)
