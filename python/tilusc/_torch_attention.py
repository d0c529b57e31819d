"""Operators of torch for attention, and functions that make their problems. Importing this registers them.

    attention(Tensor q, Tensor k, Tensor v, str problem, Tensor? mask, Tensor? sinks, Tensor? q_starts,
              Tensor? k_starts, int longest, Tensor? scales=None) -> (Tensor, Tensor)
    attention_backward(Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, str problem, Tensor? q_starts,
                       Tensor? k_starts, int longest) -> (Tensor, Tensor, Tensor)
    attention_decode(Tensor q, Tensor k, Tensor v, str problem, Tensor table, Tensor lengths, Tensor? scales,
                     int tokens) -> Tensor
    attention_append(Tensor new_k, Tensor new_v, Tensor slots, Tensor(a!) k, Tensor(b!) v, str problem,
                     Tensor(c!)? scales) -> ()

`problem` is str() of a tilusc.attention.Problem. The second result of attention is lse, or empty."""
from __future__ import annotations

import functools
from typing import Any, Optional, Sequence, Tuple, Union

import torch

from . import _declarations as c
from ._library import sized
from .attention import Problem, code_bits, plan
from .errors import ArgumentError

Tensor = torch.Tensor
_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
_shape = functools.partial(sized, c.tilus_attention_shape)     # of extents of tensors, and integers of torch
_EIGHT = torch.float8_e4m3fn
_library = torch.library.Library("tilusc", "FRAGMENT")
_tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)
_library.define("attention(Tensor q, Tensor k, Tensor v, str problem, Tensor? mask, Tensor? sinks, Tensor? q_starts, "
                "Tensor? k_starts, int longest, Tensor? scales=None) -> (Tensor, Tensor)", tags=_tags)
_library.define("attention_backward(Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, str problem, "
                "Tensor? q_starts, Tensor? k_starts, int longest) -> (Tensor, Tensor, Tensor)", tags=_tags)
_library.define("attention_decode(Tensor q, Tensor k, Tensor v, str problem, Tensor table, Tensor lengths, "
                "Tensor? scales, int tokens) -> Tensor", tags=_tags)
_library.define("attention_append(Tensor new_k, Tensor new_v, Tensor slots, Tensor(a!) k, Tensor(b!) v, str problem, "
                "Tensor(c!)? scales) -> ()", tags=_tags)


# ---- checks ------------------------------------------------------------------------

def _type_of(name: str, tensor: Tensor) -> str:
    if tensor.dtype not in _TYPES:
        raise ArgumentError(f"{name} is of {tensor.dtype}, not float16 or bfloat16")
    return _TYPES[tensor.dtype]


def _expect(name: str, tensor: Optional[Tensor], dims: Sequence[Optional[int]], dtype: torch.dtype) -> None:
    """Refuses a tensor of another type or shape, in which None is any number."""
    if tensor is None:
        return
    fits = len(tensor.shape) == len(dims) and all(d is None or d == n for d, n in zip(dims, tensor.shape))
    if not fits or tensor.dtype != dtype:
        wanted = ", ".join("*" if d is None else str(d) for d in dims)
        raise ArgumentError(f"{name} is {list(tensor.shape)} of {tensor.dtype}, not [{wanted}] of {dtype}")


def _device(tensor: Tensor) -> int:
    if tensor.device.type != "cuda":
        raise ArgumentError(f"tensors are on {tensor.device}, and attention needs a GPU")
    return tensor.get_device()


def _text(**fields: object) -> str:
    """The text of a problem, by what torch.compile can trace."""
    return " ".join([f"{name}={int(v) if isinstance(v, bool) else v}" for name, v in fields.items()
                     if v and v != "none"])


# ---- forward -----------------------------------------------------------------------

def _rows(p: Problem, tensor: Tensor) -> int:
    return tensor.shape[0 if p.ragged else 1 if p.tokens_first else 2]


def _out_type(q: Tensor, p: Problem) -> torch.dtype:
    if q.dtype is not _EIGHT:
        return q.dtype
    return torch.float16 if p.out_type == "f16" else torch.bfloat16


