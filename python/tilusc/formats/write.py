"""Writes safetensors files, and weights as compressed-tensors or in Tilus's own layout."""
from __future__ import annotations

import contextlib
import json
import os
import struct
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

from .bits import pack_rows
from .safetensors import DTYPES
from .types import narrow, type_bits
from .weight import QuantizedWeight

VERSION = 1         # of Tilus's own layout


class Stored(NamedTuple):
    """A tensor as a file has it: the name of its type, its shape, an array of its bits."""

    dtype: str
    shape: Tuple[int, ...]
    bits: np.ndarray


def write_safetensors(path: str, tensors: Dict[str, Stored], metadata: Optional[Dict[str, str]] = None) -> None:
    """Writes a file under another name first, so that a file of this name is always whole."""
    header: Dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, (dtype, shape, bits) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + bits.nbytes]}
        at += bits.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    try:
        with open(path + ".part", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for stored in tensors.values():
                bits = np.ascontiguousarray(stored.bits)
                file.write(bits.astype(bits.dtype.newbyteorder("<"), copy=False).data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)
    except OSError as error:        # of a full disk, say, which what was written would keep full
        with contextlib.suppress(OSError):
            os.unlink(path + ".part")
        raise OSError(error.errno, error.strerror, path) from error


def store(dtype: str, values: np.ndarray) -> Stored:
    """Stores an array whose bits are of the type already."""
    return Stored(dtype, values.shape, values.view(DTYPES[dtype][1]))


def store_floats(values: np.ndarray, type_: str) -> Stored:
    """Stores values, which the type (f16 or bf16) holds."""
    return Stored(type_.upper(), values.shape, narrow(values, type_))


def is_integer(weights: str) -> bool:
    return weights[0] in "ui"


# ---- compressed-tensors ----

def why_own_layout(weights: str, zeros: str, group: int, widths: Iterable[int]) -> Optional[str]:
    """Says why compressed-tensors cannot hold matrices of such a scheme, of these numbers of columns;
    None: it can."""
    if not is_integer(weights) and weights != "f8e4m3":
        return f"it has no type {weights}"
    if zeros == "float":
        return "its zero points are integers"
    uneven = sorted({k for k in widths if group and k % group})
    return f"groups of {group} do not divide {uneven[0]} columns" if uneven else None


def compressed_config(weights: str, zeros: str, group: int, ignore: List[str]) -> Dict[str, Any]:
    """Returns quantization_config of compressed-tensors."""
    whole = is_integer(weights)
    form = "pack-quantized" if whole else "float-quantized"
    scheme = {"num_bits": type_bits(weights), "type": "int" if whole else "float",
              "symmetric": zeros == "none", "strategy": "group" if group else "channel",
              "group_size": group or None, "dynamic": False, "actorder": None}
    group_0 = {"targets": ["Linear"], "weights": scheme, "input_activations": None,
               "output_activations": None, "format": form}
    return {"quant_method": "compressed-tensors", "format": form, "version": "0.20.0",
            "quantization_status": "compressed", "ignore": ignore, "kv_cache_scheme": None,
            "config_groups": {"group_0": group_0}}


def compressed_tensors(module: str, weight: QuantizedWeight) -> Dict[str, Stored]:
    """Returns the tensors of a weight of integers with integer zero points or none, or of f8e4m3."""
    scales = store_floats(weight.scales, weight.scales_type)
    if not is_integer(weight.weights):
        return {module + ".weight": store("F8_E4M3", weight.codes), module + ".weight_scale": scales}
    bits = type_bits(weight.weights)
    middle = np.uint8(1 << (bits - 1) if weight.weights[0] == "i" else 0)
    tensors = {module + ".weight_packed": _words(weight.codes ^ middle, bits),
               module + ".weight_scale": scales,
               module + ".weight_shape": store("I64", np.array([weight.n, weight.k]))}
    if weight.zeros is not None:
        fields = _words(weight.zeros.T.astype(np.uint8), bits)
        tensors[module + ".weight_zero_point"] = store("I32", np.ascontiguousarray(fields.bits.T))
    return tensors


def _words(codes: np.ndarray, bits: int) -> Stored:
    """Packs rows of codes into 32-bit words, one stream a row."""
    return store("I32", pack_rows(codes, bits, 4).view(np.int32))


# ---- Tilus's own layout ----

def tilus_config(weights: str, zeros: str, group: int, ignore: List[str]) -> Dict[str, Any]:
    return {"quant_method": "tilus", "version": VERSION, "weights": weights, "group": group,
            "zeros": zeros, "ignore": ignore}


def tilus_tensors(module: str, weight: QuantizedWeight) -> Dict[str, Stored]:
    """Returns the tensors of any weight with scales of f16 or bf16 and zero points of the kind that
    they have."""
    tensors = {module + ".weight_codes": store("U8", pack_rows(weight.codes, type_bits(weight.weights), 1)),
               module + ".weight_scales": store_floats(weight.scales, weight.scales_type),
               module + ".weight_shape": store("I64", np.array([weight.n, weight.k]))}
    if weight.zeros is not None and weight.zeros.dtype.kind in "iu":
        tensors[module + ".weight_zeros"] = store("U8", weight.zeros.astype(np.uint8))
    elif weight.zeros is not None:
        tensors[module + ".weight_zeros"] = store_floats(weight.zeros, weight.scales_type)
    return tensors
