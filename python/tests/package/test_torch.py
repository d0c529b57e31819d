"""The package with torch: on this machine by the CPU engine, on a GPU where there is one."""
import copy
import ctypes
import dataclasses
import gc
import statistics
import threading
import time
import warnings
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import tilusc
from programs import DECODE, SCALE

torch = pytest.importorskip("torch")
from torch.autograd import forward_ad  # noqa: E402
from tilusc.matmul import Problem, plan, quantize  # noqa: E402
from tilusc.nn import QuantizedExperts, QuantizedLinear, sort_experts  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]
op = torch.ops.tilusc.matmul


def make_layer(device, weights="u4", n=128, k=256, dtype=torch.float16, **options):
    torch.manual_seed(n + k)
    linear = torch.nn.Linear(k, n)
    options.setdefault("activations", "bf16" if dtype is torch.bfloat16 else "f16")
    layer = QuantizedLinear.from_float(linear, weights, device="cpu" if device == "cpu" else None, **options)
    return layer, linear


def near(have, want, share=0.02):
    return (have.double().cpu() - want.double().cpu()).abs().max() < share * want.double().abs().max().cpu()


@pytest.mark.parametrize("device", DEVICES)
def test_jit_takes_tensors(device):
    x, y = torch.arange(256., device=device), torch.zeros(256, device=device)
    tilusc.jit(SCALE)(x, y, 3.0, 256)
    assert torch.equal(y, 3 * x)
    tilusc.jit(SCALE)(x, y, -2.0, 128)
    assert torch.equal(y[:128], -2 * x[:128]) and torch.equal(y[128:], 3 * x[128:])
    with pytest.raises(tilusc.ArgumentError, match="not contiguous"):
        tilusc.jit(SCALE)(x[::2], y, 3.0, 128)
    with pytest.raises(tilusc.ArgumentError, match="array of f16"):
        tilusc.jit(SCALE)(x.half(), y, 3.0, 128)
    with pytest.raises(tilusc.ArgumentError, match="n is 128.0"):
        tilusc.jit(SCALE)(x, y, 3.0, 128.0)
    with pytest.raises(tilusc.ArgumentError, match="%n = 100"):
        tilusc.jit(SCALE)(x, y, 3.0, 100)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_linear(device, dtype):
    layer, linear = make_layer(device, "u8", dtype=dtype)
    x = torch.randn(5, 256, dtype=dtype, device=device)
    y = layer(x)
    assert y.dtype is dtype and near(y, linear(x.float().cpu()))
    assert torch.equal(layer(x.view(1, 5, 1, 256)), y.view(1, 5, 1, 128))
    assert torch.equal(layer(torch.cat([x, x], 1)[:, :256]), y)      # rows that lie further apart
    assert "weights=u8" in repr(layer)
    layer.bias = torch.nn.Parameter(layer.bias, requires_grad=False)
    assert torch.equal(layer(x), y)


@pytest.mark.parametrize("device", DEVICES)
def test_linear_behind_a_norm(device):
    """An RMS norm of the rows, whose weights meet the columns that the layer takes them from."""
    layer, linear = make_layer(device)
    order = torch.randperm(256).to(layer.packed.device)
    behind = QuantizedLinear(dataclasses.replace(layer.problem, prologue="rms_norm", eps=0.5), layer.packed, layer.bias,
                             order, layer.packed_for)
    x, norm = torch.randn(3, 256, device=device).half(), torch.rand(256, device=device).half() + 0.5
    normed = (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 0.5) * norm.float()).half()
    want = layer(normed[:, order])
    assert near(behind(x, None, norm), want) and near(behind(x[:1], None, norm), want[:1])
    with pytest.raises(tilusc.ArgumentError, match="takes 255"):
        QuantizedLinear(behind.problem, layer.packed, layer.bias, order.clamp(max=254), layer.packed_for)