def _results(q: Tensor, v: Tensor, p: Problem) -> Tuple[Tensor, Tensor]:
    o = q.new_empty((*q.shape[:-1], v.shape[-1]), dtype=_out_type(q, p))
    batch, rows = 1 if p.ragged else q.shape[0], _rows(p, q)
    dims = (p.heads, rows) if p.ragged else (batch, p.heads, rows)
    return o, q.new_empty(dims if p.lse else (0,), dtype=torch.float32)


def _check_forward(q: Tensor, k: Tensor, v: Tensor, p: Problem, mask: Optional[Tensor], sinks: Optional[Tensor],
                   q_starts: Optional[Tensor], k_starts: Optional[Tensor], scales: Optional[Tensor]) -> None:
    tokens, kv_heads = _rows(p, k), p.kv_heads or p.heads

    def dims(heads: int, columns: int, rows: int) -> Tuple[int, ...]:
        if p.ragged:
            return rows, heads, columns
        return (q.shape[0], rows, heads, columns) if p.tokens_first else (q.shape[0], heads, rows, columns)
    _expect("q", q, dims(p.heads, p.dim, _rows(p, q)), q.dtype)
    _expect("k", k, dims(kv_heads, p.dim, tokens), q.dtype)
    _expect("v", v, dims(kv_heads, p.value_dim or p.dim, tokens), q.dtype)
    _expect("mask", mask, (None, _rows(p, q), tokens), torch.bool if p.mask == "boolean" else _out_type(q, p))
    _expect("sinks", sinks, (p.heads,), torch.float32)
    if (scales is None) == (q.dtype is _EIGHT):
        raise ArgumentError(f"scales are {'missing' if scales is None else 'given'}, and q is of {q.dtype}")
    _expect("scales", scales, (3, kv_heads), torch.float32)
    if q_starts is not None:
        _expect("q_starts", q_starts, (None,), torch.int32)
        _expect("k_starts", k_starts, tuple(q_starts.shape), torch.int32)


def _attention(q: Tensor, k: Tensor, v: Tensor, problem: str, mask: Optional[Tensor], sinks: Optional[Tensor],
               q_starts: Optional[Tensor], k_starts: Optional[Tensor], longest: int,
               scales: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    p = Problem.parse(problem)
    _check_forward(q, k, v, p, mask, sinks, q_starts, k_starts, scales)
    o, lse = _results(q, v, p)
    batch = q_starts.shape[0] - 1 if q_starts is not None else q.shape[0]
    if o.numel() == 0:
        return o, lse
    of = _shape(batch=batch, queries=_rows(p, q), tokens=_rows(p, k), longest=longest if p.ragged else 0,
                masks=0 if mask is None else mask.shape[0])
    plan(problem, _device(q)).run(of, q=q, k=k, v=v, o=o, lse=lse if p.lse else None, sinks=sinks, mask=mask,
                                  q_starts=q_starts, k_starts=k_starts, scales=scales)
    return o, lse


def _fake_attention(q: Tensor, k: Tensor, v: Tensor, problem: str, mask: Optional[Tensor], sinks: Optional[Tensor],
                    q_starts: Optional[Tensor], k_starts: Optional[Tensor], longest: int,
                    scales: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    p = Problem.parse(problem)
    _check_forward(q, k, v, p, mask, sinks, q_starts, k_starts, scales)
    return _results(q, v, p)


# ---- gradients ---------------------------------------------------------------------

def _backward(d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, problem: str,
              q_starts: Optional[Tensor], k_starts: Optional[Tensor], longest: int) -> Tuple[Tensor, Tensor, Tensor]:
    p = Problem.parse(problem)
    results = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    batch = q_starts.shape[0] - 1 if q_starts is not None else q.shape[0]
    if o.numel() == 0:
        return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    _expect("d_o", d_o, tuple(o.shape), o.dtype)
    of = _shape(batch=batch, queries=_rows(p, q), tokens=_rows(p, k), longest=longest if p.ragged else 0)
    plan(problem, _device(q)).backward(of, q=q, k=k, v=v, o=o, lse=lse, d_o=d_o, dq=results[0], dk=results[1],
                                       dv=results[2], q_starts=q_starts, k_starts=k_starts)
    return results


def _fake_backward(d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, problem: str,
                   q_starts: Optional[Tensor], k_starts: Optional[Tensor],
                   longest: int) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _keep(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Tensor, Tensor]) -> None:
    q, k, v, ctx.problem, _, _, q_starts, k_starts, ctx.longest, _ = inputs
    ctx.save_for_backward(q, k, v, *output, q_starts, k_starts)
    ctx.set_materialize_grads(False)


def _gradient(ctx: Any, d_o: Optional[Tensor], d_lse: Optional[Tensor]) -> Tuple[Optional[Tensor], ...]:
    if d_lse is not None or "gradients=1" not in ctx.problem:
        raise ArgumentError("attention has gradients of o, without mask and sinks: "
                            f"lse has {'one' if d_lse is not None else 'none'}, the problem is {ctx.problem}")
    if d_o is None:
        return (None,) * 10
    q, k, v, o, lse, q_starts, k_starts = ctx.saved_tensors
    found = torch.ops.tilusc.attention_backward(d_o.contiguous(), q, k, v, o, lse, ctx.problem, q_starts, k_starts,
                                                ctx.longest)
    return (*found, None, None, None, None, None, None, None)


def _needs_gradient(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], sinks: Optional[Tensor]) -> bool:
    return torch.is_grad_enabled() and q.dtype is not _EIGHT and (q.requires_grad or k.requires_grad or v.requires_grad) and \
        mask is None and sinks is None


