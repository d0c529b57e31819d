#!/usr/bin/env python3
"""Fine-tunes a model with packed weights (QLoRA): its linear layers keep weights of 4 bits, and adapters of low rank beside
them are trained.

    examples/finetune.py                            # a tiny model on the CPU engine, or on a GPU, where torch finds one
    examples/finetune.py --weights=u3 --rank=4 --compile --save=adapters.pt
    examples/finetune.py --device=cuda --width=1024 --layers=8 --rows=16 --tokens=256 --learned=300 --steps=200

The model is a transformer over bytes that first learns one text in floats, as a stand-in for a checkpoint; then its layers are
quantized and adapters learn another text. `quantize_linears` and `add_adapters` take any model of torch.
"""
import argparse
import time
from typing import Callable, Dict, Iterable, Iterator, Optional

import torch
import torch.nn.functional as functional
from tilusc.nn import QuantizedLinear
from torch import nn

TEXT = "".join(f"{n} times {n + 1} is {n * (n + 1)}, and half of it is {n * (n + 1) // 2}. " for n in range(60))
OTHER = "".join(f"Half of {n * (n + 1)} is {n * (n + 1) // 2}; so many pairs have {n + 1} things. " for n in range(60))


# ---- what any model takes ----------------------------------------------------------

class Adapter(nn.Module):
    """A frozen layer and two small matrices, of which the second begins at 0: y = frozen(x) + scale * up(down(x))."""

    def __init__(self, frozen: QuantizedLinear, rank: int, scale: float = 2.0) -> None:
        super().__init__()
        place = frozen.packed.device
        self.frozen, self.scale = frozen, scale
        self.down = nn.Linear(frozen.in_features, rank, bias=False, device=place)
        self.up = nn.Linear(rank, frozen.out_features, bias=False, device=place)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(x) + self.scale * self.up(self.down(x))

    def merged(self) -> torch.Tensor:
        """Returns the weight that the adapter makes of the frozen one: to be quantized again, or saved in floats."""
        return self.frozen.dequantize(torch.float32) + self.scale * self.up.weight @ self.down.weight


def replace(model: nn.Module, kind: type, make: Callable[[nn.Module], nn.Module]) -> None:
    """Puts `make(module)` in the place of each module of a type, but of the head."""
    for name, module in list(model.named_modules()):
        parent, _, last = name.rpartition(".")
        if type(module) is kind and last != "head":
            setattr(model.get_submodule(parent), last, make(module))


def quantize_linears(model: nn.Module, weights: str, group: int) -> None:
    """Freezes a model, and packs the weights of its linear layers, for activations in bf16."""
    model.requires_grad_(False)
    device = "cpu" if next(model.parameters()).device.type == "cpu" else None
    replace(model, nn.Linear, lambda linear: QuantizedLinear.from_float(linear, weights, group=group, activations="bf16",
                                                                       device=device))


def add_adapters(model: nn.Module, rank: int) -> Dict[str, nn.Parameter]:
    """Puts an adapter beside each packed layer, and returns what is to be trained."""
    replace(model, QuantizedLinear, lambda layer: Adapter(layer, rank))
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


# ---- a small model -----------------------------------------------------------------

class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, tokens, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(rows, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, tokens, width))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class Model(nn.Module):
    """A transformer over bytes."""

    def __init__(self, width: int, layers: int, heads: int, tokens: int) -> None:
        super().__init__()
        self.embedding, self.place = nn.Embedding(256, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        x = self.embedding(codes) + self.place(torch.arange(codes.shape[1], device=codes.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def batches(text: str, rows: int, tokens: int, device: str) -> Iterator[torch.Tensor]:
    """Gives parts of a text, [rows, tokens + 1], the same ones in each run."""
    codes, random = torch.tensor(list(text.encode())), torch.Generator().manual_seed(0)
    while True:
        firsts = torch.randint(len(codes) - tokens, (rows,), generator=random).tolist()
        yield torch.stack([codes[first:first + tokens + 1] for first in firsts]).to(device)


def train(model: nn.Module, parameters: Iterable[nn.Parameter], text: str, steps: int, rate: float,
          options: argparse.Namespace, seen: Optional[Callable[[int, float], None]] = None) -> float:
    """Trains for so many steps, and returns the mean loss of the last five."""
    optimizer, losses = torch.optim.AdamW(parameters, rate, weight_decay=0.0), []
    for step, codes in zip(range(steps), batches(text, options.rows, options.tokens, options.device)):
        with torch.autocast(options.device, torch.bfloat16):
            logits = model(codes[:, :-1])
        loss = functional.cross_entropy(logits.float().flatten(0, 1), codes[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if seen:
            seen(step, losses[-1])
    return sum(losses[-5:]) / len(losses[-5:])


def main(arguments: Optional[list] = None) -> float:
    """Returns the loss of the second text in front of the fine-tuning, as a multiple of that behind it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    for name, default in (("weights", "u4"), ("group", 64), ("rank", 8), ("steps", 20), ("width", 64), ("layers", 1),
                          ("rows", 2), ("tokens", 16), ("learned", 60)):
        parser.add_argument(f"--{name}", default=default, type=type(default))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--save", metavar="FILE", help="for the adapters' weights")
    options = parser.parse_args(arguments)
    if min(options.steps, options.learned) < 1:
        parser.error("--steps and --learned are at least 1")
    torch.manual_seed(0)
    model = Model(options.width, options.layers, 4, options.tokens).to(options.device)
    learned = train(model, model.parameters(), TEXT, options.learned, 3e-3, options)
    floats = sum(value.numel() * value.element_size() for value in model.parameters())
    quantize_linears(model, options.weights, options.group)
    packed = sum(value.numel() * value.element_size() for value in [*model.parameters(), *model.buffers()])
    trained = add_adapters(model, options.rank)
    print(f"first text, in floats: loss {learned:.3f}; {floats >> 10} KiB become {packed >> 10}, and adapters of"
          f" {sum(value.numel() for value in trained.values())} numbers are trained")
    losses, started = [], time.perf_counter()

    def seen(step: int, loss: float) -> None:
        losses.append(loss)
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.3f}", flush=True)
    backend = "inductor" if options.device == "cuda" else "aot_eager"
    compiled = torch.compile(model, fullgraph=True, backend=backend) if options.compile else model
    last = train(compiled, trained.values(), OTHER, options.steps, 1e-2, options, seen)
    print(f"second text: loss {losses[0]:.3f} becomes {last:.3f} in {time.perf_counter() - started:.1f} s")
    if options.save:
        torch.save({name: value.detach().cpu() for name, value in trained.items()}, options.save)
    return losses[0] / last


if __name__ == "__main__":
    main()
