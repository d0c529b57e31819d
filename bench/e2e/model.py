"""A decoder with random weights of one type, from the embedding to logits."""
import concurrent.futures
import dataclasses

import torch
from tilusc.matmul import plan
from tilusc.nn import experts_problems

import layers


class Layer(torch.nn.Module):
    def __init__(self, model, weights, number, device):
        super().__init__()
        self.model, self.number, products = model, number, model.products()
        added = not model.sandwich
        self.qkv = layers.linear(weights, *products["qkv"], device, bias=model.bias)
        self.o = layers.linear(weights, *products["o"], device, residual=added)
        if model.experts:
            self.mixture = layers.Mixture(weights, model, device)
        else:
            self.gate_up = layers.linear(weights, *products["gate_up"], device)
            self.down = layers.linear(weights, *products["down"], device, residual=added)
        ones = torch.ones(model.hidden, dtype=torch.float16, device=layers.place_of(device))
        self.norms = [ones.clone() for _ in range(3 if model.sandwich else 1)]
        self.head_norms = [ones[:model.head].clone() for _ in "qk"] if model.head_norms else None

    def mlp(self, kernels, h, *residual):
        if self.model.experts:
            return self.mixture(kernels, h, *residual)
        return self.down(kernels.gated(self.gate_up(h)), *residual)

    def attend(self, kernels, h, state, prompt):
        qkv = self.qkv(h)
        if prompt:
            return kernels.prefill(kernels.rotate(qkv, self.head_norms, state, self.number), state, self.number)
        return kernels.step(qkv, self.head_norms, state, self.number)

    def run(self, kernels, x, h, state, prompt, next_norm):
        """Computes x and the next layer's normalized input, of x and h. x may be changed in place."""
        o = self.attend(kernels, h, state, prompt)
        if self.model.sandwich:
            h = kernels.add_norm(x, self.o(o), self.norms[0], self.norms[1])
            return x, kernels.add_norm(x, self.mlp(kernels, h), self.norms[2], next_norm)
        x = self.o(o, x)
        x = self.mlp(kernels, kernels.norm(x, self.norms[0]), x)
        return x, kernels.norm(x, next_norm)


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
        h = kernels.norm(x, self.norms[0])
        for layer, norm in zip(self.layers[:count], self.norms[1:]):
            x, h = layer.run(kernels, x, h, state, prompt, norm)
        return h

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
    known = [layers.problem_of(weights, *products["qkv"], bias=model.bias),
             layers.problem_of(weights, *products["o"], residual=added)]
    if model.experts:
        return known + list(experts_problems(layers.experts_problem(weights, model)).values())
    return known + [layers.problem_of(weights, *products["gate_up"]),
                    layers.problem_of(weights, *products["down"], residual=added)]


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
