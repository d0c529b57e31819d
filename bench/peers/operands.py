"""One problem's operands on the GPU, in plain form, and what its product should be."""
import re

import torch

DEVICE = "cuda:0"
ROTATE = 512e6                  # bytes of all copies of the weights, as in matmul_bench


def bits(weights):
    return int(re.match(r"[uif](\d)", weights).group(1))


def code_values(weights):
    """The number of each code, by docs/language.md."""
    width, split = bits(weights), re.match(r"f\de(\d)m(\d)$", weights)
    if not split:
        return torch.arange(2.0 ** width, dtype=torch.float64)
    exponent_bits, fraction_bits = map(int, split.groups())
    bias = (1 << (exponent_bits - 1)) - 1 if exponent_bits > 1 else 0
    values = []
    for code in range(1 << width):
        exponent = code >> fraction_bits & ((1 << exponent_bits) - 1)
        fraction = (code & ((1 << fraction_bits) - 1)) / 2 ** fraction_bits
        value = fraction * 2.0 ** (1 - bias) if exponent == 0 \
            else (1 + fraction) * 2.0 ** (exponent - bias)
        if weights == "f8e4m3" and code & 0x7f == 0x7f:
            value = 0.0         # NaN: no operand has it
        values.append(-value if code >> (width - 1) else value)
    return torch.tensor(values, dtype=torch.float64)


def pack_bits(codes, width):
    """Element e in bits [e * width, (e + 1) * width), lowest first; 8 divides the elements."""
    if width == 8:
        return codes.reshape(-1).clone()
    packed = []
    for part in codes.reshape(-1, 8).split(1 << 24):
        word = torch.zeros(part.shape[0], dtype=torch.int64, device=codes.device)
        for i in range(8):
            word |= part[:, i].to(torch.int64) << (width * i)
        packed.append(word.view(torch.uint8).view(-1, 8)[:, :width].reshape(-1))
    return torch.cat(packed)


class Operands:
    """B[k, n] as codes [n, k], with a scale and, for integer zero points, a code a group."""

    def __init__(self, problem, seed=17):
        self.problem, self.bits = problem, bits(problem.weights)
        self.n, self.k, self.groups = problem.n, problem.k, problem.k // problem.group
        draw = torch.Generator(device=DEVICE).manual_seed(seed)
        table = code_values(problem.weights).to(DEVICE)
        codes = torch.randint(0, 1 << self.bits, (self.n, self.k), device=DEVICE,
                              generator=draw, dtype=torch.int16).to(torch.uint8)
        if problem.weights == "f8e4m3":
            codes[codes & 0x7f == 0x7f] = 0
        self.codes = codes
        self.scales = ((torch.rand(self.n, self.groups, device=DEVICE, generator=draw) + 0.5) *
                       0.02 / table.std()).half()
        self.zeros = torch.randint(0, 1 << self.bits, (self.n, self.groups), device=DEVICE,
                                   generator=draw, dtype=torch.uint8) \
            if problem.zeros == "integer" else None
        self.numbers = torch.empty(self.n, self.k, device=DEVICE)
        for first in range(0, self.n, 4096):
            rows = slice(first, first + 4096)
            part = table.float()[codes[rows].long()].view(-1, self.groups, problem.group)
            if self.zeros is not None:
                part = part - self.zeros[rows].float().unsqueeze(-1)
            part = part * self.scales[rows].float().unsqueeze(-1)
            self.numbers[rows] = part.view(-1, self.k)
        self.draw = draw

    def packed(self):
        return pack_bits(self.codes, self.bits)

    def activations(self, m):
        return torch.randn(m, self.k, device=DEVICE, generator=self.draw).half()

    def product(self, a, offset=0.0):
        """C in f32 of weights whose codes count from `offset`."""
        c = a.float() @ self.numbers.t()
        if offset:
            sums = a.float().view(len(a), self.groups, -1).sum(-1)
            c -= offset * (sums @ self.scales.float().t())
        return c


def copies(tensors):
    """As many copies of a system's weights, with their scales, as ROTATE holds; two at least."""
    size = sum(t.numel() * t.element_size() for t in tensors.values() if t is not None)
    count = max(2, int(ROTATE // size))
    def clone(t):
        if t is None:
            return None
        other = torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device=t.device)
        return other.copy_(t)
    return [tensors] + [{name: clone(t) for name, t in tensors.items()}
                        for _ in range(count - 1)]


def relative_error(c, reference):
    """Frobenius; NaN where C has one."""
    difference = square = 0.0
    for x, y in zip(c.split(512), reference.split(512)):
        difference += float((x.float() - y).double().pow(2).sum())
        square += float(y.double().pow(2).sum())
    return (difference / square) ** 0.5
