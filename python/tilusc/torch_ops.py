"""torch.ops.tilusc: products as an operator of torch, for torch.compile, CUDA graphs and export.

    matmul(Tensor a, Tensor packed, str problem, Tensor? bias=None, Tensor? residual=None, Tensor? norm=None) -> Tensor
    matmul.out(.., *, Tensor(a!) out) -> ()
    matmul_experts(Tensor a, Tensor packed, str problem, Tensor offsets, Tensor? ids=None, Tensor? route=None,
                   Tensor? bias=None, Tensor? residual=None) -> Tensor
    sort_experts(Tensor chosen, str problem) -> (Tensor offsets, Tensor ids)

`problem` is str() of a tilusc.matmul.Problem; `packed` what a plan of it packed. Products have gradients, except of packed
weights, by

    matmul_transposed(Tensor grad, Tensor packed, str problem) -> Tensor            grad [.., n] x W [n, k]
    matmul_plain(Tensor a, Tensor packed, str problem) -> Tensor                    a [.., k] x W^T in f32, and nothing else
    matmul_experts_transposed(Tensor grad, Tensor packed, str problem, Tensor offsets) -> Tensor
    matmul_experts_plain(Tensor a, Tensor packed, str problem, Tensor offsets) -> Tensor

Importing this registers them."""
from __future__ import annotations

import functools
from typing import Callable, Optional, Tuple

import torch

from . import _torch_experts_gradient as _experts_gradient
from . import _torch_gradient as _gradient
from ._torch_matmul import in_forward_mode, refuse_tangents, result_type
from .errors import ArgumentError
from .matmul import Problem, plan

_ARGUMENTS = "Tensor a, Tensor packed, str problem, Tensor? bias=None, Tensor? residual=None, Tensor? norm=None"
_EXPERTS = ("Tensor a, Tensor packed, str problem, Tensor offsets, Tensor? ids=None, Tensor? route=None, Tensor? bias=None,"
            " Tensor? residual=None")
_library = torch.library.Library("tilusc", "DEF")
_tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)
_library.define(f"matmul({_ARGUMENTS}) -> Tensor", tags=_tags)
_library.define(f"matmul.out({_ARGUMENTS}, *, Tensor(a!) out) -> ()", tags=_tags)
_library.define(f"matmul_experts({_EXPERTS}) -> Tensor", tags=_tags)
_library.define("sort_experts(Tensor chosen, str problem) -> (Tensor offsets, Tensor ids)", tags=_tags)


@functools.lru_cache(maxsize=4096)
def _find(problem: str, device: int) -> Callable[..., torch.Tensor]:
    """Finds what a plan multiplies by; -1 is the CPU engine."""
    return plan(problem, "cpu" if device < 0 else device)._multiply


@functools.lru_cache(maxsize=4096)
def _find_experts(problem: str, device: int) -> Callable[..., torch.Tensor]:
    return plan(problem, "cpu" if device < 0 else device)._multiply_experts


def _matmul(a: torch.Tensor, packed: torch.Tensor, problem: str, bias: Optional[torch.Tensor] = None,
            residual: Optional[torch.Tensor] = None, norm: Optional[torch.Tensor] = None) -> torch.Tensor:
    if in_forward_mode():
        refuse_tangents(a, bias, residual, norm)
    multiply = _find(problem, a.get_device())
    return multiply(a, packed, bias, residual, None) if norm is None else \
        multiply(a, packed, bias, residual, None, None, norm)


def _matmul_out(a: torch.Tensor, packed: torch.Tensor, problem: str, bias: Optional[torch.Tensor] = None,
                residual: Optional[torch.Tensor] = None, norm: Optional[torch.Tensor] = None, *,
                out: torch.Tensor) -> None:
    if in_forward_mode():
        refuse_tangents(a, bias, residual, norm)
    if torch.is_grad_enabled() and _gradient.any_requires_grad(a, bias, residual, norm):
        raise ArgumentError("matmul.out has no gradient, but an argument requires one: call matmul, or torch.no_grad()")
    multiply = _find(problem, a.get_device())
    multiply(a, packed, bias, residual, out) if norm is None else multiply(a, packed, bias, residual, out, None, norm)


