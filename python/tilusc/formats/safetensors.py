"""Safetensors files: an 8-byte header length, a JSON header, the tensors' bytes without gaps."""
from __future__ import annotations

import os
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from .errors import FormatError
from .files import JSON_LIMIT, ByteFile, is_count, parse_json, read_json
from .types import widen

# Bits, the NumPy type that holds the bits, and our name where values can be read.
DTYPES: Dict[str, Tuple[int, Optional[type], Optional[str]]] = {
    "BOOL": (8, np.uint8, None), "U8": (8, np.uint8, None), "I8": (8, np.int8, None),
    "U16": (16, np.uint16, None), "I16": (16, np.int16, None), "U32": (32, np.uint32, None),
    "I32": (32, np.int32, None), "U64": (64, np.uint64, None), "I64": (64, np.int64, None),
    "F8_E4M3": (8, np.uint8, "f8e4m3"), "F8_E5M2": (8, np.uint8, "f8e5m2"),
    "F8_E8M0": (8, np.uint8, "ue8m0"), "F16": (16, np.uint16, "f16"),
    "BF16": (16, np.uint16, "bf16"), "F32": (32, np.uint32, "f32"), "F64": (64, np.uint64, "f64"),
    "C64": (64, None, None), "F4": (4, None, None), "F6_E2M3": (6, None, None),
    "F6_E3M2": (6, None, None), "F8_E4M3FNUZ": (8, None, None), "F8_E5M2FNUZ": (8, None, None)}


class TensorInfo(NamedTuple):
    """A tensor's type and shape (outermost first), and where its bytes are in `file`."""

    dtype: str
    shape: Tuple[int, ...]
    offset: int
    size: int
    file: ByteFile


