"""bitsandbytes: NF4 and FP4, also with double quantization, and LLM.int8."""
from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np

from .files import is_count, parse_json
from .layer import Layer
from .weight import QuantizedWeight


def read(layer: Layer) -> QuantizedWeight:
    state = _state(layer)
    n, k, block = _extents(layer, state)
    raw = layer.store.bits(layer.name("weight"), ("U8",)).reshape(-1)
    if raw.size * 2 != n * k:
        raise layer.error("weight", "bytes", raw.size, f"{n * k / 2:g} for {n} x {k}")
    codes = np.stack([raw >> 4, raw & 15], axis=1).reshape(n, k)
    absmax = _absmax(layer, state)
    if absmax.shape != (-(-n * k // block),):
        raise layer.error("weight.absmax", "shape", list(absmax.shape), [-(-n * k // block)])
    if k % block == 0:
        scales, group = absmax.reshape(n, -1), block
    elif block % k == 0:
        scales, group = absmax[np.arange(n) // (block // k)].reshape(n, 1), k
    else:
        raise layer.error("weight", f"blocks of {block} cross rows of {k} columns, which has no"
                          " exact mapping to groups")
    table = layer.store.floats(layer.name("weight.quant_map"))
    return QuantizedWeight(n, k, "u4", codes, scales, group, bias=layer.bias(n),
                           codebook=layer.expect("weight.quant_map", table, (16,)),
                           scales_type="f32", source=layer.source("weight", **_known(state)))


def _known(state: Dict[str, Any]) -> Dict[str, object]:
    return {"quant_type": str(state.get("quant_type"))[:20]}


def _state(layer: Layer) -> Dict[str, Any]:
    for kind in ("nf4", "fp4"):
        suffix = "weight.quant_state.bitsandbytes__" + kind
        if layer.has(suffix):
            text = layer.store.bits(layer.name(suffix), ("U8",)).tobytes()
            return parse_json(text, layer.store.path, layer.name(suffix))
    raise layer.error("weight.quant_state.bitsandbytes__nf4", "there is no such tensor, and none"
                      " of fp4, which says what the shape is")


def _extents(layer: Layer, state: Dict[str, Any]) -> Tuple[int, int, int]:
    shape, block = state.get("shape"), state.get("blocksize")
    if (not isinstance(shape, list) or len(shape) != 2 or not all(map(is_count, shape))
            or 0 in shape):
        raise layer.error("weight", "shape of the quantization state", shape, "two extents")
    return shape[0], shape[1], layer.number("blocksize", block, 1, 1 << 30)


def _absmax(layer: Layer, state: Dict[str, Any]) -> np.ndarray:
    """Returns absmax of each block; of double quantization in f64, rounded to f32."""
    if layer.dtype("weight.absmax") != "U8":
        return layer.store.floats(layer.name("weight.absmax"), dtypes=("F32",))
    codes = layer.store.bits(layer.name("weight.absmax"), ("U8",)).reshape(-1)
    table = layer.store.floats(layer.name("weight.nested_quant_map"), dtypes=("F32",))
    nested = layer.store.floats(layer.name("weight.nested_absmax"), dtypes=("F32",))
    block = layer.number("nested_blocksize", state.get("nested_blocksize", 256), 1, 1 << 30)
    offset = state.get("nested_offset")
    if type(offset) not in (int, float) or abs(offset) > 1e38:
        raise layer.error("weight", "nested_offset", offset, "a number")
    layer.expect("weight.nested_quant_map", table, (256,))
    layer.expect("weight.nested_absmax", nested, (-(-codes.size // block),))
    factors = nested.astype(np.float64)[np.arange(codes.size) // block]
    with np.errstate(over="ignore", invalid="ignore"):
        return (table.astype(np.float64)[codes] * factors + float(offset)).astype(np.float32)


def read_int8(layer: Layer) -> QuantizedWeight:
    """Reads LLM.int8: w = code * SCB / 127, with SCB / 127 in f64."""
    raw = layer.bits("weight", ("I8",), 2)
    n, k = raw.shape
    scales = layer.expect("SCB", layer.floats("SCB"), (n,)).astype(np.float64).reshape(n, 1) / 127
    return QuantizedWeight(n, k, "i8", raw.view(np.uint8), scales, max(k, 1), scales_type="f64",
                           bias=layer.bias(n), source=layer.source("weight"))
