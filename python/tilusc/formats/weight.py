"""The common form of quantized matrices, and its mapping to tilus_matmul_weights."""
from __future__ import annotations

import dataclasses
import functools
from typing import Dict, NamedTuple, Optional, Tuple, Union

import numpy as np

from .bits import pack_compact, unpack_compact
from .errors import FormatError
from .types import code_types, is_exact, is_low_bit, narrow, type_bits, type_values, widen

_BLOCK = 1 << 22    # weights that are dequantized at once


class MatmulWeights(NamedTuple):
    """What tilus_matmul_problem and tilus_matmul_weights of tilus/matmul.h want.

    `group` 0 is all of k. `codes` are compact bytes, `scales` the bits (u16) of f16 or bf16 [n, groups] or the codes (u8)
    of f8e4m3, beside which `factor` (f32 [1]) multiplies all; `zeros` bytes [n, groups] for "integer", bits of the scales'
    type for "float". Column k of the activations
    is to be column `permutation[k]` of what they were, if there is one."""

    weights: str
    n: int
    k: int
    group: int
    scales_type: str
    zeros_kind: str                     # none, integer, float
    codes: np.ndarray
    scales: np.ndarray
    zeros: Optional[np.ndarray]
    permutation: Optional[np.ndarray]
    bias: Optional[np.ndarray]
    transposed: bool = True
    factor: Optional[np.ndarray] = None

    def dequantize(self) -> np.ndarray:
        """Returns the matrix [n, k] in f32 that a product multiplies by, columns as the activations
        have them: (code - zero) * scale * factor, each step rounded to f32 (exact up to the scale for integer zero
        points)."""
        codes = unpack_compact(self.codes, self.n * self.k, type_bits(self.weights))
        values = type_values(self.weights).astype(np.float32)[codes].reshape(self.n, self.k)
        if self.zeros is not None:
            values -= self._spread(self._zero_values())
        with np.errstate(over="ignore"):
            values *= self._spread(widen(self.scales, self.scales_type))
            if self.factor is not None:
                values *= self.factor
        if self.permutation is None:
            return values
        out = np.zeros((self.n, 1 + self.permutation.max()), np.float32)
        np.add.at(out, (slice(None), self.permutation), values)     # that padding has twice
        return out

    def _zero_values(self) -> np.ndarray:
        if self.zeros_kind == "float":
            return widen(self.zeros, self.scales_type)
        return self.zeros.view(np.int8) if self.weights[0] == "i" else self.zeros

    def _spread(self, values: np.ndarray) -> np.ndarray:
        return np.repeat(values.astype(np.float32), self.group or self.k, axis=1)[:, :self.k]


