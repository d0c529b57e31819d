"""A module's tensors in memory, read as if they were those of a file."""
from __future__ import annotations

from typing import Any, Dict, Mapping

import numpy as np

from .errors import FormatError
from .files import ByteFile
from .model import SafetensorsModel
from .safetensors import TensorInfo, TensorStore
from .weight import QuantizedWeight
from .write import Stored

MODULE = "module"       # the name that a module without one has in messages


class _Bytes(ByteFile):
    """The bytes of one tensor."""

    def __init__(self, path: str, bits: np.ndarray) -> None:
        self.path, self._handle = path, -1
        self._bytes = np.ascontiguousarray(bits).reshape(-1).view(np.uint8)
        self.size = self._bytes.size

    def read(self, offset: int, size: int, what: str) -> np.ndarray:
        return self._bytes[offset:offset + size].copy()


class MemoryStore(TensorStore):
    """Tensors by their names. `path` is what messages call their file."""

    def __init__(self, tensors: Mapping[str, Stored], path: str) -> None:
        self.path, self._files = path, []
        self.tensors = {name: TensorInfo(stored.dtype, tuple(stored.shape), 0, stored.bits.nbytes,
                                         _Bytes(path, stored.bits)) for name, stored in tensors.items()}


def read_module(tensors: Mapping[str, Stored], config: Dict[str, Any], module: str = MODULE) -> QuantizedWeight:
    """Reads the matrix of one module from its tensors by suffix ("weight_codes", "qweight", ..), of any format that
    safetensors have; `config` is the quantization's configuration. FormatError: they are of no format, or damaged."""
    store = MemoryStore({f"{module}.{suffix}": stored for suffix, stored in tensors.items()}, "memory")
    model = SafetensorsModel(store, store.path, config)
    if model.names() != [module + ".weight"]:
        raise FormatError(store.path, module, "tensors", ", ".join(sorted(tensors)), "those of one matrix")
    return model.weight(module + ".weight")
