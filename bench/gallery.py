#!/usr/bin/env python3
"""The kernels of the gallery (kernels/*.tilus) beside PyTorch, on a GPU.

    bench/gallery.py --tools DIR [--only NAME,..] [--out FILE.csv]

Each row first compares the kernel's result with PyTorch's in f64 on the same data, then measures
both in CUDA graphs of launches that take turns over copies of all buffers, more than 4 times the
L2 cache together: tilus-run --bench does that for ours. `copy_us` is a copy that moves as many
bytes (read and written) as the kernel must, the floor of those that memory binds.
"""
import argparse
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "kernels"
DEVICE = "cuda"
TYPES = {torch.float16: "f16", torch.float32: "f32", torch.int32: "i32", torch.uint8: "u8",
         torch.float8_e4m3fn: "f8e4m3"}


class Kernel:
    """One row. `make(scale)` gives inputs by argument name, smaller for the check than for the
    measurement; `ways` are PyTorch's, each of the same inputs, the first one the reference;
    `outputs` name the kernel's results and give a tensor of their type and shape."""

    def __init__(self, name, file, program, defines, scalars, make, outputs, ways, compile_way=None,
                 tolerance=2e-3, bound="memory", flops=None, before=None):
        self.name, self.file, self.program, self.defines = name, file, program, defines
        self.scalars, self.make, self.outputs, self.ways = scalars, make, outputs, ways
        self.compile_way, self.tolerance, self.bound, self.flops = compile_way, tolerance, bound, flops
        self.before = before        # a program that runs first, and its pointers


def randn(*shape, dtype=torch.float16):
    return torch.randn(*shape, device=DEVICE, dtype=torch.float32).to(dtype)


def integers(most, *shape, dtype=torch.int32):
    return torch.randint(0, most, shape, device=DEVICE, dtype=torch.int32).to(dtype)


def empty(*shape, dtype=torch.float16):
    return torch.empty(shape, device=DEVICE, dtype=dtype)


def rope(i):
    a, b = i["x"].chunk(2, dim=-1)
    c, s = i["cosine"].to(a.dtype)[:, None], i["sine"].to(a.dtype)[:, None]
    return torch.cat((a * c - b * s, b * c + a * s), dim=-1)


def quantize(i):
    x = i["x"] if i["x"].dtype == torch.float64 else i["x"].float()
    scale = x.abs().amax(-1, keepdim=True) / 448
    q = x / scale
    return q if x.dtype == torch.float64 else q.to(torch.float8_e4m3fn)


def scan_inputs(small):
    """The sums of parts are an input of @scan, which @totals computes: both are measured."""
    x = integers(10, 100000 if small else 1 << 26)
    parts = F.pad(x, (0, -x.numel() % 65536)).view(-1, 65536).sum(-1, dtype=torch.int32)
    return {"x": x, "sums": parts}


def sdpa(backend):
    def run(i):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        q, k, v = (i[n][None] for n in "qkv")
        if q.dtype == torch.float64:
            return F.scaled_dot_product_attention(q, k, v, is_causal=False)[0]
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return F.scaled_dot_product_attention(q, k, v, is_causal=False)[0]
    return run


