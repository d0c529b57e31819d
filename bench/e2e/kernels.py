"""Steps between the products of a layer: by the gallery's kernels, or by torch."""
import pathlib

import torch
import torch.nn.functional as F
import tilusc
from tilusc.nn import sort_experts

from shapes import EPSILON

GALLERY = pathlib.Path(__file__).resolve().parents[2] / "kernels"
PAGE = 64           # tokens of a page of the cache
STEP_TOKENS = 4096  # of a sequence, up to which one launch does all of a step's attention
ROUTED = {1: 4, 16: 4, 64: 8}   # tokens that a launch of kernels/router_step.tilus takes at most, and its warps
BLOCKS = 132        # that attention is split into at least, where there are fewer sequences and heads
MANY = 0            # in place of splits: so many sequences and heads that a multiprocessor has four blocks


def splits_of(pairs):
    """Returns the blocks that share one of so many sequences times heads of k, or MANY."""
    if pairs > 2 * BLOCKS:
        return MANY
    return next(splits for splits in (8, 4, 2, 1) if splits == 1 or splits * pairs <= BLOCKS)


def rotations(model, positions, device):
    """Returns cosines and sines [positions, head / 2] of the rotary embedding, f32."""
    rates = model.rope_base ** (-torch.arange(0, model.head, 2, dtype=torch.float64) / model.head)
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * rates
    return angles.cos().float().to(device), angles.sin().float().to(device)


class State:
    """The cache of `batch` sequences of up to `context` tokens: keys and values [layers][batch * pages, PAGE, kv_heads,
    head] of f16, where the pages of a sequence lie one behind the other, and places of the tokens of the next step."""

    def __init__(self, model, batch, context, device):
        columns = -(-context // PAGE)
        shape = (model.layers, batch * columns, PAGE, model.kv_heads, model.head)
        self.batch, self.context, self.columns = batch, columns * PAGE, columns
        self.keys, self.values = (torch.zeros(shape, dtype=torch.float16, device=device) for _ in "kv")
        self.table = torch.arange(batch * columns, dtype=torch.int32, device=device).view(batch, columns)
        self.cosine, self.sine = rotations(model, self.context, device)
        self.lengths = torch.zeros(batch, dtype=torch.int32, device=device)
        self.first = torch.arange(batch, dtype=torch.int32, device=device) * self.context

    def decode_at(self, length):
        """Has the next step add token number `length` to each sequence."""
        self.lengths.fill_(length + 1)
        self.positions = torch.full_like(self.lengths, length)
        self.at = self.first + self.positions
        return self

    def prefill(self, sequence, tokens):
        """Has the next step begin a sequence with so many tokens."""
        self.sequence = sequence
        self.positions = torch.arange(tokens, dtype=torch.int32, device=self.table.device)
        self.at = self.positions + sequence * self.context
        return self


class Torch:
    """Steps by torch, in f32 where the gallery rounds: a reference, and what the gallery is measured beside."""

    name = "torch"
    prologues = False   # whether products do what comes before them

    def __init__(self, model):
        self.model = model

    def norm(self, x, weight):
        rows = x.float()
        return (rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + EPSILON) * weight.float()).half()

    def add_norm(self, x, y, after, weight):
        """Adds norm(y) * after to x in place, and returns the norm of that."""
        x += self.norm(y, after)
        return self.norm(x, weight)

    def rotate(self, qkv, norms, state, layer):
        """Turns q, and puts k and v into the cache. Returns q [tokens, heads, head]."""
        m = self.model
        q, k, v = qkv.view(len(qkv), -1, m.head).split([m.heads, m.kv_heads, m.kv_heads], 1)
        if m.head_norms:
            q, k = self.norm(q, norms[0]), self.norm(k, norms[1])
        cosine, sine = (x[state.positions.long()][:, None] for x in (state.cosine, state.sine))
        def turn(x):
            a, b = x.float().chunk(2, -1)
            return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1).half()
        for cache, rows in ((state.keys, turn(k)), (state.values, v)):
            cache[layer].view(-1, m.kv_heads, m.head)[state.at.long()] = rows
        return turn(q)

    def _attend(self, q, k, v, seen):
        """Attention of q [batch, n, heads, head] over k and v [batch, nk, kv_heads, head]; seen [batch, 1, n, nk]."""
        m = self.model
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if not m.softcap:
            return F.scaled_dot_product_attention(q, k, v, seen, enable_gqa=True).transpose(1, 2)
        k, v = (x.repeat_interleave(m.group, 1) for x in (k, v))
        scores = (q @ k.transpose(2, 3)).float() * m.head ** -0.5
        scores = torch.tanh(scores / m.softcap) * m.softcap
        return (torch.softmax(scores.masked_fill(~seen, -torch.inf), -1).half() @ v).transpose(1, 2)

    def decode(self, q, state, layer):
        m = self.model
        k, v = (x[layer].view(state.batch, -1, m.kv_heads, m.head) for x in (state.keys, state.values))
        seen = torch.arange(k.shape[1], device=q.device) < state.lengths[:, None]
        return self._attend(q[:, None], k, v, seen[:, None, None]).reshape(len(q), -1)

    def step(self, qkv, norms, state, layer):
        """Attention of a decode step, from products of q, k and v."""
        return self.decode(self.rotate(qkv, norms, state, layer), state, layer)

    def prefill(self, q, state, layer):
        m, n = self.model, len(q)
        k, v = (x[layer].view(state.batch, -1, m.kv_heads, m.head)[None, state.sequence, :n] for x in (state.keys, state.values))
        seen = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
        return self._attend(q[None], k, v, seen[None, None]).reshape(n, -1)

    def route(self, x, norm, router):
        """Returns norm(x), and offsets, ids and route, as of a product with experts, of its scores."""
        h = self.norm(x, norm)
        route, chosen = torch.topk(torch.softmax(h @ router.t(), -1, dtype=torch.float32), self.model.top, sorted=False)
        offsets, ids = sort_experts(chosen, self.model.experts)
        return h, offsets, ids, (route / route.sum(-1, keepdim=True)).flatten()

    def gated(self, x):
        gate, up = x.float().chunk(2, -1)
        return ((F.gelu(gate, approximate="tanh") if self.model.gelu else F.silu(gate)) * up).half()


