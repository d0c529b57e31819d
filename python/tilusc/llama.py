"""Llama's architecture in NumPy: runs a checkpoint to check weights and to calibrate them.

    model = tilusc.formats.open("SmolLM2-135M-Instruct.Q4_1.gguf")
    llama = Llama(model)                                    # every matrix in f32
    cache = llama.cache()
    logits = llama.logits(llama.hidden([tokens], [cache]))  # [tokens, vocabulary]

Names are those of Hugging Face ("model.layers.0.self_attn.q_proj.weight") or of GGUF
("blk.0.attn_q.weight"), whose rows of q and k are ordered for rotations of neighbors."""
from __future__ import annotations

import dataclasses
import json
import os
from typing import Callable, Dict, List, Optional, Sequence

import numpy as np

from .formats import FormatError, QuantizedWeight
from .formats.model import Model

Product = Callable[[np.ndarray], np.ndarray]    # rows [t, k] to [t, n], f32
MakeProduct = Callable[[str, QuantizedWeight], Product]

# Our name of a block's part: names of Hugging Face and of GGUF.
PARTS = {"q": ("self_attn.q_proj", "attn_q"), "k": ("self_attn.k_proj", "attn_k"),
         "v": ("self_attn.v_proj", "attn_v"), "o": ("self_attn.o_proj", "attn_output"),
         "gate": ("mlp.gate_proj", "ffn_gate"), "up": ("mlp.up_proj", "ffn_up"),
         "down": ("mlp.down_proj", "ffn_down")}
NORMS = {"attention": ("input_layernorm", "attn_norm"),
         "mlp": ("post_attention_layernorm", "ffn_norm")}
OUTER = {"embedding": ("model.embed_tokens", "token_embd"), "norm": ("model.norm", "output_norm"),
         "head": ("lm_head", "output")}


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes of a model. `gguf`: names and the order of rows are those of GGUF."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    rope_base: float
    epsilon: float
    gguf: bool
    rope_scaling: Optional[Dict[str, float]] = None     # of rope type "llama3"

    def name(self, table: Dict[str, tuple], part: str, layer: Optional[int] = None) -> str:
        """Returns the name of a tensor: of a part of a block, or of an outer one."""
        local = table[part][self.gguf]
        if layer is None:
            return f"{local}.weight"
        return f"blk.{layer}.{local}.weight" if self.gguf else f"model.layers.{layer}.{local}.weight"


def read_config(model: Model) -> Config:
    """Reads the sizes from GGUF's metadata, or from config.json beside the tensors. FormatError: the
    architecture is another one, or a size is missing."""
    if model.path.endswith(".gguf"):
        return _gguf_config(model)
    path = os.path.join(os.path.dirname(model.path), "config.json")
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except (OSError, ValueError) as error:
        raise FormatError(path, None, f"cannot be read: {error}") from error
    _expect(path, "model_type", values.get("model_type"), "llama")
    _expect(path, "hidden_act", values.get("hidden_act", "silu"), "silu")
    # transformers 5 writes rope_parameters, with the base in it, in place of rope_scaling.
    scaling = values.get("rope_parameters") or values.get("rope_scaling") or {}
    base = scaling.get("rope_theta", values.get("rope_theta", 10000.0))
    if scaling.get("rope_type", scaling.get("type", "default")) == "default":
        scaling = {}
    else:
        _expect(path, "rope_type", scaling.get("rope_type", scaling.get("type")), "llama3")
    try:
        heads = values["num_attention_heads"]
        return Config(values["num_hidden_layers"], values["hidden_size"], heads,
                      values.get("num_key_value_heads") or heads,
                      values.get("head_dim") or values["hidden_size"] // heads,
                      base, values["rms_norm_eps"], False, scaling or None)
    except KeyError as error:
        raise FormatError(path, None, f"has no {error}") from error


