"""Problems of the libraries as texts, which operators of torch take in place of objects."""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import numbers
from typing import Any, Dict, Type, TypeVar

from ._library import sized
from .errors import ArgumentError

_READERS = {"str": str, "int": int, "float": float, "bool": lambda value: bool(("0", "1").index(value))}
_KINDS = {"str": (str, "a text"), "int": (numbers.Integral, "an integer"), "float": (numbers.Real, "a number"),
          "bool": ((bool, numbers.Integral), "True or False")}
_PLAIN: Dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
_INTEGERS = {ctypes.c_bool, ctypes.c_int, ctypes.c_uint, ctypes.c_int64, ctypes.c_uint64, ctypes.c_size_t}
_T = TypeVar("_T", bound="ProblemText")


@dataclasses.dataclass(frozen=True)
class ProblemText:
    """The base of dataclasses whose fields are of type str, int, float or bool, without spaces: str() gives the
    fields that differ from their defaults, `name=value` each, and `parse` reads that."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, (kind, spelled) = getattr(self, field.name), _KINDS[str(field.type)]
            if not isinstance(value, kind):
                raise ArgumentError(f"{field.name} is {value!r}, not {spelled}")
            if kind is str and value and not (value.isprintable() and value.split() == [value]):
                raise ArgumentError(f"{field.name} is {value!r}, not a text without spaces")
            plain = _PLAIN[str(field.type)]
            if type(value) is not plain and (plain is int or type(value) is not int):
                object.__setattr__(self, field.name, plain(value))      # of NumPy, say, which the worker process may lack

    def __str__(self) -> str:
        return " ".join(f"{f.name}={int(v) if isinstance(v, bool) else v}" for f in dataclasses.fields(self)
                        for v in (getattr(self, f.name),) if v != f.default)

    @classmethod
    def parse(cls: Type[_T], text: str) -> _T:
        """Reads what str() of a problem gives."""
        if not isinstance(text, str):
            raise ArgumentError(f"{text!r} is no text of a problem")
        return _parse(cls, text)


@functools.lru_cache(maxsize=2048)
def _parse(kind: Type[Any], text: str) -> Any:
    known = {f.name: f for f in dataclasses.fields(kind)}
    fields: Dict[str, Any] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name not in known or not value:
            raise ArgumentError(f"{word!r} is no field of a problem: {text!r}")
        if name in fields:
            raise ArgumentError(f"{name} is there twice: {text!r}")
        of_type = str(known[name].type)
        try:
            fields[name] = _READERS[of_type](value)
        except ValueError:
            raise ArgumentError(f"{name} is {value!r}, not {'0 or 1' if of_type == 'bool' else _KINDS[of_type][1]}:"
                                f" {text!r}") from None
    missing = [f.name for f in known.values() if f.default is dataclasses.MISSING and f.name not in fields]
    if missing:
        raise ArgumentError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: {text!r}")
    return kind(**fields)


def integer(name: str, value: Any, kind: type = ctypes.c_int64) -> int:
    """Checks what goes to a library as an integer of a type of ctypes, which itself would drop what does not fit."""
    if not isinstance(value, numbers.Integral):
        raise ArgumentError(f"{name} is {value!r}, not an integer")
    whole = int(value)
    if kind(whole).value != whole:
        raise ArgumentError(f"{name} = {whole} does not fit in {8 * ctypes.sizeof(kind)} bits")
    return whole


def filled(struct: type, fields: Dict[str, Any]) -> ctypes.Structure:
    """Makes a struct that begins with its size; integers that it has no room for are refused."""
    kinds = dict(struct._fields_)
    return sized(struct, **{name: integer(name, value, kinds[name]) if kinds[name] in _INTEGERS else value
                            for name, value in fields.items()})
