"""Readers of quantized checkpoints, with NumPy only.

    with tilusc.formats.open("Llama-3-8B-AWQ") as model:
        for name in model.names():
            weight = model.weight(name)         # codes, scales, zeros, .. of one matrix
            arrays = weight.to_matmul()         # as tilus_matmul_weights takes them, exact

docs/formats.md lists the formats, how each maps, and what is refused."""

from .errors import FormatError
from .model import Model, open
from .weight import MatmulWeights, QuantizedWeight

__all__ = ["FormatError", "MatmulWeights", "Model", "QuantizedWeight", "open"]
