"""Attention on a GPU, by libtilus_attention (docs/attention.md), on torch's current stream.

    o = attention(q, k, v, causal=True)                     # [batch, heads, tokens, columns], or tokens_first=True
    o, lse = attention(q, k, v, q_starts=starts, k_starts=starts, longest=300, lse=True)     # ragged
    append(new_k, new_v, slots, k, v, scales, cache="u4")   # new tokens into a paged cache
    o = decode(q, k, v, table, lengths, tokens=4096, scales=scales, cache="u4")
    o = latent(q, cache, table, lengths, tokens=4096)       # DeepSeek's MLA

They are operators of torch (`torch.ops.tilusc.attention`, `attention_append`, `attention_decode`) with fake
implementations, for torch.compile and CUDA graphs. The first has a gradient without mask and sinks. `Problem` and
`plan` say without torch what a device would do. Kernels are taken from the directory that TILUS_KERNELS names, where it
has them, else compiled by tilus-llc and cached."""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from . import _declarations as c
from . import _library as library
from ._library import check, rt, sized, take_text
from ._problem import ProblemText, filled
from .errors import ArgumentError
from .runtime import check_device, driver, software

if TYPE_CHECKING:
    import torch

_KINDS = {"forward": c.TILUS_ATTENTION_FORWARD, "decode": c.TILUS_ATTENTION_DECODE,
          "latent": c.TILUS_ATTENTION_LATENT}
_MASKS = {"none": c.TILUS_ATTENTION_UNMASKED, "added": c.TILUS_ATTENTION_ADDED, "boolean": c.TILUS_ATTENTION_BOOLEAN}
_SCHEDULES = {"auto": c.TILUS_ATTENTION_AUTO, "queues": c.TILUS_ATTENTION_QUEUES, "blocks": c.TILUS_ATTENTION_BLOCKS,
              "folded": c.TILUS_ATTENTION_FOLDED}
_CODE_BITS = {"u2": 2, "u3": 3, "u4": 4, "u6": 6, "u8": 8, "f4e2m1": 4, "f6e3m2": 6, "f8e4m3": 8}


@dataclasses.dataclass(frozen=True)
class Problem(ProblemText):
    """The fields of tilus_attention_problem; str() is a text of it, which `Problem.parse` reads. `kind` is forward,
    decode or latent, `mask` none, added or boolean."""

    heads: int
    kind: str = "forward"
    mask: str = "none"
    type: str = "f16"
    out_type: str = ""
    kv_heads: int = 0
    dim: int = 0
    value_dim: int = 0
    scale: float = 0.0
    cap: float = 0.0
    left: int = 0
    right: int = 0
    cache: str = ""
    page: int = 0
    groups: int = 0
    causal: bool = False
    window: bool = False
    sinks: bool = False
    lse: bool = False
    ragged: bool = False
    tokens_first: bool = False
    plain: bool = False
    finite: bool = False
    gradients: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("kind", _KINDS), ("mask", _MASKS)):
            if getattr(self, name) not in known:
                raise ArgumentError(f"{name} is {getattr(self, name)!r}, not one of {', '.join(known)}")

    def struct(self) -> ctypes.Structure:
        fields = {**dataclasses.asdict(self), "kind": _KINDS[self.kind], "mask": _MASKS[self.mask]}
        return filled(c.tilus_attention_problem, {name: v.encode() or None if isinstance(v, str) else v
                                                  for name, v in fields.items()})


def code_bits(problem: Problem) -> int:
    """Returns the bits of a code in the problem's cache; 0 where it has numbers of the problem's type."""
    if problem.cache in ("", problem.type):
        return 0
    if problem.cache not in _CODE_BITS:
        raise ArgumentError(f"cache is {problem.cache!r}, not one of {', '.join([problem.type, *_CODE_BITS])}")
    return _CODE_BITS[problem.cache]


# ---- plans -------------------------------------------------------------------------

_handles = library.Handles(library.attention, "tilus_attention", "tilus_attention_compile_in_child", "TILUS_KERNELS")


_SHAPE = [name for name, _ in c.tilus_attention_shape._fields_ if name not in ("struct_size", "schedule", "reserved")]


def shape(**fields: Any) -> ctypes.Structure:
    """A tilus_attention_shape of these fields; `schedule` is auto, queues, blocks or folded."""
    schedule = fields.pop("schedule", "auto")
    if schedule not in _SCHEDULES:
        raise ArgumentError(f"schedule is {schedule!r}, not one of {', '.join(_SCHEDULES)}")
    for name in fields:
        if name not in _SHAPE:
            raise ArgumentError(f"{name} is no field of a shape: these are {', '.join(_SHAPE)} and schedule")
    return filled(c.tilus_attention_shape, {"schedule": _SCHEDULES[schedule], **fields})


