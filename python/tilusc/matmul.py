"""Products with packed weights of 1 to 8 bits: C[m, n] = A[m, k] x B[k, n], B = (code - zero) * scale.

    problem = Problem("u4", n=4096, k=4096, group=128, zeros="integer")
    plan = tilusc.matmul.plan(problem)              # for the GPU, or without one for the CPU engine
    quantized = quantize(weights, problem)          # or codes, scales and zero points of a checkpoint
    packed = plan.pack(*quantized)                  # once
    c = plan.run(a, packed)

Arrays are NumPy's or torch's; bf16 in NumPy is uint16. docs/matmul.md explains types, groups, kernels, tunings."""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from . import _declarations as c
from . import _library as library
from ._library import check, rt, sized, take_text
from ._problem import ProblemText, filled, integer
from .arrays import Array, describe, fits, is_tensor
from .errors import ArgumentError
from .runtime import check_device, current_device, driver, software

MOST_ROWS = 65536       # of A in one call of the library
_ZEROS = {"none": c.TILUS_ZEROS_NONE, "integer": c.TILUS_ZEROS_INTEGER, "float": c.TILUS_ZEROS_FLOAT}
_FUNCTIONS = {"none": c.TILUS_EPILOGUE_NONE, "silu": c.TILUS_EPILOGUE_SILU, "gelu": c.TILUS_EPILOGUE_GELU}
_PROLOGUES = {"none": c.TILUS_PROLOGUE_NONE, "rms_norm": c.TILUS_PROLOGUE_RMS_NORM}
_RANGES = {"minmax": c.TILUS_RANGE_MINMAX, "absmax": c.TILUS_RANGE_ABSMAX}
_CPU_MODEL = "h200"     # the device that the CPU engine stands for


