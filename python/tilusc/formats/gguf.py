"""GGUF files, version 2 and 3: metadata, tensor infos, the bytes of tensors."""
from __future__ import annotations

import struct
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np

from .errors import FormatError
from .files import ByteFile

# Types of metadata: name and how struct reads one; 8 is a string, 9 an array.
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
           11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9

# Tensor types: name, elements of a block, its bytes.
TYPES: Dict[int, Tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 30: ("BF16", 1, 2), 28: ("F64", 1, 8),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8),
    2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 20: ("IQ4_NL", 32, 18),
    23: ("IQ4_XS", 256, 136), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18)}

# Known, for the message: lattice codebooks and types that are gone. Their sizes are unknown here,
# so that a file that has them is read, but not these tensors.
REFUSED = {4: "Q4_2", 5: "Q4_3", 9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS",
           18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S", 29: "IQ1_M", 31: "Q4_0_4_4", 32: "Q4_0_4_8",
           33: "Q4_0_8_8", 36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8"}


class GgufTensor(NamedTuple):
    """A tensor: type id, shape (outermost first, so [N, K]), offset in the file, bytes."""

    type: int
    shape: Tuple[int, ...]
    offset: int
    size: int


class GgufFile:
    """Metadata and tensor infos of a file; tensors are read when they are asked for."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = ByteFile(path)
        self._at = 0
        self._ahead = np.empty(0, np.uint8)
        self._ahead_at = 0
        self.version, tensors, pairs = self._read_header()
        self.metadata: Dict[str, Any] = {}
        for _ in range(pairs):
            self._read_pair()
        infos = self._read_infos(tensors)
        self.alignment = self._read_alignment()
        self._data = -(-self._at // self.alignment) * self.alignment
        self.tensors = {name: self._place(name, *info) for name, info in infos.items()}
        self._check_overlaps()

    def close(self) -> None:
        self._file.close()

    def bytes(self, name: str, first: int, size: int) -> np.ndarray:
        """Reads `size` bytes from byte `first` of a tensor on."""
        info = self.tensors[name]
        if first < 0 or size < 0 or first + size > info.size:
            raise FormatError(self.path, name, "end of the bytes", first + size,
                              f"at most {info.size}")
        return self._file.read(info.offset + first, size, name)

    # ---- the header ----

    def _take(self, size: int) -> bytes:
        """Returns the next bytes of the header, which is read 64 KiB at a time."""
        if size > self._file.size - self._at:
            raise FormatError(self.path, None, "header's end", self._at + size,
                              f"at most the file's size, {self._file.size}")
        start = self._at - self._ahead_at
        if start + size > self._ahead.size:
            length = min(max(size, 1 << 16), self._file.size - self._at)
            self._ahead = self._file.read(self._at, length, "header")
            self._ahead_at, start = self._at, 0
        self._at += size
        return self._ahead[start:start + size].tobytes()

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _string(self) -> str:
        text = self._take(self._number("<Q"))
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(self.path, None, f"a string of the header is no UTF-8: {error}") from error

    def _count(self, what: str, least: int) -> int:
        """Reads a count of things of at least `least` bytes each."""
        count = self._number("<Q")
        if count > (self._file.size - self._at) // least:
            raise FormatError(self.path, None, what, count, "possible in a file of"
                              f" {self._file.size} bytes")
        return count

    def _read_header(self) -> Tuple[int, int, int]:
        magic = self._take(4)
        if magic != b"GGUF":
            raise FormatError(self.path, None, "magic", magic, b"GGUF")
        version = self._number("<I")
        if version not in (2, 3):
            order = ", a big-endian file" if version in (2 << 24, 3 << 24) else ""
            raise FormatError(self.path, None, "version", f"{version}{order}", "2 or 3")
        return version, self._count("count of tensors", 24), self._count("count of pairs", 13)

    def _read_pair(self) -> None:
        key = self._string()
        if key in self.metadata:
            raise FormatError(self.path, None, f"key {key[:200]} is there twice")
        self.metadata[key] = self._value(self._number("<I"), 0)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in SCALARS:
            return self._number(SCALARS[kind])
        if kind == STRING:
            return self._string()
        if kind != ARRAY or depth > 3:
            raise FormatError(self.path, None, "type of metadata", kind, "0 to 12, arrays 4 deep")
        return self._array(depth)

    def _array(self, depth: int) -> Any:
        kind = self._number("<I")
        if kind in SCALARS:
            size = struct.calcsize(SCALARS[kind])
            count = self._count("length of an array", size)
            return np.frombuffer(self._take(count * size), np.dtype(SCALARS[kind])).copy()
        count = self._count("length of an array", 8 if kind == STRING else 12)
        return [self._value(kind, depth + 1) for _ in range(count)]

    def _read_infos(self, count: int) -> Dict[str, Tuple[int, Tuple[int, ...], int]]:
        infos: Dict[str, Tuple[int, Tuple[int, ...], int]] = {}
        for _ in range(count):
            name = self._string()
            rank = self._number("<I")
            if rank > 4:
                raise FormatError(self.path, name, "dimensions", rank, "at most 4")
            shape = [self._number("<Q") for _ in range(rank)]
            if name in infos:
                raise FormatError(self.path, name, "it is there twice")
            infos[name] = (self._number("<I"), tuple(reversed(shape)), self._number("<Q"))
        return infos

    def _read_alignment(self) -> int:
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or not 1 <= alignment <= 1 << 30 or alignment & (alignment - 1):
            raise FormatError(self.path, None, "general.alignment", alignment, "a power of two")
        return alignment

    def _place(self, name: str, kind: int, shape: Tuple[int, ...], offset: int) -> GgufTensor:
        if offset % self.alignment:
            raise FormatError(self.path, name, "offset", offset, f"a multiple of {self.alignment}")
        if kind in REFUSED:
            return GgufTensor(kind, shape, self._data + offset, 0)
        if kind not in TYPES:
            raise FormatError(self.path, name, "type", kind, "one that is known")
        _, elements, size = TYPES[kind]
        inner = shape[-1] if shape else 1
        if inner % elements:
            raise FormatError(self.path, name, "innermost extent", inner,
                              f"a multiple of {elements}, of {TYPES[kind][0]}")
        for extent in shape[:-1]:
            size *= extent
        size *= inner // elements
        if self._data + offset + size > self._file.size:
            raise FormatError(self.path, name, "end of its bytes", self._data + offset + size,
                              f"at most the file's size, {self._file.size}")
        return GgufTensor(kind, shape, self._data + offset, size)

    def _check_overlaps(self) -> None:
        end = 0
        placed: List[Tuple[int, int, str]] = sorted(
            (x.offset, x.size, name) for name, x in self.tensors.items() if x.size)
        for offset, size, name in placed:
            if offset < end:
                raise FormatError(self.path, name, "offset in the file", offset,
                                  f"{end} or more, where another tensor ends")
            end = offset + size
