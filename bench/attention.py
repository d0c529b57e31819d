#!/usr/bin/env python3
"""kernels/attention_sm90.tilus beside torch's scaled_dot_product_attention, on a GPU with sm_90a.

    bench/attention.py --tools DIR --runtime libtilus_rt.so [--cases 512c,512,..] [--variant LABEL=BN=64,STAGES=3 ...]

A case is a number of rows, `c` for causal, and of a head's columns after `x`: 4096cx64. Each launch is 1 x 32 heads; q, k and v
are of f16. The kernel goes with its defaults and, where they differ, as one item a block (`item`) and, causal, with SPLIT. 200 rows of two heads are compared with f64 before anything is timed; then CUDA
graphs of our launches and of torch's take turns, in bursts of 20 ms after 100 ms of rest, over copies of all tensors that
hold more than 4 times the L2 cache.
"""
import argparse
import math
import pathlib
import re
import statistics
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import gemm

CASES = ["512c", "512", "1024c", "1024", "2048c", "2048", "4096c", "4096", "8192c", "8192", "16384c", "16384"]
ORDER = ("q k v o lse sinks mask q_starts k_starts batch heads kv_heads n nk longest masks left right scale cap").split()
HEADS = 32
ITEM = {"BLOCKS": 1048576, "QUERIES": 1, "PAIRS": 0}


def case_of(text):
    n, causal, d = re.fullmatch(r"(\d+)(c?)(?:x(\d+))?", text).groups()
    return int(n), causal == "c", int(d or 128)


def arguments(tensors, scalars):
    values = (gemm.Argument * len(ORDER))()
    for value, name in zip(values, ORDER):
        x = tensors[name].data_ptr() if name in tensors else scalars.get(name, 0)
        if isinstance(x, float):
            value.real = x
        else:
            value.integer = x
    return values


def make(n, d):
    tensors = {name: torch.randn(1, HEADS, n, d, device="cuda").half() for name in "qkv"}
    return tensors | {"o": torch.empty(1, HEADS, n, d, device="cuda", dtype=torch.float16)}


def exact(t, causal, heads, rows):
    q, k, v = (t[name][0, heads].double() for name in "qkv")
    s = q[:, rows] @ k.transpose(1, 2) * q.shape[2] ** -0.5
    if causal:
        s = s.masked_fill(torch.arange(k.shape[1], device="cuda")[None] > rows[:, None], -math.inf)
    return torch.softmax(s, -1) @ v


def torch_way(name, causal):
    def run(t):
        with sdpa_kernel(getattr(SDPBackend, name)):
            return F.scaled_dot_product_attention(t["q"], t["k"], t["v"], is_causal=causal)
    return run


def our_way(runtime, artefact, n, d):
    handle = runtime.load(artefact)
    scalars = {"batch": 1, "heads": HEADS, "kv_heads": HEADS, "n": n, "nk": n, "scale": d ** -0.5}
    prepared = {}

    def run(t):
        key = t["q"].data_ptr()
        if key not in prepared:
            prepared[key] = arguments(t, scalars)
        runtime.launch(handle, prepared[key])
        return t["o"]
    return run


def variants(options, causal, d):
    yield "ours", {}
    yield "item", ITEM
    if causal:
        yield "split", {"SPLIT": 1}
    for text in options.variant:
        label, words = text.split("=", 1)
        yield label, dict(word.split("=") for word in words.split(","))


def ways_of(options, runtime, case, folder):
    n, causal, d = case
    for name in ("CUDNN_ATTENTION", "FLASH_ATTENTION"):
        yield name[:5].lower(), torch_way(name, causal)
    for label, defines in variants(options, causal, d):
        way = gemm.Way("attention_sm90.tilus", "attention", "", {"CAUSAL": int(causal), "D": d, **defines})
        yield label, our_way(runtime, gemm.compile_kernel(options.tools, f"{label}_{causal}_{d}", way, folder), n, d)


def measure(options, runtime, case, folder):
    n, causal, d = case
    first = make(n, d)
    size = sum(t.numel() * t.element_size() for t in first.values())
    sets = [first] + [make(n, d) for _ in range(min(7, gemm.COPIES_BYTES // size))]
    rows, heads = torch.randperm(n, device="cuda")[:200].sort().values, torch.tensor([0, HEADS - 1], device="cuda")
    reference, graphs = exact(first, causal, heads, rows), {}
    for label, way in ways_of(options, runtime, case, folder):
        first["o"].fill_(math.nan)
        found = way(first)[0, heads][:, rows].double()
        error = ((found - reference).norm() / reference.norm()).item()
        if not error < 2e-3:
            sys.exit(f"{label}, {case}: relative error {error:.2e}")
        graphs[label] = (*gemm.graph_of(way, sets), error)
    times = {label: [] for label in graphs}
    for _ in range(options.rounds):
        for label, (graph, count, _) in graphs.items():
            times[label].extend(gemm.rest_us(graph, count))
    flops = 4 * n * n * d * HEADS * (0.5 if causal else 1)
    for label, (_, _, error) in graphs.items():
        us = statistics.median(times[label])
        print(f"{n}{'c' * causal}x{d} {label:8} {us:9.2f} us {flops / us * 1e-6:6.1f} TFLOP/s, error {error:.2e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="the folder of tilus-llc")
    parser.add_argument("--runtime", type=pathlib.Path, required=True, help="libtilus_rt.so")
    parser.add_argument("--cases", type=gemm.words, default=CASES)
    parser.add_argument("--variant", action="append", default=[], metavar="LABEL=NAME=VALUE,..", help="other parameters")
    parser.add_argument("--rounds", type=int, default=2, help="of turns")
    options = parser.parse_args()
    torch.manual_seed(1)
    runtime = gemm.Runtime(options.runtime)
    with tempfile.TemporaryDirectory() as folder:
        for case in map(case_of, options.cases):
            measure(options, runtime, case, pathlib.Path(folder))


if __name__ == "__main__":
    main()