@dataclasses.dataclass(frozen=True)
class Problem(ProblemText):
    """C = function(A x B + bias) + residual. str() is a text of it, which `Problem.parse` reads.

    `weights` is u1 .. u8, i1 .. i8, f3e1m1 .. f8e7m0; `activations` (of A) f16, bf16, f8e4m3, f8e5m2, i8; `scales`
    f16 or bf16, by default bf16 where A is, else f16, or f8e4m3 beside a factor of the matrix; `result` (of C, bias and
    residual) f16, bf16, f32, by default the scales' type, or the default of it. `group` of k, a multiple of 16, have one
    scale; 0: all of k. `zeros` is none, integer
    (bytes) or float (of the scales' type); `function` none, silu or gelu. `n_tile` is that of the plan that packed
    the weights, where it is another problem's; 0: the best. `a_stride` is the distance of rows of A that
    `Plan.prepare` is for; 0: k. With `batch_invariant` a row of C has the same bits whatever m and the other rows are.
    With `wide_range` A of f16 may have values from 8188 on.
    `product` is f8e4m3 or i8 where tensor cores of Hopper shall multiply 8 bits, of A in f16 or bf16, which is rounded
    row by row, or of that type, whose rows have scales; empty: f16 or bf16.

    With `gated`, C = function(A x gate + bias of gate) * (A x up + bias of up) + residual, where the first n / 2 columns
    of B, the rows of a weight [n, k], are those of gate and the others those of up, and so are biases: C has n / 2
    `columns`.

    With the `prologue` rms_norm, A is a * rsqrt(mean(a^2) + `eps`) * norm for each row a that `Plan.run` gets.

    With `experts` there are so many matrices, and each row of A goes to one: `top`, `gather`, `scatter`, `combine` and
    `multiply` are as docs/matmul.md says of experts."""

    weights: str
    n: int
    k: int
    group: int = 128
    zeros: str = "none"
    activations: str = "f16"
    scales: str = ""
    result: str = ""
    function: str = "none"
    bias: bool = False
    residual: bool = False
    n_tile: int = 0
    a_stride: int = 0
    batch_invariant: bool = False
    product: str = ""
    experts: int = 0
    top: int = 0
    gather: bool = False
    scatter: bool = False
    combine: bool = False
    multiply: bool = False
    wide_range: bool = False
    prologue: str = "none"
    eps: float = 0.0
    gated: bool = False
    early_routing: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("zeros", _ZEROS), ("function", _FUNCTIONS), ("prologue", _PROLOGUES)):
            if getattr(self, name) not in known:
                raise ArgumentError(f"{name} is {getattr(self, name)!r}, not one of {', '.join(known)}")
        usual = "bf16" if self.activations == "bf16" else "f16"
        if not self.scales:
            object.__setattr__(self, "scales", usual)
        if not self.result:
            object.__setattr__(self, "result", usual if self.has_factor else self.scales)

    @property
    def has_a_scales(self) -> bool:
        """Whether A is of the product's 8 bits, so that its rows have scales."""
        return self.product != "" and self.activations == self.product

    @property
    def has_factor(self) -> bool:
        """Whether weights have a factor of the whole matrix, as scales of 8 bits do."""
        return self.scales == "f8e4m3"

    @property
    def columns(self) -> int:
        """Columns of C."""
        return self.n // 2 if self.gated else self.n

    @property
    def groups(self) -> int:
        """Groups along k."""
        return -(-self.k // self.group) if self.group else 1

    def fields(self) -> Dict[str, Any]:
        """Returns the fields of tilus_matmul_problem."""
        return {**dataclasses.asdict(self), "zeros": _ZEROS[self.zeros], "function": _FUNCTIONS[self.function],
                "product": self.product or None, "prologue": _PROLOGUES[self.prologue]}

    def struct(self) -> ctypes.Structure:
        return filled(c.tilus_matmul_problem,
                      {name: v.encode() if isinstance(v, str) else v for name, v in self.fields().items()})


# ---- quantizing --------------------------------------------------------------------

class Quantized(NamedTuple):
    """Codes without gaps, the lowest bits first, [n, k]; scales (bits of f16 or bf16, as uint16) and zero points
    (bytes or such bits) [n, groups]."""

    codes: Any
    scales: Any
    zeros: Optional[Any]


def quantize(values: Any, problem: Problem, *, range: str = "minmax", clip_steps: int = 0, transposed: bool = True,
             threads: int = 0) -> Quantized:
    """Quantizes a matrix [n, k] (or [k, n], `transposed=False`) of f16, bf16 or f32 in host memory, as tilus_quantize
    does (tilus/types.h): round to nearest; `range` minmax or absmax; `clip_steps` > 0 looks for the range of each
    group with the least squared error."""
    import numpy as np
    given = _host_matrix(values, "values", (problem.n, problem.k) if transposed else (problem.k, problem.n))
    if range not in _RANGES:
        raise ArgumentError(f"range is {range!r}, not one of {', '.join(_RANGES)}")
    how = filled(c.tilus_quantization, {
        "values": given.dtype.encode(), "weights": problem.weights.encode(), "scales": problem.scales.encode(),
        "n": problem.n, "k": problem.k, "group": problem.group, "zeros": _ZEROS[problem.zeros], "range": _RANGES[range],
        "clip_steps": clip_steps, "threads": threads, "transposed": bool(transposed)})
    out, message = sized(c.tilus_quantized), ctypes.create_string_buffer(library.MESSAGE)
    check(rt().tilus_quantized_sizes(ctypes.byref(how), ctypes.byref(out), message, len(message)), message)
    shape = (problem.n, problem.groups) if transposed else (problem.groups, problem.n)
    codes, scales = np.empty(out.codes_size, np.uint8), np.empty(shape, np.uint16)
    zeros = None
    if problem.zeros != "none":
        zeros = np.empty(shape, np.uint8 if problem.zeros == "integer" else np.uint16)
        out.zeros = zeros.ctypes.data
    out.codes, out.scales = codes.ctypes.data, scales.ctypes.data
    check(rt().tilus_quantize(ctypes.byref(how), given.address, given.size, ctypes.byref(out), message, len(message)),
          message)
    return Quantized(codes, scales, zeros)


def described(name: str, value: Any) -> Array:
    try:
        return describe(value)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from None


def _host_matrix(values: Any, name: str, shape: Tuple[int, int]) -> Array:
    given = described(name, values)
    if tuple(values.shape) != shape:
        raise ArgumentError(f"{name} have the shape {list(values.shape)}, not {list(shape)}")
    if given.device is not None or not given.contiguous:
        raise ArgumentError(f"{name} are not contiguous in host memory")
    return given._replace(dtype="bf16") if given.dtype == "u16" else given


def experts_rows(problem: Problem, a: Any, ids: Any) -> Tuple[int, int, int]:
    """Returns the rows of a product of experts, those of A and those of C."""
    top, given = problem.top or 1, int(a.shape[0])
    m = given * (top if problem.gather else 1) if ids is None else int(ids.shape[0])
    if m > MOST_ROWS or m % top:
        raise ArgumentError(f"{m} rows of experts, not a multiple of {top} up to {MOST_ROWS}")
    rows = m // top if problem.gather else m
    if given != rows or len(a.shape) != 2:
        raise ArgumentError(f"a has the shape {list(a.shape)}, not {[rows, problem.k]}")
    return m, rows, m // top if problem.combine else m


def bias_shape(problem: Problem, bias: Any) -> Tuple[int, ...]:
    """Returns the shape that a bias of experts must have: [experts, n], or these flat."""
    flat = len(getattr(bias, "shape", ())) == 1
    return (problem.experts * problem.n,) if flat else (problem.experts, problem.n)


def _bytes_of(packed: Any) -> Any:
    """Returns packed weights in host memory as an array of bytes."""
    import numpy as np
    from ._cpu_matmul import gathered
    return np.frombuffer(packed, np.uint8) if isinstance(packed, (bytes, bytearray)) else gathered(packed)


def _size_of_each(size: int, count: int) -> int:
    """Divides the bytes of packed weights by the number of matrices."""
    if size % count:
        raise ArgumentError(f"packed weights: {size} bytes are not {count} experts of equal size")
    return size // count


def _rows(m: Any) -> int:
    if integer("m", m) < 0:
        raise ArgumentError(f"m = {m}, not a number of rows")
    return int(m)


def _is_bits_of(have: str, want: str) -> bool:
    """Tells whether an array's elements are of a type, or integers that stand for its bits."""
    return have == want or have in (f"{sign}{library.rt().tilus_type_bits(want.encode())}" for sign in "iu")


# ---- plans -------------------------------------------------------------------------

_handles = library.Handles(library.matmul, "tilus_matmul", "tilus_compile_in_child",
                           more=lambda: {"tunings": library.tunings()})


class Plan:
    """A problem on a device: packs weights and multiplies. `plan()` finds equal ones; any threads may use one.

    `device` is the number of a GPU; "cpu", where the CPU engine multiplies, slowly and as a GPU would; or the name of
    a device that need not be there ("h200", tilus_find_device), for which weights can be packed."""

    def __init__(self, problem: Problem, device: Union[int, str]) -> None:
        if not isinstance(problem, Problem):
            raise ArgumentError(f"a plan takes a Problem, or its text, not {problem!r}")
        check_device(device)
        self.problem, self.device = problem, device
        self._native, self.handle = library.matmul(), ctypes.c_void_p()
        runtime = driver() if isinstance(device, int) else software(_CPU_MODEL if device == "cpu" else device)
        handle = _handles.of(runtime, isinstance(device, int))
        check(self._native.tilus_matmul_plan_create(handle, ctypes.byref(problem.struct()),
                                                    device if isinstance(device, int) else 0,
                                                    ctypes.byref(self.handle)))
        weakref.finalize(self, self._native.tilus_matmul_plan_free, self.handle).atexit = False
        #: bytes of packed weights
        self.packed_size: int = self._native.tilus_matmul_packed_size(self.handle)
        #: identity of weights that the plan reads
        self.identity: int = self._native.tilus_matmul_packed_identity(self.handle)
        self._ready: Dict[int, int] = {}        # bytes of workspace for up to 2^i rows, which are prepared

    def __repr__(self) -> str:
        return f"<tilusc.matmul.Plan {self.problem} on {self.device}>"

    def describe(self, m: int) -> str:
        """Says what was chosen for m rows, which kernels that launches, and what the model expects."""
        return take_text(self._native.tilus_matmul_describe(self.handle, _rows(m)))

    def kernels(self, m: int) -> List[str]:
        """Lists the kernels that runs of 1 to m rows need, for 0 those that pack, a line each: name, program, parameters,
        with tabs between."""
        return take_text(self._native.tilus_matmul_kernels(self.handle, _rows(m))).splitlines()

    @property
    def tile(self) -> Tuple[int, int]:
        """Tiles of the packed form along n and k, at whose multiples weights may be cut."""
        n, k = ctypes.c_int64(), ctypes.c_int64()
        self._native.tilus_matmul_tile(self.handle, ctypes.byref(n), ctypes.byref(k))
        return n.value, k.value

    def prepare(self, m: int) -> int:
        """Finds, compiles and loads what runs of m rows need, so that `run` only launches; seconds where kernels are to
        be compiled. Returns the bytes of workspace. To be called before a capture."""
        m = _rows(m)
        if self.device == "cpu":
            from ._cpu_matmul import prepare
            prepare(self, m)
            return self._native.tilus_matmul_workspace_size(self.handle, m)
        bucket = (m - 1).bit_length()
        check(self._native.tilus_matmul_prepare(self.handle, m))
        if isinstance(self.device, int):        # also for other rows that `_ready` stands for, few and many
            for rows in ((1 << bucket) // 2 + 1, min(1 << bucket, MOST_ROWS)):
                check(self._native.tilus_matmul_prepare(self.handle, rows))
            self._ready[bucket] = self._native.tilus_matmul_workspace_size(self.handle, min(1 << bucket, MOST_ROWS))
        return self._native.tilus_matmul_workspace_size(self.handle, m)

    # ---- weights ----

    def pack(self, codes: Any, scales: Any, zeros: Any = None, factor: Any = None, *, transposed: bool = True,
             threads: int = 0) -> Any:
        """Packs codes (bytes without gaps, the lowest bits first), scales and zero points, [n, k] and [n, groups], or
        with transposed=False [k, n] and [groups, n], and beside scales of f8e4m3 a factor, one f32. Host memory gives a
        NumPy array, of `packed_size` bytes; tensors on the plan's GPU are packed there and give one there, and then
        this waits. Experts are packed one by one. In host memory infinite and NaN scales and zero points, and
        integer zero points beyond the codes, are refused."""
        given = self._given({"codes": codes, "scales": scales, "zeros": zeros, "factor": factor}, bool(transposed))
        addresses = {name: array.address for name, array in given.items()}
        weights = filled(c.tilus_matmul_weights, {"transposed": bool(transposed), "threads": threads, **addresses})
        if given["codes"].device is not None:
            return self._pack_on_device(weights, codes.device)
        import numpy as np
        packed = np.empty(self.packed_size, np.uint8)
        check(self._native.tilus_matmul_pack(self.handle, ctypes.byref(weights), packed.ctypes.data))
        return packed

    def _given(self, values: Dict[str, Any], transposed: bool) -> Dict[str, Array]:
        """Finds what is packed, and refuses what the library, which sees addresses alone, would take for something else."""
        problem = self.problem
        wanted = {"codes": True, "scales": True, "zeros": problem.zeros != "none", "factor": problem.has_factor}
        for name, value in values.items():
            if (value is not None) != wanted[name]:
                raise ArgumentError(f"{'a factor is' if name == 'factor' else name + ' are'}"
                                    f" {'missing' if wanted[name] else 'given'}, but the problem is {problem}")
        given = {name: described(name, value) for name, value in values.items() if value is not None}
        for name, array in given.items():
            self._check_given(name, array, transposed)
        if len({array.device for array in given.values()}) > 1 or given["codes"].device not in (None, self.device):
            raise ArgumentError(f"codes, scales, zeros and factor are neither all in host memory nor all on {self.device}")
        return given

    def _check_given(self, name: str, array: Array, transposed: bool) -> None:
        problem = self.problem
        n, k, groups = problem.n, problem.k, problem.groups
        kind = {"codes": problem.weights, "scales": problem.scales, "factor": "f32",
                "zeros": "u8" if problem.zeros == "integer" else problem.scales}[name]
        count, shape = {"codes": (n * k, (n,) if transposed else (k,)), "factor": (1, ())}.get(
            name, (n * groups, (n, groups) if transposed else (groups, n)))
        size = library.rt().tilus_packed_bytes(kind.encode(), count)
        if not (fits(array.dtype, kind) if name == "codes" else _is_bits_of(array.dtype, kind)):
            raise ArgumentError(f"{name} {'is' if name == 'factor' else 'are'} of {array.dtype}, not"
                                f" {'bytes' if name == 'codes' else f'{kind} or its bits'}")
        if not array.contiguous:
            raise ArgumentError(f"{name} are not contiguous")
        if array.size != size:
            raise ArgumentError(f"{name} have {array.size} bytes, not {size}")
        # A row of codes has bytes, words, or a type's elements.
        if len(array.shape) > 1 and shape and (array.shape[:1] if name == "codes" else array.shape) != shape:
            raise ArgumentError(f"{name} have the shape {list(array.shape)}, not"
                                f" {f'[{shape[0]}, ..]' if name == 'codes' else list(shape)}")

    def _pack_on_device(self, weights: ctypes.Structure, device: Any) -> Any:
        import torch
        packed = torch.zeros(self.packed_size, dtype=torch.uint8, device=device)
        stream = torch.cuda.current_stream(device)
        check(self._native.tilus_matmul_pack_device(self.handle, stream.cuda_stream, ctypes.byref(weights),
                                                    packed.data_ptr()))
        stream.synchronize()        # a product reads weights before the kernels ahead of it have ended
        return packed

    def shard(self, packed: Any, part: "Plan", n_first: int = 0, k_first: int = 0) -> Any:
        """Cuts the packed weights of the plan `part` out of this plan's, from column n_first and row k_first of W^T on:
        at multiples of `tile`, which `part` has in its problem, and of the group. Both are in host memory (NumPy), or
        tensors, which pass through host memory."""
        import numpy as np
        if is_tensor(packed):
            import torch
            cut = self.shard(packed.detach().cpu().numpy(), part, n_first, k_first)
            return torch.from_numpy(cut).to(packed.device)
        given = described("packed", packed)
        if given.size != self.packed_size or given.device is not None or not given.contiguous:
            raise ArgumentError(f"packed has {given.size} bytes, not {self.packed_size} in host memory without gaps")
        out = np.empty(part.packed_size, np.uint8)
        check(self._native.tilus_matmul_shard(self.handle, given.address, part.handle, integer("n_first", n_first),
                                              integer("k_first", k_first), out.ctypes.data))
        return out

    def check(self, packed: Any) -> None:
        """Raises where packed weights, bytes or an array of any kind, are not of this plan: what differs, with both values.
        Of a tensor on a GPU it reads the identity, the last 256 bytes, and waits for them. Experts lie one behind the
        other, and each is checked."""
        import numpy as np
        count = self.problem.experts or 1
        shape = getattr(packed, "shape", ())
        if self.problem.experts and len(shape) > 1 and shape[0] != count:
            raise ArgumentError(f"packed weights: {shape[0]} experts, the plan's {count}")
        if is_tensor(packed):
            import torch
            packed = packed.detach().contiguous().view(-1).view(torch.uint8)
            size = _size_of_each(packed.numel(), count)
            tails = packed.view(count, size)[:, -c.TILUS_MATMUL_IDENTITY:].cpu().numpy()
        else:
            packed = _bytes_of(packed)
            array = described("packed", packed)
            if array.device is not None or not array.contiguous:
                raise ArgumentError("packed is neither a tensor nor contiguous in host memory")
            size = _size_of_each(array.size, count)
            packed = np.frombuffer((ctypes.c_char * array.size).from_address(array.address), np.uint8)
            tails = packed.reshape(count, size)[:, -c.TILUS_MATMUL_IDENTITY:]
        one = np.empty(size, np.uint8)      # of which only the identity is read
        for tail in tails:
            one[size - len(tail):] = tail
            check(self._native.tilus_matmul_packed_check(self.handle, one.ctypes.data, size))

    def check_matrix(self, address: int) -> None:
        """Raises where the `packed_size` bytes of a matrix in host memory are not of this plan."""
        check(self._native.tilus_matmul_packed_check(self.handle, address, self.packed_size))

    def unpack(self, packed: Any, type: str = "", *, k_first: int = 0, k_count: Optional[int] = None) -> Any:
        """Unpacks weights to a matrix [n, k] of `type`, f16, bf16 or f32, by default that of `activations`: (code - zero) *
        scale, as they were packed, rounded once. Of experts, [experts, n, k]. `k_first` and `k_count` are of a part of k, at
        multiples of 128. Tensors on the plan's GPU give a tensor there, enqueued on torch's current stream; on the plan "cpu"
        host memory gives an array of its kind."""
        problem = self.problem
        if not isinstance(type, str) or (type or "f16") not in ("f16", "bf16", "f32"):
            raise ArgumentError(f"type is {type!r}, not f16, bf16 or f32")
        first = integer("k_first", k_first)
        count = problem.k - first if k_count is None else integer("k_count", k_count)
        if first < 0 or first % 128 or count < 1 or count > problem.k - first or \
                count % 128 and first + count != problem.k:
            raise ArgumentError(f"k_first is {first} and k_count {count}: not a part of {problem.k} at multiples of 128")
        if isinstance(self.device, int):
            self._check_arrays(packed=packed)
        else:
            packed = packed if is_tensor(packed) else _bytes_of(packed)
        name = type or ("bf16" if problem.activations == "bf16" else "f16")
        if not problem.experts:
            return self._unpack(packed, name, first, count, None)
        matrices = [self._unpack(packed, name, first, count, expert) for expert in range(problem.experts)]
        if is_tensor(packed):
            import torch
            return torch.stack(matrices)
        import numpy as np
        return np.stack(matrices)

    @functools.cached_property
    def _unpack(self) -> Callable[..., Any]:
        """The function of packed, type, k_first, k_count and expert that unpacks a matrix on the device."""
        if isinstance(self.device, int):
            return self._runner.unpack
        from ._cpu_matmul import unpack
        return functools.partial(unpack, self)

    # ---- products ----

    def run(self, a: Any, packed: Any, out: Any = None, *, bias: Any = None, residual: Any = None,
            a_scales: Any = None, norm: Any = None, offsets: Any = None, ids: Any = None, route: Any = None) -> Any:
        """Multiplies A[.., k] by packed weights: C[.., columns], `out` or a new array; `a_scales`, f32 [..], where A is of
        the problem's product; `norm` [k] of A's type, where the prologue is an RMS norm. On a GPU all are torch tensors
        there, and the product is enqueued on torch's current stream: nothing waits but the first product of a weight,
        which reads its identity, and nothing is allocated but C and, once for each stream and each graph, a workspace.
        On the plan "cpu" arrays are NumPy's, or torch's in host memory.

        Of experts, `offsets`, `ids` (i32) and `route` (f32) are those of tilus_matmul_call; there are as many rows as
        ids, or else as rows of A."""
        if self.problem.experts:
            if a_scales is not None or norm is not None:
                raise ArgumentError("a_scales or norm are given, but the problem has experts")
            try:
                return self._multiply_experts(a, packed, offsets, ids, route, bias, residual, out)
            except AttributeError:
                self._check_arrays(a=a, packed=packed, offsets=offsets, ids=ids, route=route, bias=bias,
                                   residual=residual, out=out)
                raise
        if offsets is not None or ids is not None or route is not None:
            raise ArgumentError("offsets, ids or route are given, but the problem has no experts")
        try:
            if norm is not None:
                return self._multiply(a, packed, bias, residual, out, a_scales, norm)
            return self._multiply(a, packed, bias, residual, out, a_scales)
        except AttributeError:
            self._check_arrays(a=a, packed=packed, bias=bias, residual=residual, out=out, a_scales=a_scales, norm=norm)
            raise

    def _check_arrays(self, **given: Any) -> None:
        """Raises where something is not an array that the plan's products take."""
        for name, value in given.items():
            if value is not None and not is_tensor(value) and isinstance(self.device, int):
                raise ArgumentError(f"{name} is {type(value).__name__}, not a torch tensor on cuda:{self.device}")

    @functools.cached_property
    def _runner(self) -> Any:
        """Handles and buffers on the plan's GPU."""
        from ._torch_experts import ExpertsRunner
        from ._torch_matmul import Runner
        return ExpertsRunner(self) if self.problem.experts else Runner(self)

    @functools.cached_property
    def _multiply(self) -> Callable[..., Any]:
        """The function of a, packed, bias, residual, out, a_scales and norm that multiplies on the device."""
        if isinstance(self.device, int):
            return self._runner.function()
        from ._cpu_matmul import multiply
        return functools.partial(multiply, self)

    @functools.cached_property
    def _multiply_experts(self) -> Callable[..., Any]:
        """The function of a, packed, offsets, ids, route, bias, residual and out."""
        if isinstance(self.device, int):
            return self._runner.multiply
        from ._cpu_matmul import multiply_experts
        return functools.partial(multiply_experts, self)


@functools.lru_cache(maxsize=4096)
def _plan(problem: Problem, device: Union[int, str]) -> Plan:
    return Plan(problem, device)


def default_device() -> Union[int, str]:
    """Returns the current GPU, or "cpu" where there is none."""
    from .errors import NoDevice
    try:
        driver()
    except NoDevice:
        return "cpu"
    return current_device()


def plan(problem: Union[Problem, str], device: Union[int, str, None] = None) -> Plan:
    """Finds or makes the plan of a problem, or of its text, on a device: a number or name as of `Plan`, by default
    the current GPU, or "cpu" where there is none. Takes tens of milliseconds the first time."""
    if isinstance(problem, str):
        problem = Problem.parse(problem)
    device = default_device() if device is None else device
    try:
        return _plan(problem, device)
    except TypeError:       # of what cannot be a key, which is not a problem or not a device
        return Plan(problem, device)