class SafetensorsFile:
    """The header of one file; tensors are read when they are asked for."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = ByteFile(path)
        header, self._data = self._read_header()
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(isinstance(x, str) for x in metadata.values()):
            raise FormatError(path, None, "__metadata__ has values that are no strings")
        self.metadata: Dict[str, str] = metadata
        self.tensors = {name: self._read_info(name, entry) for name, entry in header.items()}
        self._check_order()

    def close(self) -> None:
        self._file.close()

    def _read_header(self):
        size = int(self._file.read(0, 8, "length of the header").view("<u8")[0])
        if size > JSON_LIMIT or 8 + size > self._file.size:
            raise FormatError(self.path, None, "length of the header", size,
                              f"at most {min(JSON_LIMIT, self._file.size - 8)}")
        text = self._file.read(8, size, "header").tobytes()
        return parse_json(text, self.path, "the header"), 8 + size

    def _read_info(self, name: str, entry: object) -> TensorInfo:
        if not isinstance(entry, dict):
            raise FormatError(self.path, name, "its entry is no JSON object")
        dtype, shape, offsets = (entry.get(x) for x in ("dtype", "shape", "data_offsets"))
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise FormatError(self.path, name, "dtype", dtype, "one of " + ", ".join(DTYPES))
        if not isinstance(shape, list) or len(shape) > 32 or not all(map(is_count, shape)):
            raise FormatError(self.path, name, "shape", shape, "a list of up to 32 extents")
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_count, offsets)):
            raise FormatError(self.path, name, "data_offsets", offsets, "two offsets")
        bits = DTYPES[dtype][0]
        for extent in shape:
            bits *= extent
        if 8 * (offsets[1] - offsets[0]) != bits:
            raise FormatError(self.path, name, "bits between data_offsets",
                              8 * (offsets[1] - offsets[0]), f"{bits} as of {dtype} {shape}")
        return TensorInfo(dtype, tuple(shape), self._data + offsets[0], offsets[1] - offsets[0],
                          self._file)

    def _check_order(self) -> None:
        """Checks that tensors fill the file: nothing overlaps, nothing is left over."""
        end = self._data
        for name, info in sorted(self.tensors.items(), key=lambda x: (x[1].offset, x[1].size)):
            if info.offset != end:
                raise FormatError(self.path, name, "offset in the file", info.offset,
                                  f"{end}, where the tensor before it ends")
            end += info.size
        if end != self._file.size:
            raise FormatError(self.path, None, "size", self._file.size, f"{end}, where tensors end")


class TensorStore:
    """The tensors of one safetensors file, or of the shards that an index lists."""

    def __init__(self, paths: List[str], path: str) -> None:
        self.path = path
        self.tensors: Dict[str, TensorInfo] = {}
        self._files: List[SafetensorsFile] = []
        for shard in paths:
            file = SafetensorsFile(shard)
            self._files.append(file)
            for name, info in file.tensors.items():
                if name in self.tensors:
                    raise FormatError(shard, name, "it is in another file, too")
                self.tensors[name] = info

    def close(self) -> None:
        for file in self._files:
            file.close()

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def error(self, name: str, what: str, found: object = None,
              expected: object = None) -> FormatError:
        info = self.tensors.get(name)
        return FormatError(info.file.path if info else self.path, name, what, found, expected)

    def info(self, name: str) -> TensorInfo:
        if name not in self.tensors:
            raise FormatError(self.path, name, "there is no such tensor")
        return self.tensors[name]

    def shape(self, name: str) -> Tuple[int, ...]:
        return self.info(name).shape

    def bits(self, name: str, dtypes: Optional[Tuple[str, ...]] = None, rank: Optional[int] = None,
             index: Optional[int] = None) -> np.ndarray:
        """Reads a tensor's bits in the NumPy type of its width, or, by `index`, a slice of its
        first dimension. `dtypes` and `rank` (of the whole tensor) are what it must be."""
        info = self.info(name)
        if dtypes is not None and info.dtype not in dtypes:
            raise self.error(name, "dtype", info.dtype, " or ".join(dtypes))
        if rank is not None and len(info.shape) != rank:
            raise self.error(name, "shape", list(info.shape), f"of {rank} dimensions")
        holder = DTYPES[info.dtype][1]
        if holder is None:
            raise self.error(name, f"tensors of {info.dtype} are not read")
        offset, size, shape = info.offset, info.size, info.shape
        if index is not None:
            offset, size, shape = self._slice(name, info, index)
        raw = info.file.read(offset, size, name)
        return raw.view(np.dtype(holder).newbyteorder("<")).astype(holder, copy=False).reshape(shape)

    def _slice(self, name: str, info: TensorInfo, index: int):
        if not info.shape or not 0 <= index < info.shape[0]:
            raise self.error(name, "index", index, f"within the shape {list(info.shape)}")
        size = info.size // info.shape[0]
        return info.offset + index * size, size, info.shape[1:]

    def type(self, name: str) -> Optional[str]:
        """Returns our name of a tensor's float type; None for integers."""
        return DTYPES[self.info(name).dtype][2]

    def floats(self, name: str, index: Optional[int] = None,
               dtypes: Tuple[str, ...] = ("F16", "BF16", "F32", "F64")) -> np.ndarray:
        """Reads a tensor of floats as f32 values, exact (f64 for F64 and F8_E8M0)."""
        return widen(self.bits(name, dtypes, index=index), DTYPES[self.info(name).dtype][2])


def list_shards(index: str) -> List[str]:
    """Returns the files that a model.safetensors.index.json names; they are beside it."""
    weights = read_json(index).get("weight_map")
    if not isinstance(weights, dict):
        raise FormatError(index, None, "weight_map is no JSON object")
    names = set()
    for tensor, name in weights.items():
        if not isinstance(name, str) or os.path.basename(name) != name or name in ("", ".", ".."):
            raise FormatError(index, tensor, "file", name, "a name without a path")
        names.add(name)
    return [os.path.join(os.path.dirname(index), name) for name in sorted(names)]


def open_sharded(index: str) -> TensorStore:
    """Opens the shards of an index, which must hold what it says."""
    store = TensorStore(list_shards(index), index)
    for tensor, name in read_json(index)["weight_map"].items():
        if tensor not in store or os.path.basename(store.info(tensor).file.path) != name:
            raise FormatError(index, tensor, f"it is not in {name}, as the index says")
    return store
