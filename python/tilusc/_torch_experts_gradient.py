"""Gradients of products of rows of several experts: of activations, route, bias and residual.

Row r of the experts has A's row r, or with gather A's row ids[r] / top; what follows is as of one matrix, expert by expert.
Numbers of each expert's rows are read by the host, which waits for them: a backward pass is not captured into a graph."""
from __future__ import annotations

from typing import Any, Iterator, NamedTuple, Optional, Tuple

import torch

from ._torch_gradient import (Tensor, activate, define, is_linear, multiply_plain, multiply_transposed, plan_of,
                              refuse_without_gradient, save, saved, through_epilogue)
from .errors import ArgumentError
from .matmul import Problem


def _ranges(offsets: Tensor, m: int, problem: Problem) -> Iterator[Tuple[int, slice]]:
    """Gives the rows of each expert that has some."""
    bounds = offsets.tolist()
    if len(bounds) != problem.experts + 1:
        raise ArgumentError(f"offsets has {len(bounds)} elements, not {problem.experts + 1}")
    for expert, (first, end) in enumerate(zip(bounds, bounds[1:])):
        if not 0 <= first <= end <= m:
            raise ArgumentError(f"offsets of expert {expert} are {first} and {end}, not ascending from 0 to {m}")
        if first < end:
            yield expert, slice(first, end)


def _check(rows: Tensor, columns: int) -> None:
    if rows.dim() != 2 or rows.shape[1] != columns:
        raise ArgumentError(f"rows of experts have the shape {list(rows.shape)}, not [m, {columns}]")


def _transposed(grad: Tensor, packed: Tensor, problem: str, offsets: Tensor) -> Tensor:
    its = plan_of(problem, grad.get_device())
    _check(grad, its.problem.n)
    out = grad.new_zeros(grad.shape[0], its.problem.k)
    for expert, rows in _ranges(offsets, grad.shape[0], its.problem):
        multiply_transposed(grad[rows], packed, its, out[rows], expert)
    return out


def _fake_transposed(grad: Tensor, packed: Tensor, problem: str, offsets: Tensor) -> Tensor:
    return grad.new_empty((grad.shape[0], Problem.parse(problem).k))


def _plain(a: Tensor, packed: Tensor, problem: str, offsets: Tensor) -> Tensor:
    its = plan_of(problem, a.get_device())
    _check(a, its.problem.k)
    out = a.new_zeros((a.shape[0], its.problem.n), dtype=torch.float32)
    for expert, rows in _ranges(offsets, a.shape[0], its.problem):
        multiply_plain(a[rows], packed, its, out[rows], expert)
    return out


def _fake_plain(a: Tensor, packed: Tensor, problem: str, offsets: Tensor) -> Tensor:
    return a.new_empty((a.shape[0], Problem.parse(problem).n), dtype=torch.float32)


