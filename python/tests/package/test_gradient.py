"""Gradients of products with packed weights, beside those of dense ones by torch in f64: on the CPU engine, on a GPU where
there is one."""
import copy
import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import tilusc

torch = pytest.importorskip("torch")
from tilusc import _torch_gradient  # noqa: E402
from tilusc.matmul import Problem, plan, quantize  # noqa: E402
from tilusc.nn import QuantizedExperts, QuantizedLinear  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]
op = torch.ops.tilusc.matmul
functional = torch.nn.functional


def near(have, want, share=0.01):
    """Tells whether the norm of the difference is a small part, and no element is far off."""
    have, want = have.double().cpu(), want.double().cpu()
    return have.shape == want.shape and (have - want).norm() <= share * want.norm() and \
        (have - want).abs().max() <= 8 * share * want.abs().max()


def share_of(dtype):
    return 0.02 if dtype is torch.bfloat16 else 0.004


def type_of(name):
    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[name]


def packed_of(problem, device):
    """Packs random weights, and gives what they stand for, in f64."""
    its = plan(problem, 0 if device == "cuda" else "cpu")
    random = np.random.default_rng(problem.n * 4096 + problem.k)
    values = random.normal(0, 1, (problem.experts or 1, problem.n, problem.k)).astype(np.float32) / problem.k ** 0.5
    if problem.has_factor:
        codes = random.integers(0, 256, (problem.n * problem.k + 1) // 2, np.uint8)
        scales = random.integers(0x30, 0x50, (problem.n, problem.groups), np.uint8)
        packed = torch.from_numpy(its.pack(codes, scales, factor=np.float32([0.01])))
    else:
        packed = torch.cat([torch.from_numpy(its.pack(*quantize(value, problem))) for value in values])
    packed = packed.to(device)
    return packed, its.unpack(packed, "f32").double()


def make_inputs(problem, rows, device):
    """Makes a, bias, residual and norm, those that the problem has, as leaves."""
    torch.manual_seed(rows)
    of_a, of_c = type_of(problem.activations), type_of(problem.result)

    def leaf(wanted, shape, dtype):
        return torch.randn(shape).to(device, dtype).requires_grad_() if wanted else None
    return [leaf(True, (rows, problem.k), of_a), leaf(problem.bias, (problem.n,), of_c),
            leaf(problem.residual, (rows, problem.columns), of_c), leaf(problem.prologue != "none", (problem.k,), of_a)]


def function_of(problem, x):
    if problem.function == "none":
        return x
    return functional.silu(x) if problem.function == "silu" else functional.gelu(x, approximate="tanh")


def reference(problem, weight, a, bias, residual, norm):
    """Computes C of f64."""
    if norm is not None:
        a = a * torch.rsqrt(a.square().mean(-1, keepdim=True) + problem.eps) * norm
    sums = a @ weight.t()
    sums = sums if bias is None else sums + bias
    if problem.gated:
        gate, up = sums.chunk(2, -1)
        y = function_of(problem, gate) * up
    else:
        y = function_of(problem, sums)
    return y if residual is None else y * residual if problem.multiply else y + residual


def expected(problem, weight, given, grad):
    doubles = [None if value is None else value.detach().double().requires_grad_() for value in given]
    y = reference(problem, weight, *doubles)
    y.backward(grad.double())
    return y.detach(), [None if value is None else value.grad for value in doubles]


def call(given, packed, problem):
    a, bias, residual, norm = given
    return op(a, packed, str(problem), bias, residual, norm)


def check(problem, device, rows=3):
    packed, weight = packed_of(problem, device)
    given = make_inputs(problem, rows, device)
    y = call(given, packed, problem)
    grad = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(device, y.dtype)
    want_y, want = expected(problem, weight, given, grad)
    y.backward(grad)
    share = max(share_of(value.dtype) for value in (given[0], y))
    assert near(y, want_y, share), str(problem)
    for name, value, wanted in zip(("a", "bias", "residual", "norm"), given, want):
        if value is not None:
            assert value.grad.dtype is value.dtype and near(value.grad, wanted, share), (name, str(problem))


TYPES = [f"{kind}{bits}" for bits in range(1, 9) for kind in "ui"] + [
    "f3e1m1", "f4e2m1", "f5e2m2", "f6e3m2", "f6e1m4", "f7e3m3", "f8e4m3", "f8e5m2"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("number", range(len(TYPES)))
def test_every_type(number, device):
    """With n and k that fill no tile, and groups and zero points by turns."""
    weights, groups = TYPES[number], (0, 16, 32, 64, 128, 96, 384)
    zeros = ("none", "integer", "float")[number // 2 % 3]
    zeros = "none" if weights[0] == "f" and zeros == "integer" else zeros
    check(Problem(weights, n=40 + 8 * number, k=100 + 17 * number, group=groups[number % len(groups)], zeros=zeros,
                  activations="bf16" if number % 2 else "f16"), device)


EPILOGUES = [
    {"bias": True}, {"residual": True, "bias": True}, {"function": "silu"},
    {"function": "gelu", "bias": True, "residual": True},
    {"residual": True, "multiply": True}, {"function": "silu", "bias": True, "residual": True, "multiply": True},
    {"gated": True}, {"gated": True, "function": "silu", "bias": True}, {"gated": True, "function": "gelu", "residual": True},
    {"prologue": "rms_norm", "eps": 0.25}, {"prologue": "rms_norm", "eps": 0.01, "bias": True, "function": "gelu"},
    {"prologue": "rms_norm", "eps": 0.01, "gated": True, "function": "silu", "residual": True, "activations": "bf16"},
    {"result": "f32", "bias": True}, {"result": "bf16", "function": "silu"},
    {"activations": "bf16", "gated": True, "bias": True},
    {"weights": "f4e2m1", "group": 16, "scales": "f8e4m3", "zeros": "none", "k": 320},
    {"weights": "f4e2m1", "group": 16, "scales": "f8e4m3", "zeros": "none", "k": 320, "gated": True, "function": "silu"},
    {"wide_range": True, "batch_invariant": True, "function": "silu"}]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", EPILOGUES, ids=lambda options: "-".join(map(str, options)))
def test_everything_that_a_product_does(options, device):
    check(Problem(**{"weights": "u4", "n": 96, "k": 300, "group": 64, "zeros": "integer", **options}), device, rows=5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", [{"bias": True}, {"gated": True, "function": "silu"}])
def test_parts_of_weights(options, device, monkeypatch):
    """Weights are unpacked in parts of no more bytes than are allowed, unless a slice has more."""
    problem = Problem("u4", n=64, k=515, **options)
    seen, unpack = [], tilusc.matmul.Plan._unpack.func

    def counted(its):
        def part(packed, name, first, count, expert):
            seen.append((first, count))
            return unpack(its)(packed, name, first, count, expert)
        return part
    monkeypatch.setattr(tilusc.matmul.Plan, "_unpack", property(counted))
    for limit, wanted in ((1 << 20, [(0, 515)]), (2 * 64 * 300, [(0, 256), (256, 256), (512, 3)]),
                          (1, [(0, 128), (128, 128), (256, 128), (384, 128), (512, 3)])):
        monkeypatch.setattr(_torch_gradient, "UNPACKED_BYTES", limit)
        check(problem, device)
        passes = 2 if problem.gated else 1          # one for the sums, one for the gradient, behind the test's own
        assert seen[1:] == wanted * passes
        seen.clear()


# ---- layers ------------------------------------------------------------------------

def make_layer(device, n=96, k=256, **options):
    torch.manual_seed(n + k)
    linear = torch.nn.Linear(k, n)
    return QuantizedLinear.from_float(linear, "u4", device="cpu" if device == "cpu" else None, activations="f16", **options)


@pytest.mark.parametrize("device", DEVICES)
def test_layer(device):
    """Of rows in three dimensions, of gradients with gaps, of a layer that is used twice, and of tensors that need none."""
    layer = make_layer(device, n=256, k=256)
    weight = layer.dequantize(torch.float32).double()
    assert layer.dequantize().dtype is torch.float16 and near(layer.dequantize(), weight)
    x = torch.randn(2, 5, 256, device=device).half().requires_grad_()
    grad = torch.randn(5, 256, 2, device=device).half().permute(2, 0, 1)
    y = layer(x)
    assert not grad.is_contiguous() and y.requires_grad
    y.backward(grad)
    assert near(x.grad, grad.double() @ weight) and layer.packed.grad is None
    x.grad = None
    layer(x).sum().backward()                   # of a gradient that has one element
    assert near(x.grad, weight.sum(0).expand(2, 5, 256))
    x.grad = None
    layer(layer(x)).backward(grad)
    assert near(x.grad, grad.double() @ weight @ weight)
    assert not layer(x.detach()).requires_grad
    with torch.no_grad():
        assert not layer(x).requires_grad
    empty = torch.zeros(0, 256, device=device).half().requires_grad_()
    layer(empty).sum().backward()
    assert empty.grad.shape == (0, 256)
    added = QuantizedLinear(dataclasses.replace(layer.problem, residual=True), layer.packed, layer.bias)
    residual = torch.randn(10, 256, device=device).half().requires_grad_()      # flat, beside x of three dimensions
    added(x, residual).backward(grad)
    assert torch.equal(residual.grad, grad.reshape(10, 256))


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_is_computed_that_is_not_asked_for(device, monkeypatch):
    layer = make_layer(device)
    assert isinstance(layer.bias, torch.Tensor)
    layer.bias = torch.nn.Parameter(layer.bias.clone())
    monkeypatch.setattr(_torch_gradient, "multiply_transposed", None)       # it would raise
    x = torch.randn(3, 256, device=device).half()
    layer(x).sum().backward()
    assert torch.equal(layer.bias.grad, torch.full_like(layer.bias, 3))
    y = layer(x)
    layer.bias.requires_grad_(False)
    assert y.requires_grad and not layer(x).requires_grad
    assert not [value for value in y.grad_fn.saved_tensors if value is not None]    # no activations
    moved = []
    bent = QuantizedLinear(dataclasses.replace(layer.problem, function="silu"), layer.packed, layer.bias)
    with torch.autograd.graph.saved_tensors_hooks(lambda value: moved.append(value.dtype) or value, lambda value: value):
        bent(x.requires_grad_())
    assert moved and torch.uint8 not in moved       # hooks that move activations to the host leave weights where they are


@pytest.mark.parametrize("device", DEVICES)
def test_permuted_layer(device):
    """Act-order, whose columns come from other ones, and of which some may be left out."""
    from tilusc.formats.weight import QuantizedWeight
    random = np.random.default_rng(1)
    for k in (256, 200):
        weight = QuantizedWeight(n=64, k=k, weights="u4", codes=random.integers(0, 16, (64, k), dtype=np.uint8),
                                 scales=random.uniform(0.01, 0.02, (64, 2)).astype(np.float16).astype(np.float32), group=128,
                                 zeros=random.integers(0, 16, (64, 2)), permutation=random.permutation(k))
        layer = QuantizedLinear.from_weight(weight, device="cpu" if device == "cpu" else 0)
        dense = torch.from_numpy(weight.dequantize(np.float64))
        x = torch.randn(3, k, device=device).half().requires_grad_()
        grad = torch.randn(3, 64, device=device).half()
        layer(x).backward(grad)
        assert near(x.grad, grad.double().cpu() @ dense) and near(layer.dequantize(torch.float32), dense, 1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_gated_weights_come_back_in_order(device):
    gate_up = torch.randn(160, 256)
    layer = QuantizedLinear.from_float(gate_up, "u8", function="silu", gated=True, device=0 if device == "cuda" else "cpu")
    assert near(layer.dequantize(torch.float32), gate_up, 0.02)
    experts = QuantizedExperts.from_float(*(part[None] for part in gate_up.chunk(2)), torch.randn(1, 256, 80), "u8", top=1,
                                          device=0 if device == "cuda" else "cpu")
    gate, up, down = experts.dequantize(torch.bfloat16)
    assert near(torch.cat([gate[0], up[0]]), gate_up, 0.02) and down.shape == (1, 256, 80)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_have_gradients(device):
    """The second derivative, of a product with silu and a gate: of the penalty on a gradient."""
    for options in ({}, {"function": "gelu"}, {"gated": True, "function": "silu"}):
        problem = Problem("u8", n=64, k=128, zeros="integer", **options)
        packed, weight = packed_of(problem, device)
        a = torch.randn(3, 128, device=device).half().requires_grad_()
        d = a.detach().double().requires_grad_()
        second = []
        for x, y in ((a, op(a, packed, str(problem))), (d, reference(problem, weight.to(device), d, None, None, None))):
            g, = torch.autograd.grad((y * y).sum(), x, create_graph=True)
            g.square().sum().backward()
            second.append(x.grad)
        assert near(*second, 0.02)


@pytest.mark.parametrize("device", DEVICES)
def test_transforms(device):
    layer = make_layer(device)
    weight, x = layer.dequantize(torch.float32).double(), torch.randn(3, 256, device=device).half()
    assert near(torch.func.grad(lambda x: layer(x).float().sum())(x), weight.sum(0).expand(3, 256))
    y, back = torch.func.vjp(layer, x)
    assert near(back(y)[0], y.double() @ weight)
    bent = QuantizedLinear(dataclasses.replace(layer.problem, function="silu"), layer.packed, layer.bias)
    want = x.double().requires_grad_()
    functional.silu(want @ weight.t() + layer.bias.double()).sum().backward()
    assert near(torch.func.grad(lambda x: bent(x).float().sum())(x), want.grad)


@pytest.mark.parametrize("device", DEVICES)
def test_compiled_step(device):
    """Forward and backward in one graph, also of other numbers of rows, and in checkpoints."""
    layer = make_layer(device, n=256, k=256)
    adapter = torch.randn(256, 8, device=device).half().div_(16).requires_grad_()
    weight = layer.dequantize(torch.float32).double()

    def step(x):
        y = layer(x) + x @ adapter @ adapter.t()
        return torch.utils.checkpoint.checkpoint(lambda y: torch.relu(layer(y)), y, use_reentrant=False)
    compiled = torch.compile(step, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    for rows in (4, 7, 9):
        x = torch.randn(rows, 256, device=device).half()
        found = []
        for function in (step, compiled):
            adapter.grad = None
            function(x).float().sum().backward()
            found.append(adapter.grad)
        d = adapter.detach().double().requires_grad_()
        y = x.double() @ weight.t() + layer.bias.double() + x.double() @ d @ d.t()
        torch.relu(y @ weight.t() + layer.bias.double()).sum().backward()
        assert near(found[0], d.grad, 0.03) and near(found[1], d.grad, 0.03)


@pytest.mark.parametrize("device", DEVICES)
def test_opcheck(device):
    problem = Problem("u4", n=64, k=128, zeros="integer", function="silu", bias=True, residual=True)
    packed, _ = packed_of(problem, device)
    given = make_inputs(problem, 3, device)
    torch.library.opcheck(op.default, (given[0], packed, str(problem), *given[1:3]))
    torch.library.opcheck(op.default, (given[0].detach(), packed, str(problem), given[1], given[2].detach()))
    grad = torch.randn(2, 3, 64, device=device).half().requires_grad_()
    torch.library.opcheck(torch.ops.tilusc.matmul_transposed.default, (grad, packed, str(problem)))
    for text in (str(problem), str(dataclasses.replace(problem, gated=True))):
        torch.library.opcheck(torch.ops.tilusc.matmul_plain.default,
                              (given[0], packed_of(Problem.parse(text), device)[0], text))


@pytest.mark.parametrize("device", DEVICES)
def test_autocast(device):
    """Layers take what torch's own take under autocast, and gradients go to f32."""
    layer = make_layer(device)
    weight, x = layer.dequantize(torch.float32).double(), torch.randn(3, 256, device=device, requires_grad=True)
    with pytest.raises(tilusc.ArgumentError):
        layer(x)
    with torch.autocast(device, torch.float16):
        y = layer(x)
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")(x)
        y.float().sum().backward()              # also where the backward pass is in it
    assert y.dtype is torch.float16 and torch.equal(y, compiled)
    assert x.grad.dtype is torch.float32 and near(x.grad, weight.sum(0).expand(3, 256))
    added = QuantizedLinear(dataclasses.replace(layer.problem, residual=True, prologue="rms_norm"), layer.packed, layer.bias)
    residual, norm = torch.randn(3, 96, device=device, requires_grad=True), torch.ones(256, device=device, requires_grad=True)
    with torch.autocast(device, torch.float16):
        added(x, residual, norm).float().sum().backward()
    assert torch.equal(residual.grad, torch.ones_like(residual)) and norm.grad.dtype is torch.float32


def test_what_has_no_gradient_says_so():
    """Products of 8 bits alone: the rest of the call is as ever."""
    problem = Problem("u4", n=64, k=128, product="i8")
    packed = torch.from_numpy(plan(problem, "cpu").pack(*quantize(np.ones((64, 128), np.float32), problem)))
    y = op(torch.ones(2, 128, dtype=torch.float16, requires_grad=True), packed, str(problem))
    with pytest.raises(tilusc.ArgumentError, match="products of 8 bits, .* have no gradient: the problem is weights=u4 n=64"):
        y.sum().backward()
    with pytest.raises(tilusc.Error, match="products of i8 have bit planes"):
        plan(problem, "cpu").unpack(packed)
    layer, out = make_layer("cpu"), torch.empty(2, 96).half()
    x = torch.ones(2, 256).half().requires_grad_()
    with pytest.raises(tilusc.ArgumentError, match="matmul.out has no gradient"):
        op.out(x, layer.packed, layer.problem_text, layer.bias, out=out)
    with torch.no_grad():
        op.out(x, layer.packed, layer.problem_text, layer.bias, out=out)
    assert torch.equal(out, layer(x))


def test_unpacking_checks_what_it_gets():
    problem = Problem("u4", n=64, k=300)
    its = plan(problem, "cpu")
    packed = its.pack(*quantize(np.random.default_rng(0).normal(size=(64, 300)).astype(np.float32), problem))
    whole = its.unpack(packed, "f32")
    assert isinstance(whole, np.ndarray) and whole.dtype == np.float32 and whole.shape == (64, 300)
    assert np.array_equal(its.unpack(packed, "f32", k_first=128, k_count=128), whole[:, 128:256])
    assert np.array_equal(its.unpack(bytes(packed), "f32", k_first=256), whole[:, 256:])
    assert its.unpack(packed, "bf16").dtype == np.uint16
    assert torch.equal(its.unpack(torch.from_numpy(packed)), torch.from_numpy(its.unpack(packed)))
    for given, why in (({"type": "f64"}, "type is 'f64', not f16, bf16 or f32"), ({"type": 4}, "type is 4"),
                       ({"k_first": 64}, "k_first is 64 and k_count 236"), ({"k_first": 384}, "k_first is 384"),
                       ({"k_first": -128}, "k_first is -128"), ({"k_count": 0}, "k_count 0"),
                       ({"k_count": 130}, "k_count 130"), ({"k_first": 1.5}, "k_first is 1.5, not an integer")):
        with pytest.raises(tilusc.ArgumentError, match=why):
            its.unpack(packed, **given)
    with pytest.raises(tilusc.ArgumentError, match="weights"):
        plan(dataclasses.replace(problem, weights="i4"), "cpu").unpack(packed)
    with pytest.raises(tilusc.ArgumentError, match="only described: it packs, and cannot unpack"):
        plan(problem, "h200").unpack(packed)
    layer = make_layer("cpu")
    other = QuantizedLinear.from_float(torch.nn.Linear(layer.problem.k, layer.problem.n), "u4", device="cpu", activations="bf16")
    with pytest.raises(tilusc.ArgumentError, match="bf16"):
        torch.ops.tilusc.matmul_transposed(torch.zeros(3, layer.problem.n).half(), other.packed, layer.problem_text)
    experts = dataclasses.replace(problem, experts=3)
    for size in (2 * len(packed), 2 * len(packed) + 1):
        with pytest.raises(tilusc.ArgumentError, match=f"packed has {size} elements, not {3 * len(packed)}"):
            plan(experts, "cpu").unpack(np.zeros(size, np.uint8))
    with pytest.raises(tilusc.ArgumentError, match=f"{len(packed) + 1} bytes are not 3 experts of equal size"):
        plan(experts, "cpu").check(np.zeros(len(packed) + 1, np.uint8))
    with pytest.raises(tilusc.ArgumentError, match="unpacked to float16, bfloat16 and float32, not torch.float64"):
        layer.dequantize(torch.float64)
    with pytest.raises(tilusc.ArgumentError, match=r"grad has the shape \[3, 95\], not \[.., 96\]"):
        torch.ops.tilusc.matmul_transposed(torch.zeros(3, 95).half(), layer.packed, layer.problem_text)


def load(name):
    """Loads a program of the checkout."""
    path = Path(__file__).resolve().parents[3] / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_benchmark(capsys, monkeypatch):
    """It finds gradients right, and others wrong."""
    benchmark = load("bench/gradients.py")
    small = ["--device=cpu", "--shapes=64x256", "--rows=3", "--weights=u4", "--count=1", "--experts=4x64x128"]
    assert benchmark.main(small) == 0 and "all are right" in capsys.readouterr().out
    monkeypatch.setattr(_torch_gradient, "multiply_transposed", lambda rows, packed, its, out, expert=None: out.fill_(1))
    assert benchmark.main(small) == 1 and "WRONG" in capsys.readouterr().out


@pytest.mark.parametrize("device", DEVICES)
def test_example(device, tmp_path, capsys):
    """Adapters beside packed weights learn, and nothing else is trained."""
    example = load("examples/finetune.py")
    saved = tmp_path / "adapters.pt"
    assert example.main([f"--device={device}", "--steps=12", "--learned=40", f"--save={saved}"]) > 1.15
    assert "second text: loss" in capsys.readouterr().out
    assert {name.split(".", 3)[-1] for name in torch.load(saved)} == {"down.weight", "up.weight"}
    adapter = example.Adapter(make_layer(device), 4)
    torch.nn.init.normal_(adapter.up.weight)
    x = torch.randn(3, 256, device=device)
    with torch.autocast(device, torch.float16):
        y = adapter(x)
    assert near(y - adapter.frozen.bias, x.double() @ adapter.merged().double().t())


# ---- experts -----------------------------------------------------------------------

def rows_of(problem, weight, a, offsets, ids, route, bias, residual):
    """Computes a product of experts in f64, row by row."""
    top, bounds = problem.top or 1, offsets.tolist()
    m = a.shape[0] * top if problem.gather else a.shape[0]
    rows = {}
    for expert, (first, end) in enumerate(zip(bounds, bounds[1:])):
        for r in range(first, end):
            number = r if ids is None else int(ids[r])
            x = a[number // top] if problem.gather else a[r]
            sums = x @ weight[expert].t()
            sums = sums if bias is None else sums + bias[expert]
            gate, up = sums.chunk(2) if problem.gated else (sums, 1)
            y = function_of(problem, gate) * up
            rows[number if problem.scatter or problem.combine else r] = y if route is None else y * route[number]
    zero = torch.zeros(problem.columns, dtype=torch.float64)
    c = [rows.get(r, zero) for r in range(m)]
    if problem.combine:
        c = [sum(c[t:t + top]) for t in range(0, m, top)]
    y = torch.stack(c)
    if residual is None:
        return y
    if problem.multiply:
        return y * residual
    there = torch.tensor([[1.0 if problem.combine or r in rows else 0.0] for r in range(y.shape[0])], dtype=torch.float64)
    return y + residual * there


EXPERTS = [{"gather": True, "top": 2}, {"gather": True, "gated": True, "function": "silu", "top": 2},
           {"combine": True, "top": 2}, {"combine": True, "top": 2, "residual": True, "bias": True},
           {"combine": True, "top": 2, "function": "gelu", "bias": True},
           {"gather": True, "combine": True, "top": 2},
           {"scatter": True, "residual": True, "bias": True}, {"scatter": True, "residual": True, "multiply": True},
           {}, {"bias": True, "residual": True, "activations": "bf16"}]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", EXPERTS, ids=lambda options: "-".join(map(str, options)))
def test_experts_product(options, device):
    """Rows of five experts, one of which has none, before and behind whose rows are those of no expert."""
    problem = Problem(**{"weights": "u4", "n": 64, "k": 160, "group": 32, "zeros": "integer", "experts": 5, **options})
    packed, weight = packed_of(problem, device)
    weight = weight.cpu()
    top, m = problem.top or 1, 12
    ids = torch.randperm(m, generator=torch.Generator().manual_seed(3)).int() if top > 1 or problem.scatter else None
    offsets = torch.tensor([1, 4, 4, 7, 8, 10]).int()
    of_a, of_c = type_of(problem.activations), type_of(problem.result)
    results = m // top if problem.combine else m
    torch.manual_seed(0)
    a = torch.randn(m // top if problem.gather else m, 160).to(device, of_a).requires_grad_()
    bias = torch.randn(5, 64).to(device, of_c).requires_grad_() if problem.bias else None
    residual = torch.randn(results, problem.columns).to(device, of_c).requires_grad_() if problem.residual else None
    route = None
    if problem.combine:
        route = torch.rand(m)
        route[ids[[0, 10, 11]].long()] = 0            # those of no expert
        route = route.to(device).requires_grad_()
    y = torch.ops.tilusc.matmul_experts(a, packed, str(problem), offsets.to(device), None if ids is None else ids.to(device),
                                        route, bias, residual)
    grad = torch.randn(y.shape).to(device, y.dtype)
    y.backward(grad)
    given = a, route, bias, residual
    doubles = [None if value is None else value.detach().cpu().double().requires_grad_() for value in given]
    wanted = rows_of(problem, weight, doubles[0], offsets, ids, *doubles[1:])
    wanted.backward(grad.cpu().double())
    there = range(results) if problem.combine else [int(ids[r]) if problem.scatter else r for r in range(1, 10)]
    assert near(y[list(there)], wanted[list(there)], share_of(of_a))
    for name, value, double in zip(("a", "route", "bias", "residual"), given, doubles):
        if value is not None:
            assert near(value.grad, double.grad, share_of(of_a)), name


@pytest.mark.parametrize("device", DEVICES)
def test_experts_layer(device):
    """Tokens, the router's weights and residual; also compiled, and with numbers of no expert."""
    torch.manual_seed(5)
    gate, up, down = (torch.randn(4, *shape) / 8 for shape in ((64, 128), (64, 128), (128, 64)))
    layer = QuantizedExperts.from_float(gate, up, down, "u8", top=2, group=64, residual=True,
                                        device="cpu" if device == "cpu" else None)
    gate, up, down = (part.double() for part in layer.dequantize(torch.float32))
    chosen = torch.tensor([[0, 3], [3, 1], [0, -1], [1, 0], [3, 4]], device=device)
    router = torch.randn(128, 2, device=device) / 8     # of scores around 1: softmax's gradient has f32's digits
    there = ((chosen >= 0) & (chosen < 4)).double()

    def loss(x, router, residual, experts):
        route = torch.softmax(x.to(router.dtype) @ router, -1) * there.to(router.dtype)
        return (experts(x, chosen, route, residual).double().square()).sum()

    def dense(x, _, route, residual):
        rows = []
        for t in range(5):
            rows.append(residual[t])
            for i in range(2):
                e = chosen[t, i].clamp(0, 3)
                rows[-1] = rows[-1] + route[t, i] * (functional.silu(x[t] @ gate[e].t()) * (x[t] @ up[e].t())) @ down[e].t()
        return torch.stack(rows)
    given = [torch.randn(5, 128, device=device).half(), router, torch.randn(5, 128, device=device).half()]
    doubles = [value.double().requires_grad_() for value in given]
    loss(*doubles, dense).backward()
    step = torch.compile(lambda *values: loss(*values, layer), fullgraph=True, backend="aot_eager")
    for function in (lambda *values: loss(*values, layer), step):
        leaves = [value.clone().requires_grad_() for value in given]
        function(*leaves).backward()
        for leaf, double in zip(leaves, doubles):
            assert near(leaf.grad, double.grad, 0.02)
    x = given[0].clone().requires_grad_()
    got = torch.func.grad(lambda x: layer(x, chosen, there.float(), given[2]).float().sum())(x.detach())
    layer(x, chosen, there.float(), given[2]).float().sum().backward()
    assert torch.equal(got, x.grad)
    there = there.float().to("meta")
    assert copy.deepcopy(layer).to("meta")(x.to("meta"), chosen.to("meta"), there, given[2].to("meta")).shape == x.shape


@pytest.mark.parametrize("device", DEVICES)
def test_experts_opcheck(device):
    problem = Problem("u4", n=64, k=128, experts=3, top=2, combine=True)
    packed, _ = packed_of(problem, device)
    offsets, ids = torch.tensor([0, 2, 3, 6], device=device).int(), torch.randperm(6, device=device).int()
    a, grad = torch.randn(2, 6, 128, device=device).half().requires_grad_()
    a, route = a.detach().requires_grad_(), torch.rand(6, device=device, requires_grad=True)
    torch.library.opcheck(torch.ops.tilusc.matmul_experts.default, (a, packed, str(problem), offsets, ids, route))
    torch.library.opcheck(torch.ops.tilusc.matmul_experts_transposed.default,
                          (grad[:, :64].detach().requires_grad_(), packed, str(problem), offsets))
    torch.library.opcheck(torch.ops.tilusc.matmul_experts_plain.default, (a, packed, str(problem), offsets))
    for wrong in ([0, 4, 3, 6], [0, 2, 3, 7], [-1, 2, 3, 6], [0, 6]):
        with pytest.raises(tilusc.ArgumentError, match="offsets"):
            torch.ops.tilusc.matmul_experts_plain(a, packed, str(problem), torch.tensor(wrong, device=device).int())