def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, window: Optional[Tuple[int, int]] = None,
              scale: float = 0.0, cap: float = 0.0, mask: Optional[Tensor] = None, sinks: Optional[Tensor] = None,
              lse: bool = False, tokens_first: bool = False, q_starts: Optional[Tensor] = None,
              k_starts: Optional[Tensor] = None, longest: int = 0, scales: Optional[Tensor] = None,
              out_dtype: Optional[torch.dtype] = None) -> Union[Tensor, Tuple[Tensor, Tensor]]:
    """softmax(scale * q * k^T + mask) * v for each head; with `lse` also the logarithms of the sums.

    Tensors are [batch, heads, tokens, columns], with `tokens_first` [batch, tokens, heads, columns], with offsets
    q_starts and k_starts (int32, on the device) [tokens, heads, columns] of sequences of at most `longest` rows of q,
    such as the longest that a model takes.
    `window` has the columns that a row sees before and after its own; `mask` is [masks, rows, columns], of q's type,
    which is added, or of bool.

    q, k and v of float8_e4m3fn have `scales`, float32 [3, heads of k], by which q, k and v are multiplied, above 0,
    also of tensors of zeros (1e-12 does); o and an added mask are of `out_dtype`, bfloat16 or float16, then."""
    ragged = q_starts is not None
    if ragged != (k_starts is not None):
        raise ArgumentError(f"q_starts and k_starts: {'k_starts' if ragged else 'q_starts'} is missing")
    if longest and not ragged:
        raise ArgumentError(f"longest is {longest}, but q_starts and k_starts are missing")
    if len(q.shape) != (3 if ragged else 4) or len(k.shape) != len(q.shape) or len(v.shape) != len(q.shape):
        raise ArgumentError(f"q, k and v have {len(q.shape)}, {len(k.shape)} and {len(v.shape)} dimensions, not "
                            f"{3 if ragged else 4}")
    heads = 1 if ragged else 2 if tokens_first else 1
    left, right = window or (0, 0)
    gradients = _needs_gradient(q, k, v, mask, sinks)
    if out_dtype not in (None, torch.bfloat16, torch.float16) or (out_dtype not in (None, q.dtype) and
                                                                  q.dtype is not _EIGHT):
        raise ArgumentError(f"out_dtype is {out_dtype}, and q is of {q.dtype}")
    problem = _text(heads=q.shape[heads], kv_heads=k.shape[heads],
                      type="f8e4m3" if q.dtype is _EIGHT else _type_of("q", q),
                      out_type="f16" if q.dtype is _EIGHT and out_dtype is torch.float16 else "", dim=q.shape[-1],
                      value_dim=v.shape[-1], scale=scale, cap=cap, causal=causal, window=window is not None,
                      left=left, right=right, sinks=sinks is not None, lse=lse or gradients, ragged=ragged,
                      gradients=gradients, tokens_first=tokens_first and not ragged,
                      mask="none" if mask is None else "boolean" if mask.dtype is torch.bool else "added")
    o, logarithms = torch.ops.tilusc.attention(q, k, v, problem, mask, sinks, q_starts, k_starts, longest,
                                                 scales)
    return (o, logarithms) if lse else o


