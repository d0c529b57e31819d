"""Tilus in Python: GPU kernels on low-precision data.

    kernel = tilusc.jit(text, "scale", N=1024)      # a program as a function of arrays
    kernel(x, y, 3.0)                               # torch tensors on a GPU, or NumPy arrays on this machine

`tilusc.compile` makes artefacts, `tilusc.interpret` runs a program without a GPU, `tilusc.matmul` multiplies by
packed weights of 1 to 8 bits, `tilusc.attention` has attention, `tilusc.formats` reads quantized checkpoints.
`python -m tilusc doctor` says what there is. docs/python.md begins with ten lines.

Importing this loads neither torch, NumPy, the libraries nor a driver; what is used first does."""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

__version__ = "0.2.0"

if TYPE_CHECKING:
    from . import attention, formats, matmul
    from .compiler import compile
    from .errors import (ArgumentError, CompileError, CompileWarning, Diagnostic, EngineError, Error, NoDevice,
                         OutOfMemory, ProgramError)
    from .kernel import Kernel, interpret, jit, load
    from .runtime import Device, devices

_PLACES = {"compile": "compiler", "Kernel": "kernel", "interpret": "kernel", "jit": "kernel", "load": "kernel",
           "Device": "runtime", "devices": "runtime",
           **dict.fromkeys(("ArgumentError", "CompileError", "CompileWarning", "Diagnostic", "EngineError", "Error",
                            "NoDevice", "OutOfMemory", "ProgramError"), "errors")}
_MODULES = ("attention", "formats", "matmul")
__all__ = sorted([*_PLACES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted([*globals(), *__all__])