def _gguf_config(model: Model) -> Config:
    values = model.config
    _expect(model.path, "general.architecture", values.get("general.architecture"), "llama")
    try:
        heads = values["llama.attention.head_count"]
        hidden = values["llama.embedding_length"]
        return Config(values["llama.block_count"], hidden, heads,
                      values.get("llama.attention.head_count_kv", heads),
                      values.get("llama.attention.key_length", hidden // heads),
                      values.get("llama.rope.freq_base", 10000.0),
                      values["llama.attention.layer_norm_rms_epsilon"], True)
    except KeyError as error:
        raise FormatError(model.path, None, f"has no {error}") from error


def _expect(path: str, what: str, found: object, expected: str) -> None:
    if found != expected:
        raise FormatError(path, None, what, found, expected)


def frequencies(config: Config) -> np.ndarray:
    """Returns the rotation of each pair of a head by one position, in radians."""
    size = config.head_size
    rates = config.rope_base ** (-np.arange(0, size, 2, dtype=np.float64) / size)
    if config.rope_scaling is None:
        return rates
    factor, low, high, length = (float(config.rope_scaling[x]) for x in (
        "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"))
    smooth = np.clip((length * rates / (2 * np.pi) - low) / (high - low), 0, 1)
    return rates * (smooth + (1 - smooth) / factor)


def rotate(x: np.ndarray, angles: np.ndarray, neighbors: bool) -> np.ndarray:
    """Rotates pairs of x [t, heads, size] by angles [t, size / 2]: pairs are neighbors (GGUF), or
    elements of the two halves."""
    cos, sin = np.cos(angles)[:, None].astype(np.float32), np.sin(angles)[:, None].astype(np.float32)
    half = x.shape[2] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if neighbors else (x[..., :half], x[..., half:])
    out = np.empty_like(x)
    first, second = (np.s_[..., 0::2], np.s_[..., 1::2]) if neighbors else (
        np.s_[..., :half], np.s_[..., half:])
    out[first], out[second] = a * cos - b * sin, a * sin + b * cos
    return out


def normalize(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    mean = np.mean(x.astype(np.float64) ** 2, axis=1, keepdims=True)
    return (x * (1 / np.sqrt(mean + epsilon)).astype(np.float32)) * weight


class Cache:
    """Keys and values of one sequence: [layers] of [positions, kv heads, size]."""

    def __init__(self, config: Config) -> None:
        empty = np.empty((0, config.kv_heads, config.head_size), np.float32)
        self.keys, self.values = [empty] * config.layers, [empty] * config.layers

    def length(self, layer: int) -> int:
        return len(self.keys[layer])

    def add(self, layer: int, keys: np.ndarray, values: np.ndarray) -> None:
        self.keys[layer] = np.concatenate([self.keys[layer], keys])
        self.values[layer] = np.concatenate([self.values[layer], values])


def attend(q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Causal attention of q [t, heads, size], whose last row is the last of keys and values
    [s, kv heads, size]. Returns [t, heads * size]."""
    t, heads, size = q.shape
    s, kv_heads, _ = keys.shape
    shared = heads // kv_heads
    rows = q.reshape(t, kv_heads, shared, size).transpose(1, 2, 0, 3).reshape(kv_heads, -1, size)
    scores = (rows @ keys.transpose(1, 2, 0) / np.float32(np.sqrt(size))).reshape(
        kv_heads, shared, t, s)
    scores = np.where(np.arange(s) > np.arange(s - t, s)[:, None], np.float32(-np.inf), scores)
    scores = np.exp(scores - scores.max(axis=3, keepdims=True))
    scores /= scores.sum(axis=3, keepdims=True)
    out = scores.reshape(kv_heads, -1, s) @ values.transpose(1, 0, 2)
    return out.reshape(kv_heads, shared, t, size).transpose(2, 0, 1, 3).reshape(t, -1)


def dense(name: str, weight: QuantizedWeight) -> Product:
    """Makes the reference's product: the matrix that the file means, in f32."""
    matrix = weight.dequantize().T
    return lambda rows: _biased(rows @ matrix, weight.bias)


def _biased(rows: np.ndarray, bias: Optional[np.ndarray]) -> np.ndarray:
    return rows if bias is None else rows + bias


class Block:
    """One layer: two norms and seven products."""

    def __init__(self, model: Model, config: Config, layer: int, make: MakeProduct = dense) -> None:
        self.config, self.layer = config, layer
        self.norms = {x: model.tensor(config.name(NORMS, x, layer)) for x in NORMS}
        self.products: Dict[str, Product] = {}
        for part in PARTS:
            name = config.name(PARTS, part, layer)
            self.products[part] = make(name, model.weight(name))

    def run(self, x: np.ndarray, counts: Sequence[int], caches: Sequence[Cache],
            rates: np.ndarray) -> np.ndarray:
        """Adds attention and MLP to rows x of several sequences: counts[i] rows of caches[i]."""
        rows = normalize(x, self.norms["attention"], self.config.epsilon)
        x = x + self.products["o"](self._attention(rows, counts, caches, rates))
        rows = normalize(x, self.norms["mlp"], self.config.epsilon)
        gate = self.products["gate"](rows)
        with np.errstate(over="ignore"):
            gate /= 1 + np.exp(-gate)
        return x + self.products["down"](gate * self.products["up"](rows))

    def _attention(self, rows, counts, caches, rates):
        q, k, v = (self.products[x](rows).reshape(len(rows), -1, self.config.head_size) for x in "qkv")
        out, first = [], 0
        for count, cache in zip(counts, caches):
            span = slice(first, first + count)
            at = cache.length(self.layer) + np.arange(count)
            angles = at[:, None] * rates
            cache.add(self.layer, rotate(k[span], angles, self.config.gguf), v[span])
            out.append(attend(rotate(q[span], angles, self.config.gguf), cache.keys[self.layer],
                              cache.values[self.layer]))
            first += count
        return np.concatenate(out)


class Llama:
    """A whole model in memory; `make` says how its products are computed."""

    def __init__(self, model: Model, make: MakeProduct = dense) -> None:
        self.config = read_config(model)
        self.rates = frequencies(self.config) / rope_factors(model)
        self.blocks = [Block(model, self.config, i, make) for i in range(self.config.layers)]
        self.norm = model.tensor(self.config.name(OUTER, "norm"))
        embedding = self.config.name(OUTER, "embedding")
        weight = model.weight(embedding)
        self.embedding = weight.dequantize()
        head = self.config.name(OUTER, "head")
        self.head = make(head, model.weight(head)) if head in model.names() else make(embedding, weight)

    def cache(self) -> Cache:
        return Cache(self.config)

    def hidden(self, tokens: Sequence[Sequence[int]], caches: Sequence[Cache]) -> np.ndarray:
        """Runs new tokens of several sequences. Returns rows [all tokens, hidden], in order."""
        x = self.embedding[np.concatenate([np.asarray(t, np.int64) for t in tokens])]
        for block in self.blocks:
            x = block.run(x, [len(t) for t in tokens], caches, self.rates)
        return x

    def logits(self, rows: np.ndarray) -> np.ndarray:
        return self.head(normalize(rows, self.norm, self.config.epsilon))


def rope_factors(model: Model) -> np.ndarray:
    """Returns the divisors of frequencies that GGUF files of Llama 3 carry, else 1."""
    name = "rope_freqs.weight"
    try:
        return model.tensor(name).reshape(-1).astype(np.float64)
    except FormatError:
        return np.float64(1)


def generate(llama: Llama, prompts: Sequence[Sequence[int]], count: int,
             stop: Optional[int] = None, margins: Optional[List[List[float]]] = None) -> List[List[int]]:
    """Continues prompts greedily, all at once: `count` tokens each, or up to `stop`. Of equal logits
    the lowest token wins. `margins` gets the distance to the second best for each token."""
    caches = [llama.cache() for _ in prompts]
    out: List[List[int]] = [[] for _ in prompts]
    live, feed = list(range(len(prompts))), [list(p) for p in prompts]
    for _ in range(count):
        rows = llama.hidden([feed[i] for i in live], [caches[i] for i in live])
        last = np.cumsum([len(feed[i]) for i in live]) - 1
        logits = llama.logits(rows[last])
        for i, row in zip(live, logits):
            best = int(np.argmax(row))
            out[i].append(best)
            feed[i] = [best]
            if margins is not None:
                margins[i].append(float(row[best] - np.partition(row, -2)[-2]))
        live = [i for i in live if out[i][-1] != stop]
        if not live:
            break
    return out


def perplexity(llama: Llama, tokens: Sequence[int]) -> float:
    """Returns exp of the mean negative log-likelihood of tokens[1:], in one context."""
    logits = llama.logits(llama.hidden([tokens[:-1]], [llama.cache()])).astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    likelihood = logits[np.arange(len(logits)), tokens[1:]] - np.log(np.exp(logits).sum(axis=1))
    return float(np.exp(-likelihood.mean()))
