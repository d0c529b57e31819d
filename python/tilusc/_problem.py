"""Problems of the libraries as texts, which operators of torch take in place of objects."""
from __future__ import annotations

import dataclasses
import functools
from typing import Any, Dict, Type, TypeVar

from .errors import ArgumentError

_READERS = {"str": str, "int": int, "float": float, "bool": lambda value: bool(int(value))}
_T = TypeVar("_T", bound="ProblemText")


@dataclasses.dataclass(frozen=True)
class ProblemText:
    """The base of dataclasses whose fields are of type str, int, float or bool, without spaces: str() gives the
    fields that differ from their defaults, `name=value` each, and `parse` reads that."""

    def __str__(self) -> str:
        return " ".join(f"{f.name}={int(v) if isinstance(v, bool) else v}" for f in dataclasses.fields(self)
                        for v in (getattr(self, f.name),) if v != f.default)

    @classmethod
    def parse(cls: Type[_T], text: str) -> _T:
        """Reads what str() of a problem gives."""
        return _parse(cls, text)


@functools.lru_cache(maxsize=2048)
def _parse(kind: Type[Any], text: str) -> Any:
    types = {f.name: str(f.type) for f in dataclasses.fields(kind)}
    fields: Dict[str, Any] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name not in types or not value:
            raise ArgumentError(f"{word!r} is no field of a problem: {text!r}")
        fields[name] = _READERS[types[name]](value)
    return kind(**fields)
