"""Gradients of products with packed weights: of activations, bias, residual and norm, never of the weights.

dA = dC x W^T takes the weights as a plain matrix, which is unpacked in parts of k, each of at most UNPACKED_BYTES or 128
columns, so that parts of dA are whole sums. Functions, gates, residuals that multiply and norms are computed again from
saved activations; products without them save the weights alone. All formulas are operators of torch, so that they compile
and have gradients of their own."""
from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable, Iterator, NamedTuple, Optional, Tuple

import torch
from torch.compiler import is_compiling

from ._torch_matmul import NO_TANGENT
from .errors import ArgumentError, Error
from .matmul import Plan, Problem, plan

Tensor = torch.Tensor
#: Bytes of unpacked weights at a time, unless 128 columns of k have more.
UNPACKED_BYTES = 128 << 20
in_transform = torch._C._are_functorch_transforms_active
_SLICE = 128                # of k, at whose multiples weights are cut
_NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}


def type_name(dtype: torch.dtype) -> str:
    """Returns the name of a type that weights are unpacked to."""
    if dtype not in _NAMES:
        raise ArgumentError(f"weights are unpacked to float16, bfloat16 and float32, not {dtype}")
    return _NAMES[dtype]


def plan_of(problem: str, device: int) -> Plan:
    """Finds the plan of a problem on a GPU; -1 is the CPU engine."""
    return plan(problem, "cpu" if device < 0 else device)


