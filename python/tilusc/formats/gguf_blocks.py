"""GGUF's block types: bytes of blocks [n, blocks, bytes] to codes, scales, minimums.

As the type's kernels of ggml mean them; h16 reads the f16 scales. Scales of two levels become one
in f32, which holds the product of an f16 and an integer of 8 bits exactly."""
from __future__ import annotations

from typing import Callable, Dict, NamedTuple, Optional, Tuple

import numpy as np

from .types import type_values

IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
                      np.float32)


class Blocks(NamedTuple):
    """Codes [n, k], and scales [n, groups] with what else QuantizedWeight has."""

    weights: str
    codes: np.ndarray
    scales: np.ndarray
    group: int
    scales_type: str = "f16"
    minimums: Optional[np.ndarray] = None
    zeros: Optional[np.ndarray] = None
    codebook: Optional[np.ndarray] = None


def h16(b: np.ndarray, at: int) -> np.ndarray:
    """Returns the f16 at byte `at` of each block, as f32 [n, blocks]."""
    return np.ascontiguousarray(b[:, :, at:at + 2]).view(np.float16)[:, :, 0].astype(np.float32)


def flat(parts: np.ndarray) -> np.ndarray:
    """Joins all but the first dimension."""
    return np.ascontiguousarray(parts).reshape(parts.shape[0], -1)


def halves(b: np.ndarray, at: int, size: int = 16) -> np.ndarray:
    """Returns low nibbles of `size` bytes, then their high ones: [n, blocks, 2 * size]."""
    raw = b[:, :, at:at + size]
    return np.concatenate([raw & 15, raw >> 4], axis=2)


def bits_at(b: np.ndarray, at: int, size: int) -> np.ndarray:
    """Returns the bits of `size` bytes, lowest first."""
    return np.unpackbits(b[:, :, at:at + size], axis=2, bitorder="little")


