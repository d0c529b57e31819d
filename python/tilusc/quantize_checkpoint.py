"""Quantizes checkpoints: safetensors of floats to safetensors of codes, one layer at a time.

    job = Job("Llama-3-8B", "Llama-3-8B-u4", Scheme("u4", 128, "integer"))
    job.run()

A unit is a layer ("model.layers.7"), or a tensor outside of layers; it becomes one file of the result.
Files appear when they are whole, so that a job that was interrupted goes on after the last one."""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import warnings
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np

from . import formats
from .formats import FormatError, QuantizedWeight
from .formats.compressed_tensors import why_transformed
from .formats.files import read_json
from .formats.layer import check_patterns, matches
from .formats.model import SafetensorsModel
from .formats.safetensors import DTYPES, SafetensorsFile, TensorStore
from .formats.write import (Stored, compressed_config, compressed_tensors, tilus_config, tilus_tensors,
                            why_own_layout, write_safetensors)
from .llama import Block, Cache, dense, frequencies, read_config
from .quantize import Scheme, quantize
from .quantize_gptq import Hessian, quantize as quantize_gptq

# Modules that stay as they are: no products with packed weights, or too few of them to matter. Heads may be those of
# a model inside of another one, wte and wpe are GPT's embeddings, and Qwen's shared experts have a gate of one row.
IGNORE = ("re:(.*\\.)?lm_head$", "re:.*\\.shared_head\\.head$", "re:.*embed", "re:(.*\\.)?w[tp]e$", "re:.*router",
          "re:.*\\.gate$", "re:.*\\.shared_expert_gate$")
LAYER = re.compile(r"^(.*?\.?(?:layers|blocks|h)\.\d+)\.")
# Products whose input is that of another one.
SHARED = {"k_proj": "q_proj", "v_proj": "q_proj", "up_proj": "gate_proj"}
INDEX = "model.safetensors.index.json"
Note = Callable[[int, int, str], None]


class Activations(NamedTuple):
    """Calibration: token ids of texts, for models of Llama's architecture, or inputs of modules by
    name, rows [t, k], in a safetensors file."""

    tokens: Sequence[Sequence[int]] = ()
    inputs: Optional[formats.Model] = None