def _keep(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    rows, packed, ctx.problem, offsets = inputs
    ctx.dtype = rows.dtype
    save(ctx, packed, offsets)


def _transposed_gradient(ctx: Any, needs: Tuple[bool, ...], grad: Tensor) -> Tuple[Tensor, None, None, None]:
    packed, offsets = saved(ctx)
    return (EXPERTS_PLAIN(grad, packed, ctx.problem, offsets).to(ctx.dtype), None, None, None)


def _plain_gradient(ctx: Any, needs: Tuple[bool, ...], grad: Tensor) -> Tuple[Tensor, None, None, None]:
    packed, offsets = saved(ctx)
    return (EXPERTS_TRANSPOSED(grad.to(ctx.dtype), packed, ctx.problem, offsets), None, None, None)


# ---- formulas --------------------------------------------------------------------------

class _Rows(NamedTuple):
    """The rows of experts: their numbers, those of A's rows, and which belong to an expert."""

    ids: Tensor
    of_a: Tensor
    valid: Tensor       # [m, 1]
    experts: Tensor


def _rows_of(problem: Problem, m: int, offsets: Tensor, ids: Optional[Tensor]) -> _Rows:
    places = torch.arange(m, device=offsets.device)
    valid = (places >= offsets[0]) & (places < offsets[-1])
    numbers = places if ids is None else torch.where(valid, ids.long(), 0)
    experts = torch.searchsorted(offsets[1:].long(), places, right=True).clamp(max=problem.experts - 1)
    return _Rows(numbers, numbers // (problem.top or 1) if problem.gather else places, valid[:, None], experts)


def _added(rows: Tensor, places: Tensor, shape: Tuple[int, ...]) -> Tensor:
    """Adds rows up at their places, in f32, in the same order each time."""
    sums = rows.new_zeros(shape, dtype=torch.float32)
    if rows.is_cuda:            # where index_add has no fixed order, as index_put has none in host memory
        return sums.index_put((places,), rows.float(), accumulate=True)
    return sums.index_add(0, places, rows.float())


def keep_experts(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    a, packed, ctx.problem, offsets, ids, route, bias, residual = inputs
    problem = Problem.parse(ctx.problem)
    ctx.shape, ctx.of_a, ctx.of_residual = a.shape, a.dtype, None if residual is None else residual.shape
    ctx.of_bias = None if bias is None else bias.shape
    bent = not is_linear(problem)
    save(ctx, packed, a if bent or problem.combine else None, offsets, ids, route,
         bias if bent or problem.combine else None, residual if problem.multiply else None)


def experts_gradient(ctx: Any, needs: Tuple[bool, ...], grad: Tensor) -> Tuple[Optional[Tensor], ...]:
    """Returns gradients of a, packed, problem, offsets, ids, route, bias and residual."""
    problem, (packed, a, offsets, ids, route, bias, residual) = Problem.parse(ctx.problem), saved(ctx)
    refuse_without_gradient(problem)
    needs_a, _, _, _, _, needs_route, needs_bias, needs_residual = needs
    m = ctx.shape[0] * (problem.top or 1 if problem.gather else 1) if ids is None else ids.shape[0]
    rows = _rows_of(problem, m, offsets, ids)
    of_c = rows.ids // (problem.top or 1) if problem.combine else rows.ids if problem.scatter else None
    g = torch.where(rows.valid, grad if of_c is None else grad.index_select(0, of_c), 0)
    routed = g if route is None else (g.float() * route.index_select(0, rows.ids)[:, None]).to(grad.dtype)
    biases = None if bias is None else bias.view(problem.experts, -1).index_select(0, rows.experts).float()
    of_route = of_rows = None
    if is_linear(problem):
        of_sums, of_factor = routed, g
        if needs_route:         # of a row's weight: the row times its gradient, that is A's row times its own
            unrouted = EXPERTS_TRANSPOSED(g, packed, ctx.problem, offsets)
            of_route = (unrouted.float() * a.index_select(0, rows.of_a).float()).sum(-1)
            of_route = of_route if biases is None else of_route + (g.float() * biases).sum(-1)
            of_rows = unrouted.float() * route.index_select(0, rows.ids)[:, None]
    else:
        sums = EXPERTS_PLAIN(a.index_select(0, rows.of_a), packed, ctx.problem, offsets)
        sums = sums if biases is None else sums + biases
        factor = residual if residual is None or of_c is None else residual.index_select(0, of_c)
        of_sums, of_factor = through_epilogue(problem, routed.float(), sums, None if factor is None else factor.float())
        of_sums = torch.where(rows.valid, of_sums, 0).to(grad.dtype)
        if needs_route:
            of_route = (g.float() * activated(problem, sums)).sum(-1)
    if needs_a and of_rows is None:
        of_rows = EXPERTS_TRANSPOSED(of_sums, packed, ctx.problem, offsets)
    if needs_a and problem.gather:
        of_rows = _added(of_rows, rows.of_a, ctx.shape)
    of_bias = _added(of_sums, rows.experts, (problem.experts, problem.n)) if needs_bias else None
    of_residual = None
    if needs_residual:
        of_residual = _added(of_factor, rows.ids, ctx.of_residual) if problem.scatter else of_factor
        of_residual = grad if problem.combine else of_residual
    return (of_rows.to(ctx.of_a) if needs_a else None, None, None, None, None,
            _added(torch.where(rows.valid[:, 0], of_route, 0), rows.ids, route.shape) if needs_route else None,
            None if of_bias is None else of_bias.view(ctx.of_bias).to(grad.dtype),
            None if of_residual is None else of_residual.to(grad.dtype))


def activated(problem: Problem, sums: Tensor) -> Tensor:
    """Computes rows of C, before they are combined, from sums with bias."""
    if not problem.gated:
        return activate(problem.function, sums)
    gate, up = sums.chunk(2, -1)
    return activate(problem.function, gate) * up


EXPERTS_TRANSPOSED = define("matmul_experts_transposed", "Tensor grad, Tensor packed, str problem, Tensor offsets", _transposed,
                            _fake_transposed, _keep, _transposed_gradient)
EXPERTS_PLAIN = define("matmul_experts_plain", "Tensor a, Tensor packed, str problem, Tensor offsets", _plain, _fake_plain,
                       _keep, _plain_gradient)