def test_tensors_reach_the_library_without_ctypes():
    """Tensors in host memory, which torch numbers -1."""
    from test_call import Launches, Products, native
    if native is None:
        pytest.skip("the build had no headers of Python")
    a, packed, out = torch.zeros(3, 200).half(), torch.zeros(9, dtype=torch.uint8), torch.zeros(3, 64).half()
    types = torch.Tensor, torch.nn.Parameter
    products = Products(device=-1, streams={(-1, 0x7000): (0xa000, 4096)},
                        checked={packed.data_ptr(): (weakref.ref(packed), None)},
                        types=types, samples=(out[:0], out[:0], out[:0].float(), packed[:0]))
    assert products(a[:, :128], packed, out=out) is out and products(a[:, :128], packed).shape == (3, 64)
    call = products.calls[0][2]
    assert (call.m, call.a, call.a_stride, call.c) == (3, a.data_ptr(), 200, out.data_ptr()) and not products.left
    for wrong in (a, a[:, :128].float(), a[:, :128][None], torch.zeros(128, 3).half().t()):
        assert products(wrong, packed) == "slow"
    assert products(a[:, :128], packed[:]) == "slow"        # another tensor of that memory
    assert products(a[:, :128], packed, out=out.t()) == "slow" and len(products.calls) == 2
    launches = Launches(device=-1, types=types, kinds=(frozenset({torch.float16}), "integer", "real"))
    assert launches.launch((out, 1, 1.0), None) and not launches.launch((out.t(), 1, 1.0), None)
    assert launches.calls[0][2][0] == out.data_ptr() and len(launches.calls) == 1


def make_runner(count=5):
    """A runner of a plan whose weights are in host memory, and the weights whose identity it asked for."""
    from tilusc._torch_matmul import CheckedWeights, Runner
    runner, asked = Runner.__new__(Runner), []
    runner.packed_bytes, runner.device, runner.place, runner.checked = count, -1, torch.device("cpu"), CheckedWeights()
    runner.plan = SimpleNamespace(check=lambda packed: asked.append(packed.data_ptr()))
    return runner, asked


def test_weights_are_met_once(monkeypatch):
    """Their identity is read at the first product, also of views, and again of a tensor that got the address of one that
    is gone; type, size and place are checked at each."""
    from tilusc import _torch_matmul
    monkeypatch.setattr(_torch_matmul, "is_capturing", bool)
    runner, asked = make_runner()
    memory = (ctypes.c_char * 64)()
    packed = torch.frombuffer(memory, dtype=torch.uint8)[:5]
    address = packed.data_ptr()
    for view in (packed, packed, packed[:], packed.view(5), packed):
        assert runner._check_weights(view) == address
    assert asked == [address]
    storage = weakref.ref(packed.untyped_storage())
    del packed, view
    gc.collect()
    assert storage() is None
    for wrong in (torch.frombuffer(memory, dtype=torch.uint8), torch.frombuffer(memory, dtype=torch.int8)[:5],
                  torch.frombuffer(memory, dtype=torch.uint8)[:10:2]):
        with pytest.raises(tilusc.ArgumentError, match="not 5 bytes on cpu"):
            runner._check_weights(wrong)
    other = torch.frombuffer(memory, dtype=torch.uint8)[:5]
    assert runner._check_weights(other) == address and asked == [address] * 2


def test_weights_are_not_met_in_a_capture(monkeypatch):
    from tilusc import _torch_matmul
    runner, asked = make_runner()
    packed = torch.zeros(5, dtype=torch.uint8)
    monkeypatch.setattr(_torch_matmul, "is_capturing", lambda: True)
    runner._check_weights(packed)
    assert not asked and not runner.checked
    monkeypatch.setattr(_torch_matmul, "is_capturing", bool)
    runner._check_weights(packed)
    assert asked == [packed.data_ptr()]


def test_weights_that_are_wrong_are_not_remembered(monkeypatch):
    from tilusc import _torch_matmul
    monkeypatch.setattr(_torch_matmul, "is_capturing", bool)
    runner, _ = make_runner()

    def refuse(packed):
        raise tilusc.ArgumentError("identity")

    runner.plan.check = refuse
    packed = torch.zeros(5, dtype=torch.uint8)
    for _ in range(2):
        with pytest.raises(tilusc.ArgumentError, match="identity"):
            runner._check_weights(packed)


