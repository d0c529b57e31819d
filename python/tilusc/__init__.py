"""Tilus in Python. Import what you need: `tilusc.formats` reads quantized checkpoints."""

__version__ = "0.2.0"
