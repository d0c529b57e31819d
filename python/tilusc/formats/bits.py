"""Packed codes of 1 to 8 bits, to and from one byte a code.

A stream has code t of a row in the bits t * bits and up, lowest bits first, so 8 codes take `bits`
bytes. Functions work on blocks of rows, so that their memory stays near that of the result."""
from __future__ import annotations

from typing import List, Tuple

import numpy as np

BLOCK = 1 << 20     # codes that are unpacked at once


def row_bytes(words: np.ndarray) -> np.ndarray:
    """Views rows of little-endian words as rows of bytes."""
    words = np.ascontiguousarray(words)
    return words.view(np.uint8).reshape(words.shape[0], words.shape[1] * words.itemsize)


def unpack_stream(words: np.ndarray, count: int, bits: int) -> np.ndarray:
    """Unpacks `count` codes from each row of words or bytes. Rows must be long enough."""
    rows = row_bytes(words)
    out = np.empty((rows.shape[0], count), np.uint8)
    step = max(1, BLOCK // max(1, count))
    for first in range(0, rows.shape[0], step):
        out[first:first + step] = _unpack_rows(rows[first:first + step], count, bits)
    return out


def _unpack_rows(rows: np.ndarray, count: int, bits: int) -> np.ndarray:
    eights = -(-count // 8)
    padded = np.zeros((rows.shape[0], eights * bits), np.uint8)
    used = min(rows.shape[1], padded.shape[1])
    padded[:, :used] = rows[:, :used]
    padded = padded.reshape(rows.shape[0], eights, bits)
    joined = np.zeros(padded.shape[:2], np.uint64)
    for i in range(bits):
        joined |= padded[:, :, i].astype(np.uint64) << np.uint64(8 * i)
    out = np.empty((rows.shape[0], eights, 8), np.uint8)
    for i in range(8):
        out[:, :, i] = (joined >> np.uint64(i * bits)) & np.uint64((1 << bits) - 1)
    return out.reshape(rows.shape[0], -1)[:, :count]


def pack_compact(codes: np.ndarray, bits: int) -> np.ndarray:
    """Packs all codes without gaps, as tilus_matmul_weights has them: one stream in bytes."""
    flat = codes.reshape(-1)
    parts = [_pack_eights(flat[i:i + BLOCK], bits) for i in range(0, flat.size, BLOCK)]
    packed = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    return packed[:(flat.size * bits + 7) // 8]


def pack_rows(codes: np.ndarray, bits: int, align: int) -> np.ndarray:
    """Packs each row of [n, k] as a stream, in whole words of `align` bytes: bytes [n, row]."""
    n, k = codes.shape
    width = -(-k * bits // (8 * align)) * align
    out = np.zeros((n, width), np.uint8)
    used = -(-k * bits // 8)
    step = max(1, BLOCK // max(k, 1))
    for first in range(0, n, step):
        rows = codes[first:first + step]
        padded = np.zeros((len(rows), -(-k // 8) * 8), np.uint8)
        padded[:, :k] = rows
        out[first:first + step, :used] = _pack_eights(padded.reshape(-1), bits).reshape(len(rows), -1)[:, :used]
    return out


def unpack_compact(packed: np.ndarray, count: int, bits: int) -> np.ndarray:
    """Unpacks what pack_compact packed, a block at a time."""
    step = BLOCK // 8 * bits
    parts = [_unpack_rows(packed[None, i:i + step], min(BLOCK, count - i // bits * 8), bits)[0]
             for i in range(0, packed.size, step)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint8)


def _pack_eights(codes: np.ndarray, bits: int) -> np.ndarray:
    eights = np.zeros((-(-codes.size // 8), 8), np.uint64)
    eights.reshape(-1)[:codes.size] = codes & ((1 << bits) - 1)
    joined = np.zeros(eights.shape[0], np.uint64)
    for i in range(8):
        joined |= eights[:, i] << np.uint64(i * bits)
    out = np.empty((joined.size, bits), np.uint8)
    for i in range(bits):
        out[:, i] = (joined >> np.uint64(8 * i)) & np.uint64(255)
    return out.reshape(-1)


def unpack_gapped(words: np.ndarray, count: int, bits: int) -> np.ndarray:
    """Unpacks rows of 32-bit words with 32 // bits codes each, whose highest bits are unused."""
    words = np.ascontiguousarray(words).view(np.uint32)
    each = 32 // bits
    out = np.empty(words.shape + (each,), np.uint8)
    for i in range(each):
        out[..., i] = (words >> np.uint32(i * bits)) & np.uint32((1 << bits) - 1)
    return out.reshape(words.shape[0], -1)[:, :count]


def planes_of(bits: int) -> List[Tuple[int, int]]:
    """Lists the planes of a code in GPTQ's planar form as (width, bits below it)."""
    widths = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 7: (4, 2, 1), 8: (8,)}[bits]
    return [(width, sum(widths[:i])) for i, width in enumerate(widths)]


def unpack_planar(words: np.ndarray, bits: int) -> np.ndarray:
    """Unpacks rows of 32-bit words, of which `bits` hold 32 codes: planes of 4, 2 and 1 bits."""
    words = np.ascontiguousarray(words).view(np.uint32)
    blocks = words.reshape(words.shape[0], -1, bits)
    out = np.zeros(blocks.shape[:2] + (32,), np.uint8)
    for width, below in planes_of(bits):
        plane = np.ascontiguousarray(blocks[:, :, below:below + width])
        codes = unpack_stream(plane.reshape(-1, width), 32, width)
        out |= codes.reshape(out.shape) << np.uint8(below)
    return out.reshape(words.shape[0], -1)