def test_memory_of_weights_is_bounded(monkeypatch):
    from tilusc._torch_matmul import CheckedWeights
    monkeypatch.setattr(CheckedWeights, "MOST", 8)
    checked, kept = CheckedWeights(), [torch.zeros(5, dtype=torch.uint8) for _ in range(6)]
    for packed in kept:
        checked.remember(packed)
    passing = [torch.zeros(5, dtype=torch.uint8) for _ in range(2)]
    for packed in passing:
        checked.remember(packed)
    del passing, packed
    checked.remember(last := torch.zeros(5, dtype=torch.uint8))     # those that are gone go first
    assert len(checked) == 7 and all(map(checked.has_memory, [*kept, last]))
    more = [torch.zeros(5, dtype=torch.uint8) for _ in range(9)]
    for packed in more:
        checked.remember(packed)
        assert checked.has_memory(packed) and len(checked) <= 8


@pytest.mark.parametrize("device", DEVICES)
def test_opcheck(device):
    layer, _ = make_layer(device)
    x = torch.randn(3, 256, dtype=torch.float16, device=device)
    torch.library.opcheck(op.default, (x, layer.packed, layer.problem_text, layer.bias))
    out = torch.empty(3, 128, dtype=torch.float16, device=device)
    torch.library.opcheck(op.out, (x, layer.packed, layer.problem_text, layer.bias), {"out": out})


@pytest.mark.parametrize("device", DEVICES)
def test_tangents_of_forward_mode(device):
    layer, _ = make_layer(device)
    x, t = torch.randn(2, 3, 256, dtype=torch.float16, device=device)
    bare = QuantizedLinear(dataclasses.replace(layer.problem, bias=False), layer.packed, None, layer.permutation)
    y, tangent = torch.func.jvp(layer, (x,), (t,))
    assert torch.equal(y, layer(x)) and torch.equal(tangent, bare(t)) and tangent.abs().max() > 0
    with forward_ad.dual_level():
        assert torch.equal(forward_ad.unpack_dual(layer(forward_ad.make_dual(x, t))).tangent, tangent)
        assert torch.equal(layer(x), y)
    assert torch.equal(torch.func.jvp(torch.compile(layer), (x,), (t,))[1], tangent)
    with warnings.catch_warnings():             # torch.vmap calls an operator row by row, and says so
        warnings.simplefilter("ignore")
        columns = torch.func.jacfwd(lambda x: layer(x[None])[0])(x[0])
    assert torch.allclose(columns.float() @ t[0].float(), tangent[0].float(), atol=0.02)
    added = QuantizedLinear(dataclasses.replace(layer.problem, residual=True), layer.packed, layer.bias, layer.permutation)
    r = torch.randn_like(y)
    assert torch.equal(torch.func.jvp(added, (x, r), (t, 2 * r))[1], tangent + 2 * r)
    assert torch.equal(torch.func.jvp(lambda r: added(x, r), (r,), (2 * r,))[1], 2 * r)
    bent = QuantizedLinear(dataclasses.replace(layer.problem, function="silu"), layer.packed, layer.bias, layer.permutation)
    experts = QuantizedExperts.from_float(*torch.randn(3, 2, 64, 64).half(), "u4", top=1,
                                          device="cpu" if device == "cpu" else None)
    why = "have tangents, in forward mode, in a QuantizedLinear alone"
    with forward_ad.dual_level(), pytest.raises(tilusc.Error, match=why):
        op(forward_ad.make_dual(x, t), layer.packed, layer.problem_text, layer.bias)
    for call, given in ((bent, x),
                        (lambda x: experts(x, torch.zeros(3, 1, dtype=torch.int64, device=device), x[:, :1]), x[:, :64])):
        with pytest.raises(tilusc.Error, match=why):
            torch.func.jvp(call, (given,), (given,))


@pytest.mark.parametrize("device", DEVICES)
def test_layers_are_prepared(device):
    layer, _ = make_layer(device, n=64, k=384)
    assert layer.prepare(1, 3) is layer
    gate, up, down = torch.randn(3, 2, 64, 64).half() / 8
    experts = QuantizedExperts.from_float(gate, up, down, "u4", top=1, device="cpu" if device == "cpu" else None)
    assert experts.prepare(2) is experts


def test_weights_that_are_none_are_named():
    linear = torch.nn.Linear(128, 64)
    for call, why in ((lambda: QuantizedLinear.from_float(linear, ""), "weights is ''"),
                      (lambda: QuantizedLinear.from_float(linear, 4), "weights is 4, not a text"),
                      (lambda: QuantizedLinear.from_float(torch.nn.Conv1d(3, 3, 1)), "weight is Conv1d, not a matrix"),
                      (lambda: QuantizedLinear.from_float(linear.bias), r"weight is Parameter\[64\], not a matrix"),
                      (lambda: QuantizedExperts.from_float(*torch.zeros(3, 2, 64, 64), 4, top=1), "weights is 4")):
        with pytest.raises(tilusc.ArgumentError, match=why):
            call()


