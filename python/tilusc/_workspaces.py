"""Workspaces of products: one for each stream, and one for each CUDA graph until it is destroyed.

Their memory is the driver's: while a graph is captured, and in the runs before, torch's allocator may give memory of
a graph's pool, all of which torch wants to know. A graph holds a CUDA user object that posts a semaphore when the
graph and all that was made of it are gone; then its workspace serves another graph. So graphs may run at the same
time."""
from __future__ import annotations

import ctypes
import os
from typing import Dict, List, Tuple

import torch

from . import _declarations as c
from ._library import check, rt
from ._locks import Lock
from .errors import Error
from .runtime import driver

_RELAXED, _NO_DESTRUCTOR_SYNC, _MOVE = 2, 1, 1
streams: Dict[Tuple[int, int], Tuple[int, int]] = {}       # address and size, by device and stream
_leases: Dict[int, List["Lease"]] = {}                      # by device, for good
_current: Dict[int, Tuple[int, "Lease"]] = {}               # by stream: its last capture
_lock = Lock()
_loaded: Dict[str, ctypes.CDLL] = {}
is_capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)       # which torch without CUDA lacks


class Lease:
    """A workspace for graphs, and the semaphore that says it is free."""

    def __init__(self, device: int, size: int) -> None:
        self.address, self.size = _allocate(device, size), size
        self.semaphore = ctypes.create_string_buffer(64)    # a sem_t, and more
        _libc().sem_init(self.semaphore, 0, 1)

    def take(self, size: int) -> bool:
        """Takes the workspace if it is free and large enough."""
        return self.size >= size and _libc().sem_trywait(self.semaphore) == 0


def workspace(device: int, stream: int, size: int) -> Tuple[int, int]:
    """Returns address and size of a workspace of at least `size` bytes for the current stream; in a capture of the
    graph."""
    if is_capturing():
        return _of_graph(device, stream, size)
    known = streams.get((device, stream))
    if known is None or known[1] < size:
        with _lock:
            # The old one may be in use; it stays, and each is twice as large.
            size = max(size, 2 * known[1] if known else 0)
            known = _allocate(device, size), size
            _clear(known[0], stream)
            streams[device, stream] = known
    return known


def _allocate(device: int, size: int) -> int:
    address, mode = ctypes.c_uint64(), ctypes.c_int(_RELAXED)   # allows it while streams are captured
    _call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    try:
        check(rt().tilus_rt_allocate(driver(), device, size, ctypes.byref(address)))
    finally:
        _call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    return address.value


def _clear(address: int, stream: int) -> None:
    """Enqueues zeros of the semaphores; in a graph, each time that it runs."""
    _call("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_ubyte(0), ctypes.c_size_t(c.TILUS_MATMUL_SEMAPHORES),
          ctypes.c_void_p(stream))


# ---- graphs ------------------------------------------------------------------------

def _of_graph(device: int, stream: int, size: int) -> Tuple[int, int]:
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    _call("cuStreamGetCaptureInfo_v2", ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number),
          ctypes.byref(graph), None, None)
    with _lock:
        known = _current.get(stream)
        if known is None or known[0] != number.value or known[1].size < size:
            lease = _take(device, size)
            _hold(graph, lease)
            _clear(lease.address, stream)
            known = _current[stream] = number.value, lease
        return known[1].address, known[1].size


def _take(device: int, size: int) -> Lease:
    leases = _leases.setdefault(device, [])
    for lease in leases:
        if lease.take(size):
            return lease
    lease = Lease(device, size)
    leases.append(lease)
    lease.take(size)
    return lease


def _hold(graph: ctypes.c_void_p, lease: Lease) -> None:
    """Has the graph own an object whose end is sem_post, which needs no Python."""
    held, post = ctypes.c_void_p(), ctypes.cast(_libc().sem_post, ctypes.c_void_p)
    _call("cuUserObjectCreate", ctypes.byref(held), lease.semaphore, post, ctypes.c_uint(1),
          ctypes.c_uint(_NO_DESTRUCTOR_SYNC))
    _call("cuGraphRetainUserObject", graph, held, ctypes.c_uint(1), ctypes.c_uint(_MOVE))


def _libc() -> ctypes.CDLL:
    if "c" not in _loaded:
        _loaded["c"] = ctypes.CDLL(None)
    return _loaded["c"]


def cuda() -> ctypes.CDLL:
    if "cuda" not in _loaded:
        _loaded["cuda"] = ctypes.CDLL(os.environ.get("TILUS_LIBCUDA") or "libcuda.so.1")
    return _loaded["cuda"]


def _call(name: str, *args: object) -> None:
    result = getattr(cuda(), name)(*args)
    if result:
        raise Error(f"{name} failed with CUDA error {result}", "TILUS_ERROR_DRIVER")
