"""AWQ: gemm. gemv and gemv_fast are refused by name, so is ParoQuant's rotation."""
from __future__ import annotations

import numpy as np

from .bits import row_bytes, unpack_stream
from .errors import FormatError
from .layer import Layer
from .weight import QuantizedWeight, integer_weight

# Column 8c + j is in nibble NIBBLE[j] of word c; zero points alike.
NIBBLE = np.array([0, 4, 1, 5, 2, 6, 3, 7])


def read(layer: Layer) -> QuantizedWeight:
    version = str(layer.config.get("version", "gemm")).lower()
    if version != "gemm":
        raise FormatError(layer.store.path, layer.module, "AWQ's version", version,
                          "gemm: gemv and gemv_fast are not read")
    if layer.has("theta") or layer.has("pairs"):
        raise layer.error("theta", "ParoQuant rotates activations before the product, which has"
                          " no exact mapping")
    layer.number("bits", layer.config.get("bits", layer.config.get("w_bit", 4)), 4, 4)
    words = layer.bits("qweight", ("I32",), 2)
    k, n = words.shape[0], 8 * words.shape[1]
    scales = layer.floats("scales")
    if scales.ndim != 2 or scales.shape[1] != n or 0 in scales.shape or k == 0:
        raise layer.error("scales", "shape", list(scales.shape), f"[groups, {n}]")
    groups = scales.shape[0]
    if k % groups:
        raise layer.error("scales", "groups", groups, f"a divisor of {k} columns")
    codes, zeros = _unpack(words), None
    if layer.has("qzeros"):
        fields = layer.bits("qzeros", ("I32",), 2)
        zeros = _unpack(layer.expect("qzeros", fields, (groups, n // 8)))
    return integer_weight(np.ascontiguousarray(codes), zeros, 4, n=n, k=k, group=k // groups,
                          scales=np.ascontiguousarray(scales.T), scales_type=layer.type("scales"),
                          bias=layer.bias(n), source=layer.source("qweight"))


def _unpack(words: np.ndarray) -> np.ndarray:
    """Returns codes [columns, rows] of words [rows, columns / 8]."""
    nibbles = unpack_stream(row_bytes(words), 8 * words.shape[1], 4)
    nibbles = nibbles.reshape(words.shape[0], words.shape[1], 8)[:, :, NIBBLE]
    return nibbles.reshape(words.shape[0], -1).T