def quarters(b: np.ndarray, at: int) -> np.ndarray:
    """Returns fields of 2 bits of 64 bytes: element 128h + 32j + l is field j of byte 32h + l."""
    raw = b[:, :, at:at + 64].reshape(b.shape[0], b.shape[1], 2, 1, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(4, 1)
    return ((raw >> shifts) & 3).reshape(b.shape[0], b.shape[1], 256)


def q4_0(b):
    return Blocks("i4", flat(halves(b, 2) ^ 8), h16(b, 0), 32)


def q4_1(b):
    return Blocks("u4", flat(halves(b, 4)), h16(b, 0), 32, minimums=h16(b, 2))


def q5_0(b):
    codes = halves(b, 6) | bits_at(b, 2, 4) << np.uint8(4)
    return Blocks("i5", flat(codes ^ 16), h16(b, 0), 32)


def q5_1(b):
    codes = halves(b, 8) | bits_at(b, 4, 4) << np.uint8(4)
    return Blocks("u5", flat(codes), h16(b, 0), 32, minimums=h16(b, 2))


def q8_0(b):
    return Blocks("i8", flat(b[:, :, 2:34]), h16(b, 0), 32)


def q2_k(b):
    scales = h16(b, 80)[:, :, None] * (b[:, :, :16] & 15)
    minimums = -h16(b, 82)[:, :, None] * (b[:, :, :16] >> 4)
    return Blocks("u2", flat(quarters(b, 16)), flat(scales), 16, "f32", flat(minimums))


def q3_k(b):
    low = halves(b, 96, 8)
    raw = b[:, :, 104:108]
    high = np.concatenate([(raw >> s) & 3 for s in (0, 2, 4, 6)], axis=2)
    scales = h16(b, 108)[:, :, None] * ((low | high << np.uint8(4)).astype(np.int8) - 32)
    mask = bits_at(b, 0, 32).reshape(b.shape[0], b.shape[1], 32, 8)
    above = np.swapaxes(mask, 2, 3).reshape(b.shape[0], b.shape[1], 256)
    codes = quarters(b, 32) | ((above ^ 1) << np.uint8(2))
    return Blocks("i3", flat(codes), flat(scales), 16, "f32")


def k_scales(q: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Returns 8 scales and 8 minimums of 6 bits each in 12 bytes."""
    scales = np.concatenate([q[..., :4] & 63, (q[..., 8:] & 15) | (q[..., :4] >> 6) << 4], axis=-1)
    minimums = np.concatenate([q[..., 4:8] & 63, (q[..., 8:] >> 4) | (q[..., 4:8] >> 6) << 4], axis=-1)
    return scales, minimums


def nibbles_64(b: np.ndarray, at: int) -> np.ndarray:
    """Returns nibbles of 128 bytes: each 32 bytes have 32 low ones, then 32 high ones."""
    raw = b[:, :, at:at + 128].reshape(b.shape[0], b.shape[1], 4, 1, 32)
    shifts = np.array([0, 4], np.uint8).reshape(2, 1)
    return ((raw >> shifts) & 15).reshape(b.shape[0], b.shape[1], 256)


def _k_form(b, name, codes):
    scales, minimums = k_scales(b[:, :, 4:16])
    return Blocks(name, flat(codes), flat(h16(b, 0)[:, :, None] * scales), 32, "f32",
                  flat(-h16(b, 2)[:, :, None] * minimums))


def q4_k(b):
    return _k_form(b, "u4", nibbles_64(b, 16))


def q5_k(b):
    high = bits_at(b, 16, 32).reshape(b.shape[0], b.shape[1], 32, 8)
    high = np.swapaxes(high, 2, 3).reshape(b.shape[0], b.shape[1], 256)
    return _k_form(b, "u5", nibbles_64(b, 48) | high << np.uint8(4))


def q6_k(b):
    raw = b[:, :, :128].reshape(b.shape[0], b.shape[1], 2, 1, 64)
    low = ((raw >> np.array([0, 4], np.uint8).reshape(2, 1)) & 15).reshape(b.shape[0], b.shape[1], 256)
    scales = h16(b, 208)[:, :, None] * b[:, :, 192:208].view(np.int8)
    codes = (low | quarters(b, 128) << np.uint8(4)) ^ 32
    return Blocks("i6", flat(codes), flat(scales), 16, "f32")


def iq4_nl(b):
    return Blocks("u4", flat(halves(b, 2)), h16(b, 0), 32, codebook=IQ4_VALUES)


def iq4_xs(b):
    low = b[:, :, 4:8]
    low = np.stack([low & 15, low >> 4], axis=3).reshape(b.shape[0], b.shape[1], 8)
    high = np.ascontiguousarray(b[:, :, 2:4]).view("<u2").astype(np.uint16)
    high = (high >> (2 * np.arange(8, dtype=np.uint16))) & 3
    scales = h16(b, 0)[:, :, None] * ((low | high.astype(np.uint8) << 4).astype(np.int8) - 32)
    raw = b[:, :, 8:136].reshape(b.shape[0], b.shape[1], 8, 16)
    codes = np.concatenate([raw & 15, raw >> 4], axis=3)
    return Blocks("u4", flat(codes), flat(scales), 32, "f32", codebook=IQ4_VALUES)


def tq1_0(b):
    powers = np.array([1, 3, 9, 27, 81], np.uint8).reshape(5, 1)
    parts = [flat_digits(b[:, :, :32], powers), flat_digits(b[:, :, 32:48], powers),
             flat_digits(b[:, :, 48:52], powers[:4])]
    return ternary(np.concatenate(parts, axis=2), h16(b, 52), 256)


def flat_digits(raw: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Returns digits in base 3, the highest of all bytes first."""
    moved = (raw[:, :, None, :] * powers).astype(np.uint16) & 255
    return ((moved * 3) >> 8).astype(np.uint8).reshape(raw.shape[0], raw.shape[1], -1)


def ternary(fields: np.ndarray, scales: np.ndarray, group: int) -> Blocks:
    """Makes i2 of fields 0, 1, 2 that mean -1, 0, 1; u2 with zero point 1 where a field is 3."""
    if np.any(fields == 3):
        return Blocks("u2", flat(fields), scales, group, zeros=np.ones(scales.shape, np.int16))
    return Blocks("i2", flat((fields - np.uint8(1)) & 3), scales, group)


def tq2_0(b):
    return ternary(quarters(b, 0), h16(b, 64), 256)


def mxfp4(b):
    return Blocks("f4e2m1", flat(halves(b, 1)), np.ldexp(1.0, b[:, :, 0].astype(np.int32) - 127), 32,
                  "ue8m0")


def nvfp4(b):
    raw = b[:, :, 4:36].reshape(b.shape[0], b.shape[1], 4, 8)
    codes = np.concatenate([raw & 15, raw >> 4], axis=3)
    table = np.abs(type_values("f8e4m3")).astype(np.float32)
    table[[127, 255]] = 0, 480      # as ggml reads them: a sign is no part of the scale
    return Blocks("f4e2m1", flat(codes), flat(table[b[:, :, :4]]), 16, "f8e4m3")


def q1_0(b):
    scales = 2 * h16(b, 0)
    return Blocks("u1", flat(bits_at(b, 2, 16)), scales, 128, zeros=np.full(scales.shape, 0.5, "f4"))


def q2_0(b):
    fields = np.stack([(b[:, :, 2:18] >> s) & 3 for s in (0, 2, 4, 6)], axis=3)
    return ternary(fields, h16(b, 0), 64)


DECODERS: Dict[str, Callable[[np.ndarray], Blocks]] = {
    "Q4_0": q4_0, "Q4_1": q4_1, "Q5_0": q5_0, "Q5_1": q5_1, "Q8_0": q8_0, "Q2_K": q2_k,
    "Q3_K": q3_k, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k, "IQ4_NL": iq4_nl, "IQ4_XS": iq4_xs,
    "TQ1_0": tq1_0, "TQ2_0": tq2_0, "MXFP4": mxfp4, "NVFP4": nvfp4, "Q1_0": q1_0, "Q2_0": q2_0}