# ---- decoding ----------------------------------------------------------------------

def _check_decode(q: Tensor, k: Tensor, v: Tensor, p: Problem, table: Tensor, lengths: Tensor,
                  scales: Optional[Tensor]) -> None:
    batch = q.shape[0]
    _expect("q", q, (batch, p.heads, 576 if p.kind == "latent" else p.dim), q.dtype)
    _expect("table", table, (batch, None), torch.int32)
    _expect("lengths", lengths, (batch,), torch.int32)
    _check_cache(k, v, p, scales, q.dtype)


def _check_cache(k: Tensor, v: Tensor, p: Problem, scales: Optional[Tensor], dtype: torch.dtype) -> None:
    """Refuses caches whose bytes are not those of the problem, whatever type torch has for codes."""
    if p.kind == "latent":
        _expect("cache", k, (None, 64, 576), dtype)
        return
    bits, heads = code_bits(p), p.kv_heads or p.heads
    page = p.dim * (bits or 16) // 8 * heads * p.page
    for name, tensor in (("k", k), ("v", v)):
        if not bits and tensor.dtype != dtype:
            raise ArgumentError(f"{name} is of {tensor.dtype}, and q or new tokens of {dtype}")
        found = tensor.numel() * tensor.element_size()
        if len(tensor.shape) == 0 or found != tensor.shape[0] * page:
            raise ArgumentError(f"{name} has {found} bytes for {tensor.shape[:1]} pages, not {page} each")
    if k.shape[0] != v.shape[0]:
        raise ArgumentError(f"k has {k.shape[0]} pages, v {v.shape[0]}")
    entries = (4 if p.cache[0] == "u" else 2) * (p.groups or 1) if bits else 0
    rows = k.shape[0] * p.page * heads
    if (scales is None) == bool(bits) or (scales is not None and (scales.numel() != rows * entries or
                                                                     scales.dtype is not torch.float16)):
        raise ArgumentError(f"scales are {0 if scales is None else scales.numel()} numbers, not {rows * entries} of "
                            f"torch.float16")


def _decode(q: Tensor, k: Tensor, v: Tensor, problem: str, table: Tensor, lengths: Tensor, scales: Optional[Tensor],
            tokens: int) -> Tensor:
    p = Problem.parse(problem)
    _check_decode(q, k, v, p, table, lengths, scales)
    o = q.new_empty((*q.shape[:-1], 512 if p.kind == "latent" else q.shape[-1]))
    if o.numel():
        of = _shape(batch=q.shape[0], tokens=tokens, pages=k.shape[0], columns=table.shape[1])
        plan(problem, _device(q)).run(of, q=q, k=k, v=None if p.kind == "latent" else v, o=o, scales=scales,
                                      table=table, lengths=lengths)
    return o


def _fake_decode(q: Tensor, k: Tensor, v: Tensor, problem: str, table: Tensor, lengths: Tensor,
                 scales: Optional[Tensor], tokens: int) -> Tensor:
    p = Problem.parse(problem)
    _check_decode(q, k, v, p, table, lengths, scales)
    return q.new_empty((*q.shape[:-1], 512 if p.kind == "latent" else q.shape[-1]))


