"""compressed-tensors: pack-quantized in its three layouts, int, float, naive, nvfp4, mxfp."""
from __future__ import annotations

import re
from typing import Any, Dict, Iterator, Optional, Tuple

import numpy as np

from .bits import unpack_gapped, unpack_stream
from .errors import FormatError, shorten
from .layer import Layer, matches, section
from .weight import QuantizedWeight, integer_weight

_STREAMS = (0, 18)      # the first version that packs codes as streams
_OFFLINE = ("weight_input", "weight_output")    # locations of transforms that the file's weights have had


def why_transformed(config: Dict[str, Any]) -> Optional[str]:
    """Returns why products with a checkpoint's weights are not the model's: transform_config has activations transformed
    while it runs. None: it has not."""
    for location in _locations(config.get("transform_config") or {}):
        if location not in _OFFLINE:
            return f"transform_config rotates activations, at {shorten(location)}, which has no exact mapping"
    return None


def _locations(transforms: Any) -> Iterator[object]:
    """Returns where transforms are applied; None stands for what is no description of one."""
    groups = transforms.get("config_groups", {}) if isinstance(transforms, dict) else None
    for scheme in groups.values() if isinstance(groups, dict) else [None]:
        applied = scheme.get("apply") if isinstance(scheme, dict) else None
        for place in applied if isinstance(applied, list) else [applied]:
            yield place.get("location") if isinstance(place, dict) else None


def scheme_of(layer: Layer) -> Dict[str, Any]:
    """Returns the `weights` of the configuration's group that the module is in; {} if there is none."""
    return section(group_of(layer.config, layer.module), "weights")


def group_of(config: Dict[str, Any], module: str) -> Dict[str, Any]:
    """Returns the configuration's group that a module is in; {} if there is none. Names and patterns come before
    classes like "Linear"."""
    groups = [x for x in section(config, "config_groups").values() if isinstance(x, dict)]
    named = [x for x in groups if any(_names(t, module) for t in _targets(x))]
    classes = [x for x in groups if any(_is_class(t) for t in _targets(x))]
    return (named + classes + [{}])[0]


def _targets(group: Dict[str, Any]):
    targets = group.get("targets")
    return [x for x in targets if isinstance(x, str)] if isinstance(targets, list) else []


def _names(target: str, module: str) -> bool:
    return matches(target[3:], module) if target.startswith("re:") else target == module


def _is_class(target: str) -> bool:
    return target[:1].isupper() and "." not in target


def read_packed(layer: Layer) -> QuantizedWeight:
    """Reads `weight_packed` of any kind: its type and that of the scales say which."""
    kinds = {("I32", True): _read_integers, ("U8", True): _read_nvfp4, ("U8", False): _read_mxfp}
    scale = layer.dtype("weight_scale")
    kind = (layer.dtype("weight_packed"), scale not in ("U8", "F8_E8M0"))
    if kind not in kinds:
        raise layer.error("weight_packed", "dtype", layer.dtype("weight_packed"), "I32 or U8")
    return kinds[kind](layer)


# ---- integers in words ----

def _read_integers(layer: Layer) -> QuantizedWeight:
    words = layer.bits("weight_packed", ("I32",), 2)
    scheme = scheme_of(layer)
    n, k = _shape(layer, words)
    bits = _bits(layer, scheme, words.shape[1], k)
    gapped = _is_gapped(layer, words.shape[1], k, bits)
    codes = (unpack_gapped if gapped else unpack_stream)(words, k, bits)
    scales, group = layer.grid("weight_scale", layer.floats("weight_scale"), n, k, _group(scheme))
    zeros = _read_zeros(layer, n, scales.shape[1], bits, gapped)
    codes, permutation = layer.order("weight_g_idx", codes, scales.shape[1], group)
    return integer_weight(codes, zeros, bits, n=n, k=k, scales=scales, group=group,
                          permutation=permutation, scales_type=layer.type("weight_scale"),
                          bias=layer.bias(n), source=layer.source("weight_packed", gapped=gapped))