class Plan:
    """A problem on a device: a GPU's number, or the name of a device that need not be there ("h200"), which says what
    it would do. `plan()` finds equal ones; any threads may use one."""

    def __init__(self, problem: Problem, device: Union[int, str]) -> None:
        if not isinstance(problem, Problem):
            raise ArgumentError(f"a plan takes a Problem, or its text, not {problem!r}")
        check_device(device)
        self.problem, self.device = problem, device
        self._native, self.handle = library.attention(), ctypes.c_void_p()
        runtime = driver() if isinstance(device, int) else software(device)
        handle = _handles.of(runtime, isinstance(device, int))
        check(self._native.tilus_attention_plan_create(handle, ctypes.byref(problem.struct()),
                                                       device if isinstance(device, int) else 0,
                                                       ctypes.byref(self.handle)))
        weakref.finalize(self, self._native.tilus_attention_plan_free, self.handle).atexit = False

    def __repr__(self) -> str:
        return f"<tilusc.attention.Plan {self.problem} on {self.device}>"

    def _text(self, address: Optional[int]) -> str:
        if not address:
            raise ArgumentError(rt().tilus_rt_error().decode(errors="replace"), "TILUS_ERROR_ARGUMENT")
        return take_text(address)

    def describe(self, **fields: Any) -> str:
        """Says what was chosen for a shape: fields of tilus_attention_shape."""
        return self._text(self._native.tilus_attention_describe(self.handle, ctypes.byref(shape(**fields))))

    def kernels(self, **fields: Any) -> List[str]:
        """Lists the kernels of a shape, without fields all that the plan may need, a line each: name, program,
        parameters, with tabs between."""
        wanted = ctypes.byref(shape(**fields)) if fields else None
        return self._text(self._native.tilus_attention_kernels(self.handle, wanted)).splitlines()

    def workspace_size(self, **fields: Any) -> int:
        """Bytes of workspace that calls of a shape need."""
        return self._size(shape(**fields))

    def _size(self, of: ctypes.Structure) -> int:
        size = ctypes.c_size_t()
        check(self._native.tilus_attention_workspace_size(self.handle, ctypes.byref(of), ctypes.byref(size)))
        return size.value

    def prepare(self, **fields: Any) -> None:
        """Finds, compiles and loads what calls of a shape need, without fields all that the plan may. To be called
        before a capture; a first call outside of one does so, too."""
        check(self._native.tilus_attention_prepare(self.handle, ctypes.byref(shape(**fields)) if fields else None))

    def run(self, of: ctypes.Structure, **tensors: Optional["torch.Tensor"]) -> None:
        """Enqueues a call of the shape `of`: tensors are the addresses of tilus_attention_call, and checked by
        their device and for gaps only."""
        import torch
        size = self._size(of)
        space = torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", self.device))
        call = sized(c.tilus_attention_call, shape=ctypes.addressof(of), workspace=space.data_ptr() if size else 0,
                     workspace_size=size, **self._addresses(tensors))
        check(self._native.tilus_attention_run(self.handle, self._stream(), ctypes.byref(call)))

    def backward(self, of: ctypes.Structure, **tensors: Optional["torch.Tensor"]) -> None:
        """Enqueues the gradients of a call of the shape `of`: tensors are the addresses of
        tilus_attention_gradients."""
        import torch
        size = ctypes.c_size_t()
        check(self._native.tilus_attention_backward_workspace_size(self.handle, ctypes.byref(of), ctypes.byref(size)))
        space = torch.empty(size.value, dtype=torch.uint8, device=torch.device("cuda", self.device))
        given = sized(c.tilus_attention_gradients, shape=ctypes.addressof(of), workspace=space.data_ptr(),
                      workspace_size=size.value, **self._addresses(tensors))
        check(self._native.tilus_attention_backward(self.handle, self._stream(), ctypes.byref(given)))

    def append(self, count: int, pages: int, **tensors: Optional["torch.Tensor"]) -> None:
        """Enqueues the storing of new tokens: tensors are the addresses of tilus_attention_tokens."""
        tokens = sized(c.tilus_attention_tokens, tokens=count, pages=pages, **self._addresses(tensors))
        check(self._native.tilus_attention_append(self.handle, self._stream(), ctypes.byref(tokens)))

    def _stream(self) -> int:
        import torch
        return torch._C._cuda_getCurrentRawStream(self.device)

    def _addresses(self, tensors: Dict[str, Optional["torch.Tensor"]]) -> Dict[str, int]:
        for name, tensor in tensors.items():
            if tensor is not None and (tensor.get_device() != self.device or not tensor.is_contiguous()):
                raise ArgumentError(f"{name} is on {tensor.device}{'' if tensor.is_contiguous() else ' with gaps'}, "
                                    f"not on cuda:{self.device} without gaps")
        return {name: 0 if tensor is None else tensor.data_ptr() for name, tensor in tensors.items()}


@functools.lru_cache(maxsize=4096)
def plan(problem: Union[Problem, str], device: Union[int, str]) -> Plan:
    """Finds or makes the plan of a problem, or of its text, on a device."""
    return Plan(Problem.parse(problem) if isinstance(problem, str) else problem, device)


def __getattr__(name: str) -> Any:
    if name in ("attention", "append", "decode", "latent"):
        from . import _torch_attention
        return getattr(_torch_attention, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
