"""Program texts with their template parameters."""
from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Dict, Mapping, Optional, Tuple, Union

from .errors import ArgumentError

_IMPORT = re.compile(r'^\s*import\b', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Source:
    """A program of a text, with values of its template's parameters."""

    text: str
    file: Optional[str]         # its name in messages, and where imports are looked for
    program: Optional[str]      # without @; None: the only one there is
    parameters: Tuple[Tuple[str, str], ...]
    import_paths: Tuple[str, ...] = ()

    @property
    def parameter_text(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.parameters)

    @property
    def imports(self) -> bool:
        """Tells whether the text imports others, which may change while it does not."""
        return bool(_IMPORT.search(self.text))


def make_source(source: Union[str, "os.PathLike[str]"], program: Optional[str], parameters: Mapping[str, object],
                import_paths: Tuple[str, ...] = ()) -> Source:
    """Reads a path, or takes a text: a string with a line end is a text, any other is a path."""
    if isinstance(source, str) and "\n" in source:
        text, file = source, None
    else:
        file = os.fspath(source)
        text = _read(file)
    made = Source(text, file, program.lstrip("@") if program else None, _spell(parameters),
                  tuple(map(os.fspath, import_paths)))
    for name, value in (("text has", text), ("program has", made.program or ""), ("parameters have", made.parameter_text)):
        _check_characters(name, value)
    return made


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{file} is not in UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from None


def _check_characters(name: str, text: str) -> None:
    """Refuses halves of characters (lone surrogates), which a text of Python may have, and UTF-8 has not."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"the {name} at {error.start} {text[error.start]!a}, half of a character") from None


def _spell(parameters: Mapping[str, object]) -> Tuple[Tuple[str, str], ...]:
    spelled: Dict[str, str] = {}
    for name, value in parameters.items():
        text = str(int(value)) if isinstance(value, bool) else str(value)
        if not text or any(letter.isspace() for letter in text):
            raise ArgumentError(f"template parameter {name} is {value!r}, not an integer or the name of a type")
        spelled[name] = text
    return tuple(sorted(spelled.items()))
