"""Exceptions that the package raises."""
from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Type

_PLACE = re.compile(r"^(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): (?P<severity>error|warning): (?P<text>.*)$"
                    r"|^(?P<plain>error|warning): (?P<rest>.*)$", re.MULTILINE)


class Error(Exception):
    """A call of the libraries that failed. `status` is the name of its tilus_status, or "" where the package
    itself found what is wrong."""

    def __init__(self, message: str, status: str = "") -> None:
        super().__init__(message)
        self.status = status


class ArgumentError(Error, ValueError):
    """An argument of a launch or a field of a problem is wrong; the text names it with its value."""


class OutOfMemory(Error, MemoryError):
    """Host or device memory ran out."""


class NoDevice(Error):
    """Raised where no driver or no GPU is."""


class Diagnostic(NamedTuple):
    """One message of the compiler; line and column count from 1, 0: of no place."""

    severity: str
    file: Optional[str]
    line: int
    column: int
    text: str


class ProgramError(Error):
    """A fault of a program's text: `file`, `line`, `column` and `text` of the first message; str() shows all of
    them with their lines of the program."""

    def __init__(self, diagnostics: str, status: str = "TILUS_ERROR_PROGRAM") -> None:
        super().__init__(diagnostics.rstrip(), status)
        found = parse_diagnostics(diagnostics)
        first = next((d for d in found if d.severity == "error"), None)
        self.diagnostics: List[Diagnostic] = found
        self.file: Optional[str] = first.file if first else None
        self.line: int = first.line if first else 0
        self.column: int = first.column if first else 0
        self.text: str = first.text if first else diagnostics.strip()


class CompileError(ProgramError):
    """A program that does not compile."""


class EngineError(ProgramError):
    """A program that did on an engine what it must not, as an access outside of an array, or a race."""


class CompileWarning(UserWarning):
    """The program is right, but a part of it does not do what it seems meant to."""


def parse_diagnostics(text: str) -> List[Diagnostic]:
    """Reads the errors and warnings of the compiler's output."""
    found = []
    for match in _PLACE.finditer(text):
        if match["plain"]:
            found.append(Diagnostic(match["plain"], None, 0, 0, match["rest"]))
        else:
            found.append(Diagnostic(match["severity"], match["file"], int(match["line"]), int(match["column"]),
                                    match["text"]))
    return found


_BY_STATUS: Dict[str, Type[Error]] = {"TILUS_ERROR_ARGUMENT": ArgumentError, "TILUS_ERROR_MEMORY": OutOfMemory,
              "TILUS_ERROR_DEVICE_MEMORY": OutOfMemory, "TILUS_ERROR_NO_DRIVER": NoDevice,
              "TILUS_ERROR_NO_DEVICE": NoDevice, "TILUS_ERROR_PROGRAM": EngineError}


def error_of(status: str, message: str) -> Error:
    """Makes the exception for a status."""
    return _BY_STATUS.get(status, Error)(message, status)