@pytest.mark.parametrize("device", DEVICES)
def test_compile_has_one_graph(device):
    layer, _ = make_layer(device)
    x = torch.randn(4, 256, dtype=torch.float16, device=device)
    want = torch.relu(layer(x)) + 1
    backend = "inductor" if device == "cuda" else "aot_eager"
    compiled = torch.compile(lambda x: torch.relu(layer(x)) + 1, fullgraph=True, backend=backend)
    assert torch.allclose(compiled(x), want)
    for rows in (7, 9):
        assert compiled(torch.randn(rows, 256, dtype=torch.float16, device=device)).shape == (rows, 128)


@pytest.mark.parametrize("device", DEVICES)
def test_state_of_a_layer(device):
    layer, _ = make_layer(device)
    other = make_layer(device)[0]
    other.packed.zero_()
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.packed, layer.packed)
    wrong, _ = make_layer(device, "u5")
    with pytest.raises(tilusc.ArgumentError, match="packed: .*u4"):
        wrong.load_state_dict(layer.state_dict())
    with pytest.raises(tilusc.ArgumentError, match=r"1\.packed: .*u4"):
        torch.nn.Sequential(torch.nn.ReLU(), wrong).load_state_dict(
            {f"1.{name}": value for name, value in layer.state_dict().items()})


@pytest.mark.parametrize("device", DEVICES)
def test_types_of_a_module_leave_those_of_a_product(device):
    """A model's bfloat16(), float() and to(dtype) are of its other layers; a bias that is trained may be of f32."""
    layer, _ = make_layer(device)
    x = torch.randn(3, 256, device=device).half()
    want = layer(x)
    for moved in (copy.deepcopy(layer).bfloat16(), copy.deepcopy(layer).float(), copy.deepcopy(layer).to(torch.float64),
                  copy.deepcopy(layer).to(device)):
        assert moved.bias.dtype is torch.float16 and torch.equal(moved.bias, layer.bias) and torch.equal(moved(x), want)
    moved = copy.deepcopy(layer).to("meta")
    assert moved(x.to("meta")).shape == want.shape
    moved = moved.bfloat16().to_empty(device=device)
    moved.load_state_dict(layer.state_dict())
    assert moved.bias.dtype is torch.float16 and torch.equal(moved(x), want)
    moved.bias = torch.nn.Parameter(layer.bias.float())
    moved.double()
    moved(x).float().sum().backward()
    assert torch.equal(moved(x), want) and torch.equal(moved.bias.grad, torch.full_like(moved.bias, 3))
    assert torch.equal(torch.fx.symbolic_trace(torch.nn.Sequential(layer, torch.nn.ReLU()))(x), torch.relu(want))


def expert_floats():
    """Returns gate, up and down of 4 experts."""
    torch.manual_seed(5)
    return [torch.randn(4, *shape) / 8 for shape in ((64, 128), (64, 128), (128, 64))]


def make_experts(device, weights="u8", **options):
    """Returns a layer of 4 experts, tokens with two of them each, and the result in f64."""
    gate, up, down = expert_floats()
    layer = QuantizedExperts.from_float(gate, up, down, weights, top=2, group=64,
                                        device="cpu" if device == "cpu" else None, **options)
    x, chosen = torch.randn(5, 128, device=device).half(), torch.tensor([[0, 3], [3, 1], [0, 1], [1, 0], [3, 0]])
    route, rows = torch.rand(5, 2), x.double().cpu()
    want = torch.zeros(5, 128, dtype=torch.float64)
    for t in range(5):
        for i in range(2):
            g, u, d = (w[chosen[t, i]].double() for w in (gate, up, down))
            want[t] += route[t, i] * (torch.nn.functional.silu(rows[t] @ g.T) * (rows[t] @ u.T)) @ d.T
    return layer, (x, chosen.to(device), route.to(device)), want