def kernels():
    norm = {"eps": 1e-5}
    yield Kernel("rms_norm", "norm", "rms_norm", {}, lambda i: {"rows": i["x"].shape[0], **norm},
                 lambda small: {"x": randn(64 if small else 16384, 4096), "w": randn(4096)},
                 lambda i: {"y": empty(*i["x"].shape)},
                 {"eager": lambda i: F.rms_norm(i["x"], (4096,), i["w"], 1e-5)}, "eager")
    yield Kernel("layer_norm", "norm", "layer_norm", {}, lambda i: {"rows": i["x"].shape[0], **norm},
                 lambda small: {"x": randn(64 if small else 16384, 4096), "w": randn(4096), "b": randn(4096)},
                 lambda i: {"y": empty(*i["x"].shape)},
                 {"eager": lambda i: F.layer_norm(i["x"], (4096,), i["w"], i["b"], 1e-5)}, "eager")
    yield Kernel("softmax", "softmax", "softmax", {},
                 lambda i: {"rows": i["x"].shape[0], "n": i["x"].shape[1]},
                 lambda small: {"x": randn(16 if small else 4096, 32768)},
                 lambda i: {"y": empty(*i["x"].shape)},
                 {"eager": lambda i: torch.softmax(i["x"], -1)}, "eager")
    yield Kernel("rope", "rope", "rope", {}, lambda i: {"tokens": i["x"].shape[0]},
                 lambda small: {"x": randn(16 if small else 16384, 32, 128),
                                "cosine": torch.rand(16 if small else 16384, 64, device=DEVICE) * 2 - 1,
                                "sine": torch.rand(16 if small else 16384, 64, device=DEVICE) * 2 - 1},
                 lambda i: {"y": empty(*i["x"].shape)}, {"eager": rope}, "eager")
    yield Kernel("silu_mul", "silu_mul", "silu_mul", {},
                 lambda i: {"rows": i["x"].shape[0], "n": i["x"].shape[1] // 2},
                 lambda small: {"x": randn(16 if small else 8192, 28672)},
                 lambda i: {"y": empty(i["x"].shape[0], 14336)},
                 {"eager": lambda i: F.silu(i["x"][:, :14336]) * i["x"][:, 14336:]}, "eager")
    yield Kernel("quantize", "quantize", "quantize", {}, lambda i: {"rows": i["x"].shape[0]},
                 lambda small: {"x": randn(64 if small else 16384, 4096)},
                 lambda i: {"q": empty(*i["x"].shape, dtype=torch.float8_e4m3fn),
                            "scale": empty(i["x"].shape[0], dtype=torch.float32)},
                 {"eager": quantize}, "eager", tolerance=4e-2)
    yield Kernel("transpose", "transpose", "transpose", {},
                 lambda i: {"m": i["x"].shape[0], "n": i["x"].shape[1]},
                 lambda small: {"x": randn(*((256, 512) if small else (8192, 16384)))},
                 lambda i: {"y": empty(i["x"].shape[1], i["x"].shape[0])},
                 {"eager": lambda i: i["x"].t().contiguous()}, None, tolerance=0)
    yield Kernel("embedding", "embedding", "embedding", {},
                 lambda i: {"tokens": i["ids"].shape[0], "rows": i["table"].shape[0]},
                 lambda small: {"table": randn(*((500, 4096) if small else (32000, 4096))),
                                "ids": integers(*((500, 100) if small else (32000, 16384)))},
                 lambda i: {"y": empty(i["ids"].shape[0], 4096)},
                 {"eager": lambda i: F.embedding(i["ids"], i["table"])}, None, tolerance=0)
    yield Kernel("histogram", "histogram", "histogram", {},
                 lambda i: {"n": i["x"].shape[0], "blocks": 132 * 8},
                 lambda small: {"x": integers(256, 100000 if small else 1 << 28, dtype=torch.uint8)},
                 lambda i: {"counts": torch.zeros(256, device=DEVICE, dtype=torch.int32)},
                 {"eager": lambda i: torch.bincount(i["x"].to(torch.uint8), minlength=256)}, None, tolerance=0)
    yield Kernel("topk", "topk", "topk", {}, lambda i: {"rows": i["x"].shape[0]},
                 lambda small: {"x": randn(64 if small else 16384, 4096, dtype=torch.float32)},
                 lambda i: {"values": empty(i["x"].shape[0], 8, dtype=torch.float32),
                            "places": empty(i["x"].shape[0], 8, dtype=torch.int32)},
                 {"eager": lambda i: torch.topk(i["x"], 8, -1).values}, None, tolerance=1e-7)
    yield Kernel("scan", "scan", "scan", {}, lambda i: {"n": i["x"].shape[0]}, scan_inputs,
                 lambda i: {"y": empty(i["x"].shape[0], dtype=torch.int32)},
                 {"eager": lambda i: torch.cumsum(i["x"], 0, dtype=i["x"].dtype)}, None, tolerance=0,
                 before=("totals", ["x", "sums"]))
    yield Kernel("gemm", "gemm", "gemm", {},
                 lambda i: {"m": i["a"].shape[0], "n": i["b"].shape[1], "k": i["a"].shape[1]},
                 lambda small: {"a": randn(*((256, 512) if small else (4096, 4096))),
                                "b": randn(*((512, 256) if small else (4096, 4096)))},
                 lambda i: {"c": empty(i["a"].shape[0], i["b"].shape[1])},
                 {"cuBLAS": lambda i: i["a"] @ i["b"]}, None, bound="math",
                 flops=lambda i: 2 * i["a"].shape[0] * i["b"].shape[1] * i["a"].shape[1])
    yield Kernel("attention", "attention", "attention", {},
                 lambda i: {"heads": i["q"].shape[0], "n": i["q"].shape[1], "scale": 128 ** -0.5},
                 lambda small: {n: randn(*((4, 200, 128) if small else (64, 4096, 128))) for n in "qkv"},
                 lambda i: {"o": empty(*i["q"].shape)},
                 {"flash": sdpa("FLASH_ATTENTION"), "cudnn": sdpa("CUDNN_ATTENTION")}, None, bound="math",
                 flops=lambda i: 4 * i["q"].shape[0] * i["q"].shape[1] ** 2 * 128)


# ---- ours ---------------------------------------------------------------------------------

def store(tensor, path):
    path.write_bytes(bytes(tensor.contiguous().cpu().untyped_storage()))


def command(tools, k, inputs):
    words = [str(tools / "tilus-run"), str(KERNELS / f"{k.file}.tilus"), f"--program=@{k.program}",
             "--engine=gpu"]
    words += [f"-D{n}={v}" for n, v in k.defines.items()]
    return words + [f"--arg={n}={v!r}" for n, v in k.scalars(inputs).items()]


def run(words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(" ".join(words) + "\n" + done.stderr[-2000:])
    return done.stdout + done.stderr


def check(tools, k):
    """The relative Frobenius error against PyTorch in f64."""
    torch.manual_seed(1)
    inputs = k.make(True)
    outputs = k.outputs(inputs)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        words = command(tools, k, inputs)
        for name, tensor in {**inputs, **outputs}.items():
            store(tensor, folder / name)
            words.append(f"--arg={name}=@{folder / name}")
        first = next(iter(outputs))
        run(words + [f"--out={first}={folder / 'out'}"])
        shape = outputs[first]
        ours = torch.frombuffer(bytearray((folder / "out").read_bytes()), dtype=shape.dtype)
    ours = ours.reshape(shape.shape).to(torch.float64)
    wide = {n: t.to(torch.float64) if t.is_floating_point() else t for n, t in inputs.items()}
    reference = next(iter(k.ways.values()))(wide).cpu().to(torch.float64)
    return ((ours - reference).norm() / reference.norm()).item()


def data(t):
    if t.is_floating_point():
        return f"uniform({t.numel()}, -1, 1)"
    if t.dtype == torch.int32 and int(t.max()) < 10 or t.numel() < 2048:
        return f"fill({t.numel()}, 1)"      # sums, whose time does not depend on the numbers
    return f"codes({t.numel()}, 0, {int(t.max())})"


def bench_us(words):
    return float(re.search(r"bench: median +([0-9.]+) us", run(words)).group(1))


def measure(tools, k, inputs):
    words = command(tools, k, inputs) + ["--bench"]
    arguments = [f"--arg={name}={data(t)}" for name, t in inputs.items()]
    outputs = [f"--arg={name}=zeros({t.numel()})" for name, t in k.outputs(inputs).items()]
    us = bench_us(words + arguments + outputs)
    if k.before:
        program, names = k.before
        words[2] = f"--program=@{program}"
        us += bench_us(words + [a for a in arguments if a.split("=")[1] in names])
    return us


# ---- PyTorch --------------------------------------------------------------------------------

def graph_us(function, copies):
    """Median microseconds of one call, in a graph that calls it on each copy of the inputs."""
    for i in copies[:2]:
        function(i)
    torch.cuda.synchronize()
    graph, rounds = torch.cuda.CUDAGraph(), max(1, 20 // len(copies))
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for i in copies:
                function(i)
    times = []
    for _ in range(15):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / (rounds * len(copies)))
    return sorted(times)[len(times) // 2]


def eager_us(function, copies):
    """The same without a graph, for what synchronizes and cannot be captured."""
    function(copies[0])
    times = []
    for i in copies * (1 + 15 // len(copies)):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function(i)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return sorted(times)[len(times) // 2]


def time_way(function, copies):
    try:
        return graph_us(function, copies)
    except RuntimeError as error:
        print(f"  not in a graph: {str(error).splitlines()[0]}", file=sys.stderr)
        torch.cuda.synchronize()
        return eager_us(function, copies)


def moved(k, inputs):
    """Bytes that the kernel must read and write; of a table, the rows that ids name."""
    sizes = {n: t.numel() * t.element_size() for n, t in inputs.items()}
    if "table" in inputs:
        sizes["table"] = inputs["ids"].numel() * inputs["table"].shape[1] * 2
    return sum(sizes.values()) + sum(t.numel() * t.element_size() for t in k.outputs(inputs).values())


def copy_us(size):
    copies = [{"x": torch.empty(size // 2, dtype=torch.uint8, device=DEVICE),
               "y": torch.empty(size // 2, dtype=torch.uint8, device=DEVICE)} for _ in range(2)]
    return graph_us(lambda i: i["y"].copy_(i["x"]), copies)


def row(tools, k):
    lines = sum(1 for line in (KERNELS / f"{k.file}.tilus").read_text().splitlines()
                if line.strip() and not line.startswith("//"))
    result = {"kernel": k.name, "lines": lines, "error": f"{check(tools, k):.2e}", "bound": k.bound}
    assert float(result["error"]) <= k.tolerance, result
    inputs = k.make(False)
    size = moved(k, inputs)
    result["us"] = round(measure(tools, k, inputs), 2)
    result["bytes"] = size
    result["copy_us"] = round(copy_us(size), 2)
    if k.flops:
        result["tflops"] = round(k.flops(inputs) / result["us"] * 1e-6, 1)
    copies = [inputs] + [{n: t.clone() for n, t in inputs.items()}
                         for _ in range(max(0, min(7, (1 << 28) // size)))]
    ways = dict(k.ways)
    if k.compile_way:
        ways["compile"] = torch.compile(ways[k.compile_way], dynamic=False)
    times = {name: round(time_way(way, copies), 2) for name, way in ways.items()}
    result["torch"] = " ".join(f"{name}={us}" for name, us in times.items())
    result["over_best"] = round(result["us"] / min(times.values()), 3)
    result["over_copy"] = round(result["us"] / result["copy_us"], 3)
    return result


FIELDS = ["kernel", "lines", "error", "bound", "us", "copy_us", "over_copy", "torch", "over_best", "tflops",
          "bytes", "device", "torch_version"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for k in kernels():
        if options.only and k.name not in options.only.split(","):
            continue
        r = row(options.tools, k)
        r |= {"device": torch.cuda.get_device_name(), "torch_version": torch.__version__}
        rows.append(r)
        print({f: r.get(f) for f in FIELDS[:-2]}, flush=True)
        torch.cuda.empty_cache()
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