def parts(n: int, k: int, element: int) -> Iterator[Tuple[int, int]]:
    """Cuts k into parts whose n rows of elements of so many bytes are at most UNPACKED_BYTES: (first, count)."""
    columns = max(UNPACKED_BYTES // (n * element) // _SLICE, 1) * _SLICE
    for first in range(0, k, columns):
        yield first, min(columns, k - first)


def multiply_transposed(rows: Tensor, packed: Tensor, its: Plan, out: Tensor, expert: Optional[int] = None) -> None:
    """Sets out[m, k] = rows[m, n] x W[n, k], of the matrix `expert` where there are several."""
    name, n, k = type_name(rows.dtype), its.problem.n, its.problem.k
    for first, count in parts(n, k, rows.element_size()):
        weights = its._unpack(packed, name, first, count, expert)
        torch.mm(rows, weights, out=out if count == k else out[:, first:first + count])
        del weights             # before the next part takes its place


def multiply_plain(rows: Tensor, packed: Tensor, its: Plan, out: Tensor, expert: Optional[int] = None) -> None:
    """Sets out[m, n] of f32 = rows[m, k] x W^T; parts of k are rounded to the type of `rows`."""
    name, n, k = type_name(rows.dtype), its.problem.n, its.problem.k
    for first, count in parts(n, k, rows.element_size()):
        weights = its._unpack(packed, name, first, count, expert)
        part = rows.new_empty(rows.shape[0], n)
        torch.mm(rows[:, first:first + count], weights.t(), out=part)
        del weights
        out.copy_(part) if first == 0 else out.add_(part)


# ---- autograd --------------------------------------------------------------------------

def save(ctx: Any, packed: Tensor, *tensors: Optional[Tensor]) -> None:
    """Saves packed weights and other tensors. An operator's own context has the weights already: hooks of saved tensors
    (torch.autograd.graph.save_on_cpu) would move them with the activations."""
    ctx.save_for_backward(*tensors, *(() if hasattr(ctx, "packed") else (packed,)))


def saved(ctx: Any) -> Tuple[Any, ...]:
    """Returns what `save` saved, packed weights first."""
    tensors = ctx.saved_tensors
    return (ctx.packed, *tensors) if hasattr(ctx, "packed") else (tensors[-1], *tensors[:-1])


class Operator(NamedTuple):
    """An operator, what saves for its gradients, and the gradients of its arguments: None where none is needed."""

    op: Any
    keep: Callable[[Any, Tuple[Any, ...], Tensor], None]
    gradient: Callable[[Any, Tuple[bool, ...], Tensor], Tuple[Optional[Tensor], ...]]

    def __call__(self, *given: Any) -> Tensor:
        """Calls the operator in a gradient, which torch.func may transform, too."""
        if in_transform() and not is_compiling():
            return Transformed.apply(self, None, *given)
        return self.op(*given)


class Transformed(torch.autograd.Function):
    """An operator for transforms of torch.func, which operators themselves do not take part in; `derivative` is its
    function of tangents. None: there is none."""

    generate_vmap_rule = True       # as torch.func.jacfwd asks for

    @staticmethod
    def forward(operator: Operator, derivative: Optional[Callable[..., Tensor]], *given: Any) -> Tensor:
        return operator.op(*given)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:      # which torch.func.grad asks for
        ctx.operator, ctx.derivative = inputs[:2]
        ctx.operator.keep(ctx, inputs[2:], output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return (None, None, *ctx.operator.gradient(ctx, ctx.needs_input_grad[2:], grads[0]))

    @staticmethod
    def jvp(ctx: Any, operator: None, derivative: None, *tangents: Optional[Tensor]) -> Tensor:
        if ctx.derivative is None:
            raise Error(NO_TANGENT)
        return ctx.derivative(*tangents)


def any_requires_grad(*given: Any) -> bool:
    return any(isinstance(value, Tensor) and value.requires_grad for value in given)


any_requires_grad = getattr(torch._C, "_any_requires_grad", any_requires_grad)
_PLAIN = Tensor, torch.nn.Parameter


def differentiable(operator: Operator, run: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns the function of an operator for torch's key Autograd. Calls that need no gradient, and that no mode,
    transform or subclass of torch is to see, go to `run` at once: by torch.library.register_autograd a call of a small
    product would take twice as long."""
    op, keep, gradient = operator.op.default, operator.keep, operator.gradient
    arguments, plain, enabled, any_wants = len(op._schema.arguments), _PLAIN, torch.is_grad_enabled, any_requires_grad
    modes, transforms = torch._C._len_torch_dispatch_stack, in_transform

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, keyset: Any, *given: Any) -> Tensor:
            with torch._C._AutoDispatchBelowAutograd():
                output = op.redispatch(keyset & torch._C._after_autograd_keyset, *given)
            ctx.packed = given[1]
            keep(ctx, given, output)
            ctx.set_materialize_grads(False)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Optional[Tensor]) -> Any:
            if grads[0] is None:
                return (None,) * (arguments + 1)
            return (None, *gradient(ctx, ctx.needs_input_grad[1:], grads[0]))

    def product(keyset: Any, *given: Any) -> Tensor:
        if enabled() and any_wants(*given):
            return Product.apply(keyset, *given, *(None,) * (arguments - len(given)))   # those that are as by default
        a = given[0]
        if type(a) is Tensor and type(given[1]) in plain and not modes() and not transforms() and not a.is_meta:
            return run(*given)
        with torch._C._AutoDispatchBelowAutograd():
            return op.redispatch(keyset & torch._C._after_autograd_keyset, *given)

    return product


# ---- operators -------------------------------------------------------------------------

def _flat(x: Tensor, columns: int, name: str) -> Tensor:
    if x.shape[-1:] != (columns,):
        raise ArgumentError(f"{name} has the shape {list(x.shape)}, not [.., {columns}]")
    return x.reshape(-1, columns)


def _transposed(grad: Tensor, packed: Tensor, problem: str) -> Tensor:
    its = plan_of(problem, grad.get_device())
    rows = _flat(grad, its.problem.n, "grad")
    out = rows.new_empty(rows.shape[0], its.problem.k)
    if rows.shape[0]:
        multiply_transposed(rows, packed, its, out)
    return out.view(*grad.shape[:-1], its.problem.k)


def _fake_transposed(grad: Tensor, packed: Tensor, problem: str) -> Tensor:
    return grad.new_empty((*grad.shape[:-1], Problem.parse(problem).k))


@functools.lru_cache(maxsize=4096)
def bare_text(problem: str, n_tile: int) -> str:
    """Returns the problem of A x B alone, in f32, of weights that the given problem's plan packed."""
    return str(dataclasses.replace(Problem.parse(problem), function="none", bias=False, residual=False, multiply=False,
                                   prologue="none", eps=0.0, result="f32", n_tile=n_tile))


def _plain(a: Tensor, packed: Tensor, problem: str) -> Tensor:
    its = plan_of(problem, a.get_device())
    if not its.problem.gated:
        return plan_of(bare_text(problem, its.tile[0]), a.get_device())._multiply(a, packed, None, None, None)
    rows = _flat(a, its.problem.k, "a")
    out = rows.new_empty((rows.shape[0], its.problem.n), dtype=torch.float32)
    if rows.shape[0]:
        multiply_plain(rows, packed, its, out)
    return out.view(*a.shape[:-1], its.problem.n)


def _fake_plain(a: Tensor, packed: Tensor, problem: str) -> Tensor:
    return a.new_empty((*a.shape[:-1], Problem.parse(problem).n), dtype=torch.float32)


def _keep_transposed(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    grad, packed, ctx.problem = inputs
    ctx.dtype = grad.dtype
    save(ctx, packed)


def _transposed_gradient(ctx: Any, needs: Tuple[bool, ...], grad: Tensor) -> Tuple[Tensor, None, None]:
    activations = Problem.parse(ctx.problem).activations
    packed, = saved(ctx)
    a = grad.to(torch.bfloat16 if activations == "bf16" else torch.float16)
    return MATMUL_PLAIN(a, packed, ctx.problem).to(ctx.dtype), None, None


def _keep_plain(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    a, packed, ctx.problem = inputs
    ctx.dtype = a.dtype
    save(ctx, packed)


def _plain_gradient(ctx: Any, needs: Tuple[bool, ...], grad: Tensor) -> Tuple[Tensor, None, None]:
    packed, = saved(ctx)
    return MATMUL_TRANSPOSED(grad.to(ctx.dtype), packed, ctx.problem), None, None


# ---- formulas --------------------------------------------------------------------------

def refuse_without_gradient(problem: Problem) -> None:
    """Raises where products of a problem have no gradient."""
    if problem.product or problem.activations not in ("f16", "bf16"):
        raise ArgumentError("products of 8 bits, and of activations of 8 bits, have no gradient: the problem is"
                            f" {problem}")


def activate(function: str, x: Tensor) -> Tensor:
    """Computes an epilogue's function."""
    if function == "none":
        return x
    return torch.nn.functional.silu(x) if function == "silu" else torch.nn.functional.gelu(x, approximate="tanh")


def through_function(function: str, grad: Tensor, x: Tensor) -> Tensor:
    """Multiplies a gradient by the function's derivative at x."""
    if function == "none":
        return grad
    if function == "silu":          # whose operator in torch has no derivative of its own
        part = torch.sigmoid(x)
        return grad * part * (1 + x * (1 - part))
    return torch.ops.aten.gelu_backward(grad, x, approximate="tanh")


def through_epilogue(problem: Problem, grad: Tensor, sums: Tensor, factor: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    """Returns gradients of sums (with bias, f32) and of what is multiplied by `factor`, a residual, if there is one."""
    function = problem.function
    if problem.gated:
        gate, up = sums.chunk(2, -1)
        of_up = grad * activate(function, gate)
        return torch.cat([through_function(function, grad * up, gate), of_up], -1), grad
    if factor is None:
        return through_function(function, grad, sums), grad
    return through_function(function, grad * factor, sums), grad * activate(function, sums)


def normed(a: Tensor, norm: Tensor, eps: float) -> Tensor:
    """Computes the RMS norm of rows, as the product's prologue does."""
    x = a.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * norm.float()).to(a.dtype)


def through_norm(a: Tensor, norm: Tensor, eps: float, grad: Tensor) -> Tuple[Tensor, Tensor]:
    """Returns the gradients of rows in front of a norm, and of its weights."""
    x, g = a.float(), grad.float()
    factor = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    unit, weighted = x * factor, g * norm.float()
    of_a = factor * (weighted - unit * (weighted * unit).mean(-1, keepdim=True))
    return of_a.to(a.dtype), (g * unit).flatten(0, -2).sum(0).to(norm.dtype)


def is_linear(problem: Problem) -> bool:
    """Tells whether C is linear in A behind the prologue."""
    return problem.function == "none" and not problem.gated and not problem.multiply


def keep_product(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    """Saves what the gradients of a product take: without function, gate, multiply and norm the weights alone."""
    a, packed, ctx.problem, bias, residual, norm = inputs
    problem = Problem.parse(ctx.problem)
    bent = not is_linear(problem)
    ctx.of_a, ctx.of_residual = a.dtype, None if residual is None else residual.shape
    save(ctx, packed, a if bent or norm is not None else None, bias if bent else None,
         residual if problem.multiply else None, norm)


def product_gradient(ctx: Any, needs: Tuple[bool, ...], grad: Tensor) -> Tuple[Optional[Tensor], ...]:
    """Returns gradients of a, packed, problem, bias, residual and norm, which are None where none is needed."""
    problem, (packed, a, bias, residual, norm) = Problem.parse(ctx.problem), saved(ctx)
    refuse_without_gradient(problem)
    needs_a, _, _, needs_bias, needs_residual, needs_norm = needs
    of_sums, of_residual, of_a, of_norm = grad, grad, None, None
    if not is_linear(problem) and (needs_a or needs_bias or needs_norm or problem.multiply):
        front = a if norm is None else normed(a, norm, problem.eps)
        sums = MATMUL_PLAIN(front, packed, ctx.problem)
        of_sums, of_residual = through_epilogue(problem, grad.float(), sums if bias is None else sums + bias.float(),
                                                None if residual is None else residual.float().view(grad.shape))
        of_sums, of_residual = of_sums.to(grad.dtype), of_residual.to(grad.dtype)
    if needs_a or needs_norm:
        of_a = MATMUL_TRANSPOSED(of_sums, packed, ctx.problem).to(ctx.of_a)
        if norm is not None:
            of_a, of_norm = through_norm(a, norm, problem.eps, of_a)
    of_bias = of_sums.float().flatten(0, -2).sum(0).to(grad.dtype) if needs_bias else None
    return (of_a if needs_a else None, None, None, of_bias,
            of_residual.reshape(ctx.of_residual) if needs_residual else None, of_norm if needs_norm else None)


_library = torch.library.Library("tilusc", "FRAGMENT")


def define(name: str, given: str, run: Callable[..., Tensor], fake: Callable[..., Tensor], keep: Callable[..., None],
           gradient: Callable[..., Tuple[Optional[Tensor], ...]]) -> Operator:
    """Defines an operator that gradients take."""
    _library.define(f"{name}({given}) -> Tensor", tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
    operator = Operator(getattr(torch.ops.tilusc, name), keep, gradient)
    for key in ("CUDA", "CPU"):
        _library.impl(name, run, key)
    torch.library.register_fake(f"tilusc::{name}", fake, lib=_library)
    _library.impl(name, differentiable(operator, run), "Autograd", with_keyset=True)
    return operator


MATMUL_TRANSPOSED = define("matmul_transposed", "Tensor grad, Tensor packed, str problem", _transposed, _fake_transposed,
                           _keep_transposed, _transposed_gradient)
MATMUL_PLAIN = define("matmul_plain", "Tensor a, Tensor packed, str problem", _plain, _fake_plain, _keep_plain,
                      _plain_gradient)
