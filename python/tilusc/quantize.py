"""Quantizes matrices: floats to codes, scales and zero points of any type of 1 to 8 bits.

    scheme = Scheme("u4", group=128, zeros="integer")
    weight = quantize(matrix, scheme)           # QuantizedWeight: dequantize(), to_matmul()

Scales are rounded to f16 or bf16 before codes are chosen, so that codes are the nearest ones for
the values that a product computes. tilusc.quantize_gptq chooses them by calibration data instead."""
from __future__ import annotations

import dataclasses
from typing import Callable, NamedTuple, Optional, Sequence

import numpy as np

from .formats.types import is_code_type, narrow, type_bits, type_values, widen
from .formats.weight import QuantizedWeight

ZEROS = ("none", "integer", "float")
CLIPS = ("minmax", "mse")
_BLOCK = 1 << 16        # weights that are quantized at once
_STEPS = 12             # factors that "mse" tries
# The least factor of the range that "mse" tries, by bits: few codes are better spent near zero.
_LEAST = {1: 0.2, 2: 0.3, 3: 0.45}
# Largest value that scales make of a float type's range: exponents above it would only make scales
# too small for f16.
_TOP = 448.0
# The least scale beside a float zero point, as a part of the group's least value: f16 has zero points up to 65504, and
# rounds those from 2048 on to more than a code, so that no bit is lost.
_LEAST_SCALE = np.float32(2.0 ** -15)


@dataclasses.dataclass(frozen=True)
class Scheme:
    """A type and how matrices are made of it.

    `group` columns share a scale (0: all). `zeros` "integer" are codes' values, "float" are of the
    scales' type. `clip` "minmax" maps the range of a group to that of the codes, "mse" the part of it
    whose squared error is least; by default "mse" below 4 bits, else "minmax". ValueError: no such
    type, or a type without zero points."""

    weights: str
    group: int = 128
    zeros: str = "none"
    clip: str = ""
    scales: str = "f16"

    def __post_init__(self) -> None:
        if not is_code_type(self.weights):
            raise ValueError(f"weights are {self.weights}, not u1 to u8, i1 to i8 or f3e1m1 to f8e7m0")
        if not self.clip:
            object.__setattr__(self, "clip", "mse" if self.bits < 4 else "minmax")
        for name, value, known in (("zeros", self.zeros, ZEROS), ("clip", self.clip, CLIPS),
                                   ("scales", self.scales, ("f16", "bf16"))):
            if value not in known:
                raise ValueError(f"{name} are {value}, not {' or '.join(known)}")
        if self.group < 0 or self.group % 16:
            raise ValueError(f"group is {self.group}, not 0 or a multiple of 16")
        if self.weights[0] == "u" and self.zeros == "none":
            raise ValueError(f"{self.weights} without zero points has no negative values:"
                             " zeros are integer or float")
        if self.weights[0] != "u" and self.zeros != "none":
            raise ValueError(f"zero points are for u1 to u8, {self.weights} is symmetric")

    @property
    def bits(self) -> int:
        return type_bits(self.weights)

    def bits_per_weight(self, k: int) -> float:
        """Returns bits of codes, scales and zero points for each weight of rows of k."""
        extra = {"none": 0, "integer": self.bits, "float": 16}[self.zeros]
        return self.bits + (16 + extra) / min(self.group or k, k)


class Grid(NamedTuple):
    """Scales and zero points of groups, f32; zeros None: symmetric."""

    scales: np.ndarray
    zeros: Optional[np.ndarray]


def round_half(values: np.ndarray, name: str) -> np.ndarray:
    """Rounds to f16 or bf16, kept as f32."""
    return widen(narrow(values.astype(np.float32), name), name)


def value_range(name: str):
    """Returns the least and the largest value that codes are given to."""
    values = type_values(name)
    values = values[np.isfinite(values)]
    if name[0] == "f":
        top = float(values[values <= _TOP].max())
        return -top, top
    return float(values.min()), float(values.max())