class Job:
    """Reads `source`, a folder or file of safetensors of f16, bf16 and f32, and fills the folder
    `target`. Without `calibration` codes are the nearest ones. `ignore` adds modules that stay: names,
    or patterns after "re:". `layout` is "auto" or "tilus". FormatError: the source is damaged, or is
    quantized already; ValueError: target is of another job, calibration does not fit, or a pattern is
    none. Warns of what is given and meets nothing."""

    def __init__(self, source: str, target: str, scheme: Scheme, calibration: Optional[Activations] = None,
                 ignore: Sequence[str] = (), layout: str = "auto", damping: float = 0.01) -> None:
        self.scheme, self.target, self.calibration, self.damping = scheme, target, calibration, damping
        if not 0 <= damping < float("inf"):
            raise ValueError(f"damping is {damping}, not a number from 0 on")
        if calibration and not calibration.inputs and not any(map(len, calibration.tokens)):
            raise ValueError("the calibration has no tokens")
        self.ignore = [*IGNORE, *ignore]
        check_patterns(ignore)
        self.model = formats.open(source)
        if not isinstance(self.model, SafetensorsModel) or self.model.format != "plain":
            raise FormatError(self.model.path, None, "format", self.model.format, "safetensors of floats")
        reason = why_transformed(self.model.config)
        if reason:
            raise FormatError(self.model.path, None, reason)
        self.store = self.model.store
        self.chosen = [x for x in self.store.tensors if self._is_chosen(x)]
        if not self.chosen:
            raise FormatError(self.model.path, None, "there is no matrix to quantize")
        self._check_names(ignore)
        own = why_own_layout(scheme.weights, scheme.zeros, scheme.group,
                             {self.store.shape(x)[1] for x in self.chosen})
        self.why_own = "it was asked for" if layout == "tilus" else own
        self.units = self._find_units()
        self.identity = self._identify()

    def _is_chosen(self, name: str) -> bool:
        info = self.store.info(name)
        return (name.endswith(".weight") and len(info.shape) == 2 and 0 not in info.shape
                and info.dtype in ("F16", "BF16", "F32") and not self._is_ignored(name.rpartition(".")[0]))

    def _is_ignored(self, module: str) -> bool:
        return any(_is_meant(x, module) for x in self.ignore)

    def _check_names(self, ignore: Sequence[str]) -> None:
        """Warns of names to ignore that no module has, and of inputs of modules that are not quantized."""
        modules = {x.rpartition(".")[0] for x in self.store.tensors}
        for text in ignore:
            if not any(_is_meant(text, x) for x in modules):
                kind = "no module's name matches" if text.startswith("re:") else "no module is called that"
                warnings.warn(f"{text!r} ignores nothing: {kind}", stacklevel=3)
        if not self.calibration or not self.calibration.inputs:
            return
        inputs = self.calibration.inputs
        known = {x.rpartition(".")[0] for x in self.chosen}
        others = [x for x in inputs.names() if x not in known]
        if len(others) == len(inputs.names()):
            raise ValueError(f"{inputs.path} has inputs of no module that is quantized, but of"
                             f" {_some(others) or 'none'}; modules are called as {min(known)}")
        if others:
            warnings.warn(f"inputs in {inputs.path} are left out, of what is not quantized: {_some(others)}", stacklevel=3)

    def _find_units(self) -> Dict[str, List[str]]:
        units: Dict[str, List[str]] = {}
        for name in self.store.tensors:
            match = LAYER.match(name)
            units.setdefault(match.group(1) if match else name, []).append(name)
        return dict(sorted(units.items(), key=lambda x: _by_number(x[0])))

    def _identify(self) -> str:
        """Returns a hash of what decides the result; equal jobs may continue each other. Files count as
        the same by place, size and time."""
        files = {x.file.path for x in self.store.tensors.values()}
        used = self.calibration
        if used and used.inputs:
            files.add(used.inputs.path)
        states = [(os.path.abspath(x), os.stat(x).st_size, os.stat(x).st_mtime_ns) for x in sorted(files)]
        known = (self.scheme, self.ignore, self.why_own is None, self.damping, states,
                 used and [list(map(int, x)) for x in used.tokens])
        return hashlib.sha256(repr(known).encode()).hexdigest()[:16]

    # ---- the run ----

    def run(self, note: Note = lambda done, count, name: None) -> None:
        """Writes what is missing; `note` is called before each unit and once at the end."""
        os.makedirs(self.target, exist_ok=True)
        with _only_writer(self.target):
            self._run(note)

    def _run(self, note: Note) -> None:
        self._check_target()
        flow = Flow(self) if self.calibration and self.calibration.tokens else None
        for i, (unit, names) in enumerate(self.units.items()):
            note(i, len(self.units), unit)
            self._run_unit(i, unit, names, flow)
        self._write_index()
        self._copy_rest()
        note(len(self.units), len(self.units), "")

    def path(self, index: int) -> str:
        return os.path.join(self.target, f"model-{index + 1:05}.safetensors")

    def _check_target(self) -> None:
        for name in sorted(os.listdir(self.target)):
            path = os.path.join(self.target, name)
            if name.endswith(".safetensors") and self._made_by(path) != self.identity:
                raise ValueError(f"{path} is of another job, or another source: choose an empty folder")

    @staticmethod
    def _made_by(path: str) -> Optional[str]:
        file = SafetensorsFile(path)
        try:
            return file.metadata.get("tilus_quantize")
        finally:
            file.close()

    def _run_unit(self, index: int, unit: str, names: List[str], flow: Optional["Flow"]) -> None:
        done = os.path.exists(self.path(index))
        hessians = flow.observe(unit) if flow and not done else {}
        if not done:
            tensors: Dict[str, Stored] = {}
            for name in names:
                tensors.update(self._convert(name, hessians))
            write_safetensors(self.path(index), tensors, {"format": "pt", "tilus_quantize": self.identity})
        if flow:
            flow.advance(unit, self.path(index))

    def _convert(self, name: str, hessians: Dict[str, Hessian]) -> Dict[str, Stored]:
        if name not in self.chosen:
            info = self.store.info(name)
            if DTYPES[info.dtype][1] is None:
                raise FormatError(info.file.path, name, f"tensors of {info.dtype} are not read")
            return {name: Stored(info.dtype, info.shape, self.store.bits(name))}
        module = name.rpartition(".")[0]
        weight = self._quantize(name, module, hessians.get(module) or self._given(name, module))
        return (compressed_tensors if self.why_own is None else tilus_tensors)(module, weight)

    def _quantize(self, name: str, module: str, hessian: Optional[Hessian]) -> QuantizedWeight:
        try:
            matrix = self.store.floats(name)
            if hessian is None:
                return quantize(matrix, self.scheme)
            return quantize_gptq(matrix, self.scheme, hessian)
        except ValueError as error:
            raise FormatError(self.model.path, name, str(error)) from error

    def _given(self, name: str, module: str) -> Optional[Hessian]:
        """Returns the Hessian of activations that the user gave; None: there are none for it."""
        inputs = self.calibration.inputs if self.calibration else None
        if inputs is None or module not in inputs.names():
            return None
        hessian = Hessian(self.store.shape(name)[1], self.damping)
        hessian.add(inputs.tensor(module))
        return hessian

    # ---- what stands beside the tensors ----

    def _write_index(self) -> None:
        places, total = {}, 0
        for i in range(len(self.units)):
            file = SafetensorsFile(self.path(i))
            for name, info in file.tensors.items():
                places[name], total = os.path.basename(self.path(i)), total + info.size
            file.close()
        _write_json(os.path.join(self.target, INDEX), {"metadata": {"total_size": total}, "weight_map": places})

    def config(self) -> Dict[str, object]:
        """Returns quantization_config of the result."""
        scheme = self.scheme
        ignored = [x.rpartition(".")[0] for x in self.store.tensors if x not in self.chosen
                   and x.endswith(".weight") and len(self.store.shape(x)) == 2]
        make = compressed_config if self.why_own is None else tilus_config
        return make(scheme.weights, scheme.zeros, scheme.group, ignored)

    def _copy_rest(self) -> None:
        """Copies the tokenizer and the like, and config.json with the quantization's configuration."""
        folder = os.path.dirname(os.path.abspath(self.model.path))
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if (name.endswith((".json", ".txt", ".model", ".jinja")) and os.path.isfile(path)
                    and not name.endswith(".index.json") and name != "config.json"):
                _copy(path, os.path.join(self.target, name))
        path = os.path.join(folder, "config.json")
        config = read_json(path) if os.path.exists(path) else {}
        config["quantization_config"] = self.config()
        _write_json(os.path.join(self.target, "config.json"), config)


