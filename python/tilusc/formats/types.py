"""Element types by their names in program text: the value of each code, rounding of scales."""
from __future__ import annotations

import functools
import re
from typing import List

import numpy as np

_PLAIN_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def type_bits(name: str) -> int:
    """Returns the bits of u1 to u8, i1 to i8, f3e1m1 to f8e7m0, ue8m0, f16, bf16, f32, f64."""
    if name in _PLAIN_BITS:
        return _PLAIN_BITS[name]
    return int(re.match(r"[a-z]+(\d)", name).group(1))


def is_code_type(name: object) -> bool:
    """Tells u1 to u8, i1 to i8 and f3e1m1 to f8e7m0 from everything else."""
    match = re.match(r"[ui][1-8]$|f([3-8])e([1-7])m([0-6])$", name) if isinstance(name, str) else None
    if match is None or match.group(1) is None:
        return match is not None
    bits, exponents, mantissas = map(int, match.groups())
    return bits == 1 + exponents + mantissas


def code_types() -> List[str]:
    """Lists the types of 1 to 8 bits, the smaller ones first, of equal ones integers."""
    types = [f"{kind}{bits}" for bits in range(1, 9) for kind in "ui"]
    types += [f"f{bits}e{x}m{bits - 1 - x}" for bits in range(3, 9) for x in range(1, bits)]
    return sorted(types, key=lambda name: int(name[1]))


def is_low_bit(name: str) -> bool:
    """Tells codes of at most 8 bits from f16, bf16, f32 and f64."""
    return name not in _PLAIN_BITS


@functools.lru_cache(maxsize=None)
def type_values(name: str) -> np.ndarray:
    """Returns the value of every code of a type of at most 8 bits, in f64."""
    codes = np.arange(1 << type_bits(name))
    if name == "ue8m0":
        values = np.ldexp(1.0, codes - 127)
        values[255] = np.nan
    elif name[0] == "u":
        values = codes.astype(np.float64)
    elif name[0] == "i":
        values = np.where(codes >= len(codes) // 2, codes - len(codes), codes).astype(np.float64)
    else:
        values = _float_values(name, codes)
    values.flags.writeable = False
    return values


def _float_values(name: str, codes: np.ndarray) -> np.ndarray:
    exponents, mantissas = (int(x) for x in re.match(r"f\de(\d)m(\d)$", name).groups())
    bias = (1 << (exponents - 1)) - 1
    field = (codes >> mantissas) & ((1 << exponents) - 1)
    fraction = (codes & ((1 << mantissas) - 1)) / (1 << mantissas)
    values = np.where(field == 0, np.ldexp(fraction, 1 - bias),
                      np.ldexp(1 + fraction, field - bias))
    if name == "f8e4m3":
        values[(codes & 127) == 127] = np.nan
    if name == "f8e5m2":
        values[(codes & 127) == 124] = np.inf
        values[(codes & 127) > 124] = np.nan
    return np.where(codes >> (exponents + mantissas) != 0, -values, values)


def widen(codes: np.ndarray, name: str) -> np.ndarray:
    """Returns the values of codes of any type, in f64 for ue8m0 and f64, else in f32: exact."""
    if name == "bf16":
        return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if name in _PLAIN_BITS:
        real = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[name]
        return codes.view(real).astype(np.float64 if name == "f64" else np.float32)
    values = type_values(name)
    return (values if name == "ue8m0" else values.astype(np.float32))[codes]


def narrow(values: np.ndarray, name: str) -> np.ndarray:
    """Returns the codes (u16) of values rounded to f16 or bf16, ties to even; of f8e4m3 (u8) those of values that it
    has."""
    if name == "f8e4m3":
        table = type_values(name).astype(np.float64)
        order = np.argsort(table[:127])         # the others are negative or NaN
        places = np.searchsorted(table[order], np.abs(values.astype(np.float64))).clip(0, 126)
        return (order[places] + 128 * np.signbit(values)).astype(np.uint8)
    if name == "f16":
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(np.float16).view(np.uint16)
    with np.errstate(over="ignore"):
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def is_exact(values: np.ndarray, name: str) -> bool:
    """Tells whether f16, bf16 or f8e4m3 holds all values, which are finite."""
    back = widen(narrow(values, name), name)
    return bool(np.all(np.isfinite(values)) and np.all(back == values))
