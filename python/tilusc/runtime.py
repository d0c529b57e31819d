"""The driver and its devices, one tilus_rt for the process."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from typing import Any, Iterator, List, NamedTuple, Optional

from . import _declarations as c
from ._library import check, rt, sized
from ._problem import integer
from .errors import ArgumentError


class Device(NamedTuple):
    """A GPU."""

    number: int
    name: str
    capability: int         # 90 for 9.0
    memory: int             # bytes
    multiprocessors: int


@functools.lru_cache(maxsize=None)
def driver() -> ctypes.c_void_p:
    """Opens the driver; NoDevice says why there is none."""
    return _open(None)


@functools.lru_cache(maxsize=None)
def software(device: str) -> ctypes.c_void_p:
    """Opens a runtime that knows a device by its description: "h200", for planning and packing."""
    described = rt().tilus_find_device(device.encode())
    if not described:
        names: List[str] = []
        while rt().tilus_known_device(len(names)):
            names.append(ctypes.cast(rt().tilus_known_device(len(names)),
                                     ctypes.POINTER(c.tilus_device_description)).contents.key.decode())
        raise ArgumentError(f"device {device!r} is none of {', '.join(names)}")
    return _open(sized(c.tilus_rt_options, devices=described, device_count=1))


def _open(options: Optional[ctypes.Structure]) -> ctypes.c_void_p:
    out, message = ctypes.c_void_p(), ctypes.create_string_buffer(1024)
    pointer = ctypes.byref(options) if options is not None else None
    check(rt().tilus_rt_open(pointer, ctypes.byref(out), message, len(message)), message)
    return out


def check_device(device: Any) -> None:
    """Refuses what is neither a device's number nor a name."""
    if isinstance(device, bool) or not isinstance(device, (int, str)):
        raise ArgumentError(f"a plan takes the number or name of a device, not {device!r}")
    if not isinstance(device, str):
        integer("device", device, ctypes.c_int)


def devices() -> List[Device]:
    """Lists the GPUs; NoDevice says why there is none."""
    handle, library = driver(), rt()
    return [Device(i, library.tilus_rt_device_name(handle, i).decode(),
                   library.tilus_rt_compute_capability(handle, i), library.tilus_rt_device_memory(handle, i),
                   library.tilus_rt_multiprocessors(handle, i))
            for i in range(library.tilus_rt_device_count(handle))]


@functools.lru_cache(maxsize=None)
def capability(device: int) -> int:
    return rt().tilus_rt_compute_capability(driver(), integer("device", device, ctypes.c_int))


def current_device() -> int:
    """Returns torch's current device where torch uses GPUs, else 0."""
    torch: Any = sys.modules.get("torch")
    return torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0


def is_current(device: int) -> bool:
    """Tells whether torch has made the device current for this thread."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized() and torch._C._cuda_getDevice() == device


@contextlib.contextmanager
def entered(device: int) -> Iterator[None]:
    """Makes the device's primary context current, and the earlier one again afterwards."""
    inside = ctypes.c_bool()
    check(rt().tilus_rt_enter(driver(), device, ctypes.byref(inside)))
    try:
        yield
    finally:
        check(rt().tilus_rt_leave(driver(), device, inside))


def current_stream(device: int) -> int:
    """Returns the address of torch's current stream where torch is loaded, else 0, the default stream."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return torch._C._cuda_getCurrentRawStream(device)