@pytest.mark.parametrize("device", DEVICES)
def test_experts(device):
    layer, given, want = make_experts(device)
    assert near(layer(*given), want)
    x, chosen, route = given
    offsets, ids = sort_experts(chosen, 4)
    assert offsets.tolist() == [0, 4, 7, 7, 10] and ids.dtype is torch.int32
    assert torch.equal(layer.products(x, offsets, ids, route.flatten()), layer(*given))
    with pytest.raises(tilusc.Error, match="residual is given"):
        layer(*given, residual=x)
    added = make_experts(device, residual=True)[0]
    for residual in (x, x[None]):
        assert near(added(x.view(residual.shape), chosen, route, x).view(x.shape), want + x.double().cpu())
    with pytest.raises(tilusc.ArgumentError, match=r"residual is \[128, 5\], not \[5, 128\]"):
        added(*given, residual=x.t().contiguous())
    torch.library.opcheck(torch.ops.tilusc.matmul_experts.default,
                          (x, layer.gate_up, layer.texts["gate_up"], offsets, ids))
    other = QuantizedExperts(layer.gate_up.clone(), layer.down.clone(), layer.problem, layer.packed_for)
    other.load_state_dict(layer.state_dict())
    with pytest.raises(tilusc.Error, match="weights"):
        other.load_state_dict(make_experts(device, "u4")[0].state_dict())
    with pytest.raises(tilusc.Error, match="ids is missing"):
        torch.ops.tilusc.matmul_experts(x, layer.gate_up, layer.texts["gate_up"], offsets)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_rows_are_sorted_by_expert(device, dtype):
    """Numbers of no expert come first where they are negative, else last; of an expert rows keep their order."""
    text = str(dataclasses.replace(make_experts("cpu")[0].problem, experts=60))
    for tokens in (1, 9, 70, 513, 0):
        chosen = torch.randint(-2, 62, (tokens, 2), dtype=dtype, generator=torch.Generator().manual_seed(tokens))
        offsets, ids = torch.ops.tilusc.sort_experts(chosen.to(device), text)
        bucket = chosen.flatten().clamp(-1, 60)
        order = torch.sort(bucket, stable=True).indices
        assert ids.dtype is offsets.dtype is torch.int32 and torch.equal(ids.cpu(), order.int())
        assert offsets.tolist() == [int((bucket < e).sum()) for e in range(61)]
    torch.library.opcheck(torch.ops.tilusc.sort_experts.default, (chosen.to(device), text))
    with pytest.raises(tilusc.Error, match="no experts"):
        torch.ops.tilusc.sort_experts(chosen.to(device), str(Problem("u4", 64, 128)))


@pytest.mark.parametrize("weights", ["u3", "f6e3m2"])
def test_experts_have_the_codes_of_gate_and_up(weights):
    layer = make_experts("cpu", weights)[0]
    its, half = layer.problems["gate_up"], dataclasses.replace(layer.problem, n=64, gated=False)
    for gate, up, packed in zip(*expert_floats()[:2], layer.gate_up):
        halves = [part for part in zip(quantize(gate, half), quantize(up, half)) if part[0] is not None]
        assert torch.equal(packed, torch.from_numpy(plan(its, "cpu").pack(*map(np.concatenate, halves))))


def test_experts_of_other_forms_are_refused():
    layer = make_experts("cpu")[0]
    state = layer.state_dict()
    with pytest.raises(tilusc.ArgumentError, match="pack again what earlier versions packed apart"):
        layer.load_state_dict({"gate": state["gate_up"], "up": state["gate_up"], "down": state["down"]})
    with pytest.raises(tilusc.ArgumentError, match="not one gated product"):
        QuantizedExperts(layer.gate_up, layer.down, dataclasses.replace(layer.problem, gated=False))
    gate, up, down = expert_floats()
    with pytest.raises(tilusc.ArgumentError, match="n is 120, with gated not a multiple of 16"):
        QuantizedExperts.from_float(gate[:, :60], up[:, :60], down[..., :60], top=2, device="cpu")


