"""Checkpoints: a file or a folder becomes a model with names and weights."""
from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import numpy as np

from . import awq, bitsandbytes, compressed_tensors, fours, gptq, hqq, tilus_layout
from .errors import FormatError
from .files import read_json
from .layer import Layer, read_float, section
from .safetensors import DTYPES, TensorStore, open_sharded
from .types import is_low_bit
from .weight import QuantizedWeight

Reader = Callable[[Layer], QuantizedWeight]
Entry = Tuple[str, Reader, str, str, str]   # format, reader, module, joint, the main suffix

CONFIGS = ("config.json", "hf_quant_config.json", "quantize_config.json", "quant_config.json")


class Model:
    """The weights of a checkpoint, each read when it is asked for; holds no tensor itself.

    `format` names the formats that were found, `config` is the quantization's configuration. Use it
    as a context manager, or close it. Threads may share it."""

    path: str
    format: str
    config: Dict[str, Any]

    def names(self) -> List[str]:
        """Lists the matrices: quantized ones, and those of two and more dimensions of floats."""
        raise NotImplementedError

    def weight(self, name: str, expert: Optional[int] = None) -> QuantizedWeight:
        """Reads one matrix; of a tensor with several experts, that of one."""
        raise NotImplementedError

    def experts(self, name: str) -> int:
        """Returns the number of experts that a name has; 0: it is a matrix."""
        raise NotImplementedError

    def tensor(self, name: str) -> np.ndarray:
        """Reads a tensor of floats that is not quantized, as f32 (F64 as f64): norms, biases."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


def open(path: str) -> Model:
    """Opens a folder with safetensors or one GGUF file, an index of shards, or one such file.
    FormatError: it is none, or it is damaged."""
    path = os.fsdecode(path)
    if os.path.isdir(path):
        path = _main_file(path)
    if path.endswith(".gguf"):
        from .gguf_model import GgufModel
        return GgufModel(path)
    if path.endswith(".index.json"):
        return SafetensorsModel(open_sharded(path), path)
    return SafetensorsModel(TensorStore([path], path), path)


def _main_file(folder: str) -> str:
    names = sorted(os.listdir(folder))
    for name in ("model.safetensors.index.json", "model.safetensors"):
        if name in names:
            return os.path.join(folder, name)
    for ending in (".safetensors.index.json", ".safetensors", ".gguf"):
        found = [x for x in names if x.endswith(ending)]
        if len(found) == 1:
            return os.path.join(folder, found[0])
        if found:
            raise FormatError(folder, None, "files", ", ".join(found), "one, or shards and an index")
    raise FormatError(folder, None, "there is no .safetensors and no .gguf file")


def read_config(folder: str) -> Dict[str, Any]:
    """Returns the quantization's configuration of a folder, {} if it has none: quantization_config
    of config.json, else a file of older tools or of ModelOpt."""
    for name in CONFIGS:
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            continue
        config = read_json(path)
        found = config if name.startswith("quant") else section(
            config, "quantization_config" if name == "config.json" else "quantization")
        if found:
            return found
    return {}


def _is_gptq(store: TensorStore, module: str, config: Dict[str, Any]) -> bool:
    """Tells GPTQ from AWQ by the extent that scales share with qweight, then by the name."""
    packed, scales = store.shape(module + ".qweight"), store.shape(module + ".scales")
    method = config.get("quant_method")
    if method in ("gptq", "awq"):
        return method == "gptq"
    return bool(packed) and bool(scales) and packed[-1] == scales[-1]


class SafetensorsModel(Model):
    """A checkpoint of safetensors; each module's tensors tell its format."""

    def __init__(self, store: TensorStore, path: str, config: Optional[Dict[str, Any]] = None) -> None:
        self.path, self.store = path, store
        self.config = read_config(os.path.dirname(path)) if config is None else config
        self._entries: Dict[str, Entry] = {}
        self._find()
        found = {entry[0] for entry in self._entries.values()}
        self.format = ", ".join(sorted(found - {"plain"}) or ["plain"])

    def _find(self) -> None:
        modules: Dict[str, Set[str]] = {}
        for name in self.store.tensors:
            module, _, suffix = name.rpartition(".")
            modules.setdefault(module, set()).add(suffix)
        for module, suffixes in modules.items():
            self._find_blocks(module, suffixes)
            rule = self._rule(module, suffixes)
            if rule is not None:
                self._entries[module + ".weight"] = (rule[0], rule[1], module, ".", rule[2])
        taken = {e[2] for e in self._entries.values() if e[0] != "mxfp4"}
        for name, info in self.store.tensors.items():
            module, _, suffix = name.rpartition(".")
            if (len(info.shape) in (2, 3) and module not in taken and self.store.type(name)
                    and not suffix.endswith("bias")):
                self._entries[name] = ("plain", read_plain, module, "." if module else "", suffix)

    def _find_blocks(self, module: str, suffixes: Set[str]) -> None:
        """Finds NAME_blocks and NAME_scales, as gpt-oss has them, also as NAME.blocks."""
        for suffix in suffixes:
            if suffix.endswith("blocks") and suffix.replace("blocks", "scales") in suffixes:
                stem = suffix[:-len("blocks")].rstrip("_")
                name = f"{module}.{stem}" if stem else module
                self._entries[name] = ("mxfp4", fours.read_gpt_oss, module, ".", suffix)

    def _rule(self, module: str, suffixes: Set[str]) -> Optional[Tuple[str, Reader, str]]:
        """Returns format, reader and main suffix of a module, None for plain tensors."""
        if {"weight_packed", "weight_scale"} <= suffixes:
            return "compressed-tensors", compressed_tensors.read_packed, "weight_packed"
        if {"weight_codes", "weight_scales"} <= suffixes:
            return "tilus", tilus_layout.read, "weight_codes"
        if {"qweight", "scales"} <= suffixes:
            if _is_gptq(self.store, module, self.config):
                return "gptq", gptq.read, "qweight"
            return "awq", awq.read, "qweight"
        if {"W_q", "scale", "zero"} <= suffixes:
            return "hqq", hqq.read, "W_q"
        if "weight" not in suffixes:
            return None
        if module + ".weight.absmax" in self.store:
            return "bitsandbytes", bitsandbytes.read, "weight"
        if "SCB" in suffixes:
            return "bitsandbytes", bitsandbytes.read_int8, "weight"
        if "weight_scale_inv" in suffixes:
            return "fp8", fours.read_fp8_blocks, "weight"
        if "weight_scale" in suffixes:
            return self._scaled_rule(module, suffixes)
        return None

    def _scaled_rule(self, module: str, suffixes: Set[str]) -> Tuple[str, Reader, str]:
        """Returns the rule of `weight` with `weight_scale`: bytes, or bytes of smaller codes."""
        if "weight_scale_2" in suffixes:
            return "modelopt", fours.read_nvfp4, "weight"
        if self.store.info(module + ".weight").dtype != "U8":
            return "compressed-tensors", compressed_tensors.read_bytes, "weight"
        shape = self.store.shape(module + ".weight_scale")
        return ("bitnet" if len(shape) < 2 else "modelopt"), fours.read_u8, "weight"

    def names(self) -> List[str]:
        return list(self._entries)

    def experts(self, name: str) -> int:
        _, _, module, joint, suffix = self._entry(name)
        shape = self.store.shape(module + joint + suffix)
        return shape[0] if len(shape) == (4 if suffix.endswith("blocks") else 3) else 0

    def _entry(self, name: str) -> Entry:
        if name not in self._entries:
            raise FormatError(self.path, name, "there is no such matrix")
        return self._entries[name]

    def weight(self, name: str, expert: Optional[int] = None) -> QuantizedWeight:
        format_, reader, module, joint, main = self._entry(name)
        reason = compressed_tensors.why_transformed(self.config)
        if reason:
            raise FormatError(self.path, name, reason)
        count = self.experts(name)
        if (expert is None) != (count == 0):
            raise FormatError(self.path, name, "expert", expert,
                              f"0 to {count - 1}" if count else "None: this is one matrix")
        if expert is not None and not 0 <= expert < count:
            raise FormatError(self.path, name, "expert", expert, f"0 to {count - 1}")
        return reader(Layer(self.store, module, self.config, format_, main, expert, joint))

    def tensor(self, name: str) -> np.ndarray:
        if self.store.type(name) is None:
            raise FormatError(self.path, name, "dtype", self.store.info(name).dtype, "a float's")
        return read_float(self.store, name)

    def close(self) -> None:
        self.store.close()


def _refuse_scales(layer: Layer) -> None:
    """Refuses codes beside scales of a format that is not known, without which they mean nothing."""
    beside = layer.module + layer.joint
    for name in layer.store.tensors:
        suffix = name[len(beside):]
        if name.startswith(beside) and "scale" in suffix and "." not in suffix and not suffix.startswith("input"):
            raise layer.error(layer.main, f"it has 8 bits, and scales beside it, {suffix}, that are of no known format")


def read_plain(layer: Layer) -> QuantizedWeight:
    """Reads a matrix of floats as it is; those of 8 bits are codes without scales."""
    name = layer.name(layer.main)
    codes = layer.bits(layer.main, tuple(DTYPES), 2)
    n, k = codes.shape
    if n == 0 or k == 0:
        raise layer.error(layer.main, "shape", [n, k], "one with elements")
    if is_low_bit(layer.store.type(name)):
        _refuse_scales(layer)
    return QuantizedWeight(n, k, layer.store.type(name), codes, None, k, scales_type="",
                           bias=layer.bias(n), source=layer.source(layer.main))