@contextlib.contextmanager
def _only_writer(folder: str) -> Iterator[None]:
    """Keeps other processes from writing to a folder. ValueError: one does. Some file systems know no locks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"another process writes to {folder}") from None
        yield
    finally:
        os.close(handle)


def _is_meant(text: str, module: str) -> bool:
    """Tells whether a name, or a pattern after "re:", is a module's."""
    return matches(text[3:], module) if text.startswith("re:") else text == module


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _by_number(unit: str):
    """Sorts units outside of layers first, then layers by number."""
    match = re.search(r"\.(\d+)$", unit)
    return (1, unit[:match.start()], int(match.group(1))) if match else (0, unit, 0)


def _copy(source: str, path: str) -> None:
    """Copies what is in a file, but not its mode: it may be read-only, and is to be written again."""
    shutil.copyfile(source, path + ".part")
    os.replace(path + ".part", path)


def _write_json(path: str, value: object) -> None:
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
    os.replace(path + ".part", path)


class Flow:
    """Calibration texts on their way through a Llama: each layer sees what the quantized layers
    before it make of them."""

    def __init__(self, job: Job) -> None:
        self.job, self.config = job, read_config(job.model)
        self.rates = frequencies(self.config)
        self.counts = [len(x) for x in job.calibration.tokens]
        tokens = np.concatenate([np.asarray(x, np.int64) for x in job.calibration.tokens])
        table = job.store.floats("model.embed_tokens.weight")
        if tokens.size == 0 or tokens.min() < 0 or tokens.max() >= len(table):
            found = f"{tokens.min()} to {tokens.max()}" if tokens.size else "none"
            raise ValueError(f"tokens of the calibration are {found}, not 0 to {len(table) - 1}")
        self.rows = table[tokens]

    def _layer(self, unit: str) -> Optional[int]:
        match = re.match(r"model\.layers\.(\d+)$", unit)
        return int(match.group(1)) if match else None

    def _run(self, block: Block) -> np.ndarray:
        return block.run(self.rows, self.counts, [Cache(self.config) for _ in self.counts], self.rates)

    def observe(self, unit: str) -> Dict[str, Hessian]:
        """Returns the Hessians of a layer's modules, by its unquantized weights."""
        layer, hessians = self._layer(unit), {}
        if layer is None:
            return {}

        def make(name: str, weight: QuantizedWeight):
            module, product = name.rpartition(".")[0], dense(name, weight)
            parent, _, part = module.rpartition(".")
            if part in SHARED:      # made before
                hessians[module] = hessians[f"{parent}.{SHARED[part]}"]
                return product
            hessian = hessians[module] = Hessian(weight.k, self.job.damping)
            return lambda rows: (hessian.add(rows), product(rows))[1]
        self._run(Block(self.job.model, self.config, layer, make))
        return hessians

    def advance(self, unit: str, path: str) -> None:
        """Runs a layer as it was written."""
        layer = self._layer(unit)
        if layer is None:
            return
        model = SafetensorsModel(TensorStore([path], path), path, self.job.config())
        try:
            self.rows = self._run(Block(model, self.config, layer))
        finally:
            model.close()