def test_choices_of_other_shapes_are_named():
    """They were taken for other tokens, or told of rows of experts."""
    layer, (x, chosen, route), _ = make_experts("cpu")
    y = layer(x, chosen, route)
    assert torch.equal(layer(x.view(1, 5, 128), chosen, route), y.view(1, 5, 128))      # as routers give them
    assert layer(x[:0], chosen[:0], route[:0]).shape == (0, 128)
    for given, why in (((x, chosen[:, :1], route), r"chosen is \[5, 1\], not \[5, 2\]"),
                       ((x[:4], chosen[:2].view(1, 4), route[:2].view(1, 4)), r"chosen is \[1, 4\], not \[4, 2\]"),
                       ((x, chosen[:3], route), r"chosen is \[3, 2\], not \[5, 2\]"),
                       ((x, chosen, route[:3]), r"route is \[3, 2\], not \[5, 2\]")):
        with pytest.raises(tilusc.ArgumentError, match=why):
            layer(*given)
    gate, up, down = expert_floats()
    fewer = QuantizedExperts.from_float(gate[:2], up[:2], down[:2], "u8", top=2, group=64, device="cpu")
    with pytest.raises(tilusc.ArgumentError, match="4 experts, the plan's 2"):
        fewer.load_state_dict(layer.state_dict())
    with pytest.raises(tilusc.ArgumentError, match=r"up is \[64, 128\], not \[experts, n, k\]"):
        QuantizedExperts.from_float(gate[0], up[0], down[0], "u8", top=2)


@needs_gpu
def test_experts_in_a_graph():
    """A graph serves whatever choice of experts comes later."""
    layer, given, want = make_experts("cuda")
    layer.prepare(5)
    first = (given[0], torch.tensor([[2, 1]] * 5, device="cuda"), given[2])
    fixed = [value.clone() for value in first]
    layer(*fixed)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(*fixed)
    for value, now in zip(fixed, given):
        value.copy_(now)
    graph.replay()
    assert near(y, want)


@pytest.mark.parametrize("device", DEVICES)
def test_gated_layer(device):
    gate_up, x = torch.randn(256, 256) / 16, torch.randn(5, 256, device=device).half()
    layer = QuantizedLinear.from_float(gate_up, "u8", function="silu", gated=True, device=0 if device == "cuda" else "cpu")
    gate, up = (x.double().cpu() @ gate_up.double().t()).chunk(2, 1)
    y = layer(x)
    assert layer.out_features == 128 and near(y, torch.nn.functional.silu(gate) * up)
    op_arguments = x, layer.packed, layer.problem_text
    torch.library.opcheck(torch.ops.tilusc.matmul.default, op_arguments)
    out = torch.empty_like(y)
    torch.ops.tilusc.matmul.out(*op_arguments, out=out)
    assert torch.equal(out, y)


def test_residual_of_a_layer():
    problem = Problem("u4", 128, 256, zeros="integer", residual=True)
    layer, linear = make_layer("cpu")
    added = QuantizedLinear(problem, torch.from_numpy(plan(problem, "cpu").pack(*quantize(linear.weight.detach(), problem))))
    x, residual = torch.randn(3, 256).half(), torch.randn(3, 128).half()
    plain = Problem("u4", 128, 256, zeros="integer")
    want = op(x, torch.from_numpy(plan(plain, "cpu").pack(*quantize(linear.weight.detach(), plain))), str(plain))
    assert near(added(x, residual), want.double() + residual)
    for layer in (added, torch.compile(lambda *given: added(*given), fullgraph=True, backend="aot_eager")):
        assert near(layer(x, residual), want.double() + residual)
        assert near(layer(x[None], residual[None])[0], want.double() + residual)
        with pytest.raises(tilusc.ArgumentError, match=r"residual has the shape \[128, 3\], not \[3, 128\]"):
            layer(x, residual.t().contiguous())


def test_shapes_are_checked_on_a_gpu():
    """A runner's, of tensors in host memory."""
    from tilusc._torch_matmul import Runner
    problem = Problem("u4", 128, 256, bias=True, residual=True, prologue="rms_norm")
    runner, zeros = Runner.__new__(Runner), lambda *shape: torch.zeros(shape).half()
    runner.problem, runner.k, runner.n, runner.biases, runner.normed = problem, 256, 128, 128, True
    runner.activations = runner.result = torch.float16
    runner.device, runner.place = -1, torch.device("cpu")
    assert runner._check_bias(zeros(128)) and runner._check_residual(zeros(3, 128), 3) and runner._check_norm(zeros(256))
    assert runner._flattened(zeros(2, 3, 128), (2, 3, 128), 6).shape == (6, 128)
    assert runner._flattened(zeros(6, 128), (2, 3, 128), 6).shape == (6, 128)
    for call, why in ((lambda: runner._check_bias(zeros(8, 16)), r"bias is \[8, 16\] of torch.float16 on cpu, not \[128\]"),
                      (lambda: runner._check_residual(zeros(128, 3), 3), r"residual is \[128, 3\] of .*, not \[3, 128\]"),
                      (lambda: runner._check_norm(zeros(16, 16)), r"norm is \[16, 16\] of .*, not \[256\]"),
                      (lambda: runner._flattened(zeros(3, 2, 128), (2, 3, 128), 6),
                       r"residual has the shape \[3, 2, 128\], not \[2, 3, 128\]")):
        with pytest.raises(tilusc.ArgumentError, match=why):
            call()


