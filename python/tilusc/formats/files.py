"""Bounded reading of files: every byte that is asked for is checked to be there."""
from __future__ import annotations

import json
import os
import stat
from typing import Any, Dict, List, Tuple

import numpy as np

from .errors import FormatError

JSON_LIMIT = 100 << 20      # bytes of one JSON text


class ByteFile:
    """A file that is read by position. It is not mapped into memory: a file that is cut off while
    it is read must give an error, not end the process. Threads may share it."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            state = os.fstat(self._handle)
        except (OSError, ValueError) as error:      # ValueError: of a name that no file can have
            raise FormatError(path, None, f"cannot be opened: {getattr(error, 'strerror', error)}") from error
        if not stat.S_ISREG(state.st_mode):
            self.close()
            found = "a folder" if stat.S_ISDIR(state.st_mode) else "a device or a pipe"
            raise FormatError(path, None, "it", found, "a file")
        self.size = state.st_size

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.close()

    def read(self, offset: int, size: int, what: str) -> np.ndarray:
        """Returns `size` bytes at `offset` as a new array that may be written."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise FormatError(self.path, what, "end of the bytes", offset + size,
                              f"at most the file's size, {self.size}")
        out = np.empty(size, np.uint8)
        done = 0
        if self._handle < 0:
            raise FormatError(self.path, what, "the file was closed")
        while done < size:
            part = os.preadv(self._handle, [memoryview(out)[done:]], offset + done)
            if part == 0:
                raise FormatError(self.path, what, "the file became shorter while it was read")
            done += part
        return out


def parse_json(text: bytes, file: str, what: str) -> Dict[str, Any]:
    """Parses an object without duplicate keys; nesting and size are bounded."""
    def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise ValueError("a key is there twice")
        return made
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise FormatError(file, None, f"{what} is no JSON: {error or type(error).__name__}") from error
    if not isinstance(value, dict):
        raise FormatError(file, None, f"{what} is no JSON object")
    return value


def read_json(path: str) -> Dict[str, Any]:
    """Reads a small JSON file, like config.json."""
    file = ByteFile(path)
    if file.size > JSON_LIMIT:
        raise FormatError(path, None, "size", file.size, f"at most {JSON_LIMIT}")
    return parse_json(file.read(0, file.size, "JSON").tobytes(), path, "the file")


def is_count(value: object) -> bool:
    """Tells non-negative integers of 63 bits, which JSON's true and false are not."""
    return type(value) is int and 0 <= value < 1 << 63
