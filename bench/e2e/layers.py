"""Products with random weights, of each type, made where they will be used."""
import functools
import math

import torch
import torch.nn.functional as F
import tilusc
from tilusc import _library
from tilusc.matmul import Problem, plan
from tilusc.nn import GATE_UP, QuantizedExperts, QuantizedLinear, experts_problems

import kernels
from shapes import EPSILON, GROUP


def place_of(device):
    return torch.device("cpu") if device == "cpu" else torch.device("cuda", device)


def randn(*shape, device, scale=1.0):
    return torch.empty(shape, dtype=torch.float16, device=place_of(device)).normal_(0, scale)


class Dense(torch.nn.Module):
    """By cuBLAS: y = x W^T + bias, or in place residual + x W^T."""

    def __init__(self, k, n, bias, device):
        super().__init__()
        self.weight = randn(n, k, device=device, scale=k ** -0.5)
        self.bias = randn(n, device=device) if bias else None

    def prepare(self, *rows):
        return self

    def forward(self, x, residual=None):
        return F.linear(x, self.weight, self.bias) if residual is None else residual.addmm_(x, self.weight.t())


@functools.lru_cache(maxsize=None)
def values_of(weights):
    """Returns the numbers of a type's codes."""
    return [_library.rt().tilus_decode(weights.encode(), code) for code in range(1 << int(weights[1]))]


@functools.lru_cache(maxsize=None)
def root_mean_square(weights):
    """Returns the root mean square of a type's numbers."""
    finite = [value for value in values_of(weights) if math.isfinite(value)]
    return math.sqrt(sum(value ** 2 for value in finite) / len(finite))


def without_specials(codes, weights):
    """Replaces codes that are no numbers by 0. Types with such codes all take a byte."""
    special = [code for code, value in enumerate(values_of(weights)) if not math.isfinite(value)]
    return codes.masked_fill_(torch.isin(codes, torch.tensor(special, device=codes.device)), 0) if special else codes


def random_codes(problem, device):
    """Makes random codes, bytes without gaps, and scales. These have random signs, so that products of unsigned codes have
    no mean either."""
    place, elements = place_of(device), problem.n * problem.k
    size = elements * int(problem.weights[1]) // 8
    codes = torch.randint(-2 ** 31, 2 ** 31, (size // 4,), dtype=torch.int32, device=place).view(torch.uint8)
    codes = without_specials(codes, problem.weights)
    scales = torch.randint(0, 2, (problem.n, problem.groups), device=place).half() * 2 - 1
    return codes, scales / (root_mean_square(problem.weights) * math.sqrt(problem.k))


def pack(problem, device, codes, scales):
    packed = plan(problem, device).pack(codes, scales)
    return packed if torch.is_tensor(packed) else torch.from_numpy(packed)


def random_packed(problem, device):
    return pack(problem, device, *random_codes(problem, device))


def problem_of(weights, k, n, bias=False, residual=False, prologue="none", gate=None):
    """Returns the problem of a product, of which `gate` is the function where it is gated."""
    return Problem(weights, n, k, GROUP, bias=bias, residual=residual, prologue=prologue,
                   eps=EPSILON if prologue == "rms_norm" else 0.0, function=gate or "none", gated=gate is not None)


def linear(weights, k, n, device, bias=False, residual=False, prologue="none", gate=None):
    """Makes a product. With a prologue, its `behind` is the product of what that makes of x, by the same packed weights."""
    if weights == "f16":
        return Dense(k, n, bias, device)
    problem = problem_of(weights, k, n, bias, residual, gate=gate)
    made = QuantizedLinear(problem, random_packed(problem, device), randn(n, device=device) if bias else None, packed_for=device)
    if prologue != "none":
        made.behind = QuantizedLinear(problem_of(weights, k, n, bias, residual, prologue, gate), made.packed, made.bias,
                                      packed_for=device)
    return made


# ---- experts -----------------------------------------------------------------------

def experts_problem(weights, model):
    return Problem(weights, 2 * model.intermediate, model.hidden, GROUP, residual=True, experts=model.experts,
                   top=model.top, **GATE_UP)


class DenseExperts(torch.nn.Module):
    """Experts of f16, by kernels/moe_gemm.tilus."""

    def __init__(self, model, device):
        super().__init__()
        self.model, (k, n) = model, (model.hidden, model.intermediate)
        self.up = randn(model.experts, 2 * n, k, device=device, scale=k ** -0.5)
        self.down = randn(model.experts, k, n, device=device, scale=n ** -0.5)
        self.middle = kernels.Gallery._make("silu_mul", "silu_mul", BN=256, WARPS=1)

    def prepare(self, *tokens):
        return self

    def _multiply(self, x, weight, offsets, ids, top):
        rows = 128 if len(ids) > 4096 else 16
        multiply = kernels.Gallery._make("moe_gemm", "moe_gemm", E=self.model.experts, TOPK=top, BM=rows,
                                         BN=128 if rows == 128 else 64)
        y = torch.empty((len(ids), weight.shape[1]), dtype=torch.float16, device=x.device)
        multiply(x, weight, ids, offsets, y, len(ids), weight.shape[1], weight.shape[2])
        return y

    def products(self, x, offsets, ids, route, residual):
        top = self.model.top
        both = self._multiply(x, self.up, offsets, ids, top)
        hidden = torch.empty((len(ids), self.model.intermediate), dtype=torch.float16, device=x.device)
        self.middle(both, hidden, len(ids), self.model.intermediate)
        y = self._multiply(hidden, self.down, offsets, ids, 1).view(len(x), top, -1)
        return residual + torch.bmm(route.view(-1, 1, top).half(), y)[:, 0]


def experts(weights, model, device):
    if weights == "f16":
        return DenseExperts(model, device)
    problem = experts_problem(weights, model)
    packed = [torch.stack([random_packed(its, device) for _ in range(model.experts)])
              for its in experts_problems(problem).values()]
    return QuantizedExperts(*packed, problem, device)


class Mixture(torch.nn.Module):
    """A router and its experts, which add to the residual."""

    def __init__(self, weights, model, device):
        super().__init__()
        self.model = model
        self.router = randn(model.experts, model.hidden, device=device, scale=model.hidden ** -0.5)
        self.experts = experts(weights, model, device)

    def prepare(self, *tokens):
        self.experts.prepare(*tokens)
        return self

    def forward(self, way, x, norm):
        return self.experts.products(*way.route(x, norm, self.router), x)
