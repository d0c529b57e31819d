"""The exception of all readers."""
from __future__ import annotations

from typing import Optional


class FormatError(ValueError):
    """Says what in which file is wrong, or cannot be mapped.

    `what` is FOUND where it should be EXPECTED; both are None where `what` says all."""

    def __init__(self, file: str, tensor: Optional[str], what: str, found: object = None,
                 expected: object = None) -> None:
        self.file, self.tensor, self.what = str(file), tensor, what
        self.found, self.expected = found, expected
        place = self.file if tensor is None else f"{self.file}: {tensor}"
        values = "" if expected is None else f" is {shorten(found)}, not {shorten(expected)}"
        super().__init__(f"{place}: {what}{values}")


def shorten(value: object) -> str:
    """Returns the value's text, cut to 200 characters: files decide how long it is."""
    text = str(value)
    return text if len(text) <= 200 else text[:200] + ".."
