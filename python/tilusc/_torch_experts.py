"""Products of rows of several experts, of torch tensors on a GPU, and how rows are sorted for them."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Optional, Tuple

import torch

from . import _declarations as c
from ._library import check, sized
from ._torch_matmul import Runner, _check_added, _stream_of
from ._workspaces import is_capturing, workspace
from .errors import ArgumentError
from .matmul import MOST_ROWS, bias_shape, experts_rows

if TYPE_CHECKING:
    from .matmul import Plan


_WORDS = {torch.int32: 1, torch.int64: 2}       # of 4 bytes, of a number


def sort_by_torch(experts: int, chosen: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """Returns offsets and ids, i32, of rows that go to the experts chosen."""
    order, ids = torch.sort(chosen.reshape(-1).clamp(-1, experts), stable=True)
    bounds = torch.arange(experts + 1, device=chosen.device, dtype=order.dtype)
    return torch.searchsorted(order, bounds, out_int32=True), ids.to(torch.int32)


class ExpertsRunner(Runner):
    """Handles and buffers of a plan with experts on a GPU."""

    def __init__(self, plan: "Plan") -> None:
        super().__init__(plan)
        problem = self.problem
        self.needs_ids = problem.gather or problem.scatter or problem.combine
        self.packed_bytes = plan.packed_size * problem.experts

    def multiply(self, a: torch.Tensor, packed: torch.Tensor, offsets: torch.Tensor, ids: Optional[torch.Tensor],
                 route: Optional[torch.Tensor], bias: Optional[torch.Tensor], residual: Optional[torch.Tensor],
                 out: Optional[torch.Tensor]) -> torch.Tensor:
        m, _, results = experts_rows(self.problem, a, ids)
        if a.shape[1] != self.k or a.dtype is not self.activations or a.get_device() != self.device:
            raise ArgumentError(f"a has rows of {a.shape[1]} elements of {a.dtype} on {a.device}, not {self.k} of"
                                f" {self.activations} on {self.place}")
        a = a if a.stride(1) == 1 else a.contiguous()
        if out is None:
            out = torch.empty((results, self.n), dtype=self.result, device=self.place)
        elif tuple(out.shape) != (results, self.n):
            raise ArgumentError(f"out has the shape {list(out.shape)}, not {[results, self.n]}")
        _check_added("out", out, True, (results, self.n), self)
        self._check_weights(packed)
        _check_added("bias", bias, self.problem.bias, bias_shape(self.problem, bias), self)
        _check_added("residual", residual, self.problem.residual, (results, self.n), self)
        self._check_list("offsets", offsets, torch.int32, self.problem.experts + 1, True)
        self._check_list("ids", ids, torch.int32, m, self.needs_ids)
        self._check_list("route", route, torch.float32, m, self.problem.combine)
        if m:
            self._run(m, a=a, weights=packed, bias=bias, residual=residual, c=out, offsets=offsets, ids=ids, route=route)
        return out

    def sort(self, chosen: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns offsets and ids, i32, of rows that go to the experts chosen: in one launch, or of more than 512 in two."""
        m, words = chosen.numel(), _WORDS.get(chosen.dtype)
        if not 0 < m <= MOST_ROWS or words is None:
            return sort_by_torch(self.problem.experts, chosen)
        chosen = chosen.contiguous()
        offsets, ids = (torch.empty(count, dtype=torch.int32, device=self.place) for count in (self.problem.experts + 1, m))
        size = self.plan._ready.get((m - 1).bit_length()) or self._prepare(m)
        stream = _stream_of(self.device)
        address, lent = workspace(self.device, stream, size)
        call = sized(c.tilus_matmul_sort, m=m, chosen=chosen.data_ptr(), chosen_stride=words, offsets=offsets.data_ptr(),
                     ids=ids.data_ptr(), workspace=address, workspace_size=lent)
        check(self.plan._native.tilus_matmul_sort_rows(self.handle, stream, ctypes.byref(call)))
        return offsets, ids

    def _check_list(self, name: str, value: Optional[torch.Tensor], dtype: torch.dtype, count: int, wanted: bool) -> None:
        if (value is not None) != wanted:
            raise ArgumentError(f"{name} is {'missing' if wanted else 'given'}, but the problem says otherwise")
        if value is not None and (value.dtype is not dtype or value.numel() != count or not value.is_contiguous() or
                                  value.get_device() != self.device):
            raise ArgumentError(f"{name} is {value.numel()} elements of {value.dtype} on {value.device}, not {count} of"
                                f" {dtype} on {self.place}, without gaps")

    def _run(self, m: int, **tensors: Optional[torch.Tensor]) -> None:
        size = self.plan._ready.get((m - 1).bit_length()) or self._prepare(m)
        stream = _stream_of(self.device)
        address, lent = workspace(self.device, stream, size)
        call = sized(c.tilus_matmul_call, m=m, a_stride=tensors["a"].stride(0), workspace=address, workspace_size=lent,
                     **{name: tensor.data_ptr() for name, tensor in tensors.items() if tensor is not None})
        check(self.run(self.handle, stream, ctypes.byref(call)))
