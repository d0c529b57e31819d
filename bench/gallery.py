#!/usr/bin/env python3
"""The kernels of the gallery (kernels/*.tilus) beside PyTorch, on a GPU.

    bench/run kernels [NAME...]                 measures, and keeps the rows in bench/results/gallery.csv
    bench/gallery.py --tools DIR --runtime libtilus_rt.so [--only NAME,..] [--out FILE.csv] [--revision TEXT]
    bench/gallery.py --tools DIR --runtime FILE --only NAME -D BM=64,WARPS=8 [-D ...]      times variants

Each row first compares the kernel's result with PyTorch's in f64 on the same data, then measures
both in CUDA graphs of launches that take turns over copies of all buffers, more than 4 times the
L2 cache together. Ours are launched by libtilus_rt on torch's stream. `copy_us` is a copy that moves
as many bytes (read and written) as the kernel must, the floor of those that memory binds.
"""
import argparse
import copy
import csv
import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F

import gemm

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "kernels"
DEVICE = "cuda"


class Kernel:
    """One row. `problem` says of a reader's table what is measured; `make(small)` gives inputs by
    argument name, smaller for the check than for the measurement; `ways` are PyTorch's, each of
    the same inputs, the first one the reference; `outputs` name the kernel's results and give a
    tensor of their type and shape."""

    def __init__(self, name, problem, file, program, defines, scalars, make, outputs, ways, compile_way=None,
                 tolerance=2e-3, bound="memory", flops=None, before=None, uncaptured=()):
        self.name, self.problem, self.file, self.program, self.defines = name, problem, file, program, defines
        self.scalars, self.make, self.outputs, self.ways = scalars, make, outputs, ways
        self.compile_way, self.tolerance, self.bound, self.flops = compile_way, tolerance, bound, flops
        self.before = before        # a program that runs first
        self.uncaptured = uncaptured    # PyTorch's ways that no CUDA graph can hold


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


SCAN_PART = 16384       # PART of kernels/scan.tilus


def scan_inputs(small):
    """The sums of parts are an input of @scan, which @totals computes: both are measured."""
    x = integers(10, 100000 if small else 1 << 26)
    parts = F.pad(x, (0, -x.numel() % SCAN_PART)).view(-1, SCAN_PART).sum(-1, dtype=torch.int32)
    return {"x": x, "sums": parts}


def sdpa(backend, causal=False):
    def run(i):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        q, k, v = (i[n][None] for n in "qkv")
        mask = i["mask"][None] if "mask" in i else None
        if q.dtype == torch.float64:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)[0]
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)[0]
    return run


def attention(name, problem, defines, mask, ways, pairs):
    """A row of 64 heads with d = 128; `pairs` is the part of n x n that is multiplied."""
    def make(small):
        heads, n = (4, 200) if small else (64, 4096)
        inputs = {x: randn(heads, n, 128) for x in "qkv"}
        return inputs | ({"mask": randn(1, n, n)} if mask else {})
    return Kernel(name, problem, "attention", "attention", defines,
                  lambda i: {"heads": i["q"].shape[0], "n": i["q"].shape[1], "nk": i["k"].shape[1],
                             "scale": 128 ** -0.5} | ({"mask_heads": 1} if mask else {}),
                  make, lambda i: {"o": empty(*i["q"].shape)}, ways, None, bound="math",
                  flops=lambda i: 4 * pairs * i["q"].shape[0] * i["q"].shape[1] ** 2 * 128)


TOPK = 8


def moe_inputs(small):
    """Tokens go to TOPK experts each, at random; slots (token * TOPK + place) sorted by expert."""
    tokens, experts, n, k = (50, 64, 128, 128) if small else (4096, 64, 2048, 2048)
    chosen = torch.rand(tokens, experts, device=DEVICE).topk(TOPK, -1).indices.flatten()
    ends = torch.bincount(chosen, minlength=experts).cumsum(0)
    return {"x": randn(tokens, k, dtype=torch.bfloat16), "w": randn(experts, n, k, dtype=torch.bfloat16),
            "ids": torch.argsort(chosen, stable=True).to(torch.int32),
            "offsets": F.pad(ends, (1, 0)).to(torch.int32)}