def _cache_of(k: Tensor, type_: str, cache: str, tokens_first: bool) -> Tuple[str, int, int]:
    """The cache's type, or "" for that of q, its heads, and the tokens of a page."""
    if len(k.shape) != 4:
        raise ArgumentError(f"k is {list(k.shape)}, not [pages, kv_heads, page, ..] or [pages, page, kv_heads, ..]")
    heads, page = (k.shape[2], k.shape[1]) if tokens_first else (k.shape[1], k.shape[2])
    return "" if cache in ("", type_) else cache, heads, page


def decode(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lengths: Tensor, *, tokens: int,
           scales: Optional[Tensor] = None, cache: str = "", groups: int = 0, scale: float = 0.0,
           tokens_first: bool = False, plain: bool = False, finite: bool = False) -> Tensor:
    """Attention of one query a sequence, [batch, heads, dim], over a paged cache: k and v are [pages, kv_heads, page,
    ..], with `tokens_first` [pages, page, kv_heads, ..], of q's type, or of bytes with codes of the type `cache` and
    `scales`. Splits are chosen for about `tokens` tokens. docs/attention.md says what `plain` and `finite` mean."""
    name, kv_heads, page = _cache_of(k, _type_of("q", q), cache, tokens_first)
    problem = _text(kind="decode", heads=q.shape[1], kv_heads=kv_heads, type=_type_of("q", q), dim=q.shape[2],
                      scale=scale, cache=name, page=page, groups=groups, tokens_first=tokens_first, plain=plain,
                      finite=finite)
    return torch.ops.tilusc.attention_decode(q, k, v, problem, table, lengths, scales, tokens)


def latent(q: Tensor, cache: Tensor, table: Tensor, lengths: Tensor, *, tokens: int, scale: float = 0.0) -> Tensor:
    """Latent attention of one query a sequence, [batch, heads, 576], over a cache [pages, 64, 576] whose rows are
    finite also behind the ends of sequences: [batch, heads, 512]."""
    problem = _text(kind="latent", heads=q.shape[1], type=_type_of("q", q), scale=scale, finite=True)
    return torch.ops.tilusc.attention_decode(q, cache, cache, problem, table, lengths, None, tokens)


# ---- new tokens --------------------------------------------------------------------

def _append(new_k: Tensor, new_v: Tensor, slots: Tensor, k: Tensor, v: Tensor, problem: str,
            scales: Optional[Tensor]) -> None:
    p = Problem.parse(problem)
    dims = (slots.shape[0], p.kv_heads, p.dim)
    _expect("slots", slots, (None,), torch.int32)
    _expect("new_k", new_k, dims, new_k.dtype)
    _expect("new_v", new_v, dims, new_k.dtype)
    _check_cache(k, v, p, scales, new_k.dtype)
    plan(problem, _device(new_k)).append(slots.shape[0], k.shape[0], new_k=new_k, new_v=new_v, slots=slots, k=k, v=v,
                                         scales=scales)


def append(new_k: Tensor, new_v: Tensor, slots: Tensor, k: Tensor, v: Tensor, scales: Optional[Tensor] = None, *,
           cache: str = "", groups: int = 0, tokens_first: bool = False, plain: bool = False) -> None:
    """Stores new tokens, [tokens, kv_heads, dim], at `slots` (page * tokens of a page + row; negative: nowhere) of a
    cache as `decode` reads it."""
    name, kv_heads, page = _cache_of(k, _type_of("new_k", new_k), cache, tokens_first)
    problem = _text(kind="decode", heads=kv_heads, kv_heads=kv_heads, type=_type_of("new_k", new_k),
                      dim=new_k.shape[-1], cache=name, page=page, groups=groups, tokens_first=tokens_first, plain=plain)
    torch.ops.tilusc.attention_append(new_k, new_v, slots, k, v, problem, scales)


torch.library.register_autograd("tilusc::attention", _gradient, setup_context=_keep, lib=_library)
for _name, _run, _fake in (("attention", _attention, _fake_attention),
                           ("attention_backward", _backward, _fake_backward),
                           ("attention_decode", _decode, _fake_decode),
                           ("attention_append", _append, lambda *_: None)):
    for _key in ("CUDA", "CPU"):        # which is refused by name
        _library.impl(_name, _run, _key)
    torch.library.register_fake(f"tilusc::{_name}", _fake, lib=_library)
