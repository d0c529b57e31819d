#!/usr/bin/env python3
"""Experts of mixtures with packed weights beside torch's grouped products in bf16, on a GPU.

    bench/run experts [MODEL...]     measures, and keeps the rows in bench/results/experts.csv
    bench/experts.py [--out FILE.csv] [--revision TEXT] [--tokens N,..] [--rounds N] [--seconds N] [MODEL...]

A layer has gate and up as one gated product, which gathers its rows, and down, which combines those of a token: both by
`QuantizedExperts` of the package tilusc, which must be installed. Tokens choose experts at random, and rows are sorted before
anything is timed. Peers are `torch._grouped_mm` of gathered rows, without the gate's function and without what combines rows:
`torch_us` is the sum of two. bench/harness/experts.py lists models and sizes.

A part of each result is compared with f64; then CUDA graphs of ours and of torch's take turns, in bursts of 20 ms after 100 ms
of rest, over layers with weights and choices of their own, which read more than 4 times the L2 cache. Rows that the file has
already, of this device, driver and revision, are not measured again.
"""
import argparse
import math
import pathlib
import statistics
import sys
import time

import torch
from tilusc import torch_ops
from tilusc.matmul import Problem
from tilusc.nn import GATE_UP, QuantizedExperts, experts_problems

import gemm
from harness import experts as table, results

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "e2e"))
import layers  # noqa: E402

READ_BYTES = 256 << 20      # that all layers read together, at least
LAYERS_MOST = 16
TOLERANCE = 2e-3            # of the norm; of down beside f64 products of the same f16 rows


# ---- ours ---------------------------------------------------------------------------

def problem_of(mixture):
    return Problem(mixture.weights, 2 * mixture.intermediate, mixture.hidden, mixture.group, experts=mixture.experts,
                   top=mixture.top, residual=True, **GATE_UP)


class Layer:
    """A layer's experts, packed; `plain`, codes and scales by product and expert, where it is to be compared."""

    def __init__(self, mixture, device, compared):
        problem, self.plain, packed = problem_of(mixture), {}, []
        for name, its in experts_problems(problem).items():
            made = [layers.random_codes(its, device) for _ in range(mixture.experts)]
            packed.append(torch.stack([layers.pack(its, device, *each) for each in made]))
            if compared:
                self.plain[name] = made
        self.experts = QuantizedExperts(*packed, problem, device)

    def gate_up(self, given):
        text = self.experts.texts["gate_up"]
        return torch_ops.matmul_experts(given.x, self.experts.gate_up, text, given.offsets, given.ids)

    def down(self, given, hidden):
        text = self.experts.texts["down"]
        return torch_ops.matmul_experts(hidden, self.experts.down, text, given.offsets, given.ids, given.route,
                                        residual=given.x)

    def both(self, given):
        return self.experts.products(given.x, given.offsets, given.ids, given.route, given.x)


class Given:
    """Tokens, and the experts that they chose."""

    def __init__(self, mixture, tokens, device, problem_text):
        place = layers.place_of(device)
        self.x = torch.randn(tokens, mixture.hidden, device=place).half()
        self.chosen = torch.rand(tokens, mixture.experts, device=place).topk(mixture.top, -1).indices
        route = torch.rand(tokens, mixture.top, device=place)
        self.route = (route / route.sum(1, keepdim=True)).flatten()
        self.offsets, self.ids = torch_ops.sort_experts(self.chosen, problem_text)
        self.hidden = torch.randn(tokens * mixture.top, mixture.intermediate, device=place).half()
        self.touched = len(self.chosen.unique())


# ---- beside f64 -----------------------------------------------------------------------

def matrix_rows(problem, codes, scales, rows):
    """Decodes `rows` of a plain matrix [n, k] to f64."""
    bits, place = int(problem.weights[1]), codes.device
    each = (codes.view(problem.n, -1)[rows][..., None] >> torch.arange(8, device=place)) & 1
    numbers = (each.view(len(rows), problem.k, bits).long() << torch.arange(bits, device=place)).sum(-1)
    values = torch.tensor(layers.values_of(problem.weights), dtype=torch.float64, device=place)[numbers]
    return values * scales[rows].double().repeat_interleave(problem.group, 1)[:, :problem.k]


