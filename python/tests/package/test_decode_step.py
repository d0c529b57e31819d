"""examples/decode_step.tilus on the CPU engine, beside NumPy: a step through two layers, twice from the same state."""
import pathlib

import numpy as np
import pytest
import tilusc
from tilusc.matmul import Problem, plan

KERNEL = pathlib.Path(__file__).resolve().parents[3] / "examples/decode_step.tilus"
HIDDEN, INTERMEDIATE, KV, QUERIES, HEAD, PAGE, LAYERS, EPS = 2048, 2048, 1, 16, 128, 64, 2, 1e-5
HEADS = KV * QUERIES
PRODUCTS = {"qkv": (HIDDEN, (HEADS + 2 * KV) * HEAD), "o": (HEADS * HEAD, HIDDEN), "gate_up": (HIDDEN, 2 * INTERMEDIATE),
            "down": (INTERMEDIATE, HIDDEN)}


def half(a):
    return a.astype(np.float16)


def wide(a):
    return a.astype(np.float32)


class Weights:
    """Of a product, in all layers: `packed`, and what they are worth."""

    def __init__(self, random, weights, name):
        k, n = PRODUCTS[name]
        gated = {"gated": True, "function": "silu"} if name == "gate_up" else {}
        made = plan(Problem(weights, n, k, n_tile=32, **gated), "cpu")
        codes = random.integers(0, 16, (LAYERS, n, k), np.uint8)
        scales = half(random.choice([-1, 1], (LAYERS, n, k // 128)) / (8 * k ** 0.5))
        worth = wide(codes) - (16 * (codes > 7) if weights == "i4" else 0)
        self.values = worth * np.repeat(wide(scales), 128, 2)
        self.packed = np.stack([made.pack((c[:, ::2] | c[:, 1::2] << 4).ravel(), s) for c, s in zip(codes, scales)])
        self.parameters = dict(word.split("=") for word in made.kernels(1)[0].split("\t")[2].split())


class Model:
    """Of Llama; with `bias` of q, k and v as of Qwen2.5, with norms of heads of q and k as of Qwen3."""

    def __init__(self, weights, places, bias, head_norms):
        self.has_bias, self.has_head_norms = bias, head_norms
        random = np.random.default_rng(7)
        self.products = {name: Weights(random, weights, name) for name in PRODUCTS}
        self.norms = half(1 + 0.1 * random.normal(size=(2, LAYERS, HIDDEN)))
        self.bias = half(0.5 * random.normal(size=(LAYERS, HEADS + 2 * KV, HEAD)))
        self.head_norms = half(1 + 0.3 * random.normal(size=(LAYERS, 2, HEAD)))
        angles = random.normal(size=(places, HEAD // 2))
        self.cosine, self.sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        self.x = half(random.normal(size=HIDDEN))
        self.table = random.permutation(-(-places // PAGE)).astype(np.int32)
        shape = LAYERS, len(self.table) * PAGE * KV, HEAD
        self.keys, self.values = half(random.normal(size=shape)), half(random.normal(size=shape))

    def multiply(self, layer, name, a):
        return self.products[name].values[layer] @ a

    def norm(self, x, weight):
        return wide(half(x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * wide(weight)))

    def turn(self, a, layer, of, at):
        if self.has_head_norms:
            a = self.norm(a, self.head_norms[layer, of])
        first, second = np.split(a, 2, -1)
        return wide(half(np.concatenate([first * self.cosine[at] - second * self.sine[at],
                                         second * self.cosine[at] + first * self.sine[at]], -1)))

    def attend(self, layer, qkv, length):
        """Returns what attention makes of rows of heads, and the new token's k and v."""
        q, k = self.turn(qkv[:HEADS], layer, 0, length - 1), self.turn(qkv[HEADS:HEADS + KV], layer, 1, length - 1)
        positions = np.arange(length)
        rows = self.table[positions // PAGE] * PAGE + positions % PAGE
        keys, values = wide(self.keys[layer][rows]), wide(self.values[layer][rows])
        keys[-1], values[-1] = k[0], qkv[-1]
        scores = q @ keys.T * HEAD ** -0.5
        powers = np.exp(scores - scores.max(1, keepdims=True))
        return wide(half(powers @ values / powers.sum(1, keepdims=True))), k[0], qkv[-1]

    def step(self, length):
        """Returns x after all layers, and rows of the cache that are new, by layer."""
        x, new = wide(self.x), []
        for layer in range(LAYERS):
            qkv = self.multiply(layer, "qkv", self.norm(x, self.norms[0, layer])).reshape(-1, HEAD)
            qkv = wide(half(qkv + wide(self.bias[layer]) if self.has_bias else qkv))
            o, k, v = self.attend(layer, qkv, length)
            new.append((k, v))
            x = wide(half(self.multiply(layer, "o", o.ravel()) + x))
            gate, up = np.split(self.multiply(layer, "gate_up", self.norm(x, self.norms[1, layer])), 2)
            x = wide(half(self.multiply(layer, "down", wide(half(gate / (1 + np.exp(-gate)) * up))) + x))
        return x, new


def compile_step(model, grid, splits, digits):
    known = model.products["qkv"].parameters
    assert known["DIGITS"] == "1" and known["DEFERRED_SCALE"] == "0"
    names = "W U A T S C OFFSET GROUP ZERO SCALE_WEIGHTS ROWS COLUMNS TILES".split()
    return tilusc.jit(KERNEL, "decode_step", engine="cpu", parameters={
        **{name: known[name] for name in names}, "WARPS_N": 2, "WARPS_K": 4, "STAGES": 2, "STAGE_K_TILES": 2, "PREARRANGED_A": 4,
        "HIDDEN": HIDDEN, "INTERMEDIATE": INTERMEDIATE, "KV": KV, "QUERIES": QUERIES, "GRID": grid, "SPLITS": splits,
        "DIGITS": digits, "DEFERRED_SCALE": 0 if digits else -21, "QKV_BIAS": int(model.has_bias), "HEAD_NORMS": int(model.has_head_norms)})


@pytest.mark.parametrize("weights, grid, splits, length, digits, bias, head_norms",
                         [("u4", 5, 2, 130, 0, False, False), ("i4", 4, 4, 65, 1, True, False), ("u4", 1, 1, 1, 1, False, False),
                          ("u4", 3, 2, 70, 1, False, True), ("i4", 2, 1, 20, 0, True, True)])
def test_step(weights, grid, splits, length, digits, bias, head_norms):
    model = Model(weights, 150, bias, head_norms)
    step, wanted = compile_step(model, grid, splits, digits), model.step(length)
    state = np.zeros(1, np.uint32)
    scratch = np.zeros(2 * PRODUCTS["qkv"][1], np.float32), half(np.zeros(HEADS * HEAD)), half(np.zeros(INTERMEDIATE))
    row = model.table[(length - 1) // PAGE] * PAGE + (length - 1) % PAGE
    found = []
    for _ in range(2):
        x, keys, values = model.x.copy(), model.keys.copy(), model.values.copy()
        step(x, *(model.products[name].packed.view(np.uint32) for name in PRODUCTS), *model.norms, model.bias,
             model.head_norms, model.cosine, model.sine, model.table, np.array([length], np.int32), keys, values, *scratch,
             state, LAYERS, len(model.cosine), len(model.table), len(model.table), EPS, HEAD ** -0.5)
        found.append(x)
        assert np.linalg.norm(wide(x) - wanted[0]) < 2e-3 * np.linalg.norm(wanted[0] - wide(model.x))
        for layer, (k, v) in enumerate(wanted[1]):
            assert np.abs(wide(keys[layer, row]) - k).max() < 2e-2 and np.abs(wide(values[layer, row]) - v).max() < 2e-2
        changed = (keys != model.keys).any(2)
        assert changed.sum() == LAYERS and changed[:, row].all()
    assert (found[0] == found[1]).all() and state[0] in (0, 1 << 31)
