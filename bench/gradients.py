#!/usr/bin/env python3
"""Compares gradients of products with packed weights with those of dense ones, and times both, on a GPU.

    bench/gradients.py [--weights=u4,f6e3m2] [--rows=1,16,256,4096] [--shapes=4096x4096,8192x28672] [--type=f16] [--json]

Shapes are n x k of W[n, k]. A row of the table has the median times, in us, of the packed product and its backward pass, which
is dA alone, and of torch's dense ones with the same weights unpacked; how far the packed dA is from an f32 product of dA, as a
part of its norm, and torch's dense one; and the most memory of a backward pass beside dA, in MiB. Experts come last: tokens,
routes. The command fails where an error is large, or memory is beyond what docs/python.md says."""
import argparse
import json
import statistics
import sys
import time

import torch
from tilusc import _torch_gradient
from tilusc.matmul import Problem, plan, quantize
from tilusc.nn import QuantizedExperts

SHAPES = "4096x4096,14336x4096,4096x14336,8192x8192,57344x8192,8192x28672"
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
LIMITS = {"f16": 2e-3, "bf16": 1e-2}        # of errors, as parts of a norm


def microseconds(call, device, count):
    """The median time of a call, from rest."""
    times = []
    for _ in range(count + 2):
        if device == "cuda":
            torch.cuda.synchronize()
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            call()
            last.record()
            last.synchronize()
            times.append(first.elapsed_time(last) * 1e3)
        else:
            started = time.perf_counter()
            call()
            times.append((time.perf_counter() - started) * 1e6)
    return statistics.median(times[2:])


def error(have, want):
    return float((have.float() - want).norm() / want.norm())


def memory_of(call, device):
    """The most bytes that a call takes at a time, and keeps."""
    if device != "cuda":
        call()
        return 0, 0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before, sum(value.numel() * value.element_size() for value in kept)


def measure(weights, n, k, rows, options):
    """Measures a product of so many rows."""
    device, dtype = options.device, TYPES[options.type]
    problem = Problem(weights, n, k, zeros="integer" if weights[0] == "u" else "none", activations=options.type)
    its = plan(problem, 0 if device == "cuda" else "cpu")
    torch.manual_seed(0)
    packed = torch.from_numpy(its.pack(*quantize(torch.randn(n, k) / k ** 0.5, problem))).to(device)
    weight = its.unpack(packed, options.type)
    for m in rows:
        a, grad = torch.randn(m, k, device=device, dtype=dtype), torch.randn(m, n, device=device, dtype=dtype)
        a.requires_grad_()

        def forward(_=None):
            return torch.ops.tilusc.matmul(a, packed, str(problem))

        def dense(_=None):
            return torch.nn.functional.linear(a, weight)
        results, of_a = {}, {}
        for name, function in (("packed", forward), ("dense", dense)):
            y = function()

            def backward():
                return torch.autograd.grad(y, a, grad, retain_graph=True)
            of_a[name] = backward()[0]
            results[name] = (microseconds(function, device, options.count), microseconds(backward, device, options.count))
            if name == "packed":
                most, kept = memory_of(backward, device)
        want = grad.float() @ weight.float()
        yield {"weights": weights, "n": n, "k": k, "m": m, "forward": results["packed"][0], "backward": results["packed"][1],
               "dense_forward": results["dense"][0], "dense_backward": results["dense"][1],
               "error": error(of_a["packed"], want), "dense_error": error(of_a["dense"], want),
               "mib": (most - kept) / 2 ** 20}


def is_right(row, options):
    slice_ = 2 * 128 * row["n"]         # bytes of 128 columns of k
    most = max(_torch_gradient.UNPACKED_BYTES, slice_) + (40 << 20)        # and a workspace of cuBLAS
    return row["error"] < LIMITS[options.type] and row["mib"] * 2 ** 20 < most


def measure_experts(options, experts=16, n=768, k=2048, top=4, tokens=64):
    """Measures a step of a mixture of experts, beside dense weights in f32."""
    device, dtype = options.device, TYPES[options.type]
    torch.manual_seed(0)
    gate, up = torch.randn(2, experts, n, k) / k ** 0.5
    down = torch.randn(experts, k, n) / n ** 0.5
    layer = QuantizedExperts.from_float(gate, up, down, top=top, activations=options.type,
                                        device=0 if device == "cuda" else "cpu")
    gate, up, down = layer.dequantize(torch.float32)
    x, route = torch.randn(tokens, k, device=device, dtype=dtype), torch.rand(tokens, top, device=device)
    chosen = torch.rand(tokens, experts, device=device).topk(top).indices
    grad = torch.randn(tokens, k, device=device, dtype=dtype)
    given = [value.requires_grad_() for value in (x, route)]
    found = torch.autograd.grad(layer(x, chosen, route), given, grad)
    wide = x.detach().float().requires_grad_()
    hidden = torch.nn.functional.silu(torch.einsum("tk,enk->ten", wide, gate)) * torch.einsum("tk,enk->ten", wide, up)
    every = torch.einsum("ten,ekn->tek", hidden, down)
    y = (every.gather(1, chosen[..., None].expand(-1, -1, k)) * route[..., None]).sum(1)
    want = torch.autograd.grad(y, [wide, route], grad.float())

    def step():
        torch.autograd.grad(layer(x, chosen, route), given, grad)
    return {"experts": experts, "tokens": tokens, "step": microseconds(step, device, options.count),
            "error": error(found[0], want[0]), "route_error": error(found[1], want[1])}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--weights", default="u4,f6e3m2")
    parser.add_argument("--rows", default="1,16,256,1024,4096")
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--experts", default="16x768x2048", help="experts x n x k")
    parser.add_argument("--type", default="f16", choices=TYPES)
    parser.add_argument("--count", default=20, type=int, help="of calls")
    parser.add_argument("--json", action="store_true")
    options, wrong = parser.parse_args(arguments), 0
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch finds no GPU; --device=cpu is the CPU engine, which takes small shapes")
    torch.backends.cuda.matmul.allow_tf32 = False
    rows = [int(m) for m in options.rows.split(",")]
    names = "weights n k m forward backward dense_forward dense_backward error dense_error mib".split()
    print(" ".join(f"{name:>14}" for name in names))
    for weights in options.weights.split(","):
        for shape in options.shapes.split(","):
            for row in measure(weights, *map(int, shape.split("x")), rows, options):
                wrong += not is_right(row, options)
                print(json.dumps(row) if options.json else
                      " ".join(f"{row[name]:14.4g}" if isinstance(row[name], float) else f"{row[name]:>14}" for name in names)
                      + ("" if is_right(row, options) else "  WRONG"), flush=True)
    row = measure_experts(options, *map(int, options.experts.split("x")))
    wrong += max(row["error"], row["route_error"]) > 2 * LIMITS[options.type]
    print(json.dumps(row) if options.json else ", ".join(f"{name} {value:.4g}" for name, value in row.items()))
    print(f"wrong: {wrong}" if wrong else "all are right")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main()))
