"""HQQ: groups along k (axis 1); float zero points."""
from __future__ import annotations

from typing import List, Optional, Tuple

import numpy as np

from .errors import FormatError
from .layer import Layer, section
from .weight import QuantizedWeight

# Packing: bits a code has, and the shifts at which a word's rows r, r + R', .. are.
PACKINGS = {"8bit_u8": (8, [0]), "4bit_u8": (4, [4, 0]), "2bit_u8": (2, [6, 4, 2, 0]),
            "1bit_u8": (1, list(range(7, -1, -1))), "3bit_32": (3, list(range(27, -1, -3)))}


def read(layer: Layer) -> QuantizedWeight:
    axis = _integer(layer, "axis", 1)
    if axis != 1:
        raise layer.error("W_q", f"axis {axis}: groups run over the flattened weight with a stride,"
                          " not along k, which has no exact mapping")
    if layer.has("view_as_float") and _integer(layer, "view_as_float", 0):
        raise layer.error("W_q", "view_as_float: bytes that were reinterpreted as floats are not read")
    n, k = _shape(layer)
    group = _integer(layer, "group_size", _configured(layer, "group_size"))
    if group is None or group < 1 or k % group:
        raise layer.error("W_q", "group_size", group, f"a divisor of {k} columns")
    bits, codes = _unpack(layer, n * k // group, group)
    type_bits = _integer(layer, "nbits", _configured(layer, "nbits")) or bits
    type_bits = layer.number("nbits", type_bits, 1, bits)
    if int(codes.max()) >> type_bits:
        raise layer.error("W_q", "largest code", int(codes.max()), f"of {type_bits} bits")
    groups = (n, k // group)
    scales, zeros = (_numbers(layer, x, groups) for x in ("scale", "zero"))
    return QuantizedWeight(n, k, f"u{type_bits}", codes.reshape(n, k), scales, group, zeros=zeros,
                           scales_type=layer.type("scale"), bias=layer.bias(n),
                           source=layer.source("W_q"))


def _numbers(layer: Layer, suffix: str, groups: Tuple[int, int]) -> np.ndarray:
    values = layer.floats(suffix)
    if values.size != groups[0] * groups[1]:
        raise layer.error(suffix, "count", values.size, groups[0] * groups[1])
    return values.reshape(groups)


def _configured(layer: Layer, key: str) -> Optional[int]:
    value = section(section(layer.config, "quant_config"), "weight_quant_params").get(key)
    return value if type(value) is int else None


def _integer(layer: Layer, suffix: str, default: Optional[int]) -> Optional[int]:
    if not layer.has(suffix):
        return default
    values = layer.store.bits(layer.name(suffix), ("I32", "I64", "U8", "BOOL", "I8"))
    if values.size != 1:
        raise layer.error(suffix, "shape", list(values.shape), "one integer")
    return int(values.reshape(())[()])


def _shape(layer: Layer) -> Tuple[int, int]:
    shape: List[int] = []
    if layer.has("shape"):
        shape = layer.store.bits(layer.name("shape"), ("I32", "I64")).reshape(-1).tolist()
    if len(shape) != 2 or min(shape) < 1:
        raise layer.error("shape", "value", shape, "two extents")
    return shape[0], shape[1]


def _packing(layer: Layer) -> str:
    if layer.has("packing"):
        raw = layer.store.bits(layer.name("packing"), ("U8",)).reshape(-1)
        return raw[:20].tobytes().decode("ascii", "replace")
    bits = _integer(layer, "nbits", _configured(layer, "nbits"))
    return {8: "8bit_u8", 6: "8bit_u8", 5: "8bit_u8", 4: "4bit_u8", 3: "3bit_32", 2: "2bit_u8",
            1: "1bit_u8"}.get(bits, str(bits))


def _unpack(layer: Layer, rows: int, columns: int) -> Tuple[int, np.ndarray]:
    """Returns the bits and the codes of the matrix of groups."""
    packing = _packing(layer)
    if packing not in PACKINGS:
        raise FormatError(layer.store.path, layer.module, "packing", packing, " or ".join(PACKINGS))
    bits, shifts = PACKINGS[packing]
    dtype = "I32" if packing == "3bit_32" else "U8"
    words = layer.bits("W_q", (dtype,), 2)
    height = -(-rows // len(shifts))
    layer.expect("W_q", words, (height, columns))
    if packing != "3bit_32" and rows % len(shifts):
        raise layer.error("W_q", "groups", rows, f"a multiple of {len(shifts)}")
    parts = [((words >> s) & ((1 << bits) - 1)).astype(np.uint8) for s in shifts]
    return bits, np.concatenate(parts)[:rows]