def some(count, most, device):
    """Chooses up to `most` of `count` numbers, with the first and the last one."""
    chosen = torch.randperm(count, device=device)[:max(most - 2, 0)]
    return torch.cat([chosen, torch.tensor([0, count - 1], device=device)]).unique()


def gate_up_error(mixture, layer, given, hidden, rows=24, columns=16):
    """The relative error of some columns of some rows of silu(x gate) * (x up)."""
    problem, device, squares = layer.experts.problems["gate_up"], given.x.device, [0.0, 0.0]
    at = some(mixture.intermediate, columns, device)
    for row in some(len(given.ids), rows, device):
        number = given.ids[row].item()
        plain = layer.plain["gate_up"][given.chosen.flatten()[number].item()]
        x = given.x[number // mixture.top].double()
        gate, up = (matrix_rows(problem, *plain, at + first) @ x for first in (0, mixture.intermediate))
        exact = torch.nn.functional.silu(gate) * up
        squares[0] += ((hidden[row, at].double() - exact) ** 2).sum().item()
        squares[1] += (exact ** 2).sum().item()
    return math.sqrt(squares[0] / squares[1])


def down_error(mixture, layer, given, hidden, y, tokens=6, columns=16):
    """The relative error of some columns of some tokens, beside products of the same hidden rows."""
    problem, device, squares = layer.experts.problems["down"], given.x.device, [0.0, 0.0]
    at, place_of_id = some(mixture.hidden, columns, device), torch.argsort(given.ids.long())
    for token in some(len(given.x), tokens, device):
        exact = given.x[token, at].double()
        for place in range(mixture.top):
            number = token.item() * mixture.top + place
            plain = layer.plain["down"][given.chosen[token, place].item()]
            product = matrix_rows(problem, *plain, at) @ hidden[place_of_id[number]].double()
            exact = exact + given.route[number].double() * product
        squares[0] += ((y[token, at].double() - exact) ** 2).sum().item()
        squares[1] += (exact ** 2).sum().item()
    return math.sqrt(squares[0] / squares[1])


def error_of(mixture, layer, given):
    """Compares a layer's products, one by one and both, with f64. Returns the larger error; raises where it is too large."""
    hidden = layer.gate_up(given)
    y, both = layer.down(given, hidden), layer.both(given)
    error = max(gate_up_error(mixture, layer, given, hidden), down_error(mixture, layer, given, hidden, y),
                down_error(mixture, layer, given, hidden, both))
    if not error <= TOLERANCE:
        raise SystemExit(f"{mixture.name} {mixture.weights}, {len(given.x)} tokens: relative error {error:.2e}")
    return error


# ---- torch's ---------------------------------------------------------------------------

class Peer:
    """Dense experts of bf16, [experts, n, k]."""

    def __init__(self, mixture):
        self.top = mixture.top
        self.weights = {name: torch.empty(mixture.experts, n, k, dtype=torch.bfloat16, device=gemm.DEVICE).normal_(0, k ** -0.5)
                        for name, (n, k) in table.products(mixture).items()}

    def rows(self, given):
        """Gathers rows of A for each product, which are not timed."""
        return {"gate_up": given.x.bfloat16()[given.ids.long() // self.top], "down": given.hidden.bfloat16()}

    def multiply(self, name, rows, offsets):
        return torch._grouped_mm(rows[name], self.weights[name].transpose(1, 2), offs=offsets[1:])


# ---- time -----------------------------------------------------------------------------

def ways_of(made, peers, given):
    """Graphs by what they measure; none of torch's where this torch has no grouped products of these."""
    def ours(function):
        return gemm.graph_of(function, range(len(made)))
    ways = {"gate_up_us": ours(lambda i: made[i].gate_up(given[i])),
            "down_us": ours(lambda i: made[i].down(given[i], given[i].hidden)),
            "us": ours(lambda i: made[i].both(given[i]))}
    rows = [peer.rows(each) for peer, each in zip(peers, given)]
    for name in ("gate_up", "down"):
        try:
            ways[f"{name}_torch_us"] = ours(lambda i, name=name: peers[i].multiply(name, rows[i], given[i].offsets))
        except RuntimeError as error:
            print(f"  grouped_mm: {str(error).splitlines()[0]}", file=sys.stderr)
    return ways


def measure(ways, rounds):
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, graph in ways.items():
            times[name].extend(gemm.rest_us(*graph))
    return {name: statistics.median(found) for name, found in times.items()}


def row_of(case, made, peers, rounds):
    mixture, text = case.mixture, made[0].experts.texts["gate_up"]
    given = [Given(mixture, case.tokens, 0, text) for _ in made]
    made[0].experts.prepare(case.tokens)
    error = error_of(mixture, made[0], given[0])
    us = measure(ways_of(made, peers, given), rounds)
    touched = sum(each.touched for each in given) / len(given)
    floors = {name: table.floor_us(mixture, name, touched, case.tokens) for name in table.products(mixture)}
    beside = [us.get(f"{name}_torch_us") for name in floors]
    both = sum(beside) if None not in beside else None
    return {"model": mixture.name, "weights": mixture.weights, "group": mixture.group, "tokens": case.tokens,
            "touched": round(touched, 1), "error": f"{error:.2e}", **{name: round(value, 2) for name, value in us.items()},
            **{f"{name}_fraction": round(floor / us[f"{name}_us"], 3) for name, floor in floors.items()},
            "floor_us": round(sum(floors.values()), 2), "fraction": round(sum(floors.values()) / us["us"], 3),
            "torch_us": round(both, 2) if both else "", "speedup": round(both / us["us"], 3) if both else ""}


def layers_of(mixture):
    """Layers that are measured, so that one token's experts of all of them do not stay in the L2 cache."""
    one = mixture.top * sum(n * k for n, k in table.products(mixture).values()) * int(mixture.weights[1]) / 8
    return min(max(math.ceil(READ_BYTES / one), 2), LAYERS_MOST)


def measure_mixture(options, mixture, tokens, keep):
    torch.manual_seed(1)
    count = layers_of(mixture)
    made = [Layer(mixture, 0, i == 0) for i in range(count)]
    peers = [Peer(mixture) for _ in range(count)]
    for case in (table.Case(mixture, number) for number in tokens):
        if time.monotonic() - options.begin > options.seconds:
            raise SystemExit(f"{options.seconds:.0f} seconds have passed before {table.key(case)}")
        with torch.inference_mode():
            keep(row_of(case, made, peers, options.rounds))


# ---- all ------------------------------------------------------------------------------

def parse_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a part of a name; default: all")
    parser.add_argument("--out", type=pathlib.Path, help="a CSV file to add the rows to")
    parser.add_argument("--tokens", type=lambda text: [int(word) for word in text.split(",")], help="default: all")
    parser.add_argument("--rounds", type=int, default=2, help="of turns")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no case begins")
    parser.add_argument("--revision", default="")
    return parser.parse_args()


def main():
    options = parse_line()
    options.begin = time.monotonic()
    about = {"device": torch.cuda.get_device_name(), "driver": gemm.driver(), "torch": torch.__version__,
             "revision": options.revision}
    known = gemm.known_rows(options, about, table)

    def keep(row):
        print(*(f"{name}={row.get(name, '')}" for name in table.COLUMNS[:17]), flush=True)
        if options.out:
            results.append(options.out, [",".join(str((row | about).get(name, "")) for name in table.COLUMNS)], table.COLUMNS)

    chosen = {}
    for case in table.cases(options.models):
        if table.key(case) not in known and (options.tokens is None or case.tokens in options.tokens):
            chosen.setdefault(case.mixture, []).append(case.tokens)
    for mixture, tokens in chosen.items():
        measure_mixture(options, mixture, tokens, keep)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
