"""Tilus's own layout, which tilus-quantize writes for types that no other format has."""
from __future__ import annotations

from typing import Optional, Tuple

import numpy as np

from .bits import unpack_stream
from .errors import FormatError
from .layer import Layer
from .types import is_code_type, type_bits, type_values
from .weight import QuantizedWeight
from .write import VERSION


def read(layer: Layer) -> QuantizedWeight:
    weights = _type(layer)
    bits = type_bits(weights)
    packed = layer.bits("weight_codes", ("U8",), 2)
    n, k = _shape(layer, packed, bits)
    group = min(layer.number("group", layer.config.get("group"), 0, 1 << 40) or k, k)
    scales = layer.floats("weight_scales", ("F16", "BF16"))
    layer.expect("weight_scales", scales, (n, -(-k // group)))
    return QuantizedWeight(n, k, weights, unpack_stream(packed, k, bits), scales, group,
                           zeros=_zeros(layer, weights, scales), scales_type=layer.type("weight_scales"),
                           bias=layer.bias(n), source=layer.source("weight_codes"))


def _type(layer: Layer) -> str:
    layer.number("version", layer.config.get("version"), 1, VERSION)
    weights = layer.config.get("weights")
    if not is_code_type(weights):
        raise FormatError(layer.store.path, layer.module, "weights of the configuration", weights,
                          "u1 to u8, i1 to i8 or f3e1m1 to f8e7m0")
    return weights


def _shape(layer: Layer, packed: np.ndarray, bits: int) -> Tuple[int, int]:
    shape = layer.expect("weight_shape", layer.bits("weight_shape", ("I64",), 1), (2,))
    n, k = int(shape[0]), int(shape[1])
    if n != packed.shape[0] or k < 1 or -(-k * bits // 8) != packed.shape[1]:
        raise layer.error("weight_shape", "value", [n, k], f"that of weight_codes, {list(packed.shape)}")
    return n, k


def _zeros(layer: Layer, weights: str, scales: np.ndarray) -> Optional[np.ndarray]:
    if not layer.has("weight_zeros"):
        return None
    if layer.dtype("weight_zeros") != "U8":
        return layer.expect("weight_zeros", layer.floats("weight_zeros", ("F16", "BF16")), scales.shape)
    zeros = layer.expect("weight_zeros", layer.bits("weight_zeros", ("U8",), 2), scales.shape)
    values = type_values(weights)
    if weights[0] != "u" or zeros.size and zeros.max() >= len(values):
        raise layer.error("weight_zeros", "a zero point", zeros.max(initial=0), f"a code of {weights}")
    return zeros.astype(np.int16)
