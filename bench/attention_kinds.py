"""Inputs, exact results and other libraries' ways for the cases of bench/attention.py.

A kind has `sets` of arguments by name, tensors and numbers, which hold more than 4 times the L2 cache; `flops` and `bytes` of
a launch, the latter `rate` times as fast as those of f16; `error(set)`, the relative Frobenius error of a part of what was
computed against f64; `peers`, functions of a set; and `named(program, set)`, the arguments of a program where they differ.
"""
import importlib
import importlib.util
import math
import sys
import types

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention_peers as other
import gemm

DEVICE = "cuda"
D = 128                                     # columns of a head, where a case does not say
HEADS = 32
PAGE = 64
aten = torch.ops.aten


def randn(*extents, kind=torch.float16):
    return torch.randn(*extents, device=DEVICE).to(kind)


def empty(*extents, kind=torch.float32):
    return torch.empty(*extents, device=DEVICE, dtype=kind)


def distance(found, exact):
    return ((found.double() - exact).norm() / exact.norm()).item()


def copies(make, most=8):
    """Sets of arguments, as many as exceed the L2 cache four times."""
    first = make()
    size = sum(x.numel() * x.element_size() for x in first.values() if isinstance(x, torch.Tensor))
    return [first] + [make() for _ in range(min(most - 1, gemm.COPIES_BYTES // size))]


def sdpa(backend, *names, **options):
    def run(t):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(*(t[name] for name in names), **options)
    return run


def sdpa_peers(*names, **options):
    return {"cudnn": sdpa(SDPBackend.CUDNN_ATTENTION, *names, **options),
            "flash": sdpa(SDPBackend.FLASH_ATTENTION, *names, **options)}


class Forward:
    """One sequence, HEADS heads; q, k and v in f16."""
    outputs = ("o",)

    def __init__(self, case):
        self.n, self.causal = case.sizes["rows"], bool(case.defines["CAUSAL"])
        self.sets = copies(self.make)
        self.flops, self.bytes = 4 * self.n ** 2 * D * HEADS * (0.5 if self.causal else 1), 8 * self.n * D * HEADS
        self.peers = sdpa_peers("q", "k", "v", is_causal=self.causal)
        if "fa3" in other.loaded:
            for t in self.sets:
                t["rows"] = [t[name][0].transpose(0, 1).contiguous() for name in "qkv"]
            starts = torch.tensor([0, self.n], dtype=torch.int32, device=DEVICE)
            self.peers["fa3"] = lambda t: other.fa3(*t["rows"], starts, self.causal)

    def make(self):
        numbers = {"batch": 1, "heads": HEADS, "kv_heads": HEADS, "n": self.n, "nk": self.n, "scale": D ** -0.5, "cap": 1.0}
        numbers |= dict.fromkeys(("lse", "sinks", "mask", "scales", "q_starts", "k_starts", "longest", "masks", "left", "right"), 0)
        tensors = {name: randn(1, HEADS, self.n, D) for name in "qkv"}
        return numbers | tensors | {"o": torch.empty_like(tensors["q"])}

    def weights(self, t, head, rows=slice(None)):
        """Weights of rows of a head in f64."""
        q, k = (t[name][0, head].double() for name in "qk")
        s = q[rows] @ k.t() * D ** -0.5
        if self.causal:
            places = torch.arange(self.n, device=DEVICE)
            s.masked_fill_(places > places[rows, None], -math.inf)
        return torch.softmax(s, -1)

    def error(self, t):
        rows = torch.randperm(self.n, device=DEVICE)[:200]
        heads = (0, HEADS - 1)
        exact = torch.stack([self.weights(t, head, rows) @ t["v"][0, head].double() for head in heads])
        return distance(t["o"][0, heads][:, rows], exact)


class ForwardFp8(Forward):
    """The same of f8e4m3, with a scale for each head; torch's ways take the numbers in f16."""
    rate = 2

    def __init__(self, case):
        super().__init__(case)
        self.bytes = 5 * self.n * D * HEADS
        self.peers = sdpa_peers("q16", "k16", "v16", is_causal=self.causal)

    def make(self):
        t = super().make()
        t["scales"] = torch.rand(3, HEADS, device=DEVICE) + 0.5
        t |= {f"{name}16": t[name] for name in "qkv"}
        t |= {name: (t[name] / scale[:, None, None]).to(torch.float8_e4m3fn) for name, scale in zip("qkv", t["scales"])}
        rows = HEADS * -(-self.n // 32) * 32
        return t | {"o": empty(1, HEADS, self.n, D, kind=torch.bfloat16), "arranged": empty(rows * 2 * D, kind=torch.uint8)}

    def named(self, program, t):
        return t | {"v": t["arranged"]} if program == "attention" else t

    def error(self, t):
        wide = {name: t[name].double() * scale[:, None, None] for name, scale in zip("qkv", t["scales"])}
        return super().error(t | wide)


class Backward(Forward):
    """Gradients, from o and logarithms of flash; of torch's ways these of their own forward passes."""
    outputs = ("dq", "dk", "dv")

    def __init__(self, case):
        super().__init__(case)
        self.flops, self.bytes = self.flops * 2.5, self.bytes * 2
        self.peers = {"cudnn": self.cudnn, "flash": self.flash}

    def make(self):
        t = super().make()
        t |= {"do": randn(1, HEADS, self.n, D), "saved": {}}
        t |= {f"d{name}": torch.empty_like(t[name]) for name in "qkv"}
        rows = HEADS * -(-self.n // 64) * 64
        t |= {"logs": empty(rows), "delta": empty(rows), "sums": empty(rows * D)}
        self.flash_forward(t)
        t["o"], t["lse"] = t["saved"]["flash"][:2]
        return t

    def flash_forward(self, t):
        t["saved"]["flash"] = aten._scaled_dot_product_flash_attention(t["q"], t["k"], t["v"], 0.0, self.causal)[:8]

    def flash(self, t):
        *saved, seed, offset = t["saved"]["flash"]
        return aten._scaled_dot_product_flash_attention_backward(
            t["do"], t["q"], t["k"], t["v"], *saved, 0.0, self.causal, seed, offset)

    def cudnn(self, t):
        if "cudnn" not in t["saved"]:
            t["saved"]["cudnn"] = aten._scaled_dot_product_cudnn_attention(
                t["q"], t["k"], t["v"], None, True, 0.0, self.causal)[:8]
        o, lse, *sizes, seed, offset = t["saved"]["cudnn"]
        return aten._scaled_dot_product_cudnn_attention_backward(
            t["do"], t["q"], t["k"], t["v"], o, lse, seed, offset, None, *sizes, 0.0, self.causal)

    def error(self, t):
        """The worst of the three gradients of the last head."""
        p = self.weights(t, HEADS - 1)
        q, k, v, do = (t[name][0, HEADS - 1].double() for name in ("q", "k", "v", "do"))
        ds = do @ v.t()
        ds = p * (ds - (p * ds).sum(1, True)) * D ** -0.5
        exact = {"dq": ds @ k, "dk": ds.t() @ q, "dv": p.t() @ do}
        return max(distance(t[name][0, HEADS - 1], exact[name]) for name in exact)


class Paged:
    """A cache of pages that all sets share, each with tables of pages of its own."""

    def __init__(self, case, token_bytes):
        self.batch, self.tokens = case.sizes["batch"], case.sizes["tokens"]
        self.bytes = self.batch * self.tokens * token_bytes
        count, columns = -(-gemm.COPIES_BYTES // self.bytes), self.tokens // PAGE
        self.pages = count * self.batch * columns
        self.tables = torch.randperm(self.pages, device=DEVICE).int().view(count, self.batch, columns)
        self.lengths = torch.full((self.batch,), self.tokens, dtype=torch.int32, device=DEVICE)

    def numbers(self, table, heads, rows, d, splits):
        """Arguments of the launches, of `rows` rows of o."""
        return {"batch": self.batch, "heads": heads, "pages": self.pages, "columns": table.shape[1], "splits": splits, "rows": rows,
                "table": table, "lengths": self.lengths, "parts": empty(rows * splits * d), "sums": empty(rows * splits)}

    def launches(self, case):
        return case.programs[:1] if self.sets[0]["splits"] == 1 else case.programs[:2]


class Decode(Paged):
    """One query a sequence. Numbers of a cache of few bits are those that it holds exactly; @append fills it."""
    outputs = ("o",)
    CODES = {"f16": (16, None), "f8e4m3": (8, (1, 16)), "u4": (4, (0, 16))}

    def __init__(self, case):
        cache = case.name.split("-")[-1]
        bits, self.range = self.CODES[cache]
        self.heads, self.group = case.sizes["kv_heads"], case.defines["GROUP"]
        entries = 0 if bits == 16 else 4 if cache == "u4" else 2
        super().__init__(case, self.heads * (2 * D * bits // 8 + 2 * entries))
        slots = self.pages * PAGE * self.heads
        self.x = {name: self.numbers_of(name, slots) for name in ("x_k", "x_v")}
        self.cache = dict(zip("kv", self.x.values())) if bits == 16 else \
            {name: torch.zeros(slots * D * bits // 8, dtype=torch.uint8, device=DEVICE) for name in "kv"}
        scales = torch.zeros(max(slots * entries, 8), dtype=torch.float16, device=DEVICE)
        rows = self.batch * self.heads * self.group
        self.sets = [self.numbers(table, self.heads, rows, D, case.sizes["splits"]) | self.cache | {
            "scales": scales, "scale": D ** -0.5, "q": randn(rows, D), "o": empty(rows, D, kind=torch.float16)}
            for table in self.tables]
        self.flops, self.peers = 0, self.peers_of() if bits == 16 else {}

    def numbers_of(self, name, slots):
        """A tensor of the new tokens, in the order of the cache's slots."""
        if not self.range:
            return randn(slots * D)
        x = empty(slots, D, kind=torch.float16).random_(*self.range).sub_(8).div_(8)
        x[:, 0], x[:, 1] = (self.range[0] - 8) / 8, 7 / 8
        return x

    def fill(self, append):
        """Puts the numbers into the cache, by launches of @append that the caller gives."""
        t = self.sets[0]
        tokens = self.pages * PAGE
        append(self.x | self.cache | {"slots": torch.arange(tokens, dtype=torch.int32, device=DEVICE), "scales": t["scales"],
                                      "tokens": tokens, "heads": self.heads, "pages": self.pages})

    def error(self, t):
        """All queries of the first sequence."""
        pages = t["table"][0].long()
        k, v = (x.view(self.pages, PAGE, self.heads, D)[pages].reshape(-1, self.heads, D).double() for x in self.x.values())
        q, o = (t[name].view(self.batch, self.heads, self.group, D)[0].double() for name in "qo")
        weights = torch.softmax(torch.einsum("hgd,nhd->hgn", q, k) * D ** -0.5, -1)
        return distance(o, torch.einsum("hgn,nhd->hgd", weights, v))

    def peers_of(self):
        """Torch's ways read a cache without pages."""
        for t in self.sets:
            t["one"] = t["q"].view(self.batch, self.heads * self.group, 1, D)
            t |= {f"plain_{name}": randn(self.batch, self.heads, self.tokens, D) for name in "kv"}
        return sdpa_peers("one", "plain_k", "plain_v", enable_gqa=True) | self.paged_peers()

    def paged_peers(self):
        """FA3 over the same pages."""
        if "fa3" not in other.loaded:
            return {}
        k, v = (x.view(self.pages, PAGE, self.heads, D) for x in self.x.values())
        plan = other.fa3_plan(self.batch, self.tokens, self.heads * self.group, self.heads, D, PAGE, self.lengths, k.dtype)
        return {"fa3": lambda t: other.fa3_decode(t["one"].transpose(1, 2), k, v, self.lengths, t["table"], self.tokens, plan)}


class Latent(Paged):
    """DeepSeek's attention over one latent head of 512 + 64 columns, 128 heads of q in bf16."""
    outputs = ("o",)
    ROWS = 128

    def __init__(self, case):
        super().__init__(case, 576 * 2)
        self.cache = randn(self.pages, PAGE, 576, kind=torch.bfloat16)
        rows = self.batch * self.ROWS
        self.sets = [self.numbers(table, self.ROWS, rows, 512, case.sizes["splits"]) | {
            "cache": self.cache, "q": randn(rows, 576, kind=torch.bfloat16), "scale": 576 ** -0.5,
            "o": empty(rows, 512, kind=torch.bfloat16)} for table in self.tables]
        self.flops, self.peers = 2 * rows * self.tokens * (576 + 512), {}
        if "flashmla" in other.loaded:
            cache = self.cache.view(self.pages, PAGE, 1, 576)
            for t in self.sets:
                t["one"] = t["q"].view(self.batch, 1, self.ROWS, 576)
            first = self.sets[0]
            *_, plan = other.flashmla(first["one"], cache, self.lengths, first["table"], 512)
            self.peers["flashmla"] = lambda t: other.flashmla(t["one"], cache, self.lengths, t["table"], 512, plan)

    def error(self, t):
        c = self.cache[t["table"][0].long()].reshape(-1, 576).double()
        weights = torch.softmax(t["q"][:self.ROWS].double() @ c.t() * 576 ** -0.5, -1)
        return distance(t["o"][:self.ROWS], weights @ c[:, :512])


def mamba_ssm(name):
    """A module of Triton kernels of the package mamba-ssm, or None without the package, whose own begin would load extensions."""
    spec = importlib.util.find_spec("mamba_ssm")
    if not spec:
        return None
    if "mamba_ssm" not in sys.modules:
        package = types.ModuleType("mamba_ssm")
        package.__path__, package.__spec__ = list(spec.submodule_search_locations), spec
        sys.modules["mamba_ssm"] = package
    return importlib.import_module(f"mamba_ssm.ops.triton.{name}")


class Mamba:
    """States of chunks of 256, or their scan: 64 heads of 64 x 128. Triton's kernels choose anew for each case."""
    HEADS, P, N, CHUNK = 64, 64, 128, 256

    def __init__(self, case):
        self.batch, self.tokens, self.scan = *case.sizes.values(), case.kind == "chunk_scan"
        self.outputs, self.flops = ("y",) if self.scan else ("states",), 0
        self.sets = copies(self.make)
        self.triton = mamba_ssm(f"ssd_{case.kind}")
        self.peers = {"mamba_ssm": self.triton_way} if self.triton else {}
        if self.triton:
            getattr(self.triton, f"_{case.kind}_fwd_kernel").cache.clear()
        self.bytes = sum(x.numel() * x.element_size() for x in self.sets[0].values() if isinstance(x, torch.Tensor))

    def make(self):
        chunks = self.tokens // self.CHUNK
        per_head = (self.batch, self.HEADS, chunks, self.CHUNK)
        dt = torch.rand(per_head, device=DEVICE) * 0.1
        t = {"x": randn(self.batch, self.tokens, self.HEADS, self.P), "dt": dt, "a": -torch.cumsum(dt, 3), "batch": self.batch,
             "length": self.tokens}
        states = (self.batch, chunks, self.HEADS, self.P, self.N)
        if not self.scan:
            return t | {"b": randn(self.batch, self.tokens, self.N), "states": empty(states),
                        "next": torch.zeros(1, device=DEVICE, dtype=torch.int32)}
        return t | {"c": randn(self.batch, self.tokens, self.N), "cb": randn(self.batch, chunks, self.CHUNK, self.CHUNK),
                    "states": randn(*states), "d": torch.randn(self.HEADS, device=DEVICE), "y": torch.empty_like(t["x"])}

    def triton_way(self, t):
        if not self.scan:
            return self.triton._chunk_state_fwd(t["b"][:, :, None], t["x"], t["dt"], t["a"])
        return self.triton._chunk_scan_fwd(t["cb"][:, :, None], t["x"], t["dt"], t["a"], t["c"][:, :, None], t["states"], t["d"])[0]

    def error(self, t):
        """The last chunk of the first sequence."""
        x = t["x"][0, -self.CHUNK:].double()
        dt, a = (t[name][0, :, -1].double() for name in ("dt", "a"))
        if not self.scan:
            exact = torch.einsum("lhp,hl,ln->hpn", x, dt * torch.exp(a[:, -1:] - a), t["b"][0, -self.CHUNK:].double())
            return distance(t["states"][0, -1], exact)
        c, states = t["c"][0, -self.CHUNK:].double(), t["states"][0, -1].double()
        decay = torch.tril(torch.exp(a[:, :, None] - a[:, None])) * dt[:, None] * t["cb"][0, -1].double()
        exact = torch.einsum("ln,hpn,hl->lhp", c, states, torch.exp(a)) + torch.einsum("hls,shp->lhp", decay, x)
        return distance(t["y"][0, -self.CHUNK:], exact + x * t["d"].double()[:, None])


class Linear:
    """Retention, or the gated delta rule with the inverses that it needs."""
    outputs = ("y",)
    CHECKED = 160                                                       # tokens

    def __init__(self, case):
        self.batch, self.tokens, self.heads, self.d = case.sizes.values()
        self.delta, self.flops, self.peers = case.kind == "delta", 0, {}
        self.sets = copies(self.make)
        self.bytes = 8 * self.batch * self.tokens * self.heads * self.d

    def make(self):
        extents = (self.batch, self.tokens, self.heads)
        t = {name: randn(*extents, self.d) for name in "qv"} | {"batch": self.batch, "length": self.tokens, "scale": self.d ** -0.5}
        t["k"] = F.normalize(torch.randn(*extents, self.d, device=DEVICE), dim=-1).half()
        t["g"] = -torch.rand(extents if self.delta else (self.heads,), device=DEVICE) * 0.1
        if self.delta:
            chunks = -(-self.tokens // 64)
            t |= {"beta": torch.rand(extents, device=DEVICE),
                  "inverse": empty(self.batch, self.heads, chunks, 64, 64, kind=torch.float16)}
        return t | {"y": torch.empty_like(t["q"])}

    def error(self, t):
        """The first tokens of the first sequence, one after the other."""
        q, k, v = (t[name][0, :self.CHECKED].double() for name in "qkv")
        state, found = torch.zeros(self.heads, self.d, self.d, device=DEVICE, dtype=torch.float64), []
        for i in range(self.CHECKED):
            state = state * torch.exp(t["g"][0, i] if self.delta else t["g"]).double()[:, None, None]
            new = v[i]
            if self.delta:
                new = t["beta"][0, i].double()[:, None] * (new - torch.einsum("hk,hkv->hv", k[i], state))
            state = state + k[i][:, :, None] * new[:, None]
            found.append(torch.einsum("hk,hkv->hv", q[i], state) * self.d ** -0.5)
        return distance(t["y"][0, :self.CHECKED], torch.stack(found))


KINDS = {"forward": Forward, "forward_fp8": ForwardFp8, "backward": Backward, "decode": Decode, "mla": Latent,
         "chunk_state": Mamba, "chunk_scan": Mamba, "retention": Linear, "delta": Linear}