def round_values(values: np.ndarray, name: str) -> np.ndarray:
    """Rounds f32 to the nearest values of a type, ties to even; what is beyond is clipped."""
    low, high = value_range(name)
    values = np.clip(values, np.float32(low), np.float32(high))
    if name[0] != "f":
        return np.rint(values, out=values)
    steps = (values.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32)   # 2^exponent
    steps = np.maximum(steps, np.float32(2.0 ** _least_exponent(name)))
    steps *= np.float32(2.0 ** -int(name[5]))
    values /= steps
    return np.multiply(np.rint(values, out=values), steps, out=values)


def _least_exponent(name: str) -> int:
    """Returns the exponent of a float type's smallest normal value."""
    return 2 - (1 << (int(name[3]) - 1))


def encode(values: np.ndarray, name: str) -> np.ndarray:
    """Returns the codes (u8) of the values of a type that are nearest; what is beyond is clipped."""
    values = round_values(np.asarray(values, np.float32), name)
    if name[0] != "f":
        return (values.astype(np.int16) & ((1 << type_bits(name)) - 1)).astype(np.uint8)
    mantissas, least, sizes = int(name[5]), _least_exponent(name), np.abs(values)
    powers = np.where(sizes == 0, least, np.maximum(np.frexp(sizes)[1] - 1, least))
    codes = np.ldexp(sizes, mantissas - powers).astype(np.int32) + ((powers - least) << mantissas)
    return (codes | np.signbit(values) << (type_bits(name) - 1)).astype(np.uint8)


def encode_by(cells: np.ndarray, grid: Grid, name: str) -> np.ndarray:
    """Returns codes of cells [columns, r]: column c of each of r groups, whose grid [r] is."""
    return encode(_scale_down(cells, grid), name)


def decode_by(codes: np.ndarray, grid: Grid, name: str) -> np.ndarray:
    return _scale_up(type_values(name).astype(np.float32)[codes], grid)


def round_by(cells: np.ndarray, grid: Grid, name: str) -> np.ndarray:
    """Returns what encode_by's codes mean."""
    return _scale_up(round_values(_scale_down(cells, grid), name), grid)


def _scale_down(cells: np.ndarray, grid: Grid) -> np.ndarray:
    with np.errstate(over="ignore"):
        values = cells / np.where(grid.scales == 0, np.float32(1), grid.scales)
    if grid.zeros is not None:
        values += grid.zeros
    return values


def _scale_up(values: np.ndarray, grid: Grid) -> np.ndarray:
    if grid.zeros is not None:
        values -= grid.zeros
    values *= grid.scales
    return values


def _symmetric(cells: np.ndarray, scheme: Scheme) -> Callable[[float], Grid]:
    """Maps the largest magnitude to the code of the largest one: of iN, the negative one."""
    low, _ = value_range(scheme.weights)
    least, most = cells.min(axis=0), cells.max(axis=0)
    peaks = np.where(-least > most, least, most)
    peaks = np.abs(peaks) if scheme.weights[0] == "f" else -peaks
    return lambda factor: Grid(round_half(peaks * np.float32(factor / -low), scheme.scales), None)


def _with_zeros(cells: np.ndarray, scheme: Scheme) -> Callable[[float], Grid]:
    """Maps the least value to code 0, the largest to the highest; integer zero points are codes,
    so that 0 is in the range."""
    top = (1 << scheme.bits) - 1
    low, high = cells.min(axis=0), cells.max(axis=0)
    if scheme.zeros == "integer":
        low, high = np.minimum(low, 0), np.maximum(high, 0)

    def make(factor: float) -> Grid:
        scales = round_half((high - low) * np.float32(factor / top), scheme.scales)
        flat = scales == 0
        if scheme.zeros == "float":
            scales = np.maximum(scales, round_half(np.where(flat, 0, np.abs(low)) * _LEAST_SCALE, scheme.scales))
        zeros = -low * np.float32(factor) / np.where(flat, np.float32(1), scales)
        if scheme.zeros == "integer":
            return Grid(scales, np.clip(np.rint(zeros), 0, top).astype(np.float32))
        return Grid(np.where(flat, np.float32(1), scales), round_half(zeros, scheme.scales))
    return make


