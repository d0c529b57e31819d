"""GPTQ: version 1 (zero points less one), version 2, planar; with act-order. Also as AutoRound writes it."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np

from .bits import row_bytes, unpack_planar, unpack_stream
from .errors import FormatError
from .layer import Layer, matches, section
from .weight import QuantizedWeight, integer_weight

WORDS = {"I8": 8, "U8": 8, "I16": 16, "U16": 16, "I32": 32, "U32": 32, "I64": 64, "U64": 64}


def override_of(config: Dict[str, Any], module: str) -> Optional[Dict[str, Any]]:
    """Returns what `dynamic` sets for a module: the first pattern that matches its name decides. None: that pattern
    begins with "-:", which leaves the module as it is; {}: no pattern matches."""
    for pattern, override in section(config, "dynamic").items():
        if matches(pattern[2:] if pattern.startswith(("+:", "-:")) else pattern, module):
            return None if pattern.startswith("-:") else override if isinstance(override, dict) else {}
    return {}


def settings_of(layer: Layer) -> Dict[str, Any]:
    """Returns the configuration with the module's overrides: of `dynamic`, and of AutoRound's `extra_config`."""
    return {**layer.config, **(override_of(layer.config, layer.module) or {}),
            **section(section(layer.config, "extra_config"), layer.module)}


def _version(settings: Dict[str, Any]) -> object:
    """Returns the version that a configuration says; None: AutoRound's says nothing that is known. By itself AutoRound
    stores zero points as they are, in the form of AutoGPTQ less one."""
    if "auto-round" not in str(settings.get("quant_method")) or "checkpoint_format" in settings:
        return settings.get("checkpoint_format", "gptq")
    return {"auto_round": "gptq_v2", "auto_round:gptqmodel": "gptq_v2", "auto_round:auto_gptq": "gptq"}.get(
        str(settings.get("packing_format")))


def read(layer: Layer) -> QuantizedWeight:
    settings = settings_of(layer)
    version = _version(settings)
    if version not in ("gptq", "gptq_v2", "gptq_p", None):
        raise FormatError(layer.store.path, layer.module, "checkpoint_format", version,
                          "gptq, gptq_v2 or gptq_p")
    words = layer.bits("qweight", tuple(WORDS), 2)
    scales = layer.floats("scales")
    if scales.ndim != 2 or scales.shape[1] != words.shape[1] or 0 in scales.shape:
        raise layer.error("scales", "shape", list(scales.shape), f"[groups, {words.shape[1]}]")
    groups, n = scales.shape
    bits = _bits(layer, settings, n)
    k, group = _columns(layer, settings, words.shape[0] * WORDS[layer.dtype("qweight")], bits, groups)
    if version == "gptq_p":
        _check_planar(layer, k, n, words.shape[0] * WORDS[layer.dtype("qweight")] // 32, bits)
    codes, fields = _codes(words, k, bits, version), _fields(layer, n, groups, bits, version)
    zeros, kept = _zeros(fields, bits, version, settings.get("sym"))
    if kept is None:
        raise layer.error("qzeros", "AutoRound's packing_format", settings.get("packing_format"),
                          "auto_round, auto_round:gptqmodel or auto_round:auto_gptq, which say how zero points are stored")
    codes, permutation = layer.order("g_idx", codes, groups, group)
    return integer_weight(codes, zeros, bits, n=n, k=k, scales=np.ascontiguousarray(scales.T),
                          group=group, permutation=permutation, scales_type=layer.type("scales"),
                          bias=layer.bias(n), source=layer.source("qweight", zero_points=kept))


def _bits(layer: Layer, settings: Dict[str, Any], n: int) -> int:
    columns = layer.bits("qzeros", tuple(WORDS), 2).shape[1] * WORDS[layer.dtype("qzeros")]
    fits = [b for b in (2, 3, 4, 5, 6, 7, 8) if -(-n * b // 32) * 32 == columns or n * b == columns]
    if "bits" in settings:
        bits = layer.number("bits", settings["bits"], 2, 8)
        if bits not in fits:
            raise layer.error("qzeros", "bits of a row", columns, f"{n} codes of {bits} bits")
        return bits
    if len(fits) != 1:
        raise layer.error("qzeros", f"the configuration has no bits, and {columns} bits for {n}"
                          f" codes may be of {fits or 'no number of'} bits")
    return fits[0]


def _columns(layer: Layer, settings: Dict[str, Any], stored: int, bits: int,
             groups: int) -> Tuple[int, int]:
    """Returns k, of g_idx or of the codes that fit, and the group."""
    k = stored // bits
    if layer.has("g_idx"):
        shape = layer.store.shape(layer.name("g_idx"))
        k = shape[-1] if shape else 0
    if k == 0 or not k * bits <= stored < k * bits + 64:
        raise layer.error("qweight", "bits of a column", stored, f"{k} codes of {bits} bits")
    group = settings.get("group_size")
    if group in (None, -1):
        group = k if group == -1 or groups == 1 else -(-k // groups)
    group = min(layer.number("group_size", group, 1, 1 << 30), k)
    if -(-k // group) != groups:
        raise layer.error("scales", "groups", groups, f"{-(-k // group)}: {k} columns of {group}")
    return k, group


def _codes(words: np.ndarray, k: int, bits: int, version: object) -> np.ndarray:
    columns = np.ascontiguousarray(words.T)
    if version == "gptq_p":
        return unpack_planar(row_bytes(columns).view(np.uint32), bits)
    return unpack_stream(columns, k, bits)


def _fields(layer: Layer, n: int, groups: int, bits: int, version: object) -> np.ndarray:
    words = layer.bits("qzeros", tuple(WORDS), 2)
    if words.shape[0] != groups:
        raise layer.error("qzeros", "rows", words.shape[0], groups)
    if version == "gptq_p":
        return unpack_planar(row_bytes(words).view(np.uint32), bits).T
    return unpack_stream(words, n, bits).T


def _check_planar(layer: Layer, k: int, n: int, words: int, bits: int) -> None:
    if k % 32 or n % 32:
        raise layer.error("qweight", "the planar form's extents", [k, n], "multiples of 32")
    if words * 32 != k * bits:
        raise layer.error("qweight", "words of a column", words, k * bits // 32)


def _zeros(fields: np.ndarray, bits: int, version: object,
           symmetric: Optional[object]) -> Tuple[np.ndarray, Optional[str]]:
    """Returns zero points [n, groups] of the fields, and how they were stored, None where nothing says so.

    Version 1 stores them less one, modulo 2^bits. A symmetric file's fields tell its version
    whatever the configuration says: all are 2^(bits-1), or one less in version 1."""
    middle = 1 << (bits - 1)
    less_one = version == "gptq"
    if symmetric is True and np.all(fields == middle):
        less_one = False
    elif symmetric is True and version != "gptq_p" and np.all(fields == middle - 1):
        less_one = True
    elif version is None:
        return fields, None
    if less_one:
        return (fields + np.uint8(1)) & np.uint8((1 << bits) - 1), "less one"
    return fields, "plain"
