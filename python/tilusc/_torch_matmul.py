"""Products of torch tensors on a GPU. What each call does is little: a server makes hundreds for a token."""
from __future__ import annotations

import ctypes
import struct
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple

import torch
from torch.autograd import forward_ad

from . import _declarations as c
from ._library import address_of, call_module, check
from ._workspaces import cuda, is_capturing, streams, workspace
from .arrays import torch_types
from .errors import ArgumentError, Error
from .matmul import MOST_ROWS

if TYPE_CHECKING:
    from .matmul import Plan

NO_TANGENT = ("products with packed weights have tangents, in forward mode, in a QuantizedLinear alone, without function, gate,"
              " norm and multiply")
_TORCH = {name: dtype for dtype, name in torch_types().items() if dtype is not torch.bool}
_stream_of = getattr(torch._C, "_cuda_getCurrentRawStream", None)       # which torch without CUDA lacks
# tilus_matmul_call, up to the workspace's size, and scales of A's rows; all else is 0.
_FIELDS = c.tilus_matmul_call._fields_[:10]
_CALL = struct.Struct("@" + "".join("q" if kind is ctypes.c_int64 else "Q" for _, kind in _FIELDS))
assert [name for name, _ in _FIELDS] == \
    "struct_size m a a_stride weights bias residual c workspace workspace_size".split()


class _Calls(threading.local):
    """The thread's own tilus_matmul_call."""

    def __init__(self) -> None:
        self.buffer = ctypes.create_string_buffer(ctypes.sizeof(c.tilus_matmul_call))
        self.address = ctypes.addressof(self.buffer)


_calls = _Calls()
_CALL_SIZE = ctypes.sizeof(c.tilus_matmul_call)
_ADDRESS = struct.Struct("@Q")
_A_SCALES_AT, _NORM_AT = c.tilus_matmul_call.a_scales.offset, c.tilus_matmul_call.norm.offset


def in_forward_mode() -> bool:
    """Tells whether tensors may have tangents (torch.func.jvp), which products then have to see to."""
    return forward_ad._current_level >= 0 and torch._C._is_fwd_grad_enabled()


def refuse_tangents(*given: Optional[torch.Tensor]) -> None:
    """Refuses tensors with tangents, which an operator would drop as if they were 0."""
    for value in given:
        if value is not None and forward_ad.unpack_dual(value).tangent is not None:
            raise Error(NO_TANGENT)


def result_type(name: str) -> torch.dtype:
    return _TORCH[name]


class CheckedWeights(Dict[int, Tuple["weakref.ref[torch.Tensor]", "weakref.ref[torch.UntypedStorage]"]]):
    """By address, the tensors of packed weights whose identity was found right, and their memory: torch gives the
    address of a tensor that is gone to another one, which is to be looked at anew."""

    MOST = 4096     # that are remembered

    def has_memory(self, packed: torch.Tensor) -> bool:
        """Tells whether a tensor has the memory of one that was found right, and that is still there: it is a view."""
        known = self.get(packed.data_ptr())
        return known is not None and known[1]() is packed.untyped_storage()

    def remember(self, packed: torch.Tensor) -> None:
        if len(self) >= self.MOST:
            for address, (_, memory) in list(self.items()):
                if memory() is None:
                    self.pop(address, None)
        if len(self) >= self.MOST:
            self.clear()
        self[packed.data_ptr()] = weakref.ref(packed), weakref.ref(packed.untyped_storage())