def fit(cells: np.ndarray, scheme: Scheme) -> Grid:
    """Chooses scales and zero points of r groups, cells [columns, r]. ValueError: a scale is beyond its type."""
    make = (_symmetric if scheme.zeros == "none" else _with_zeros)(cells, scheme)
    best = make(1.0)
    if not np.all(np.isfinite(best.scales)):
        raise ValueError(f"weights of magnitude {np.abs(cells).max():g} are too large for scales in {scheme.scales}"
                         + (": bf16 has larger ones" if scheme.scales == "f16" else ""))
    if scheme.clip == "minmax":
        return best
    error = _error(cells, best, scheme)
    for factor in np.linspace(1, _LEAST.get(scheme.bits, 0.6), _STEPS)[1:]:
        grid = make(float(factor))
        found = _error(cells, grid, scheme)
        better = found < error
        error = np.where(better, found, error)
        best = Grid(*(None if old is None else np.where(better, new, old)
                      for old, new in zip(best, grid)))
    return best


def _error(cells: np.ndarray, grid: Grid, scheme: Scheme) -> np.ndarray:
    difference = round_by(cells, grid, scheme.weights)
    difference -= cells
    difference *= difference
    return difference.sum(axis=0)


def quantize(matrix: np.ndarray, scheme: Scheme) -> QuantizedWeight:
    """Quantizes floats [n, k] to the nearest codes. ValueError: they are not finite, or too large for the scales."""
    matrix = check_matrix(matrix)
    n, k = matrix.shape
    group = min(scheme.group or k, k)
    whole = k // group * group
    codes, grids = np.empty((n, k), np.uint8), []
    for part, width in ((np.s_[:, :whole], group), (np.s_[:, whole:], k - whole)):
        if width:
            made, grid = _quantize_groups(matrix[part].reshape(-1, width), scheme)
            codes[part] = made.reshape(n, -1)
            grids.append(Grid(*(None if x is None else x.reshape(n, -1) for x in grid)))
    return make_weight(codes, join(grids, 1), scheme, group)


def check_matrix(matrix: np.ndarray) -> np.ndarray:
    matrix = np.asarray(matrix, np.float32)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"shape is {list(matrix.shape)}, not that of a matrix")
    wrong = np.flatnonzero(~np.isfinite(matrix))
    if wrong.size:
        row, column = divmod(int(wrong[0]), matrix.shape[1])
        raise ValueError(f"weight [{row}, {column}] is {matrix[row, column]}, not a finite number")
    return matrix


def _quantize_groups(groups: np.ndarray, scheme: Scheme):
    """Quantizes [groups, columns], some of them at a time."""
    step = max(1, _BLOCK // groups.shape[1])
    codes, grids = np.empty(groups.shape, np.uint8), []
    for first in range(0, len(groups), step):
        cells = np.ascontiguousarray(groups[first:first + step].T)
        grids.append(fit(cells, scheme))
        codes[first:first + step] = encode_by(cells, grids[-1], scheme.weights).T
    return codes, join(grids, 0)


def join(grids: Sequence[Grid], axis: int) -> Grid:
    return Grid(*(None if parts[0] is None else np.concatenate(parts, axis) for parts in zip(*grids)))


def make_weight(codes: np.ndarray, grid: Grid, scheme: Scheme, group: int) -> QuantizedWeight:
    """Makes a weight of codes [n, k] and a grid [n, groups]."""
    zeros = grid.zeros
    if scheme.zeros == "integer":
        zeros = zeros.astype(np.int16)
    return QuantizedWeight(*codes.shape, scheme.weights, codes, grid.scales, group, zeros=zeros,
                           scales_type=scheme.scales, source={"tensor": "quantized"})