def test_layer_of_a_checkpoint():
    from tilusc.formats.weight import QuantizedWeight
    random = np.random.default_rng(1)
    weight = QuantizedWeight(n=64, k=256, weights="u4", codes=random.integers(0, 16, (64, 256), dtype=np.uint8),
                             scales=random.uniform(0.01, 0.02, (64, 2)).astype(np.float16).astype(np.float32), group=128,
                             zeros=random.integers(0, 16, (64, 2)), permutation=random.permutation(256),
                             bias=random.normal(0, 1, 64).astype(np.float32))
    layer = QuantizedLinear.from_weight(weight, device="cpu")
    x = torch.randn(2, 256, dtype=torch.float16)
    assert near(layer(x), x.double() @ torch.from_numpy(weight.dequantize(np.float64)).T + torch.from_numpy(weight.bias))


# ---- a GPU -------------------------------------------------------------------------

@pytest.fixture
def gpu():
    """A layer of the GPU, activations, and their product."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    layer, _ = make_layer("cuda", n=2048, k=2048, zeros="integer")
    x = torch.randn(4, 2048, dtype=torch.float16, device="cuda")
    layer.prepare(4)
    return layer, x, layer(x).clone()


def test_gpu_equals_f64(gpu):
    layer, x, y = gpu
    host = make_layer("cpu", n=2048, k=2048, zeros="integer")[0]
    if torch.cuda.get_device_capability() == (9, 0):
        assert torch.equal(host.packed, layer.packed.cpu())
    _, linear = make_layer("cpu", n=2048, k=2048)
    assert near(y, linear(x.float().cpu()), 0.15)


def test_calls_by_ctypes_give_the_same(gpu):
    from tilusc._library import call_module
    from tilusc._torch_matmul import Runner
    if call_module() is None:
        pytest.skip("there is no tilusc._call")
    layer, x, _ = gpu
    again = layer(x)            # the first call of a weight goes by ctypes
    assert torch.equal(Runner(layer.plan()).multiply(x, layer.packed, layer.bias, None, None), again)


def test_packing_on_the_gpu_writes_the_same(gpu):
    layer, _, _ = gpu
    linear = make_layer("cpu", n=2048, k=2048)[1]
    q = quantize(linear.weight.detach(), layer.problem)
    on_gpu = [torch.from_numpy(part).cuda() for part in q]
    assert torch.equal(layer.plan().pack(*on_gpu).cpu(), layer.packed.cpu())


def test_streams_have_workspaces_of_their_own(gpu):
    layer, x, y = gpu
    streams = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    results = []
    for _ in range(20):
        for stream in streams:
            with torch.cuda.stream(stream):
                results.append(layer(x))
    torch.cuda.synchronize()
    assert all(torch.equal(result, y) for result in results)


def test_threads(gpu):
    layer, x, y = gpu
    wrong = []

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                result = layer(x)
            torch.cuda.current_stream().synchronize()
            wrong.append(not torch.equal(result, y))
    torch.cuda.synchronize()
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == [False] * 4


def capture(work):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    return graph, result


def test_graphs(gpu):
    layer, x, y = gpu
    from tilusc import _workspaces
    given = x.clone()
    pairs = [capture(lambda: layer(layer(given))) for _ in range(2)]
    want = layer(y)
    assert len(_workspaces._leases[0]) >= 2
    for factor in (1, 0, 1):
        given.copy_(x * factor)
        for graph, result in pairs:
            result.zero_()
            graph.replay()
        torch.cuda.synchronize()
        expected = want if factor else layer(layer(given))
        assert all(torch.equal(result, expected) for _, result in pairs)


def test_graphs_that_run_at_once(gpu):
    layer, x, y = gpu
    pairs = [capture(lambda: [layer(x) for _ in range(20)]) for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    for _ in range(10):
        for stream, (graph, _) in zip(streams, pairs):
            with torch.cuda.stream(stream):
                graph.replay()
    torch.cuda.synchronize()
    assert all(torch.equal(result, y) for _, results in pairs for result in results)


def test_workspace_of_a_graph_that_is_gone_is_used_again(gpu):
    import gc

    from tilusc import _workspaces
    layer, x, y = gpu
    for _ in range(5):
        graph, result = capture(lambda: layer(x))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(result, y)
        before = len(_workspaces._leases[0])
        graph.reset()
        del graph, result
        gc.collect()
        torch.cuda.synchronize()
        time.sleep(0.05)        # the driver's own thread tells of the end
    assert len(_workspaces._leases[0]) == before


def test_graph_of_a_jit_kernel():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    kernel = tilusc.jit(DECODE, "decode", W="u8")
    codes, y = torch.arange(128, dtype=torch.uint8, device="cuda"), torch.zeros(128, dtype=torch.float16, device="cuda")
    kernel.prepare()
    graph, _ = capture(lambda: kernel(codes, y, 128))
    assert not y.any()
    graph.replay()
    assert torch.equal(y, codes.half())


def test_reduce_overhead(gpu):
    layer, x, y = gpu
    compiled = torch.compile(lambda x: torch.relu(layer(torch.relu(layer(x)))), fullgraph=True, mode="reduce-overhead")
    want = torch.relu(layer(torch.relu(layer(x))))
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        assert torch.allclose(compiled(x), want)


def test_nothing_waits_and_only_the_result_is_allocated(gpu):
    layer, x, y = gpu
    out = torch.empty_like(y)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        op.out(x, layer.packed, layer.problem_text, layer.bias, out=out)
        assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
        layer(x)
        assert torch.cuda.memory_stats()["allocation.all.allocated"] == before + 1
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(out, y)


def test_many_rows(gpu):
    layer, _, _ = gpu
    x = torch.randn(66000, 2048, dtype=torch.float16, device="cuda")
    y = layer(x)
    for row in (0, 65535, 65536, 65999):
        assert near(y[row:row + 1], layer(x[row:row + 1]))


def test_weights_of_another_problem_are_refused(gpu):
    layer, x, _ = gpu
    other = plan(Problem("u4", 2048, 2048, zeros="float", bias=True), 0)
    with pytest.raises(tilusc.ArgumentError):
        other.run(x, layer.packed[:other.packed_size].clone() if other.packed_size <= layer.packed.numel() else
                  torch.zeros(other.packed_size, dtype=torch.uint8, device="cuda"), bias=layer.bias)


def host_microseconds(call, count=2000):
    """The median of what a call costs this thread, while the GPU has less to do than the host."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
        if len(times) % 100 == 0:
            torch.cuda.synchronize()
    return statistics.median(times) * 1e6