def moe_loop(i):
    bounds = i["offsets"].tolist()
    y = torch.empty(i["ids"].shape[0], i["w"].shape[1], device=DEVICE, dtype=i["x"].dtype)
    for expert, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        ids = i["ids"][begin:end].long()
        y[ids] = i["x"][ids // TOPK] @ i["w"][expert].t()
    return y


def moe_grouped(i):
    """Gather, CUTLASS's grouped GEMM, scatter."""
    ids = i["ids"].long()
    sums = torch._grouped_mm(i["x"][ids // TOPK], i["w"].transpose(1, 2), offs=i["offsets"][1:])
    y = torch.empty_like(sums)
    y[ids] = sums
    return y


def gptq_inputs(small):
    m, n, k, groups = (64, 256, 512, 4) if small else (2048, 8192, 8192, 64)
    words = [torch.randint(-2 ** 31, 2 ** 31 - 1, shape, device=DEVICE, dtype=torch.int32)
             for shape in ((k // 8, n), (groups, n // 8))]
    return {"x": randn(m, k), "qweight": words[0], "qzeros": words[1],
            "scales": torch.rand(groups, n, device=DEVICE).to(torch.float16) / 64,
            "g_idx": integers(groups, k)}


def gptq(i):
    """Dequantizes, then multiplies."""
    shifts = torch.arange(0, 32, 4, device=DEVICE, dtype=torch.int32)
    codes = (i["qweight"][:, None, :] >> shifts[None, :, None] & 15).flatten(0, 1)
    zeros = (i["qzeros"][:, :, None] >> shifts & 15).flatten(1, 2) + 1
    group = i["g_idx"].long()
    return i["x"] @ ((codes - zeros[group]) * i["scales"][group])


def mamba2_inputs(small):
    batch, length, heads, chunk = 1 if small else 4, 512 if small else 4096, 64, 256
    dt = torch.rand(batch, heads, length // chunk, chunk, device=DEVICE)
    return {"x": randn(batch, length, heads, 64), "b": randn(batch, length, 1, 128), "dt": dt,
            "a": torch.cumsum(-dt * torch.rand(heads, 1, 1, device=DEVICE), -1)}


def mamba2(i):
    """Without the product B * factor of all heads, which einsum of all four would make."""
    batch, length = i["x"].shape[:2]
    factor = (i["dt"] * torch.exp(i["a"][..., -1:] - i["a"])).permute(0, 2, 3, 1)[..., None]
    x = i["x"].view(batch, length // 256, 256, 64, 64) * factor.to(i["x"].dtype)
    b = i["b"].view(batch, length // 256, 256, 128)
    return torch.einsum("bclhp,bcln->bchpn", x, b).to(i["dt"].dtype)


def mamba2_scan_inputs(small):
    inputs = mamba2_inputs(small)
    batch, length, chunks = *inputs["x"].shape[:2], inputs["x"].shape[1] // 256
    return {"x": inputs["x"], "c": randn(batch, length, 128), "cb": randn(batch, chunks, 256, 256), "dt": inputs["dt"],
            "a": inputs["a"], "states": randn(batch, chunks, 64, 64, 128),
            "d": torch.rand(64, device=DEVICE)}


def mamba2_scan(i):
    kind, (batch, length) = i["x"].dtype, i["x"].shape[:2]
    x = i["x"].view(batch, length // 256, 256, 64, 64)
    decay = torch.exp(i["a"][..., :, None] - i["a"][..., None, :]).tril() * i["dt"][..., None, :]
    weights = decay.to(kind) * i["cb"][:, None]
    y = torch.einsum("bhcls,bcshp->bclhp", weights, x) + x * i["d"].to(kind)[:, None]
    before = torch.einsum("bcln,bchpn->bclhp", i["c"].view(batch, -1, 256, 128), i["states"])
    y += before * torch.exp(i["a"]).to(kind).permute(0, 2, 3, 1)[..., None]
    return y.reshape(i["x"].shape)


def decode_inputs(small):
    """The pages of a sequence lie one after another, so that PyTorch can read the cache without a gather."""
    batch, n = (3, 192) if small else (64, 4096)
    table = torch.arange(batch * n // 64, device=DEVICE, dtype=torch.int32).view(batch, -1)
    return {"q": randn(batch, 64, 128), "k": randn(batch * n // 64, 64, 8, 128),
            "v": randn(batch * n // 64, 64, 8, 128), "table": table,
            "lengths": torch.full((batch,), n, device=DEVICE, dtype=torch.int32)}


def decode(backend):
    def run(i):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        batch = i["q"].shape[0]
        k, v = (i[name].view(batch, -1, 8, 128).transpose(1, 2) for name in "kv")
        with sdpa_kernel(getattr(SDPBackend, "MATH" if k.dtype == torch.float64 else backend)):
            return F.scaled_dot_product_attention(i["q"][:, :, None], k, v, enable_gqa=True)[:, :, 0]
    return run


def mla_inputs(small):
    batch, n = (3, 192) if small else (66, 4096)
    table = torch.arange(batch * n // 64, device=DEVICE, dtype=torch.int32).view(batch, -1)
    return {"q": randn(batch, 128, 576, dtype=torch.bfloat16),
            "cache": randn(batch * n // 64, 64, 576, dtype=torch.bfloat16), "table": table,
            "lengths": torch.full((batch,), n, device=DEVICE, dtype=torch.int32)}


def mla(i):
    cache = i["cache"].view(i["q"].shape[0], -1, 576)
    return torch.softmax(i["q"] @ cache.transpose(1, 2) * 576 ** -0.5, -1) @ cache[..., :512]


def paged(i):
    """Scalars of a program over a paged cache, of one split."""
    return {"batch": i["q"].shape[0], "pages": i["table"].numel(), "columns": i["table"].shape[1], "splits": 1}


def kernels():
    norm = {"eps": 1e-5}
    yield Kernel("rms_norm", "RMS norm, [16384, 4096]",
                 "norm", "rms_norm", {}, lambda i: {"rows": i["x"].shape[0], **norm},
                 lambda small: {"x": randn(64 if small else 16384, 4096), "w": randn(4096)},
                 lambda i: {"y": empty(*i["x"].shape)},
                 {"eager": lambda i: F.rms_norm(i["x"], (4096,), i["w"], 1e-5)}, "eager")
    yield Kernel("layer_norm", "layer norm, [16384, 4096]",
                 "norm", "layer_norm", {}, lambda i: {"rows": i["x"].shape[0], **norm},
                 lambda small: {"x": randn(64 if small else 16384, 4096), "w": randn(4096), "b": randn(4096)},
                 lambda i: {"y": empty(*i["x"].shape)},
                 {"eager": lambda i: F.layer_norm(i["x"], (4096,), i["w"], i["b"], 1e-5)}, "eager")
    yield Kernel("softmax", "softmax of rows, [4096, 32768]",
                 "softmax", "softmax", {},
                 lambda i: {"rows": i["x"].shape[0], "n": i["x"].shape[1]},
                 lambda small: {"x": randn(16 if small else 4096, 32768)},
                 lambda i: {"y": empty(*i["x"].shape)},
                 {"eager": lambda i: torch.softmax(i["x"], -1)}, "eager")
    yield Kernel("rope", "rotary embedding, 16384 tokens, 32 heads of 128",
                 "rope", "rope", {}, lambda i: {"tokens": i["x"].shape[0]},
                 lambda small: {"x": randn(16 if small else 16384, 32, 128),
                                "cosine": torch.rand(16 if small else 16384, 64, device=DEVICE) * 2 - 1,
                                "sine": torch.rand(16 if small else 16384, 64, device=DEVICE) * 2 - 1},
                 lambda i: {"y": empty(*i["x"].shape)}, {"eager": rope}, "eager")
    yield Kernel("silu_mul", "silu(gate) * up, [8192, 14336]",
                 "silu_mul", "silu_mul", {},
                 lambda i: {"rows": i["x"].shape[0], "n": i["x"].shape[1] // 2},
                 lambda small: {"x": randn(16 if small else 8192, 28672)},
                 lambda i: {"y": empty(i["x"].shape[0], 14336)},
                 {"eager": lambda i: F.silu(i["x"][:, :14336]) * i["x"][:, 14336:]}, "eager")
    yield Kernel("quantize", "f16 to f8e4m3 with a scale a token, [16384, 4096]",
                 "quantize", "quantize", {}, lambda i: {"rows": i["x"].shape[0]},
                 lambda small: {"x": randn(64 if small else 16384, 4096)},
                 lambda i: {"q": empty(*i["x"].shape, dtype=torch.float8_e4m3fn),
                            "scale": empty(i["x"].shape[0], dtype=torch.float32)},
                 {"eager": quantize}, "eager", tolerance=4e-2)
    yield Kernel("transpose", "[8192, 16384] of f16",
                 "transpose", "transpose", {},
                 lambda i: {"m": i["x"].shape[0], "n": i["x"].shape[1]},
                 lambda small: {"x": randn(*((256, 512) if small else (8192, 16384)))},
                 lambda i: {"y": empty(i["x"].shape[1], i["x"].shape[0])},
                 {"eager": lambda i: i["x"].t().contiguous()}, None, tolerance=0)
    yield Kernel("embedding", "16384 rows of 4096 by their ids",
                 "embedding", "embedding", {},
                 lambda i: {"tokens": i["ids"].shape[0], "rows": i["table"].shape[0]},
                 lambda small: {"table": randn(*((500, 4096) if small else (32000, 4096))),
                                "ids": integers(*((500, 100) if small else (32000, 16384)))},
                 lambda i: {"y": empty(i["ids"].shape[0], 4096)},
                 {"eager": lambda i: F.embedding(i["ids"], i["table"])}, None, tolerance=0)
    yield Kernel("histogram", "256 bins of 2^28 bytes",
                 "histogram", "histogram", {},
                 lambda i: {"n": i["x"].shape[0], "blocks": 132 * 4},
                 lambda small: {"x": integers(256, 100000 if small else 1 << 28, dtype=torch.uint8)},
                 lambda i: {"counts": torch.zeros(256, device=DEVICE, dtype=torch.int32)},
                 {"eager": lambda i: torch.bincount(i["x"].to(torch.uint8), minlength=256)}, None, tolerance=0,
                 uncaptured=("eager",))
    yield Kernel("topk", "8 greatest of rows of 4096 f32, with places, 16384 rows",
                 "topk", "topk", {}, lambda i: {"rows": i["x"].shape[0]},
                 lambda small: {"x": randn(64 if small else 16384, 4096, dtype=torch.float32)},
                 lambda i: {"values": empty(i["x"].shape[0], 8, dtype=torch.float32),
                            "places": empty(i["x"].shape[0], 8, dtype=torch.int32)},
                 {"eager": lambda i: torch.topk(i["x"], 8, -1).values}, None, tolerance=1e-7)
    yield Kernel("scan", "sums of 2^26 i32, in two launches",
                 "scan", "scan", {}, lambda i: {"n": i["x"].shape[0]}, scan_inputs,
                 lambda i: {"y": empty(i["x"].shape[0], dtype=torch.int32)},
                 {"eager": lambda i: torch.cumsum(i["x"], 0, dtype=i["x"].dtype)}, None, tolerance=0,
                 before="totals")
    yield Kernel("gemm", "f16, 4096 x 4096 x 4096",
                 "gemm", "gemm", {"BK": 64, "STAGES": 3},
                 lambda i: {"m": i["a"].shape[0], "n": i["b"].shape[1], "k": i["a"].shape[1]},
                 lambda small: {"a": randn(*((256, 512) if small else (4096, 4096))),
                                "b": randn(*((512, 256) if small else (4096, 4096)))},
                 lambda i: {"c": empty(i["a"].shape[0], i["b"].shape[1])},
                 {"cuBLAS": lambda i: i["a"] @ i["b"]}, None, bound="math",
                 flops=lambda i: 2 * i["a"].shape[0] * i["b"].shape[1] * i["a"].shape[1])
    flash, cudnn = "FLASH_ATTENTION", "CUDNN_ATTENTION"
    yield attention("attention", "forward, 64 heads, n = 4096, d = 128, not causal", {"BN": 128}, False,
                    {"flash": sdpa(flash), "cudnn": sdpa(cudnn)}, 1)
    yield attention("attention_causal", "the same, causal", {"BN": 128, "CAUSAL": 1}, False,
                    {"flash": sdpa(flash, True), "cudnn": sdpa(cudnn, True)}, 0.5)
    yield attention("attention_mask", "the same, with a mask [n, n] of f16 that is added", {"MASK": 1}, True,
                    {"efficient": sdpa("EFFICIENT_ATTENTION"), "cudnn": sdpa(cudnn)}, 1)
    yield Kernel("moe_gemm", "64 experts of 2048 x 2048, bf16, 4096 tokens to 8 each", "moe_gemm", "moe_gemm",
                 {"T": "bf16", "E": 64, "TOPK": TOPK},
                 lambda i: {"slots": i["ids"].shape[0], "n": i["w"].shape[1], "k": i["w"].shape[2]}, moe_inputs,
                 lambda i: {"y": empty(i["ids"].shape[0], i["w"].shape[1], dtype=torch.bfloat16)},
                 {"loop": moe_loop, "grouped_mm": moe_grouped}, None, tolerance=1e-2, bound="math",
                 uncaptured=("loop",),
                 flops=lambda i: 2 * i["ids"].shape[0] * i["w"].shape[1] * i["w"].shape[2])
    yield Kernel("gptq", "4 bits, groups of 128 in act-order, m = 2048, n = k = 8192", "gptq", "gptq", {},
                 lambda i: {"m": i["x"].shape[0], "n": i["scales"].shape[1], "k": i["x"].shape[1],
                            "groups": i["scales"].shape[0]}, gptq_inputs,
                 lambda i: {"y": empty(i["x"].shape[0], i["scales"].shape[1])}, {"eager": gptq}, "eager",
                 bound="math", flops=lambda i: 2 * i["x"].shape[0] * i["x"].shape[1] * i["scales"].shape[1])
    yield Kernel("mamba2", "states of chunks of 256, 64 heads of 64 x 128, 4 x 4096 tokens", "mamba2", "chunk_state", {},
                 lambda i: {"batch": i["x"].shape[0], "length": i["x"].shape[1]}, mamba2_inputs,
                 lambda i: {"states": empty(i["x"].shape[0], i["x"].shape[1] // 256, 64, 64, 128,
                                            dtype=torch.float32)}, {"eager": mamba2}, "eager")
    yield Kernel("mamba2_sm90", "the same on Hopper", "mamba2_states_sm90", "chunk_state", {},
                 lambda i: {"batch": i["x"].shape[0], "length": i["x"].shape[1]}, mamba2_inputs,
                 lambda i: {"states": empty(i["x"].shape[0], i["x"].shape[1] // 256, 64, 64, 128, dtype=torch.float32),
                            "next": torch.zeros(1, device=DEVICE, dtype=torch.int32)}, {"eager": mamba2}, "eager")
    yield Kernel("mamba2_scan", "the scan of these chunks, on Hopper", "mamba2_sm90", "chunk_scan", {"EACH": 16},
                 lambda i: {"batch": i["x"].shape[0], "length": i["x"].shape[1]}, mamba2_scan_inputs,
                 lambda i: {"y": empty(*i["x"].shape)}, {"eager": mamba2_scan}, "eager")
    parts = {"parts": empty(1, dtype=torch.float32), "sums": empty(1, dtype=torch.float32)}
    yield Kernel("attention_decode", "decoding, 64 sequences of 4096 tokens, 64 heads to 8", "attention_decode",
                 "attend", {}, lambda i: paged(i) | {"heads": 8, "scale": 128 ** -0.5}, decode_inputs,
                 lambda i: {"o": empty(*i["q"].shape), "scales": empty(1)} | parts,
                 {"flash": decode(flash), "cudnn": decode(cudnn)})
    yield Kernel("mla", "decoding with one latent head, 66 sequences of 4096 tokens, 128 heads", "mla", "mla", {},
                 lambda i: paged(i) | {"heads": 128, "scale": 576 ** -0.5}, mla_inputs,
                 lambda i: {"o": empty(i["q"].shape[0], 128, 512, dtype=torch.bfloat16)} | parts, {"eager": mla},
                 tolerance=1e-2, bound="math",
                 flops=lambda i: 2 * 1088 * 128 * 64 * i["table"].numel())


# ---- ours ---------------------------------------------------------------------------------

def load(options, k, program):
    with tempfile.TemporaryDirectory() as folder:
        way = gemm.Way(f"{k.file}.tilus", program, None, k.defines)
        return options.runtime.load(gemm.compile_kernel(options.tools, k.name, way, pathlib.Path(folder)))


class Ours:
    """The kernel's programs, in the order of their launches. A launch takes what `bind` gives, which
    keeps the tensors."""

    def __init__(self, options, k):
        self.runtime = options.runtime
        self.kernels = [load(options, k, program) for program in (k.before, k.program) if program]

    def bind(self, k, inputs, outputs):
        values = inputs | outputs | k.scalars(inputs)
        return [(kernel, self.runtime.arguments(kernel, values)) for kernel in self.kernels], values

    def launch(self, bound):
        for kernel, arguments in bound[0]:
            self.runtime.launch(kernel, arguments)


def check(mine, k):
    """The relative Frobenius error against PyTorch in f64."""
    torch.manual_seed(1)
    inputs = k.make(True)
    outputs = k.outputs(inputs)
    mine.launch(mine.bind(k, inputs, outputs))
    result = next(iter(outputs.values())).to(torch.float64)
    wide = {n: t.to(torch.float64) if t.is_floating_point() else t for n, t in inputs.items()}
    reference = next(iter(k.ways.values()))(wide).to(torch.float64)
    return ((result - reference).norm() / reference.norm()).item()


def copies_of(k, inputs):
    """The inputs and copies of them, more than 4 times the L2 cache with the outputs."""
    return [inputs] + [{n: t.clone() for n, t in inputs.items()}
                       for _ in range(max(0, min(7, (1 << 28) // moved(k, inputs))))]


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


def time_way(name, function, copies, captured):
    """Microseconds; None where this PyTorch cannot do it so. A capture that fails leaves PyTorch unusable."""
    try:
        return round((graph_us if captured else eager_us)(function, copies), 2)
    except (RuntimeError, AttributeError, NotImplementedError) as error:
        print(f"  {name}: {str(error).splitlines()[0]}", file=sys.stderr)
        torch.cuda.synchronize()
    return None


def moved(k, inputs):
    """Bytes that the kernel must read and write; of a table, the rows that ids name, where there are some."""
    sizes = {n: t.numel() * t.element_size() for n, t in inputs.items()}
    if "table" in inputs and "ids" in inputs:
        sizes["table"] = inputs["ids"].numel() * inputs["table"].shape[1] * 2
    return sum(sizes.values()) + sum(t.numel() * t.element_size() for t in k.outputs(inputs).values())


def copy_us(size):
    half = size // 32 * 16      # whole vectors, without which torch copies half as fast
    copies = [{"x": torch.empty(half, dtype=torch.uint8, device=DEVICE),
               "y": torch.empty(half, dtype=torch.uint8, device=DEVICE)} for _ in range(2)]
    return graph_us(lambda i: i["y"].copy_(i["x"]), copies)


def ours(options, k):
    """Inputs, copies of them, and what does not need PyTorch's times: of a variant, too."""
    mine = Ours(options, k)
    error = check(mine, k)
    assert error <= k.tolerance, (k.name, error)
    inputs = k.make(False)
    copies = copies_of(k, inputs)
    us = round(graph_us(mine.launch, [mine.bind(k, i, k.outputs(i)) for i in copies]), 2)
    rate = {"tflops": round(k.flops(inputs) / us * 1e-6, 1)} if k.flops else {}
    return copies, {"error": f"{error:.2e}", "us": us} | rate


def row(options, k):
    lines = sum(1 for line in (KERNELS / f"{k.file}.tilus").read_text().splitlines()
                if line.strip() and not line.startswith("//"))
    copies, result = ours(options, k)
    result |= {"kernel": k.name, "problem": k.problem, "file": k.file, "lines": lines, "bound": k.bound}
    result["bytes"] = moved(k, copies[0])
    result["copy_us"] = round(copy_us(result["bytes"]), 2)
    ways = dict(k.ways)
    if k.compile_way:
        ways["compile"] = torch.compile(ways[k.compile_way], dynamic=False)
    times = {name: time_way(name, way, copies, name not in k.uncaptured) for name, way in ways.items()}
    times = {name: us for name, us in times.items() if us}
    result["torch"] = " ".join(f"{name}={us}" for name, us in times.items())
    result["over_best"] = round(result["us"] / min(times.values()), 3) if times else ""
    result["over_copy"] = round(result["us"] / result["copy_us"], 3)
    return result


FIELDS = ["kernel", "problem", "file", "lines", "error", "bound", "us", "copy_us", "over_copy", "torch", "over_best",
          "tflops", "bytes", "device", "torch_version", "revision"]


def write(path, names, rows):
    """Adds rows to the file, or replaces those of the same kernels; in the order of `names`."""
    kept = {}
    if path.exists():
        with path.open(newline="") as file:
            kept = {r["kernel"]: r for r in csv.DictReader(file)}
    kept |= {r["kernel"]: r for r in rows}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[name] for name in names if name in kept)


def measure_row(options, all_kernels, name):
    """Returns true when it is measured; a kernel that fails does not hold up the others."""
    try:
        r = row(options, all_kernels[name])
    except (SystemExit, AssertionError, RuntimeError) as error:
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        return False
    r |= {"device": torch.cuda.get_device_name(), "torch_version": torch.__version__,
          "revision": options.revision}
    print({f: r.get(f) for f in FIELDS[:-3]}, flush=True)
    if options.out:
        write(options.out, all_kernels, [r])
    torch.cuda.empty_cache()
    return True


def variants(options, k):
    """Our times with other parameters; of one that fails, why."""
    for words in options.defines:
        variant = copy.copy(k)
        variant.defines = k.defines | dict(word.split("=") for word in words.split(","))
        try:
            print(k.name, words, ours(options, variant)[1], flush=True)
        except (SystemExit, AssertionError, RuntimeError) as error:
            print(k.name, words, error, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="the folder of tilus-llc")
    parser.add_argument("--runtime", type=gemm.Runtime, required=True, help="libtilus_rt.so")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("-D", dest="defines", action="append", default=[], metavar="NAME=VALUE",
                        help="another parameter of the kernel: prints our time alone; several by commas")
    parser.add_argument("--revision", default="", help="of what is measured")
    options = parser.parse_args()
    all_kernels = {k.name: k for k in kernels()}
    chosen = options.only.split(",") if options.only else all_kernels
    unknown = [name for name in chosen if name not in all_kernels]
    if unknown:
        parser.error(f"no kernel '{unknown[0]}'; there are {', '.join(all_kernels)}")
    if options.defines:
        return [variants(options, all_kernels[name]) for name in chosen]
    failed = [name for name in chosen if not measure_row(options, all_kernels, name)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
