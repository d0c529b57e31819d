"""GPTQ's second-order rounding: each column's error is taken up by the columns after it.

    hessian = Hessian(k)
    hessian.add(activations)                    # rows [t, k] of calibration data, as often as wanted
    weight = quantize(matrix, scheme, hessian)

Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers"
(2022): with H the sum of x x^T of the inputs x, the column j that was rounded changes the columns
after it by its error times row j of the Cholesky factor of H's inverse."""
from __future__ import annotations

from typing import Optional, Sequence

import numpy as np

from .formats.weight import QuantizedWeight
from .quantize import Grid, Scheme, check_matrix, decode_by, encode_by, fit, make_weight

_BLOCK = 128        # columns whose errors are handed on together


class Hessian:
    """The sum of x x^T over rows of activations, [k, k] in f64."""

    def __init__(self, k: int, damping: float = 0.01) -> None:
        self.damping = damping
        self.sum, self.rows = np.zeros((k, k)), 0
        self._factor: Optional[np.ndarray] = None

    def add(self, rows: np.ndarray) -> None:
        rows = np.asarray(rows, np.float32)
        if rows.ndim != 2 or rows.shape[1] != len(self.sum):
            raise ValueError(f"activations are {list(rows.shape)}, not [rows, {len(self.sum)}]")
        self.sum += rows.T @ rows
        self.rows += len(rows)
        self._factor = None

    def factor(self) -> np.ndarray:
        """Returns U, upper triangular, with U^T U the inverse of H + d * mean diagonal, d = damping + k / rows:
        few rows say little about how columns go together. Columns that no activation touches count as
        independent. ValueError: there are no rows, or they are not finite. The result is kept, for
        matrices with the same input."""
        if self._factor is None:
            self._factor = self._compute_factor()
        return self._factor

    def _compute_factor(self) -> np.ndarray:
        if self.rows == 0 or not np.all(np.isfinite(self.sum)):
            raise ValueError("activations are missing, or not finite")
        h = self.sum.copy()
        diagonal = np.diag(h).copy()
        mean = diagonal.sum() / max(1, np.count_nonzero(diagonal))
        diagonal[diagonal == 0] = mean or 1
        np.fill_diagonal(h, diagonal + (self.damping + len(h) / self.rows) * (mean or 1))
        # The factor of H reversed, H = L L^T with L upper triangular, has U = L^-1.
        lower = np.linalg.cholesky(h[::-1, ::-1])[::-1, ::-1]
        return np.linalg.inv(lower).astype(np.float32)


def quantize(matrix: np.ndarray, scheme: Scheme, hessian: Hessian) -> QuantizedWeight:
    """Quantizes floats [n, k] for inputs like those of the Hessian. ValueError: shapes differ, or a
    value is not finite."""
    left = np.ascontiguousarray(check_matrix(matrix).T)     # [k, n]: columns of the matrix are rows
    k, n = left.shape
    if len(hessian.sum) != k:
        raise ValueError(f"the Hessian is of {len(hessian.sum)} columns, not {k}")
    left[np.diag(hessian.sum) == 0] = 0
    upper = hessian.factor()
    group = min(scheme.group or k, k)
    codes, grids = np.empty((k, n), np.uint8), []
    for first in range(0, k, _BLOCK):
        last = min(first + _BLOCK, k)
        errors = np.empty((last - first, n), np.float32)
        for j in range(first, last):
            if j % group == 0:
                # Errors of the block are handed on at its end, so that what a longer group has
                # beyond the block is brought up to date for the choice of its scale.
                ahead = left[j:j + group].copy()
                if j + group > last:
                    ahead[last - j:] -= upper[first:j, last:j + group].T @ errors[:j - first]
                grids.append(fit(ahead, scheme))
            codes[j] = encode_by(left[j], grids[-1], scheme.weights)
            error = errors[j - first] = (left[j] - decode_by(codes[j], grids[-1], scheme.weights)) / upper[j, j]
            left[j + 1:last] -= upper[j, j + 1:last, None] * error
        left[last:] -= upper[first:last, last:].T @ errors
    return make_weight(np.ascontiguousarray(codes.T), stack(grids), scheme, group)


def stack(grids: Sequence[Grid]) -> Grid:
    """Joins grids [n] of one group each."""
    return Grid(*(None if parts[0] is None else np.stack(parts, 1) for parts in zip(*grids)))