def _fake(a: torch.Tensor, packed: torch.Tensor, problem: str, bias: Optional[torch.Tensor] = None,
          residual: Optional[torch.Tensor] = None, norm: Optional[torch.Tensor] = None) -> torch.Tensor:
    known = Problem.parse(problem)
    if a.shape[-1] != known.k:
        raise ArgumentError(f"a has rows of {a.shape[-1]} elements, not {known.k}")
    return a.new_empty((*a.shape[:-1], known.columns), dtype=result_type(known.result))


def _fake_out(a: torch.Tensor, packed: torch.Tensor, problem: str, bias: Optional[torch.Tensor] = None,
              residual: Optional[torch.Tensor] = None, norm: Optional[torch.Tensor] = None, *,
              out: torch.Tensor) -> None:
    return None


def _matmul_experts(a: torch.Tensor, packed: torch.Tensor, problem: str, offsets: torch.Tensor,
                    ids: Optional[torch.Tensor] = None, route: Optional[torch.Tensor] = None,
                    bias: Optional[torch.Tensor] = None, residual: Optional[torch.Tensor] = None) -> torch.Tensor:
    if in_forward_mode():
        refuse_tangents(a, route, bias, residual)
    return _find_experts(problem, a.get_device())(a, packed, offsets, ids, route, bias, residual, None)


def _fake_experts(a: torch.Tensor, packed: torch.Tensor, problem: str, offsets: torch.Tensor,
                  ids: Optional[torch.Tensor] = None, route: Optional[torch.Tensor] = None,
                  bias: Optional[torch.Tensor] = None, residual: Optional[torch.Tensor] = None) -> torch.Tensor:
    known = Problem.parse(problem)
    top = known.top or 1
    rows = a.shape[0] * top if known.gather else a.shape[0]
    return a.new_empty((rows // top if known.combine else rows, known.columns), dtype=result_type(known.result))


@functools.lru_cache(maxsize=4096)
def _find_sort(problem: str, device: int) -> Callable[[torch.Tensor], Tuple[torch.Tensor, torch.Tensor]]:
    from ._torch_experts import ExpertsRunner, sort_by_torch
    experts = Problem.parse(problem).experts
    if not experts:
        raise ArgumentError("the problem has no experts")
    return functools.partial(sort_by_torch, experts) if device < 0 else ExpertsRunner(plan(problem, device)).sort


def _sort_experts(chosen: torch.Tensor, problem: str) -> Tuple[torch.Tensor, torch.Tensor]:
    return _find_sort(problem, chosen.get_device())(chosen)


def _fake_sort(chosen: torch.Tensor, problem: str) -> Tuple[torch.Tensor, torch.Tensor]:
    return (chosen.new_empty(Problem.parse(problem).experts + 1, dtype=torch.int32),
            chosen.new_empty(chosen.numel(), dtype=torch.int32))


for _key in ("CUDA", "CPU"):
    _library.impl("sort_experts", _sort_experts, _key)
    _library.impl("matmul", _matmul, _key)
    _library.impl("matmul.out", _matmul_out, _key)
    _library.impl("matmul_experts", _matmul_experts, _key)
torch.library.register_fake("tilusc::matmul", _fake, lib=_library)
torch.library.register_fake("tilusc::matmul.out", _fake_out, lib=_library)
torch.library.register_fake("tilusc::matmul_experts", _fake_experts, lib=_library)
torch.library.register_fake("tilusc::sort_experts", _fake_sort, lib=_library)
matmul = torch.ops.tilusc.matmul
matmul_experts = torch.ops.tilusc.matmul_experts
sort_experts = torch.ops.tilusc.sort_experts
MATMUL = _gradient.Operator(matmul, _gradient.keep_product, _gradient.product_gradient)
MATMUL_EXPERTS = _gradient.Operator(matmul_experts, _experts_gradient.keep_experts, _experts_gradient.experts_gradient)
for _name, _operator, _run in (("matmul", MATMUL, _matmul), ("matmul_experts", MATMUL_EXPERTS, _matmul_experts)):
    _library.impl(_name, _gradient.differentiable(_operator, _run), "Autograd", with_keyset=True)
