"""The plugin for vLLM, which finds `register` by the entry point vllm.general_plugins; docs/python.md has its manual.

Importing this imports neither vLLM nor torch."""
from __future__ import annotations

import importlib
import warnings

__all__ = ["register"]

TESTED = "0.33.0"       # of vLLM


def register() -> None:
    """Registers the quantization "tilus", and kernels as the last of vLLM's for GPTQ, AWQ, compressed-tensors and
    ModelOpt. May be called again, and raises nothing: a vLLM without the names that this needs gives a warning."""
    for module, what in (("_vllm_method", "the quantization 'tilus'"), ("_vllm_kernel", "TilusLinearKernel"),
                         ("_vllm_fours", "kernels for NVFP4 and MXFP4")):
        try:
            importlib.import_module(f".{module}", __package__).register()
        except Exception as error:      # vLLM must start whatever of it is missing here
            warnings.warn(f"tilusc was tested with vLLM {TESTED}, and cannot register {what} in this one:"
                          f" {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)