class Runner:
    """Handles and buffers of a plan on a GPU."""

    def __init__(self, plan: "Plan") -> None:
        problem = self.problem = plan.problem
        self.plan, self.handle, self.device = plan, plan.handle.value, plan.device
        self.place = torch.device("cuda", plan.device)
        self.k, self.n = problem.k, problem.columns     # of A and of C
        self.activations, self.result = _TORCH[problem.activations], _TORCH[problem.result]
        self.plain, self.scaled, self.unbiased = not problem.residual, problem.has_a_scales, not problem.bias
        self.normed = problem.prologue == "rms_norm"
        self.packed_bytes, self.biases = plan.packed_size, problem.n
        self.run = plan._native.tilus_matmul_run
        self.checked = CheckedWeights()
        self.product: Callable[..., torch.Tensor] = self.multiply

    def function(self) -> Callable[..., torch.Tensor]:
        """Returns what multiplies: `multiply`, or an object of tilusc._call, which leaves to it what is not ready."""
        native = None if self.normed else call_module()
        if native:
            self.product = native.Product(_Native(self))
        return self.product

    def multiply(self, a: torch.Tensor, packed: torch.Tensor, bias: Optional[torch.Tensor],
                 residual: Optional[torch.Tensor], out: Optional[torch.Tensor],
                 a_scales: Optional[torch.Tensor] = None, norm: Optional[torch.Tensor] = None) -> torch.Tensor:
        shape = a.shape
        if len(shape) != 2 or shape[0] > MOST_ROWS or shape[0] == 0:
            return self._reshaped(a, packed, bias, residual, out, a_scales, norm)
        m, k = shape
        if k != self.k or a.dtype is not self.activations or a.get_device() != self.device:
            raise ArgumentError(f"a has rows of {k} elements of {a.dtype} on {a.device}, not {self.k} of"
                                f" {self.activations} on {self.place}")
        stride, inner = a.stride()
        if inner != 1:
            a, stride = a.contiguous(), k
        if out is None:
            out = torch.empty((m, self.n), dtype=self.result, device=self.place)
        elif out.shape != (m, self.n) or out.dtype is not self.result or out.get_device() != self.device or \
                not out.is_contiguous():
            raise ArgumentError(f"out is {list(out.shape)} of {out.dtype} on {out.device}, not {[m, self.n]} of"
                                f" {self.result} on {self.place}, without gaps")
        weights = self._check_weights(packed)
        added = 0 if bias is None and self.unbiased else self._check_bias(bias)
        more = 0 if residual is None and self.plain else self._check_residual(residual, m)
        scales = 0 if a_scales is None and not self.scaled else self._check_a_scales(a_scales, m)
        factors = 0 if norm is None and not self.normed else self._check_norm(norm)
        size = self.plan._ready.get((m - 1).bit_length()) or self._prepare(m)
        stream = _stream_of(self.device)
        calls = _calls
        lent = None if is_capturing() else streams.get((self.device, stream))
        if lent is None or lent[1] < size:
            lent = workspace(self.device, stream, size)
        _CALL.pack_into(calls.buffer, 0, _CALL_SIZE, m, a.data_ptr(), stride, weights, added, more, out.data_ptr(),
                        *lent)
        _ADDRESS.pack_into(calls.buffer, _A_SCALES_AT, scales)
        _ADDRESS.pack_into(calls.buffer, _NORM_AT, factors)
        status = self.run(self.handle, stream, calls.address)
        if status:
            check(status)
        return out

    def unpack(self, packed: torch.Tensor, type_: str, first: int, count: int, expert: Optional[int]) -> torch.Tensor:
        """Unpacks `count` of k from `first` on to a matrix [n, count], enqueued on the current stream."""
        address = self._check_weights(packed) + (expert or 0) * self.plan.packed_size
        out = torch.empty((self.problem.n, count), dtype=_TORCH[type_], device=self.place)
        check(self.plan._native.tilus_matmul_unpack_device(self.handle, _stream_of(self.device), address, first, count,
                                                           type_.encode(), out.data_ptr()))
        return out

    def _reshaped(self, a: torch.Tensor, packed: torch.Tensor, bias: Any, residual: Any, out: Any,
                  a_scales: Any, norm: Any) -> torch.Tensor:
        """Multiplies where A has other than two dimensions, no rows, or more than a call takes."""
        shape = (*a.shape[:-1], self.n)
        if a.shape[-1] != self.k:
            raise ArgumentError(f"a has rows of {a.shape[-1]} elements, not {self.k}")
        if out is None:
            out = torch.empty(shape, dtype=self.result, device=self.place)
        elif tuple(out.shape) != shape:
            raise ArgumentError(f"out has the shape {list(out.shape)}, not {list(shape)}")
        more = () if norm is None else (norm,)
        rows, results = a.reshape(-1, self.k), out.view(-1, self.n)
        added = None if residual is None else self._flattened(residual, shape, rows.shape[0])
        scales = None if a_scales is None else a_scales.reshape(-1)
        for first in range(0, rows.shape[0], MOST_ROWS):
            part = slice(first, first + MOST_ROWS)
            self.product(rows[part], packed, bias, None if added is None else added[part], results[part],
                         None if scales is None else scales[part], *more)
        return out

    def _flattened(self, residual: torch.Tensor, shape: Tuple[int, ...], m: int) -> torch.Tensor:
        """Returns a residual of C's shape as [m, n], which it may be already."""
        if residual.shape != shape and residual.shape != (m, self.n):
            raise ArgumentError(f"residual has the shape {list(residual.shape)}, not {list(shape)}")
        return residual.reshape(-1, self.n)

    def _prepare(self, m: int) -> int:
        self.plan.prepare(m)
        return self.plan._ready[(m - 1).bit_length()]

    def _check_weights(self, packed: torch.Tensor) -> int:
        """Refuses weights of another size, place or form, which would make wrong numbers, and returns their address.
        Waits for their identity at their first product, but not in a capture."""
        if packed.dtype is not torch.uint8 or packed.numel() != self.packed_bytes or not packed.is_contiguous() or \
                packed.get_device() != self.device:
            raise ArgumentError(f"packed is {packed.numel()} elements of {packed.dtype} on {packed.device}, not"
                                f" {self.packed_bytes} bytes on {self.place}")
        address = packed.data_ptr()
        known = self.checked.get(address)
        if (known is None or known[0]() is not packed) and not is_capturing():
            if not self.checked.has_memory(packed):
                self.plan.check(packed)
            self.checked.remember(packed)
        return address

    def _check_bias(self, bias: Optional[torch.Tensor]) -> int:
        _check_added("bias", bias, self.problem.bias, (self.biases,), self)
        return bias.data_ptr()

    def _check_a_scales(self, scales: Optional[torch.Tensor], m: int) -> int:
        if (scales is not None) != self.scaled:
            raise ArgumentError(f"a_scales is {'missing' if self.scaled else 'given'}, but the problem says otherwise")
        if scales.dtype is not torch.float32 or scales.numel() != m or scales.get_device() != self.device or \
                not scales.is_contiguous():
            raise ArgumentError(f"a_scales is {scales.numel()} elements of {scales.dtype} on {scales.device}, not {m} of"
                                f" torch.float32 on {self.place}, without gaps")
        return scales.data_ptr()

    def _check_norm(self, norm: Optional[torch.Tensor]) -> int:
        if (norm is not None) != self.normed:
            raise ArgumentError(f"norm is {'missing' if self.normed else 'given'}, but the problem says otherwise")
        if norm.dtype is not self.activations or norm.shape != (self.k,) or norm.get_device() != self.device or \
                not norm.is_contiguous():
            raise ArgumentError(f"norm is {list(norm.shape)} of {norm.dtype} on {norm.device}, not {[self.k]} of"
                                f" {self.activations} on {self.place}, without gaps")
        return norm.data_ptr()

    def _check_residual(self, residual: Optional[torch.Tensor], m: int) -> int:
        _check_added("residual", residual, self.problem.residual, (m, self.n), self)
        return residual.data_ptr()


