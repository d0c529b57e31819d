"""A decoder with random weights of one type, from the embedding to logits."""
import concurrent.futures
import dataclasses

import torch
from tilusc.matmul import plan
from tilusc.nn import experts_problems

import layers


def normed_product(kernels, linear, x, norm):
    behind = getattr(linear, "behind", None) if kernels.prologues else None
    return behind(x, None, norm) if behind else linear(kernels.norm(x, norm))


class Layer(torch.nn.Module):
    def __init__(self, model, weights, number, device):
        super().__init__()
        self.model, self.number, products, before = model, number, model.products(), model.prologues()
        added = not model.sandwich
        self.qkv = layers.linear(weights, *products["qkv"], device, bias=model.bias, prologue=before["qkv"])
        self.o = layers.linear(weights, *products["o"], device, residual=added)
        if model.experts:
            self.mixture = layers.Mixture(weights, model, device)
        else:
            self.gate_up = layers.linear(weights, *products["gate_up"], device, prologue=before["gate_up"], gate=model.gate)
            self.down = layers.linear(weights, *products["down"], device, residual=added)
        ones = torch.ones(model.hidden, dtype=torch.float16, device=layers.place_of(device))
        self.norms = [ones.clone() for _ in range(3 if model.sandwich else 1)]
        self.head_norms = [ones[:model.head].clone() for _ in "qk"] if model.head_norms else None

    def mlp(self, kernels, h):
        return self.down(self.gated(kernels, self.gate_up(h)))

    def gated(self, kernels, x):
        """Returns what goes into `down`: products of f16 leave gates to a kernel behind them."""
        return kernels.gated(x) if isinstance(self.gate_up, layers.Dense) else x

    def attend(self, kernels, qkv, state, prompt):
        if prompt:
            return kernels.prefill(kernels.rotate(qkv, self.head_norms, state, self.number), state, self.number)
        return kernels.step(qkv, self.head_norms, state, self.number)

    def run(self, kernels, x, state, prompt, norm):
        """Computes the next layer's x of x, whose first norm has these weights. x may be changed in place."""
        x = self.o(self.attend(kernels, normed_product(kernels, self.qkv, x, norm), state, prompt), x)
        if self.model.experts:
            return self.mixture(kernels, x, self.norms[0])
        return self.down(self.gated(kernels, normed_product(kernels, self.gate_up, x, self.norms[0])), x)

    def run_sandwich(self, kernels, x, h, state, prompt, next_norm):
        """Computes x and the next layer's normalized input, of x and h. x may be changed in place."""
        o = self.attend(kernels, self.qkv(h), state, prompt)
        h = kernels.add_norm(x, self.o(o), self.norms[0], self.norms[1])
        return x, kernels.add_norm(x, self.mlp(kernels, h), self.norms[2], next_norm)


class Decoder(torch.nn.Module):
    """All layers have weights of their own. The head is of f16, as checkpoints have it."""

    def __init__(self, model, weights, device):
        super().__init__()
        self.model, self.weights, self.device = model, weights, device
        self.layers = torch.nn.ModuleList(Layer(model, weights, i, device) for i in range(model.layers))
        self.embedding = layers.randn(model.vocabulary, model.hidden, device=device)
        self.head = layers.randn(model.vocabulary, model.hidden, device=device, scale=model.hidden ** -0.5)
        ones = torch.ones(model.hidden, dtype=torch.float16, device=layers.place_of(device))
        self.norms = [ones.clone() for _ in range(model.layers + 1)]

    def hidden(self, kernels, tokens, state, prompt=False, count=None):
        """Returns the normalized output of the first `count` layers, by default of all, for tokens: one of each
        sequence, or with `prompt` those of one."""
        x = self.embedding.index_select(0, tokens)
        chosen = self.layers[:count]
        if self.model.sandwich:
            h = kernels.norm(x, self.norms[0])
            for layer, norm in zip(chosen, self.norms[1:]):
                x, h = layer.run_sandwich(kernels, x, h, state, prompt, norm)
            return h
        for layer, norm in zip(chosen, self.norms):
            x = layer.run(kernels, x, state, prompt, norm)
        return kernels.norm(x, self.norms[len(chosen)])

    def forward(self, kernels, tokens, state, prompt=False):
        """Returns logits of each sequence's next token."""
        h = self.hidden(kernels, tokens, state, prompt)
        logits = (h[-1:] if prompt else h) @ self.head.t()
        cap = self.model.logits_cap
        return logits.div_(cap).tanh_().mul_(cap) if cap else logits


def problems(model, weights):
    """The problems of a model's products."""
    if weights == "f16":
        return []
    added, products = not model.sandwich, model.products()
    known = []
    for name, prologue in model.prologues().items():
        options = {"bias": name == "qkv" and model.bias, "residual": added and name in ("o", "down"),
                   "gate": model.gate if name == "gate_up" else None}
        known += [layers.problem_of(weights, *products[name], **options, prologue=each)
                  for each in dict.fromkeys(["none", prologue])]
    if model.experts:
        known += experts_problems(layers.experts_problem(weights, model)).values()
    return known


def prepare(model, weights, gallery, device, rows):
    """Compiles and loads all kernels at once, with a thread for each."""
    plans = [plan(problem, device) for problem in problems(model, weights)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        tasks = [pool.submit(task) for task in gallery.prepare()]
        tasks += [pool.submit(each.prepare, count * (each.problem.top or 1)) for each in plans for count in rows]
        for task in tasks:
            task.result()


def smaller(model, count):
    """The model with so many layers."""
    return dataclasses.replace(model, layers=count)
