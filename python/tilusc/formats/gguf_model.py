"""A GGUF file as a model."""
from __future__ import annotations

from typing import List, Optional

import numpy as np

from .errors import FormatError
from .gguf import REFUSED, TYPES, GgufFile, GgufTensor
from .gguf_blocks import DECODERS
from .model import Model
from .types import widen
from .weight import QuantizedWeight

PLAIN = {"F16": (np.uint16, "f16"), "BF16": (np.uint16, "bf16"), "F32": (np.uint32, "f32"),
         "F64": (np.uint64, "f64")}


class GgufModel(Model):
    """Weights of a GGUF file; `config` is its metadata. Rows are in the file's order, which for
    q and k of some architectures is not that of the original checkpoint."""

    def __init__(self, path: str) -> None:
        self.path, self._file = path, GgufFile(path)
        self.config = self._file.metadata
        parts = self.config.get("split.count", 1)
        if type(parts) is int and parts > 1:
            self.close()
            raise FormatError(path, None, f"it is one of {parts} parts of a model: join them (llama-gguf-split --merge)")
        types = {self.type(name) for name in self.names()}
        self.format = "gguf " + ", ".join(sorted(types - {"F16", "BF16", "F32", "F64"}) or ["plain"])

    def close(self) -> None:
        self._file.close()

    def names(self) -> List[str]:
        return [name for name, tensor in self._file.tensors.items() if len(tensor.shape) in (2, 3)
                and 0 not in tensor.shape and self.type(name) not in ("I8", "I16", "I32", "I64")]

    def type(self, name: str) -> str:
        """Returns ggml's name of a tensor's type."""
        kind = self._tensor(name).type
        return REFUSED.get(kind) or TYPES[kind][0]

    def experts(self, name: str) -> int:
        shape = self._tensor(name).shape
        return shape[0] if len(shape) == 3 else 0

    def _tensor(self, name: str) -> GgufTensor:
        if name not in self._file.tensors:
            raise FormatError(self.path, name, "there is no such tensor")
        return self._file.tensors[name]

    def weight(self, name: str, expert: Optional[int] = None) -> QuantizedWeight:
        tensor, type_ = self._tensor(name), self.type(name)
        if len(tensor.shape) not in (2, 3) or 0 in tensor.shape:
            raise FormatError(self.path, name, f"shape {list(tensor.shape)} is not that of a matrix")
        self._check_expert(name, expert)
        if type_ not in DECODERS and type_ not in PLAIN:
            raise FormatError(self.path, name, f"tensors of {type_} are not read: they have no codes"
                              " with scales")
        n, k = tensor.shape[-2:]
        size = tensor.size // (tensor.shape[0] if expert is not None else 1)
        raw = self._file.bytes(name, size * (expert or 0), size)
        source = {"file": self.path, "tensor": name, "format": "gguf " + type_}
        if type_ in PLAIN:
            holder, ours = PLAIN[type_]
            return QuantizedWeight(n, k, ours, raw.view(holder).reshape(n, k), None, k,
                                   scales_type="", source=source)
        with np.errstate(invalid="ignore"):
            blocks = DECODERS[type_](raw.reshape(n, -1, TYPES[tensor.type][2]))
        return QuantizedWeight(n, k, source=source, **blocks._asdict())

    def _check_expert(self, name: str, expert: Optional[int]) -> None:
        count = self.experts(name)
        if count == 0 and expert is None or expert is not None and 0 <= expert < count:
            return
        raise FormatError(self.path, name, "expert", expert,
                          f"0 to {count - 1}" if count else "None: this is one matrix")

    def tensor(self, name: str) -> np.ndarray:
        tensor, type_ = self._tensor(name), self.type(name)
        if type_ not in PLAIN:
            raise FormatError(self.path, name, "type", type_, " or ".join(PLAIN))
        holder, ours = PLAIN[type_]
        return widen(self._file.bytes(name, 0, tensor.size).view(holder), ours).reshape(tensor.shape)