class _Native:
    """Attributes of a runner for tilusc._call.Product."""

    def __init__(self, runner: Runner) -> None:
        self.n, self.k, self.most_rows, self.device = runner.n, runner.k, MOST_ROWS, runner.device
        self.residual, self.scaled, self.biased = not runner.plain, runner.scaled, not runner.unbiased
        self.packed_bytes, self.biases = runner.packed_bytes, runner.biases
        self.handle, self.run_address = runner.handle, address_of(runner.run)
        self.types = torch.Tensor, torch.nn.Parameter
        self.samples = tuple(torch.empty(0, dtype=dtype, device=runner.place)
                             for dtype in (runner.activations, runner.result, torch.float32, torch.uint8))
        self.checked, self.ready, self.streams = runner.checked, runner.plan._ready, streams
        self.stream_of, self.check, self.slow = _stream_of, check, runner.multiply
        self.capturing_address = address_of(cuda().cuStreamIsCapturing)


def _check_added(name: str, value: Optional[torch.Tensor], wanted: bool, shape: Tuple[int, ...], runner: Runner) -> None:
    if (value is not None) != wanted:
        raise ArgumentError(f"{name} is {'missing' if wanted else 'given'}, but the problem says otherwise")
    if value is not None and (value.dtype is not runner.result or value.shape != shape or
                              value.get_device() != runner.device or not value.is_contiguous()):
        raise ArgumentError(f"{name} is {list(value.shape)} of {value.dtype} on {value.device}, not {list(shape)} of"
                            f" {runner.result} on {runner.place}, without gaps")
