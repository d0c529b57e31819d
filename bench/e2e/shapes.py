"""Shapes of models, bytes that a step must read, and the floor of its time. Needs no torch."""
import dataclasses

BANDWIDTH = 4.57e12         # bytes a second that an H200's memory gives to readers
GROUP = 128                 # of k with one scale
EPSILON = 1e-5              # of RMS norms
TYPES = ["f16", "u8", "u6", "f6e3m2", "u4", "u3", "u2", "u1"]
BATCHES = [1, 4, 8, 16, 64]


@dataclasses.dataclass(frozen=True)
class Model:
    """Sizes from a model's public configuration. Each layer has products qkv, o, gate_up and down, or experts."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    intermediate: int
    vocabulary: int
    bias: bool = False          # of q, k and v
    head_norms: bool = False    # of q and k
    rope_base: float = 10000.0
    softcap: int = 0            # of attention; 0: none
    logits_cap: float = 0.0
    gelu: bool = False
    sandwich: bool = False      # norms after attention and MLP, too
    experts: int = 0            # of `intermediate` columns each; 0: one MLP
    top: int = 0                # experts of a token

    @property
    def group(self):
        """Heads of q for each of k."""
        return self.heads // self.kv_heads

    @property
    def gate(self):
        """The function of a gate."""
        return "gelu" if self.gelu else "silu"

    def products(self):
        """(k, n) of a layer's products of all tokens, by name."""
        known = {"qkv": (self.hidden, (self.heads + 2 * self.kv_heads) * self.head), "o": (self.heads * self.head, self.hidden)}
        if not self.experts:
            known |= {"gate_up": (self.hidden, 2 * self.intermediate), "down": (self.intermediate, self.hidden)}
        return known

    def prologues(self):
        """What is done on the way to a product of all tokens, by name, where nothing else reads it."""
        norm = "none" if self.sandwich else "rms_norm"
        return {"qkv": norm, "o": "none"} | ({} if self.experts else {"gate_up": norm, "down": "none"})


MODELS = {model.name: model for model in [
    Model("Gemma-2-9B", 42, 3584, 16, 8, 256, 14336, 256000, softcap=50, logits_cap=30.0, gelu=True, sandwich=True),
    Model("Qwen2.5-32B", 64, 5120, 40, 8, 128, 27648, 152064, bias=True, rope_base=1e6),
    Model("Llama-3.3-70B", 80, 8192, 64, 8, 128, 28672, 128256, rope_base=5e5),
    Model("Qwen3-30B-A3B", 48, 2048, 32, 4, 128, 768, 151936, head_norms=True, rope_base=1e6, experts=128, top=8),
]}


def bits(weights):
    """Bits of a weight with its share of a scale."""
    return 16 if weights == "f16" else int(weights[1]) + 16 / GROUP


def expert_elements(model):
    return 3 * model.hidden * model.intermediate


def weight_bytes(model, weights):
    """All weights: what the memory of a device must hold."""
    dense = sum(k * n for k, n in model.products().values()) + model.experts * expert_elements(model)
    router = 2 * model.experts * model.hidden
    embedding = 2 * model.vocabulary * model.hidden
    return model.layers * (dense * bits(weights) / 8 + router) + 2 * embedding


def touched_experts(model, tokens):
    """Experts that so many tokens are expected to choose, at random."""
    return model.experts * (1 - (1 - model.top / model.experts) ** tokens) if model.experts else 0


def cache_bytes(model, batch, context):
    return 2 * 2 * model.layers * batch * context * model.kv_heads * model.head


def step_bytes(model, weights, batch, context):
    """Bytes that a decode step reads at least: weights, the head of the vocabulary in f16, and the cache."""
    dense = sum(k * n for k, n in model.products().values()) + touched_experts(model, batch) * expert_elements(model)
    router, head = 2 * model.experts * model.hidden, 2 * model.vocabulary * model.hidden
    return model.layers * (dense * bits(weights) / 8 + router) + head + cache_bytes(model, batch, context)


def floor_us(model, weights, batch, context):
    return step_bytes(model, weights, batch, context) / BANDWIDTH * 1e6


def prefill_flops(model, tokens):
    """Multiplications and additions of a prompt, with causal attention; the head is for its last token alone."""
    dense = sum(k * n for k, n in model.products().values()) + model.top * expert_elements(model)
    attention = 2 * tokens * model.heads * model.head           # of each token, half of the square, two products
    return 2 * tokens * (dense + attention / 2) * model.layers + 2 * model.vocabulary * model.hidden


def launches(model, weights):
    """Launches of a decode step by the gallery's kernels, where each product pre-arranges A, and packed ones have
    gates; at batch 1 of dense models most arrange it in their blocks."""
    mlp = 6 if model.experts else 4     # of experts: router, gate_up and down, whose rows are combined
    return model.layers * (7 + mlp + (weights == "f16")) + 3