def warps_of(columns):
    """Warps whose threads share a row evenly, with 8 elements at a time where they can."""
    for unit in (256, 64, 32):
        counts = [warps for warps in range(1, 17) if columns % (unit * warps) == 0]
        if counts:
            return counts[-1]
    return 8


class Gallery(Torch):
    """By kernels/*.tilus."""

    name = "gallery"
    prologues = True

    def __init__(self, model):
        super().__init__(model)
        m = model
        columns = {"N": m.hidden, "WARPS": warps_of(m.hidden)}
        heads = {"GROUP": m.group, "D": m.head}
        decode = {**heads, "PAGE": PAGE, "CAP": m.softcap, "BLOCKS": 1 if m.head > 128 else 2}
        self._norm = self._make("norm", "rms_norm", **columns)
        self._add_norm = self._make("norm", "add_rms_norm", **columns) if m.sandwich else None
        self._rotate = self._make("qkv", "rotate", KV=m.kv_heads, NORM=int(m.head_norms), **heads)
        self._attend = self._make("attention_decode", "attend", **decode)
        self._combine = self._make("attention_decode", "combine", **decode)
        self._prefill = self._make("attention_sm90", "attention", D=m.head, CAUSAL=1, TOKENS=1, SOFTCAP=int(m.softcap > 0))
        self._gated = self._make("silu_mul", "silu_mul", GELU=int(m.gelu))
        self.dummy = {}
        small = {"WARPS": 2, "BN": 32} if m.head > 128 else {"BN": 32}
        self._steps = {splits: self._make("attention_step", "attention_step", KV=m.kv_heads, NORM=int(m.head_norms), PAGE=PAGE,
                                          CAP=m.softcap, SPLITS=splits or 1, BLOCKS=4 if splits == MANY and m.head <= 128 else 1,
                                          **heads, **small) for splits in (8, 4, 2, 1, MANY)}
        self._routers = {tokens: self._make("router_step", "router_step", TOKENS=tokens, K=m.hidden, E=m.experts, TOP=m.top,
                                            WARPS=warps, BK=64 if m.hidden % 512 == 0 else 32)
                         for tokens, warps in ROUTED.items() if m.experts}

    @staticmethod
    def _make(file, program, **parameters):
        return tilusc.jit(GALLERY / f"{file}.tilus", program, parameters=parameters)

    def prepare(self):
        """Loads all kernels that a decode step and a prompt need."""
        for kernel in (self._norm, self._add_norm, self._rotate, self._attend, self._combine, self._prefill, self._gated,
                       *self._steps.values(), *self._routers.values()):
            if kernel is not None:
                yield kernel.prepare

    def _spare(self, device, dtype):
        """An array for arguments that are not read."""
        key = device, dtype
        if key not in self.dummy:
            self.dummy[key] = torch.zeros(64, dtype=dtype, device=device)
        return self.dummy[key]

    def norm(self, x, weight):
        out = torch.empty_like(x)
        self._norm(x, weight, out, len(x), EPSILON)
        return out

    def add_norm(self, x, y, after, weight):
        out = torch.empty_like(x)
        self._add_norm(x, y, after, weight, out, len(x), EPSILON)
        return out

    def rotate(self, qkv, norms, state, layer):
        m = self.model
        q = torch.empty((len(qkv), m.heads, m.head), dtype=torch.float16, device=qkv.device)
        k, v = state.keys[layer], state.values[layer]
        first, second = norms if m.head_norms else (qkv, qkv)
        self._rotate(qkv, state.cosine, state.sine, first, second, state.positions, state.at, q, k, v, len(qkv),
                     len(state.cosine), k.shape[0] * PAGE, EPSILON)
        return q

    def step(self, qkv, norms, state, layer):
        m, batch = self.model, len(qkv)
        if state.context > STEP_TOKENS:
            return super().step(qkv, norms, state, layer)
        o = torch.empty((batch, m.heads * m.head), dtype=torch.float16, device=qkv.device)
        k, v = state.keys[layer], state.values[layer]
        first, second = norms if m.head_norms else (qkv, qkv)
        step = self._steps[splits_of(batch * m.kv_heads)]
        step(qkv, state.cosine, state.sine, first, second, state.table, state.lengths, k, v, o, batch, len(state.cosine),
             k.shape[0], state.columns, EPSILON, m.head ** -0.5)
        return o

    def route(self, x, norm, router):
        tokens, m = len(x), self.model
        room = next((room for room in ROUTED if tokens <= room), None)
        if room is None:
            return super().route(x, norm, router)
        h = torch.empty_like(x)
        offsets, ids = (torch.empty(n, dtype=torch.int32, device=x.device) for n in (m.experts + 1, tokens * m.top))
        route = torch.empty(tokens * m.top, dtype=torch.float32, device=x.device)
        self._routers[room](x, norm, router, h, offsets, ids, route, tokens, EPSILON)
        return h, offsets, ids, route

    def decode(self, q, state, layer):
        m, batch, device = self.model, len(q), q.device
        splits = max(1, min(-(-BLOCKS // (batch * m.kv_heads)), state.columns))
        o = torch.empty_like(q)
        parts = torch.empty((batch * m.heads, splits, m.head) if splits > 1 else 1, dtype=torch.float32, device=device)
        sums = torch.empty(batch * m.heads * splits, dtype=torch.float32, device=device)
        k, v = state.keys[layer], state.values[layer]
        self._attend(q, k, v, self._spare(device, torch.float16), state.table, state.lengths, parts, sums, o, batch, m.kv_heads,
                     k.shape[0], state.columns, splits, m.head ** -0.5)
        if splits > 1:
            self._combine(parts, sums, o, batch * m.heads, splits)
        return o.view(batch, -1)

    def prefill(self, q, state, layer):
        m, n, device = self.model, len(q), q.device
        k, v = (x[layer].view(state.batch, -1)[state.sequence] for x in (state.keys, state.values))
        o = torch.empty_like(q)
        real, whole = self._spare(device, torch.float32), self._spare(device, torch.int32)
        self._prefill(q, k, v, o, real, real, self._spare(device, torch.float16), real, whole, whole, 1, m.heads, m.kv_heads, n, n,
                      0, 1, 0, 0, m.head ** -0.5, float(m.softcap or 1))
        return o.view(n, -1)

    def gated(self, x):
        n = x.shape[1] // 2
        out = torch.empty((len(x), n), dtype=torch.float16, device=x.device)
        self._gated(x, out, len(x), n)
        return out