def test_call_cost(gpu, capsys):
    layer, x, y = gpu
    p, out, kernel = layer.plan(), torch.empty_like(y), tilusc.jit(SCALE)
    packed, bias, text = layer.packed, layer.bias, layer.problem_text
    values = torch.zeros(256, device="cuda")
    a, b = torch.zeros(16, 16, device="cuda"), torch.zeros(16, 16, device="cuda")
    costs = {"plan.run(a, packed, out)": host_microseconds(lambda: p.run(x, packed, out, bias=bias)),
             "plan.run(a, packed)": host_microseconds(lambda: p.run(x, packed, bias=bias)),
             "torch.ops.tilusc.matmul": host_microseconds(
                 lambda: op(x, packed, text, bias)),
             "QuantizedLinear": host_microseconds(lambda: layer(x)),
             "jit kernel": host_microseconds(lambda: kernel(values, values, 1.0, 256)),
             "torch.mm": host_microseconds(lambda: torch.mm(a, b)),
             "torch.nn.functional.linear": host_microseconds(lambda: torch.nn.functional.linear(a, b))}
    with capsys.disabled():
        print("\nmicroseconds on the host: " + ", ".join(f"{name} {cost:.2f}" for name, cost in costs.items()))
    assert costs["plan.run(a, packed, out)"] < 6 + costs["torch.mm"]