def _group(scheme: Dict[str, Any]) -> Optional[int]:
    group = scheme.get("group_size")
    return group if (type(group) is int and group > 0
                     and scheme.get("strategy") in (None, "group")) else None


def _shape(layer: Layer, words: np.ndarray) -> Tuple[int, int]:
    if not layer.has("weight_shape"):
        raise layer.error("weight_shape", "there is no such tensor, which says how many columns"
                          " there are")
    shape = layer.store.bits(layer.name("weight_shape"), ("I64", "I32"))
    if shape.size < 2 or shape.ndim != 1:
        raise layer.error("weight_shape", "shape", list(shape.shape), [2])
    n, k = int(shape[-2]), int(shape[-1])
    if n != words.shape[0] or not 0 < k <= 32 * words.shape[1]:
        raise layer.error("weight_shape", "value", [n, k],
                          f"that of weight_packed, {list(words.shape)}")
    return n, k


def _bits(layer: Layer, scheme: Dict[str, Any], words: int, k: int) -> int:
    if "num_bits" in scheme:
        return layer.number("num_bits", scheme["num_bits"], 1, 8)
    fits = [b for b in range(1, 9) if words in (-(-k * b // 32), -(-k // (32 // b)))]
    if len(fits) != 1:
        raise layer.error("weight_packed", f"the configuration has no num_bits, and {words} words"
                          f" for {k} codes may be of {fits or 'no number of'} bits")
    return fits[0]


def _is_gapped(layer: Layer, words: int, k: int, bits: int) -> bool:
    """Tells the layout of versions before 0.18, whose words have 32 // bits codes each, from streams
    by the count of words, which decides for all but few columns, or else by the version."""
    stream, gapped = -(-k * bits // 32), -(-k // (32 // bits))
    if words not in (stream, gapped):
        raise layer.error("weight_packed", "words of a row", words,
                          f"{stream} or {gapped} for {k} codes of {bits} bits")
    if stream != gapped or 32 % bits == 0:
        return words != stream
    text = layer.config.get("version")
    version = re.match(r"(\d{1,9})\.(\d{1,9})", text) if isinstance(text, str) else None
    if version is None:
        raise layer.error("weight_packed", f"{k} codes of {bits} bits take {words} words in two"
                          " layouts, and the configuration has no version to tell them apart")
    return tuple(map(int, version.groups())) < _STREAMS


def _read_zeros(layer: Layer, n: int, groups: int, bits: int, gapped: bool) -> Optional[np.ndarray]:
    if not layer.has("weight_zero_point"):
        return None
    suffix = "weight_zero_point"
    if layer.dtype(suffix) == "I8":
        zeros = layer.bits(suffix, ("I8",), 2).astype(np.int16) + (1 << (bits - 1))
        return layer.expect(suffix, zeros, (n, groups))
    words = layer.bits(suffix, ("I32",), 2)
    layer.expect(suffix, words, (-(-n // (32 // bits)) if gapped else -(-n * bits // 32), groups))
    return (unpack_gapped if gapped else unpack_stream)(np.ascontiguousarray(words.T), n, bits).T


# ---- floats of 4 and 6 bits ----

def _read_nvfp4(layer: Layer) -> QuantizedWeight:
    codes = unpack_stream(layer.bits("weight_packed", ("U8",), 2),
                          2 * layer.store.shape(layer.name("weight_packed"))[-1], 4)
    n, k = codes.shape
    scales = layer.expect("weight_scale", layer.floats("weight_scale", ("F8_E4M3",)), (n, -(-k // 16)))
    divisor = layer.scalar("weight_global_scale")
    if not divisor > 0 or not np.isfinite(divisor):
        raise layer.error("weight_global_scale", "value", divisor, "positive: it divides")
    return QuantizedWeight(n, k, "f4e2m1", codes, scales, 16, global_scale=divisor,
                           global_divides=True, scales_type="f8e4m3", bias=layer.bias(n),
                           source=layer.source("weight_packed"))


def _read_mxfp(layer: Layer) -> QuantizedWeight:
    raw = layer.bits("weight_packed", ("U8",), 2)
    scales = layer.powers("weight_scale")
    n, k = raw.shape[0], 32 * scales.shape[1]
    layer.expect("weight_scale", scales, (n, k // 32))
    kinds = {k // 2: (4, "f4e2m1"), 3 * k // 4: (6, "f6e2m3")}
    if k == 0 or raw.shape[1] not in kinds:
        raise layer.error("weight_packed", "bytes of a row", raw.shape[1],
                          f"{k // 2} (mxfp4) or {3 * k // 4} (mxfp6) for {k} columns")
    bits, type_ = kinds[raw.shape[1]]
    return QuantizedWeight(n, k, type_, unpack_stream(raw, k, bits), scales, 32,
                           scales_type="ue8m0", bias=layer.bias(n),
                           source=layer.source("weight_packed"))


# ---- a byte a code ----

def read_bytes(layer: Layer) -> QuantizedWeight:
    """Reads `weight` of I8 or F8 with `weight_scale`: int, float and naive-quantized, mxfp8, and
    ModelOpt's FP8."""
    raw = layer.bits("weight", ("I8", "F8_E4M3", "F8_E5M2"), 2)
    n, k = raw.shape
    if n == 0 or k == 0:
        raise layer.error("weight", "shape", [n, k], "one with elements")
    scheme = scheme_of(layer)
    if layer.dtype("weight_scale") in ("U8", "F8_E8M0"):
        scales, group = layer.expect("weight_scale", layer.powers("weight_scale"), (n, -(-k // 32))), 32
        type_ = "ue8m0"
    else:
        values = layer.floats("weight_scale")
        scales, group = layer.grid("weight_scale", values, n, k, _group(scheme),
                                   _block(layer, scheme, values))
        type_ = layer.type("weight_scale")
    common = dict(scales=scales, group=group, scales_type=type_, bias=layer.bias(n),
                  source=layer.source("weight"))
    if raw.dtype != np.int8:
        return QuantizedWeight(n, k, layer.type("weight"), raw, zeros=_byte_zeros(layer, scales),
                               **common)
    bits = layer.number("num_bits", scheme.get("num_bits", 8), 2, 8)
    if raw.min() < -(1 << (bits - 1)) or raw.max() >= 1 << (bits - 1):
        raise layer.error("weight", "codes", f"{raw.min()} .. {raw.max()}", f"of {bits} bits")
    codes = raw.view(np.uint8) & np.uint8((1 << bits) - 1)
    return QuantizedWeight(n, k, f"i{bits}", codes, zeros=_byte_zeros(layer, scales), **common)


def _byte_zeros(layer: Layer, scales: np.ndarray) -> Optional[np.ndarray]:
    if not layer.has("weight_zero_point"):
        return None
    zeros = layer.store.bits(layer.name("weight_zero_point"), ("I8",), index=layer.expert)
    if not zeros.any():
        return None
    if zeros.size == 1:
        return np.full(scales.shape, int(zeros.reshape(())[()]), np.int16)
    zeros = zeros.reshape(-1, 1) if zeros.ndim == 1 else zeros
    return layer.expect("weight_zero_point", zeros, scales.shape).astype(np.int16)


def _block(layer: Layer, scheme: Dict[str, Any], values: np.ndarray) -> Optional[Tuple[int, int]]:
    if scheme.get("strategy") != "block":
        return None
    sizes = scheme.get("block_structure")
    if not isinstance(sizes, list) or len(sizes) != 2:
        raise FormatError(layer.store.path, layer.module, "block_structure", sizes, "two extents")
    return (layer.number("block_structure", sizes[0], 1, 1 << 20),
            layer.number("block_structure", sizes[1], 1, 1 << 20))
