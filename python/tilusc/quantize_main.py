"""tilus-quantize: a checkpoint of floats becomes one of codes. Also `python -m tilusc quantize`."""
from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from typing import List, Optional

import numpy as np

from . import formats
from .quantize import CLIPS, ZEROS, Scheme
from .quantize_checkpoint import Activations, Job


def main(words: Optional[List[str]] = None) -> int:
    options = _parser().parse_args(words)
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _print_warning
        return _run(options)


def _print_warning(message: object, *_: object, **__: object) -> None:
    print(f"tilus-quantize: warning: {message}", file=sys.stderr)


def _run(options: argparse.Namespace) -> int:
    try:
        scheme = Scheme(options.weights, options.group, _zeros(options), options.clip, options.scales)
        job = Job(options.source, options.target, scheme, _activations(options), options.ignore,
                  options.layout, options.damping)
        print(f"tilus-quantize: {len(job.chosen)} matrices to {scheme.weights}, written as "
              + (f"Tilus's own layout: {job.why_own}" if job.why_own else "compressed-tensors"), file=sys.stderr)
        job.run(Progress())
    except (OSError, ValueError) as error:      # FormatError is a ValueError
        print(f"tilus-quantize: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ntilus-quantize: interrupted; the same command continues from here", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("tilus-quantize", description="Quantizes the matrices of a safetensors"
                                     " checkpoint in f16, bf16 or f32. The same command continues an interrupted run.")
    add = parser.add_argument
    add("source", help="folder, or a .safetensors file or its index")
    add("target", help="folder, made if it is not there; files of another job in it are refused")
    add("-w", "--weights", required=True, help="u1 to u8, i1 to i8, f3e1m1 to f8e7m0")
    add("-g", "--group", type=int, default=128, help="columns that share a scale: a multiple of 16 (128), 0: all")
    add("-z", "--zeros", choices=ZEROS, help="zero points; default: integer for u1 to u8, else none")
    add("--scales", choices=("f16", "bf16"), default="f16")
    add("--clip", choices=CLIPS, default="", help="the range of codes: all of a group's (default from 4 bits on),"
        " or where the squared error is least (default below)")
    add("--layout", choices=("auto", "tilus"), default="auto", help="auto: compressed-tensors where it has the type")
    add("--ignore", action="append", default=[], metavar="MODULE", help="leave this module as it is; also re:PATTERN, and"
        " more than once")
    add("--calibration", metavar="FILE", help="texts by which GPTQ rounds, for Llama's architecture: .npy of token"
        " ids [texts, tokens], or .txt, which needs tokenizer.json and the package tokenizers")
    add("--activations", metavar="FILE", help="safetensors with inputs [rows, k] by modules' names, by which GPTQ"
        " rounds")
    add("--context", type=int, default=512, help="tokens of each text that a .txt is cut into (512)")
    add("--damping", type=float, default=0.01, help="part of the mean diagonal that GPTQ adds beside columns /"
        " tokens of it (0.01)")
    return parser


def _zeros(options: argparse.Namespace) -> str:
    return options.zeros or ("integer" if options.weights[:1] == "u" else "none")


def _activations(options: argparse.Namespace) -> Optional[Activations]:
    if options.calibration is None and options.activations is None:
        return None
    if options.context < 1:
        raise ValueError(f"context is {options.context}, not a number of tokens")
    tokens = _read_tokens(options) if options.calibration else ()
    if options.calibration and not any(map(len, tokens)):
        raise ValueError(f"{options.calibration} has no tokens")
    return Activations(tokens, formats.open(options.activations) if options.activations else None)


def _read_tokens(options: argparse.Namespace) -> List[List[int]]:
    if options.calibration.endswith(".npy"):
        tokens = np.load(options.calibration, allow_pickle=False)
        if tokens.ndim != 2 or tokens.dtype.kind not in "iu":
            raise ValueError(f"{options.calibration} is {tokens.dtype} {list(tokens.shape)}, not integers"
                             " [texts, tokens]")
        return tokens.tolist()
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ValueError("a calibration of text needs the package tokenizers, or is a .npy of tokens") from None
    folder = options.source if os.path.isdir(options.source) else os.path.dirname(options.source)
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.exists(path):
        raise ValueError(f"{path} does not exist: a calibration of text needs it")
    with open(options.calibration, encoding="utf-8") as file:
        ids = Tokenizer.from_file(path).encode(file.read()).ids
    return [ids[i:i + options.context] for i in range(0, len(ids), options.context)]


class Progress:
    """A line on stderr: how much is done, and how long the rest takes at this pace."""

    def __init__(self) -> None:
        self.start = time.monotonic()

    def __call__(self, done: int, count: int, name: str) -> None:
        spent = time.monotonic() - self.start
        left = f", {spent / done * (count - done):.0f} s left" if 0 < done < count else ""
        bar = "#" * (20 * done // count)
        text = f"[{bar:20}] {done} of {count}{left}  {name}"
        if sys.stderr.isatty():
            print(f"\r{text[:99]:99}", end="\n" if done == count else "", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
