"""What readers of safetensors checkpoints share: a layer's tensors, grids of scales, act-order."""
from __future__ import annotations

import dataclasses
import re
from typing import Any, Dict, Iterable, Optional, Tuple

import numpy as np

from .errors import FormatError
from .safetensors import TensorStore
from .types import type_values, widen

FLOATS = ("F16", "BF16", "F32")
_LONGEST_PATTERN = 1000     # characters


def section(config: Dict[str, Any], key: str) -> Dict[str, Any]:
    """Returns the object under a key; what is none counts as empty."""
    value = config.get(key)
    return value if isinstance(value, dict) else {}


@dataclasses.dataclass
class Layer:
    """The tensors `module`.SUFFIX of one matrix; of one expert where they have that dimension."""

    store: TensorStore
    module: str
    config: Dict[str, Any]      # quantization_config
    format: str
    main: str                   # the suffix that has the codes
    expert: Optional[int] = None
    joint: str = "."

    def name(self, suffix: str) -> str:
        return self.module + self.joint + suffix

    def has(self, suffix: str) -> bool:
        return self.name(suffix) in self.store

    def error(self, suffix: str, what: str, found: object = None,
              expected: object = None) -> FormatError:
        return self.store.error(self.name(suffix), what, found, expected)

    def dtype(self, suffix: str) -> str:
        return self.store.info(self.name(suffix)).dtype

    def type(self, suffix: str) -> str:
        return self.store.type(self.name(suffix)) or self.dtype(suffix).lower()

    def bits(self, suffix: str, dtypes: Tuple[str, ...], rank: int) -> np.ndarray:
        """Reads a tensor of `rank` dimensions beside that of the experts."""
        whole = rank + (self.expert is not None)
        return self.store.bits(self.name(suffix), dtypes, whole, self.expert)

    def floats(self, suffix: str, dtypes: Tuple[str, ...] = FLOATS) -> np.ndarray:
        index = self.expert if self.store.shape(self.name(suffix)) else None
        return self.store.floats(self.name(suffix), index, dtypes)

    def powers(self, suffix: str) -> np.ndarray:
        """Reads exponents e of ue8m0 as the factors 2^(e - 127)."""
        return type_values("ue8m0")[self.bits(suffix, ("U8", "F8_E8M0"), 2)]

    def scalar(self, suffix: str) -> float:
        values = self.floats(suffix)
        if values.size != 1:
            raise self.error(suffix, "shape", list(values.shape), "one number")
        return float(values.reshape(())[()])

    def bias(self, n: int, suffix: str = "bias") -> Optional[np.ndarray]:
        if not self.has(suffix):
            return None
        values = self.floats(suffix)
        if values.shape != (n,):
            raise self.error(suffix, "shape", list(values.shape), [n])
        return values.astype(np.float32)

    def source(self, suffix: str, **more: object) -> Dict[str, object]:
        name = self.name(suffix)
        return {"file": self.store.info(name).file.path, "tensor": name, "format": self.format, **more}

    def number(self, key: str, value: object, low: int, high: int) -> int:
        """Checks an integer of the configuration."""
        if type(value) is not int or not low <= value <= high:
            raise FormatError(self.store.path, self.module, f"{key} of the configuration",
                              repr(value) if isinstance(value, str) else value, f"{low} to {high}")
        return value

    def expect(self, suffix: str, array: np.ndarray, shape: Tuple[int, ...]) -> np.ndarray:
        if array.shape != tuple(shape):
            raise self.error(suffix, "shape", list(array.shape), list(shape))
        return array

    # ---- groups ----

    def grid(self, suffix: str, values: np.ndarray, n: int, k: int, group: Optional[int] = None,
             block: Optional[Tuple[int, int]] = None) -> Tuple[np.ndarray, int]:
        """Returns values as [n, groups] and the group: of one number, a row's numbers [n] or [n, 1],
        groups' [n, groups], or blocks of (rows, columns)."""
        if block is not None:
            rows, columns = min(block[0], n), min(block[1], k)
            self.expect(suffix, values, (-(-n // rows), -(-k // columns)))
            return np.repeat(values, rows, axis=0)[:n], columns
        if values.size == 1:
            return np.broadcast_to(values.reshape(1, 1), (n, 1)).copy(), k
        if values.shape in ((n,), (n, 1)):
            return values.reshape(n, 1), k
        if values.ndim != 2 or values.shape[0] != n or values.shape[1] == 0:
            raise self.error(suffix, "shape", list(values.shape), f"[{n}, groups of {k}]")
        size = min(group or -(-k // values.shape[1]), k)
        self.expect(suffix, values, (n, -(-k // size)))
        return values, size

    def order(self, suffix: str, codes: np.ndarray, groups: int, group: int):
        """Sorts columns by the group that each belongs to, as tensor `suffix` has it, keeping the
        order within a group. Returns codes [n, k] and the permutation, None if nothing moves."""
        k = codes.shape[1]
        if not self.has(suffix):
            return codes, None
        index = self.expect(suffix, self.bits(suffix, ("I32", "I64"), 1), (k,))
        if np.all(index == -1):
            return codes, None
        if k and (index.min() < 0 or index.max() >= groups):
            raise self.error(suffix, "groups", f"{index.min()} .. {index.max()}",
                             f"0 to {groups - 1}")
        permutation = np.argsort(index, kind="stable")
        if not np.array_equal(index[permutation], np.arange(k) // group):
            raise self.error(suffix, f"groups are not all of {group} columns: unequal groups have"
                             " no exact mapping")
        if np.array_equal(permutation, np.arange(k)):
            return codes, None
        return codes[:, permutation], permutation


def check_pattern(pattern: str) -> None:
    """Raises ValueError for a pattern that `matches` takes for none."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from None
    if len(pattern) > _LONGEST_PATTERN:
        raise ValueError(f"a pattern has {len(pattern)} characters, more than {_LONGEST_PATTERN}")


def check_patterns(names: Iterable[str]) -> None:
    """Raises ValueError where one of the names is a pattern, after "re:", that `matches` takes for none."""
    for name in names:
        if name.startswith("re:"):
            check_pattern(name[3:])


def matches(pattern: str, name: str) -> bool:
    """Matches a pattern of a configuration at a module's name; a bad one matches nothing."""
    try:
        return len(pattern) <= _LONGEST_PATTERN and re.match(pattern, name) is not None
    except (re.error, OverflowError, RecursionError):
        return False


def read_float(store: TensorStore, name: str, index: Optional[int] = None) -> np.ndarray:
    """Reads any tensor of floats as f32 (F64 as f64)."""
    return widen(store.bits(name, index=index), store.type(name))