@dataclasses.dataclass
class QuantizedWeight:
    """A matrix [n, k] of codes, with scales of groups along k:

        w = (value(code) - zero) * scale * global_scale + minimum

    `codes` [n, k] hold one code a byte (u16, u32, u64 for f16, bf16, f32 and f64, which are plain
    weights without scales). value() is that of the type `weights`, or `codebook[code]`. `scales`
    [n, groups] are f32 or f64 values, exact, whose type in the file is `scales_type`; `zeros` are
    integers, or floats, or None; `minimums` are floats, or None. Column j of all of them is column
    `permutation[j]` of the matrix that the file means, if there is a permutation.
    Where `global_divides` is set, w has / global_scale in place of the product."""

    n: int
    k: int
    weights: str
    codes: np.ndarray
    scales: Optional[np.ndarray]
    group: int
    zeros: Optional[np.ndarray] = None
    minimums: Optional[np.ndarray] = None
    codebook: Optional[np.ndarray] = None
    permutation: Optional[np.ndarray] = None
    global_scale: Optional[float] = None
    global_divides: bool = False
    scales_type: str = "f16"
    bias: Optional[np.ndarray] = None
    source: Dict[str, object] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n < 1 or self.k < 1:
            raise self._error("shape", [self.n, self.k], "one with elements")
        groups = (self.n, -(-self.k // self.group) if self.group > 0 else 0)
        expected = {"codes": (self.n, self.k), "scales": groups, "zeros": groups,
                    "minimums": groups, "permutation": (self.k,), "bias": (self.n,)}
        for name, shape in expected.items():
            value = getattr(self, name)
            if value is not None and value.shape != shape:
                raise self._error(f"shape of the {name}", value.shape, shape)

    def _error(self, what: str, found: object = None, expected: object = None) -> FormatError:
        return FormatError(str(self.source.get("file")), str(self.source.get("tensor")), what,
                           found, expected)

    def dequantize(self, dtype: Union[type, str] = np.float32) -> np.ndarray:
        """Returns the matrix [n, k] that the file means, computed in f64 and rounded once."""
        out = np.empty((self.n, self.k), np.dtype(dtype))
        step = max(1, _BLOCK // self.k)
        for first in range(0, self.n, step):
            rows = slice(first, first + step)
            with np.errstate(over="ignore", invalid="ignore"):
                values = self._row_values(rows)
                if self.permutation is None:
                    out[rows] = values
                else:
                    out[rows, self.permutation] = values
        return out

    def _row_values(self, rows: slice) -> np.ndarray:
        if not is_low_bit(self.weights):
            return widen(self.codes[rows], self.weights).astype(np.float64)
        table = type_values(self.weights) if self.codebook is None else self.codebook
        values = table.astype(np.float64)[self.codes[rows]]
        if self.zeros is not None:
            values -= self._spread(self.zeros[rows])
        if self.scales is not None:
            values *= self._spread(self._scaled(self.scales[rows]))
        if self.minimums is not None:
            values += self._spread(self.minimums[rows])
        return values

    def _spread(self, values: np.ndarray) -> np.ndarray:
        return np.repeat(values.astype(np.float64), self.group, axis=1)[:, :self.k]

    def _scaled(self, scales: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):     # of signaling NaNs
            scales = scales.astype(np.float64)
        if self.global_scale is None:
            return scales
        return scales / self.global_scale if self.global_divides else scales * self.global_scale

    def to_matmul(self, approximate: bool = False, pad: bool = False) -> MatmulWeights:
        """Maps to the arrays of tilus_matmul_weights, transposed ([n, k]).

        Codes are never changed. FormatError says why there is no exact mapping; `approximate`
        allows to round scales to f16 or bf16, to make zero points out of minimums, and to take codebooks
        for multiples of a type's values that differ by 2^-20 of them. Scales of f8e4m3 stay so where they are beside
        a global scale, which becomes the factor, its inverse rounded to f32 where it divides. `pad` makes groups of 16
        groups of 32 whose second half is 0, so that k is twice as large and the permutation has each column
        twice."""
        if not is_low_bit(self.weights):
            raise self._error(f"plain weights of {self.weights} have no codes: quantize them first")
        if pad and self.group == 16:
            return self._padded().to_matmul(approximate)
        weights, codes, unit = self._matmul_codes(approximate)
        group, copies = self._matmul_group()
        if group and unit == 1 and self._has_factor():
            scales = np.repeat(narrow(self.scales, "f8e4m3"), copies, axis=1)[:, :-(-self.k // group)]
            return MatmulWeights(weights, self.n, self.k, group, "f8e4m3", "none", pack_compact(codes, type_bits(weights)),
                                 scales, None, self.permutation, self.bias, factor=self._factor())
        scales, zeros = self._scaled(self._all_scales()) * unit, self.zeros
        if self.minimums is not None:
            zeros = self._zeros_of_minimums(scales, approximate)
        kind = "none" if zeros is None else "integer" if zeros.dtype.kind in "iu" else "float"
        type_ = self._pick_scales_type(scales, zeros if kind == "float" else None, approximate)
        if kind == "integer":
            self._check_zeros(zeros)
            zeros = zeros.astype(np.int64).astype(np.uint8)
        elif zeros is not None:
            zeros = narrow(zeros, type_)
        groups = -(-self.k // group) if group else 1
        scales = np.repeat(narrow(scales, type_), copies, axis=1)[:, :groups]
        if zeros is not None:
            zeros = np.repeat(zeros, copies, axis=1)[:, :groups]
        return MatmulWeights(weights, self.n, self.k, group, type_, kind,
                             pack_compact(codes, type_bits(weights)), scales, zeros,
                             self.permutation, self.bias)

    def _has_factor(self) -> bool:
        return (self.scales_type == "f8e4m3" and self.scales is not None and self.zeros is None and
                self.minimums is None and is_exact(self.scales, "f8e4m3") and bool(np.isfinite(self._factor()[0])))

    def _factor(self) -> np.ndarray:
        scale = 1.0 if self.global_scale is None else float(self.global_scale)
        with np.errstate(divide="ignore", over="ignore"):
            return np.array([1 / np.float64(scale) if self.global_divides else scale], np.float32)

    def _padded(self) -> "QuantizedWeight":
        table = type_values(self.weights) if self.codebook is None else self.codebook
        if self.zeros is not None or self.minimums is not None or self.k % 16 or 0 not in table:
            raise self._error("groups of 16 cannot be padded: codes of 0 take symmetric weights, and whole groups")
        codes = np.full((self.n, self.k // 16, 32), np.flatnonzero(table == 0)[0], np.uint8)
        codes[:, :, :16] = self.codes.reshape(self.n, -1, 16)
        columns = np.arange(self.k) if self.permutation is None else self.permutation
        twice = np.repeat(columns.reshape(-1, 1, 16), 2, axis=1).reshape(-1)
        return dataclasses.replace(self, k=2 * self.k, codes=codes.reshape(self.n, -1), group=32,
                                   permutation=twice)

    def _matmul_codes(self, approximate: bool):
        """Returns the type, codes and what scales are to be multiplied by: 1 without a codebook, whose
        values become those of the smallest type that has them all, times some number."""
        if self.codebook is None:
            return self.weights, self.codes, 1.0
        found = find_type(self.codebook.tobytes(), self.codebook.dtype, 2.0 ** -20 if approximate else 0.0)
        if found is None or self.zeros is not None:
            raise self._error("a codebook whose values no type has, all times some number: products decode"
                              " integers and floats, not tables")
        weights, table, unit = found
        return weights, table[self.codes], unit

    def _all_scales(self) -> np.ndarray:
        groups = -(-self.k // self.group)
        return np.ones((self.n, groups), np.float32) if self.scales is None else self.scales

    def _matmul_group(self):
        """Returns a group that products have (0: all of k), and how many of them one of ours is."""
        if self.group >= self.k:
            return 0, 1
        if self.group % 128 == 0:
            return self.group, 1
        for group in (64, 32, 16):
            if self.group % group == 0:
                return group, self.group // group
        raise self._error("group", self.group, "a multiple of 16, which products need")

    def _zeros_of_minimums(self, scales: np.ndarray, approximate: bool) -> np.ndarray:
        if not approximate:
            raise self._error("minimums, which are added, have no exact zero points, which are"
                              " multiplied by the scale (to_matmul(approximate=True) rounds)")
        if np.any((scales == 0) & (self.minimums != 0)):
            raise self._error("a minimum beside a scale of 0 has no zero point")
        return -self.minimums / np.where(scales == 0, 1, scales)

    def _pick_scales_type(self, scales: np.ndarray, zeros: Optional[np.ndarray],
                          approximate: bool) -> str:
        self._check_finite("scale", scales)
        if zeros is not None:
            self._check_finite("zero point", zeros)
        order = ("bf16", "f16") if self.scales_type == "bf16" else ("f16", "bf16")
        for type_ in order:
            if is_exact(scales, type_) and (zeros is None or is_exact(zeros, type_)):
                return type_
        if not approximate:
            raise self._error(f"scales of {self.scales_type} fit neither f16 nor bf16"
                              " (to_matmul(approximate=True) rounds)")
        largest = float(np.max(np.abs(scales), initial=0))
        return "f16" if largest <= 65504 and order[0] == "f16" else "bf16"

    def _check_finite(self, what: str, values: np.ndarray) -> None:
        """Refuses an infinite or NaN scale or zero point, and names the first."""
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            row, column = np.unravel_index(wrong[0], values.shape)
            raise self._error(f"{what} [{row}, {column}]", values[row, column], "a finite number")

    def _check_zeros(self, zeros: np.ndarray) -> None:
        if self.weights[0] == "f":
            raise self._error(f"weights of {self.weights} have integer zero points: products"
                              " have them for integers only")
        values = type_values(self.weights)
        low, high = int(values.min()), int(values.max())
        wrong = np.flatnonzero((zeros < low) | (zeros > high))
        if wrong.size:
            row, column = np.unravel_index(wrong[0], zeros.shape)
            raise self._error(f"zero point [{row}, {column}]", zeros[row, column], f"{low} to {high}")


@functools.lru_cache(maxsize=16)
def find_type(table: bytes, dtype: np.dtype, tolerance: float) -> Optional[Tuple[str, np.ndarray, float]]:
    """Finds the smallest type whose values, times a unit, are those of a table, to a relative error:
    its name, the code of each entry, and the unit. Of types of equal size integers come first."""
    table = np.frombuffer(table, dtype).astype(np.float64)
    peak = np.abs(table).max()
    if not np.isfinite(peak) or peak == 0:
        return None
    for name in code_types():
        values = type_values(name)
        for value in np.unique(np.abs(values[np.isfinite(values)]))[1:]:
            wanted = table * (value / peak)
            codes = np.abs(np.where(np.isfinite(values), values, np.inf) - wanted[:, None]).argmin(axis=1)
            if np.all(np.abs(values[codes] - wanted) <= tolerance * np.abs(wanted)):
                return name, codes.astype(np.uint8), float(peak / value)
    return None


def integer_weight(codes: np.ndarray, zeros: Optional[np.ndarray], bits: int,
                   **rest: object) -> QuantizedWeight:
    """Makes the weight of unsigned codes: signed without zero points where all of them are the
    middle 2^(bits-1), as of symmetric files, or where `zeros` is None, which says so too."""
    middle = 1 << (bits - 1)
    if bits > 1 and (zeros is None or np.all(zeros == middle)):
        return QuantizedWeight(weights=f"i{bits}", codes=codes ^ np.uint8(middle), **rest)
    if zeros is None:
        zeros = np.full(rest["scales"].shape, middle)
    return QuantizedWeight(weights=f"u{bits}", codes=codes, zeros=zeros.astype(np.int16), **rest)
