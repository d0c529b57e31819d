"""Products in host memory: the worker process runs the kernels on the CPU engine."""
from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Union

from ._library import rt, tunings, warn_of_cache
from .arrays import Array, fits, is_tensor
from .engines import worker
from .errors import ArgumentError

if TYPE_CHECKING:
    from .matmul import Plan

Size = Union[int, Tuple[int, ...]]      # of an array: elements, in any shape, or a shape
_NUMPY = {"f16": "float16", "bf16": "uint16", "f32": "float32"}


def multiply(plan: "Plan", a: Any, packed: Any, bias: Any, residual: Any, out: Any, a_scales: Any = None,
             norm: Any = None) -> Any:
    from .matmul import MOST_ROWS
    problem = plan.problem
    check_shape(a)
    m = math.prod(a.shape[:-1])
    if m > MOST_ROWS:
        raise ArgumentError(f"a has {m} rows; the CPU engine takes {MOST_ROWS}")
    shape = tuple(a.shape[:-1]) + (problem.columns,)
    flat = (m, problem.columns)         # which a residual may be beside an A of other dimensions, too
    added = flat if getattr(residual, "shape", None) == flat else shape
    sent = {"bias": _bytes("bias", bias, problem.result, (problem.n,), problem.bias),
            "residual": _bytes("residual", residual, problem.result, added, problem.residual),
            "a_scales": _bytes("a_scales", a_scales, "f32", m, problem.has_a_scales),
            "norm": _bytes("norm", norm, problem.activations, (problem.k,), problem.prologue == "rms_norm")}
    return _ask(plan, m, a, m, packed, shape, out, sent)


def multiply_experts(plan: "Plan", a: Any, packed: Any, offsets: Any, ids: Any, route: Any, bias: Any, residual: Any,
                     out: Any) -> Any:
    from .matmul import bias_shape, experts_rows
    problem = plan.problem
    check_shape(a)
    if ids is not None:
        check_shape(ids, "ids")
    m, rows, results = experts_rows(problem, a, ids)
    needs_ids = problem.gather or problem.scatter or problem.combine
    sent = {"bias": _bytes("bias", bias, problem.result, bias_shape(problem, bias), problem.bias),
            "residual": _bytes("residual", residual, problem.result, (results, problem.columns), problem.residual),
            "offsets": _bytes("offsets", offsets, "i32", problem.experts + 1),
            "ids": _bytes("ids", ids, "i32", m, needs_ids),
            "route": _bytes("route", route, "f32", m, problem.combine)}
    return _ask(plan, m, a, rows, packed, (results, problem.columns), out, sent)


def prepare(plan: "Plan", m: int) -> None:
    """Has the worker process compile what runs of m rows need."""
    _answer(plan, "prepare", m)


def unpack(plan: "Plan", packed: Any, type_: str, first: int, count: int, expert: Optional[int] = None) -> Any:
    """Unpacks `count` of k from `first` on to a matrix [n, count]."""
    if plan.device != "cpu":
        raise ArgumentError(f"the plan is for {plan.device}, which is only described: it packs, and cannot unpack")
    matrices = plan.problem.experts or 1
    _described("packed", gathered(packed), "u8", plan.packed_size * matrices)
    whole = gathered(packed).reshape(matrices, plan.packed_size)[expert or 0]
    plan.check_matrix(_described("packed", whole, "u8", plan.packed_size).address)
    sent = _bytes("packed", whole, "u8", plan.packed_size)
    out = _empty(packed, (plan.problem.n, count), type_)
    array = _described("out", out, type_, tuple(out.shape))
    answer = _answer(plan, "unpack", 1, packed=sent, k_first=first, k_count=count, type=type_, result_size=array.size)
    ctypes.memmove(array.address, answer["result"], array.size)
    return out


def _answer(plan: "Plan", what: str, m: int, **sent: Any) -> Dict[str, Any]:
    from .matmul import _CPU_MODEL
    answer = worker.ask(what, device=_CPU_MODEL, tunings=tunings(), problem=plan.problem.fields(), m=m, **sent)
    for text in answer["warnings"]:
        warn_of_cache(text)
    return answer


def _ask(plan: "Plan", m: int, a: Any, rows: int, packed: Any, shape: tuple, out: Any, sent: dict) -> Any:
    """Multiplies `rows` rows of A as `m` rows of a product, whose result has the shape."""
    problem = plan.problem
    if plan.device != "cpu":
        raise ArgumentError(f"the plan is for {plan.device}, which is only described: it packs, and cannot run")
    if a.shape[-1] != problem.k:
        raise ArgumentError(f"a has rows of {a.shape[-1]} elements, not {problem.k}")
    given, out = out, _empty(a, shape, problem.result) if out is None else out
    sent["a"] = _bytes("a", a, problem.activations, rows * problem.k)
    sent["packed"] = _bytes("packed", packed, "u8", plan.packed_size * (problem.experts or 1))
    result = _described("out", out, problem.result, shape)
    if result.readonly:
        raise ArgumentError("out is a read-only array")
    if problem.experts and given is not None:
        sent["c"] = ctypes.string_at(result.address, result.size)
    plan.check(packed)
    if m:
        answer = _answer(plan, "multiply", m, result_size=result.size, **sent)
        ctypes.memmove(result.address, answer["result"], result.size)
    return out


def check_shape(value: Any, name: str = "a") -> None:
    """Refuses what is no array with dimensions."""
    if not hasattr(value, "shape") or len(value.shape) == 0:
        raise ArgumentError(f"{name} is {type(value).__name__}, not an array with rows")


def _empty(like: Any, shape: tuple, dtype: str) -> Any:
    if is_tensor(like):
        from ._torch_matmul import result_type
        return like.new_empty(shape, dtype=result_type(dtype))
    import numpy as np
    return np.empty(shape, _NUMPY[dtype])


def _bytes(name: str, value: Any, dtype: str, size: Size, wanted: bool = True) -> Optional[bytes]:
    """Checks an array, whose elements may lie any distance apart, and copies it."""
    if (value is not None) != wanted:
        raise ArgumentError(f"{name} is {'missing' if wanted else 'given'}, but the problem says otherwise")
    if value is None:
        return None
    array = _described(name, gathered(value), dtype, size)
    return ctypes.string_at(array.address, array.size)


def gathered(value: Any) -> Any:
    """Returns an array without gaps: itself, or a copy."""
    if is_tensor(value):
        return value.contiguous()
    if hasattr(value, "__array_interface__"):
        import numpy as np
        return np.ascontiguousarray(value)
    return value


def _described(name: str, value: Any, dtype: str, size: Size) -> Array:
    from .matmul import described
    array = described(name, value)
    if array.device is not None or not array.contiguous:
        raise ArgumentError(f"{name} is not contiguous in host memory")
    if not fits(array.dtype, dtype):
        raise ArgumentError(f"{name} is of {array.dtype}, not {dtype}")
    count = size if isinstance(size, int) else math.prod(size)
    elements = array.size * 8 // rt().tilus_type_bits(array.dtype.encode())
    if elements != count:
        raise ArgumentError(f"{name} has {elements} elements, not {count}")
    if not isinstance(size, int) and array.shape != size:
        raise ArgumentError(f"{name} has the shape {list(array.shape)}, not {list(size)}")
    return array
