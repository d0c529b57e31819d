"""Layers of 8-bit tensors that hold smaller codes or scales in blocks: gpt-oss' MXFP4, ModelOpt's
NVFP4 and INT4, DeepSeek's FP8 blocks, BitNet b1.58."""
from __future__ import annotations

import numpy as np

from .bits import unpack_stream
from .errors import FormatError
from .gguf_blocks import ternary
from .layer import Layer
from .weight import QuantizedWeight


def read_gpt_oss(layer: Layer) -> QuantizedWeight:
    """Reads NAME_blocks [experts, n, k / 32, 16] and NAME_scales [experts, n, k / 32]."""
    blocks = layer.bits(layer.main, ("U8",), 3)
    suffix = layer.main.replace("blocks", "scales")
    if blocks.shape[2] != 16 or 0 in blocks.shape:
        raise layer.error(layer.main, "bytes of a block", blocks.shape[2], "16")
    n, k = blocks.shape[0], 32 * blocks.shape[1]
    scales = layer.expect(suffix, layer.powers(suffix), (n, k // 32))
    return QuantizedWeight(n, k, "f4e2m1", unpack_stream(blocks.reshape(n, -1), k, 4), scales, 32,
                           scales_type="ue8m0", bias=layer.bias(n, layer.main.replace("blocks", "bias")),
                           source=layer.source(layer.main))


def read_nvfp4(layer: Layer) -> QuantizedWeight:
    """Reads ModelOpt's NVFP4, which multiplies by weight_scale_2."""
    raw = layer.bits("weight", ("U8",), 2)
    codes = unpack_stream(raw, 2 * raw.shape[1], 4)
    n, k = codes.shape
    _refuse_pre_scale(layer)
    scales = layer.floats("weight_scale", ("F8_E4M3",))
    layer.expect("weight_scale", scales, (n, -(-k // 16)))
    return QuantizedWeight(n, k, "f4e2m1", codes, scales, 16, scales_type="f8e4m3",
                           global_scale=layer.scalar("weight_scale_2"), bias=layer.bias(n),
                           source=layer.source("weight"))


def _refuse_pre_scale(layer: Layer) -> None:
    if layer.has("pre_quant_scale"):
        raise layer.error("pre_quant_scale", "activations are multiplied by it before the product,"
                          " which has no exact mapping")


def read_u8(layer: Layer) -> QuantizedWeight:
    """Reads weight of U8 with weight_scale: BitNet where that is one number, else INT4."""
    if layer.dtype("weight") != "U8":
        from .compressed_tensors import read_bytes
        return read_bytes(layer)
    if int(np.prod(layer.store.shape(layer.name("weight_scale")), dtype=object)) == 1:
        return _read_bitnet(layer)
    return _read_int4(layer)


def _read_int4(layer: Layer) -> QuantizedWeight:
    raw = layer.bits("weight", ("U8",), 2)
    n, k = 2 * raw.shape[0], raw.shape[1]
    if n == 0 or k == 0:
        raise layer.error("weight", "shape", [n // 2, k], "one with elements")
    _refuse_pre_scale(layer)
    codes = np.stack([raw & 15, raw >> 4], axis=1).reshape(n, k)
    scales, group = layer.grid("weight_scale", layer.floats("weight_scale"), n, k)
    return QuantizedWeight(n, k, "i4", codes, scales, group, scales_type=layer.type("weight_scale"),
                           bias=layer.bias(n), source=layer.source("weight"))


def _read_bitnet(layer: Layer) -> QuantizedWeight:
    """Reads rows r + i * n / 4 in bits 2i of row r; bitlinear divides by weight_scale."""
    kind = layer.config.get("linear_class", "bitlinear")
    if kind not in ("bitlinear", "autobitlinear"):
        raise FormatError(layer.store.path, layer.module, "linear_class", kind,
                          "bitlinear or autobitlinear")
    raw = layer.bits("weight", ("U8",), 2)
    n, k = 4 * raw.shape[0], raw.shape[1]
    if n == 0 or k == 0:
        raise layer.error("weight", "shape", [n // 4, k], "one with elements")
    fields = np.concatenate([(raw >> s) & 3 for s in (0, 2, 4, 6)])
    if np.any(fields == 3):
        raise layer.error("weight", "a field", 3, "0, 1 or 2")
    factor = layer.scalar("weight_scale")
    divides = kind == "bitlinear"
    if divides and factor == 0:
        raise layer.error("weight_scale", "value", factor, "other than 0: bitlinear divides by it")
    blocks = ternary(fields, np.ones((n, 1), np.float32), k)
    return QuantizedWeight(n, k, source=layer.source("weight", linear_class=kind),
                           global_scale=factor, global_divides=divides, bias=layer.bias(n),
                           **dict(blocks._asdict(), scales_type=layer.type("weight_scale")))


def read_fp8_blocks(layer: Layer) -> QuantizedWeight:
    """Reads DeepSeek's FP8: weight_scale_inv is a factor of blocks, 128 x 128 unless configured."""
    codes = layer.bits("weight", ("F8_E4M3", "F8_E5M2"), 2)
    n, k = codes.shape
    sizes = layer.config.get("weight_block_size", [128, 128])
    if not isinstance(sizes, list) or len(sizes) != 2 or 0 in codes.shape:
        raise FormatError(layer.store.path, layer.module, "weight_block_size", sizes, "two extents")
    block = tuple(layer.number("weight_block_size", x, 1, 1 << 20) for x in sizes)
    values = (layer.powers("weight_scale_inv") if layer.dtype("weight_scale_inv") in ("U8", "F8_E8M0")
              else layer.floats("weight_scale_inv"))
    scales, group = layer.grid("weight_scale_inv", values, n, k, block=block)
    return QuantizedWeight(n, k, layer.type("weight"), codes, scales, group,
                           scales_type=layer.type("weight_scale_inv"), bias=layer.bias(n),
                           source=layer.source("weight"))
