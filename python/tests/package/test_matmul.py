"""Products on the CPU engine, packing for devices that are not there."""
import dataclasses
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import tilusc
from tilusc.matmul import Plan, Problem, plan, quantize


def codes_of(packed, weights, n, k):
    """Values of compact codes [n, k] of integers."""
    bits = int(weights[1:])
    planes = np.unpackbits(packed, bitorder="little")[:n * k * bits].reshape(n, k, bits).astype(np.int64)
    values = planes @ (1 << np.arange(bits))
    return values - ((values >> (bits - 1)) << bits) if weights[0] == "i" else values


def dequantize(q, problem):
    groups = problem.groups
    codes = codes_of(q.codes, problem.weights, problem.n, problem.k).reshape(problem.n, groups, -1).astype(np.float64)
    if q.zeros is not None:
        codes -= (q.zeros if problem.zeros == "integer" else q.zeros.view(np.float16))[:, :, None]
    return (codes * q.scales.view(np.float16)[:, :, None]).reshape(problem.n, problem.k)


def dequantize_any(q, problem):
    """As dequantize, also of a short last group."""
    codes = codes_of(q.codes, problem.weights, problem.n, problem.k).astype(np.float64)
    group = np.arange(problem.k) // (problem.group or problem.k)
    if q.zeros is not None:
        codes -= q.zeros[:, group]
    return codes * q.scales.view(np.float16)[:, group]


def matrices(problem, m=3):
    random = np.random.default_rng(problem.k)
    return (random.normal(0, 0.05, (problem.n, problem.k)).astype(np.float32),
            random.normal(0, 1, (m, problem.k)).astype(np.float16))


def test_factor():
    """Scales of 8 bits, 2^-3 to 2^3, beside a factor of the whole matrix, as NVFP4 has them."""
    problem, random = Problem("i8", 64, 96, 16, scales="f8e4m3"), np.random.default_rng(3)
    assert problem.has_factor and problem.result == "f16"
    codes = random.integers(-128, 128, (64, 96)).astype(np.int8)
    powers, factor = random.integers(-3, 4, (64, 6)), np.array([3e-4], np.float32)
    p, scales = plan(problem, "cpu"), (powers + 7 << 3).astype(np.uint8)
    a = matrices(problem)[1]
    exact = a.astype(np.float64) @ (codes * 2.0 ** np.repeat(powers, 16, axis=1) * factor[0]).T
    c = p.run(a, p.pack(codes, scales, factor=factor))
    assert np.abs(c - exact).max() < 2e-3 * np.abs(exact).max()
    for given, text in ((None, "a factor is missing"), (np.zeros(2, np.float32), "factor have 8 bytes, not 4")):
        with pytest.raises(tilusc.ArgumentError, match=text):
            p.pack(codes, scales, factor=given)


@pytest.mark.parametrize("problem", [
    Problem("u4", 64, 256, 128, "integer"), Problem("u4", 64, 256, 16, "integer"), Problem("i6", 64, 256, 64),
    Problem("u3", 64, 128, 0, "float"),
    Problem("i8", 64, 128, 32, function="silu", bias=True, residual=True, result="f32")], ids=str)
def test_product(problem):
    w, a = matrices(problem)
    q, p = quantize(w, problem), plan(problem, "cpu")
    packed = p.pack(*q)
    assert packed.nbytes == p.packed_size
    for given in (packed, packed.tobytes(), bytearray(packed)):
        p.check(given)
    random, added = np.random.default_rng(0), {}
    exact = a.astype(np.float64) @ dequantize(q, problem).T
    if problem.bias:
        added["bias"] = random.normal(0, 1, problem.n).astype(np.float32)
        exact += added["bias"]
    if problem.function == "silu":
        exact = exact / (1 + np.exp(-exact))
    if problem.residual:
        added["residual"] = random.normal(0, 1, exact.shape).astype(np.float32)
        exact += added["residual"]
    c = p.run(a, packed, **added)
    assert c.dtype == (np.float32 if problem.result == "f32" else np.float16)
    assert np.max(np.abs(c - exact)) < 4e-3 * np.max(np.abs(exact))
    out = np.zeros_like(c)
    assert p.run(a, packed, out, **added) is out and np.array_equal(out, c)


@pytest.mark.parametrize("rank", (8, 100))
def test_low_rank_terms(rank):
    """C += (A U) V: of plain U and V as the product's residual, of packed ones by two products more."""
    base = Problem("u4", 64, 256, 96, "integer", residual=True)
    down, up = Problem("i8", rank, 256, 0), Problem("i8", 64, rank, 32, residual=True)
    (w, a), (u, _), (v, _) = map(matrices, (base, down, up))
    plans = [plan(p, "cpu") for p in (base, down, up)]
    made = [quantize(x, p) for x, p in ((w, base), (u, down), (v, up))]
    packed = [p.pack(*q) for p, q in zip(plans, made)]
    plain = a.astype(np.float64) @ dequantize_any(made[0], base).T
    exact = plain + a.astype(np.float64) @ u.T @ v.T
    c = plans[0].run(a, packed[0], residual=(a.astype(np.float32) @ u.T @ v.T).astype(np.float16))
    assert np.max(np.abs(c - exact)) < 4e-3 * np.max(np.abs(exact))
    c = plans[0].run(a, packed[0], residual=np.zeros_like(c))
    assert plans[2].run(plans[1].run(a, packed[1]), packed[2], c, residual=c) is c
    exact = plain + a.astype(np.float64) @ dequantize_any(made[1], down).T @ dequantize_any(made[2], up).T
    assert np.max(np.abs(c - exact)) < 4e-3 * np.max(np.abs(exact))


def test_products_of_bytes():
    random = np.random.default_rng(1)
    given = Problem("i4", 64, 256, 64, activations="i8", product="i8", result="f32")
    w, a = matrices(given)
    q, p = quantize(w, given), plan(given, "cpu")
    packed = p.pack(*q)
    rows, scales = random.integers(-127, 128, a.shape).astype(np.int8), random.uniform(0.5, 2, 3).astype(np.float32)
    exact = rows.astype(np.float64) @ dequantize(q, given).T * scales[:, None]
    c = p.run(rows, packed, a_scales=scales)
    assert np.max(np.abs(c - exact)) < 1e-6 * np.max(np.abs(exact))
    with pytest.raises(tilusc.ArgumentError, match="a_scales is missing"):
        p.run(rows, packed)
    rounded = Problem("i4", 64, 256, 64, product="i8")
    c = plan(rounded, "cpu").run(a, packed)
    exact = a.astype(np.float64) @ dequantize(q, given).T
    assert np.max(np.abs(c - exact)) < 2e-2 * np.max(np.abs(exact))
    assert Problem.parse(str(rounded)) == rounded


@pytest.mark.parametrize("problem", [
    Problem("u4", 64, 256, 128, "integer", function="silu", gated=True),
    Problem("i6", 96, 128, 32, function="gelu", bias=True, residual=True, result="f32", gated=True),
    Problem("i4", 64, 256, 64, product="i8", function="silu", gated=True)], ids=str)
def test_gated(problem):
    assert Problem.parse(str(problem)) == problem and problem.columns == problem.n // 2
    w, a = matrices(problem)
    q, p = quantize(w, problem), plan(problem, "cpu")
    random, added, bias = np.random.default_rng(0), {}, 0
    if problem.bias:
        bias = added["bias"] = random.normal(0, 1, problem.n).astype(np.float32)
    x, up = np.split(a.astype(np.float64) @ dequantize(q, problem).T + bias, 2, 1)
    if problem.function == "silu":
        exact = x / (1 + np.exp(-x)) * up
    else:
        exact = x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x ** 3))) * up
    if problem.residual:
        added["residual"] = random.normal(0, 1, exact.shape).astype(np.float32)
        exact += added["residual"]
    c = p.run(a, p.pack(*q), **added)
    assert c.shape == (3, problem.columns)
    assert np.max(np.abs(c - exact)) < (2e-2 if problem.product else 4e-3) * np.max(np.abs(exact))
    with pytest.raises(tilusc.ArgumentError, match="gated is 1, the plan's 0"):
        plan(dataclasses.replace(problem, gated=False), "cpu").check(p.pack(*q))
    with pytest.raises(tilusc.ArgumentError, match="with gated not a multiple of 16"):
        plan(dataclasses.replace(problem, n=problem.n + 8), "cpu")


def test_prologue():
    random, n, k = np.random.default_rng(2), 64, 512
    base = Problem("u4", n, k, 128, "integer")
    quantized = quantize(random.normal(0, 1, (n, k)).astype(np.float32), base)
    packed, dense = plan(base, "cpu").pack(*quantized), dequantize(quantized, base).T
    x = random.normal(0, 1, (3, k)).astype(np.float16)
    norm = random.uniform(0.5, 1.5, k).astype(np.float16)
    wide = x.astype(np.float64)
    exact = wide / np.sqrt(np.square(wide).mean(1, keepdims=True) + 0.5) * norm @ dense
    problem = dataclasses.replace(base, prologue="rms_norm", eps=0.5)
    assert Problem.parse(str(problem)) == problem
    for m in (1, 3):
        c = plan(problem, "cpu").run(x[:m], packed, norm=norm)
        assert np.max(np.abs(c - exact[:m])) < 4e-3 * np.max(np.abs(exact))
    with pytest.raises(tilusc.ArgumentError, match="norm is missing"):
        plan(problem, "cpu").run(x, packed)
    with pytest.raises(tilusc.ArgumentError, match="prologue is 'norm'"):
        Problem("u4", n, k, prologue="norm")


def test_quantized_is_near():
    problem = Problem("u8", 32, 256, 64, "integer")
    w, _ = matrices(problem)
    assert np.max(np.abs(dequantize(quantize(w, problem), problem) - w)) < 2e-3
    by_error = quantize(w, Problem("u2", 32, 256, 64, "integer"), clip_steps=20)
    plain = quantize(w, Problem("u2", 32, 256, 64, "integer"))
    assert not np.array_equal(by_error.scales, plain.scales)


def test_transposed_weights_pack_to_the_same():
    problem = Problem("i4", 64, 256)
    w, _ = matrices(problem)
    p = plan(problem, "cpu")
    assert np.array_equal(p.pack(*quantize(w, problem)),
                          p.pack(*quantize(np.ascontiguousarray(w.T), problem, transposed=False), transposed=False))


def test_more_dimensions_and_no_rows():
    problem = Problem("i4", 64, 256)
    w, a = matrices(problem, 6)
    p = plan(problem, "cpu")
    packed = p.pack(*quantize(w, problem))
    flat = p.run(a, packed)
    assert np.array_equal(p.run(a.reshape(2, 3, 256), packed), flat.reshape(2, 3, 64))
    assert p.run(a[:0], packed).shape == (0, 64)


def test_problem_is_its_text():
    for problem in (Problem("u4", 64, 256), Problem("f6e3m2", 64, 256, 0, "float", "bf16", bias=True, function="gelu")):
        assert Problem.parse(str(problem)) == problem
    assert Problem("u4", 64, 256, activations="bf16").result == "bf16"
    with pytest.raises(tilusc.ArgumentError, match="'colour=red'"):
        Problem.parse("weights=u4 colour=red")
    with pytest.raises(tilusc.ArgumentError, match="zeros is 'some'"):
        Problem("u4", 64, 256, zeros="some")
    for text, why in (("weights=u4", "n and k are missing: 'weights=u4'"), ("weights=u4 k=3", "n is missing"),
                      ("weights=u4 n=x k=3", "n is 'x', not an integer: 'weights=u4 n=x k=3'"),
                      ("weights=u4 n=1 k=3 bias=yes", "bias is 'yes', not 0 or 1"),
                      ("weights=u4 n=1 k=3 bias=7", "bias is '7', not 0 or 1"),
                      ("weights=u4 n=1 k=3 n=2", "n is there twice: 'weights=u4 n=1 k=3 n=2'"),
                      ("weights=u4 n=1 k=3 eps=low", "eps is 'low', not a number"), (["weights=u4"], "is no text"),
                      (5, "5 is no text of a problem")):
        with pytest.raises(tilusc.ArgumentError, match=re.escape(why)):
            Problem.parse(text)


def test_fields_of_other_types_are_named():
    for fields, why in ((dict(weights=4), "weights is 4, not a text"), (dict(weights="u4\0"), "not a text without spaces"),
                        (dict(weights="u4 n=32"), "weights is 'u4 n=32', not a text without spaces"),
                        (dict(n="64"), "n is '64', not an integer"),
                        (dict(k=256.0), "k is 256.0, not an integer"), (dict(eps=None), "eps is None, not a number"),
                        (dict(bias="yes"), "bias is 'yes', not True or False")):
        with pytest.raises(tilusc.ArgumentError, match=re.escape(why)):
            Problem(**{**dict(weights="u4", n=64, k=256), **fields})
    for fields, why in ((dict(n=2 ** 64 + 64), f"n = {2 ** 64 + 64} does not fit in 64 bits"), (dict(k=-256), "k")):
        with pytest.raises(tilusc.ArgumentError, match=why):
            plan(Problem(**{**dict(weights="u4", n=64, k=256), **fields}), "cpu")
    assert plan(Problem("u4", np.int64(64), np.int32(256)), "h200") is plan(Problem("u4", 64, 256), "h200")
    made = Problem(np.str_("u4"), 64, 256, bias=np.int8(1), eps=np.float64(1e-5))     # go to a process without NumPy
    assert {type(value) for value in dataclasses.asdict(made).values()} == {str, int, float, bool}


def test_plans_are_found_again():
    problem = Problem("u4", 64, 256)
    assert plan(problem, "h200") is plan(str(problem), "h200")
    assert plan(problem, "h200") is not plan(problem, "a100")


def test_prepare_serves_all_rows_up_to_a_power_of_two():
    made, rows = Plan(Problem("u4", 57344, 8192, 128), "h200"), []
    few, some, more, many = (made.describe(m).split("launches ")[1].splitlines()[0] for m in (33, 48, 49, 64))
    assert few == some != more == many
    made.device, made._native = 0, SimpleNamespace(tilus_matmul_prepare=lambda _, m: rows.append(m) or 0,
                                                   tilus_matmul_workspace_size=lambda *_: 0)
    made.prepare(40)
    assert {33, 64} <= set(rows)


def test_packing_needs_no_gpu():
    problem = Problem("u4", 64, 256, zeros="integer")
    w, a = matrices(problem)
    p = plan(problem, "a100")
    packed = p.pack(*quantize(w, problem))
    with pytest.raises(tilusc.ArgumentError, match="only described"):
        p.run(a, packed)
    assert "sm_80" in p.describe(1)
    assert [kernel.split("-u4-")[0] for kernel in p.kernels(1)] == ["prepare", "matmul"]
    assert p.tile[1] % 16 == 0
    with pytest.raises(tilusc.ArgumentError, match="device 'toaster' is none of .*h200"):
        plan(problem, "toaster")
    for wrong in (3.5, ["h200"]):
        with pytest.raises(tilusc.ArgumentError, match="number or name of a device"):
            plan(problem, wrong)
    for wrong in (None, 5, {}):
        with pytest.raises(tilusc.ArgumentError, match="takes a Problem"):
            plan(wrong, "h200")


def test_mistakes_are_named():
    problem = Problem("u4", 64, 256, zeros="integer")
    w, a = matrices(problem)
    p, q = plan(problem, "cpu"), quantize(w, problem)
    packed, read_only = p.pack(*q), np.zeros((3, 64), np.float16)
    read_only.flags.writeable = False
    for call, text in (
            (lambda: Problem("u9", 64, 256), None), (lambda: plan(Problem("u9", 64, 256), "cpu"), "u9"),
            (lambda: plan(Problem("u4", 64, 256, 100), "cpu"), "100"),
            (lambda: p.pack(q.codes[1:], q.scales, q.zeros), "codes have 8191 bytes, not 8192"),
            (lambda: p.pack(q.codes, q.scales), "zeros are missing"),
            (lambda: p.run(a[:, 1:], packed), "rows of 255 elements, not 256"),
            (lambda: p.run(a.astype(np.float32), packed), "a is of f32, not f16"),
            (lambda: p.run(a, packed[1:]), "packed has"),
            (lambda: p.run(a, packed, bias=a[0]), "bias is given"),
            (lambda: p.run(a, packed, np.zeros((3, 63), np.float16)), "out has 189 elements, not 192"),
            (lambda: p.run(a, packed, np.zeros((64, 3), np.float16)), r"out has the shape \[64, 3\], not \[3, 64\]"),
            (lambda: p.check(np.zeros_like(packed)), "identity"),
            (lambda: p.run(a, np.zeros_like(packed)), "identity"),
            (lambda: p.run([[1.0] * 256], packed), "a is list, not an array"),
            (lambda: p.run(None, packed), "a is NoneType, not an array"),
            (lambda: p.run(np.float16(1), packed), "a is float16, not an array"),
            (lambda: p.run(a, [0]), "packed: list is no array"), (lambda: p.run(a, None), "packed is missing"),
            (lambda: p.run(a, packed, [0]), "out: list is no array"),
            (lambda: p.run(a, packed, np.zeros((3, 128), np.float16)[:, ::2]), "out is not contiguous"),
            (lambda: p.run(a, packed, read_only), "out is a read-only array"),
            (lambda: plan(Problem("u5", 64, 256), "cpu").check(packed), "u4"),
            (lambda: quantize([[1.0]], problem), "values: list is no array"),
            (lambda: p.pack([0], q.scales, q.zeros), "codes: list is no array"),
            (lambda: p.pack(q.codes, q.scales, 7), "zeros: int is no array"),
            (lambda: p.check([0]), "packed: list is no array"), (lambda: p.check(b"x"), "1 bytes"),
            (lambda: p.check(packed.tobytes()[:-1]), "identity"), (lambda: p.shard(5, p), "packed: int is no array"),
            (lambda: quantize(w.T, problem), "shape"), (lambda: quantize(w, problem, range="some"), "minmax, absmax")):
        if text is None:
            call()
            continue
        with pytest.raises(tilusc.Error, match=text):
            call()
    assert not read_only.any()


def test_shapes_of_what_is_added_are_checked():
    """Arrays of as many elements in other shapes were taken for what they are not."""
    problem = Problem("u4", 64, 256, zeros="integer", bias=True, residual=True)
    w, a = matrices(problem, 6)
    p, normed = plan(problem, "cpu"), plan(dataclasses.replace(problem, prologue="rms_norm", bias=False, residual=False), "cpu")
    packed, zeros = p.pack(*quantize(w, problem)), lambda *shape: np.zeros(shape, np.float16)
    want, deep = p.run(a, packed, bias=zeros(64), residual=zeros(6, 64)), a.reshape(2, 3, 256)
    for residual in (zeros(2, 3, 64), zeros(6, 64)):        # of C's shape, or its rows
        assert np.array_equal(p.run(deep, packed, bias=zeros(64), residual=residual), want.reshape(2, 3, 64))
    assert np.array_equal(p.run(a[0], packed, bias=zeros(64), residual=zeros(64)), want[0])
    for call, why in (
            (lambda: p.run(a, packed, bias=zeros(64), residual=zeros(64, 6)), "residual has the shape [64, 6], not [6, 64]"),
            (lambda: p.run(deep, packed, bias=zeros(64), residual=zeros(3, 2, 64)),
             "residual has the shape [3, 2, 64], not [2, 3, 64]"),
            (lambda: p.run(a, packed, bias=zeros(8, 8), residual=zeros(6, 64)), "bias has the shape [8, 8], not [64]"),
            (lambda: normed.run(a, packed, norm=zeros(16, 16)), "norm has the shape [16, 16], not [256]")):
        with pytest.raises(tilusc.ArgumentError, match=re.escape(why)):
            call()


def test_what_is_no_tensor_is_named_on_a_gpu():
    made = Plan(Problem("u4", 64, 256), "h200")
    made.device, made._multiply = 0, lambda a, *_: a.get_device()
    with pytest.raises(tilusc.ArgumentError, match="a is list, not a torch tensor on cuda:0"):
        made.run([1.0], None)


def test_rows_lie_any_distance_apart():
    problem = Problem("u4", 64, 256, bias=True, residual=True)
    w, a = matrices(problem)
    p = plan(problem, "cpu")
    packed, random = p.pack(*quantize(w, problem)), np.random.default_rng(0)
    bias, residual = random.normal(0, 1, 64).astype(np.float16), random.normal(0, 1, (3, 64)).astype(np.float16)
    want = p.run(a, packed, bias=bias, residual=residual)
    wide = np.zeros((6, 300), np.float16)
    wide[::2, 7:263] = a
    turned, spread = np.ascontiguousarray(residual.T).T, np.repeat(bias, 2)[::2]
    for rows in (wide[::2, 7:263], np.ascontiguousarray(a.T).T, np.repeat(a, 2, axis=1)[:, ::2], a[::-1][::-1]):
        assert np.array_equal(p.run(rows, packed, bias=spread, residual=turned), want)
    same = np.broadcast_to(a[0], (3, 256))      # one row, no distance apart
    assert np.array_equal(p.run(same, packed, bias=bias, residual=residual)[0], want[0])
    wide.flags.writeable = False
    assert np.array_equal(p.run(wide[::2, 7:263], packed, bias=bias, residual=residual), want)


def test_formats_weight_is_packed_as_it_is():
    from tilusc.formats.weight import QuantizedWeight
    random = np.random.default_rng(1)
    weight = QuantizedWeight(n=64, k=256, weights="u4", codes=random.integers(0, 16, (64, 256), dtype=np.uint8),
                             scales=random.uniform(0.01, 0.02, (64, 2)).astype(np.float16).astype(np.float32), group=128,
                             zeros=random.integers(0, 16, (64, 2)))
    known = weight.to_matmul()
    problem = Problem(known.weights, known.n, known.k, known.group, known.zeros_kind, scales=known.scales_type)
    a = random.normal(0, 1, (2, 256)).astype(np.float16)
    p = plan(problem, "cpu")
    c = p.run(a, p.pack(known.codes, known.scales, known.zeros))
    assert np.allclose(c, a.astype(np.float64) @ weight.dequantize().T.astype(np.float64), atol=5e-3)


def test_experts():
    problem = Problem("u4", 64, 128, 64, "integer", experts=3, top=2, gather=True, combine=True)
    random, p = np.random.default_rng(2), plan(problem, "cpu")
    matrices = [quantize(random.normal(0, 0.05, (64, 128)).astype(np.float32), problem) for _ in range(3)]
    packed = np.concatenate([p.pack(*q) for q in matrices])
    p.check(packed)
    a = random.normal(0, 1, (4, 128)).astype(np.float16)
    chosen = np.array([[0, 2], [2, 0], [0, 2], [2, 0]])         # nothing goes to the expert between
    ids = np.argsort(chosen.ravel(), kind="stable").astype(np.int32)
    offsets = np.searchsorted(np.sort(chosen.ravel()), np.arange(4)).astype(np.int32)
    route = random.uniform(0, 1, 8).astype(np.float32)
    c = p.run(a, packed, offsets=offsets, ids=ids, route=route)
    w = [dequantize(q, problem) for q in matrices]
    exact = sum(route.reshape(4, 2)[:, i, None] * np.stack([a[t] @ w[chosen[t, i]].T for t in range(4)]) for i in range(2))
    assert c.shape == (4, 64) and np.max(np.abs(c - exact)) < 4e-3 * np.max(np.abs(exact))
    packed[p.packed_size - 256:p.packed_size] = 0
    for call, text in (
            (lambda: p.run(a, packed, offsets=offsets, ids=ids), "route is missing"),
            (lambda: p.run(a, packed, offsets=offsets[1:], ids=ids, route=route), "offsets has 3 elements, not 4"),
            (lambda: p.run(a, packed, offsets=offsets, ids=ids[:7], route=route), "7 rows of experts"),
            (lambda: p.run(a[:3], packed, offsets=offsets, ids=ids, route=route), r"shape \[3, 128\], not \[4, 128\]"),
            (lambda: p.run(a, packed[1:], offsets=offsets, ids=ids, route=route), "packed has"),
            (lambda: p.check(packed), "identity"),
            (lambda: plan(Problem("u4", 64, 128), "cpu").run(a, packed, ids=ids), "no experts")):
        with pytest.raises(tilusc.Error, match=text):
            call()


def test_shapes_of_what_experts_add_are_checked():
    problem = Problem("u4", 64, 64, 64, experts=2, bias=True, residual=True)
    p, zeros = plan(problem, "cpu"), lambda *shape: np.zeros(shape, np.float16)
    one = p.pack(*quantize(matrices(problem)[0], problem))
    packed, offsets = np.concatenate([one, one]), np.array([0, 3, 6], np.int32)
    for bias in (zeros(2, 64), zeros(128)):
        assert not p.run(zeros(6, 64), packed, offsets=offsets, bias=bias, residual=zeros(6, 64)).any()
    for bias, residual, why in ((zeros(64, 2), zeros(6, 64), "bias has the shape [64, 2], not [2, 64]"),
                                (zeros(2, 64), zeros(64, 6), "residual has the shape [64, 6], not [6, 64]")):
        with pytest.raises(tilusc.ArgumentError, match=re.escape(why)):
            p.run(zeros(6, 64), packed, offsets=offsets, bias=bias, residual=residual)


def test_rows_of_no_expert_stay():
    problem = Problem("u4", 64, 64, 64, experts=3)
    random, p = np.random.default_rng(4), plan(problem, "cpu")
    packed = np.concatenate([p.pack(*quantize(random.normal(0, 0.1, (64, 64)).astype(np.float32), problem)) for _ in range(3)])
    a, out = random.normal(0, 1, (8, 64)).astype(np.float16), np.full((8, 64), 7, np.float16)
    offsets = np.array([2, 3, 3, 6], np.int32)
    assert p.run(a, packed, out, offsets=offsets) is out
    assert np.all(out[:2] == 7) and np.all(out[6:] == 7)
    assert np.array_equal(out[2:6], p.run(a, packed, offsets=offsets)[2:6]) and not np.any(out[2:6] == 7)
    with pytest.raises(tilusc.ArgumentError, match=r"out has the shape \[64, 8\], not \[8, 64\]"):
        p.run(a, packed, out.reshape(64, 8), offsets=offsets)


def test_packed_weights_may_have_gaps():
    """Of a view all bytes are read where they are; what lies beyond its first address would be others'."""
    problem = Problem("u4", 64, 256)
    w, a = matrices(problem)
    p = plan(problem, "cpu")
    packed = p.pack(*quantize(w, problem))
    want = p.run(a, packed)
    for view in (np.ascontiguousarray(packed[::-1])[::-1], np.repeat(packed, 2)[::2],
                 np.ascontiguousarray(packed.reshape(256, -1).T).T, packed.view(np.int8)):
        p.check(view)
        assert np.array_equal(p.run(a, view), want)
    wrong = np.concatenate([packed, np.zeros_like(packed)])
    with pytest.raises(tilusc.Error, match="identity"):
        p.check(wrong[::2])
    with pytest.raises(tilusc.ArgumentError, match="neither a tensor nor contiguous in host memory"):
        p.check(SimpleNamespace(__cuda_array_interface__=packed.__array_interface__))


def test_prepare_on_the_cpu_engine():
    from tilusc.engines import worker
    for problem in (Problem("u4", 64, 384), Problem("u4", 64, 384, experts=2, top=2, gather=True)):
        p = plan(problem, "cpu")
        assert p.prepare(4) == p._native.tilus_matmul_workspace_size(p.handle, 4) > 0
    with pytest.raises(tilusc.ArgumentError, match="m is 0"):
        p.prepare(0)
    assert worker._process.poll() is None
    with pytest.raises(tilusc.Error):           # which is only described
        plan(Problem("u4", 64, 384), "h200").prepare(4)


def test_types_and_shapes_of_what_is_packed():
    problem = Problem("u4", 64, 256, 128, "integer")
    w, _ = matrices(problem)
    p, q = plan(problem, "cpu"), quantize(w, problem)
    want = p.pack(*q)
    for codes, scales, zeros in (
            (q.codes.view(np.int32), q.scales.view(np.float16), q.zeros.view(np.int8)),
            (q.codes.reshape(64, 128), q.scales.view(np.int16).ravel(), q.zeros.ravel()),
            (q.codes.view(np.int32).reshape(64, 32), q.scales, q.zeros), (q.codes.reshape(64, 2, 64), q.scales, q.zeros)):
        assert np.array_equal(p.pack(codes, scales, zeros), want)
    other = quantize(np.ascontiguousarray(w.T), problem, transposed=False)
    p.pack(other.codes.reshape(256, 32), *other[1:], transposed=False)
    for codes, scales, zeros, options, why in (
            (None, None, None, {}, "codes are missing"), (q.codes, None, q.zeros, {}, "scales are missing"),
            (q.codes, q.scales, q.zeros, {"factor": np.ones(1, np.float32)}, "a factor is given"),
            (q.codes.view(np.float16), q.scales, q.zeros, {}, "codes are of f16, not bytes"),
            (q.codes, q.scales.ravel().view(np.float32), q.zeros, {}, "scales are of f32, not f16 or its bits"),
            (q.codes, q.scales.view(np.uint8), q.zeros, {}, "scales are of u8, not f16 or its bits"),
            (q.codes, q.scales, q.zeros.view(np.uint16), {}, "zeros are of u16, not u8 or its bits"),
            (q.codes, q.scales.T.copy(), q.zeros, {}, r"scales have the shape \[2, 64\], not \[64, 2\]"),
            (q.codes, q.scales, q.zeros.reshape(1, 128), {}, r"zeros have the shape \[1, 128\], not \[64, 2\]"),
            (q.codes.reshape(256, 32), q.scales, q.zeros, {}, r"codes have the shape \[256, 32\], not \[64, ..\]"),
            (q.codes, q.scales, q.zeros, {"transposed": False}, r"scales have the shape \[64, 2\], not \[2, 64\]"),
            (q.codes, q.scales, q.zeros, {"threads": -1}, "threads = -1 does not fit in 64 bits")):
        with pytest.raises(tilusc.ArgumentError, match=why):
            p.pack(codes, scales, zeros, **options)
    eight = Problem("u4", 64, 256, 16, scales="f8e4m3")
    with pytest.raises(tilusc.ArgumentError, match="factor is of f16, not f32 or its bits"):
        plan(eight, "cpu").pack(q.codes, np.zeros((64, 16), np.uint8), factor=np.ones(2, np.float16))


def test_scales_and_zero_points_that_no_product_has_are_named():
    problem = Problem("u4", 64, 256, 128, "integer")
    w, _ = matrices(problem)
    p, q = plan(problem, "cpu"), quantize(w, problem)
    zeros, scales = q.zeros.copy(), q.scales.view(np.float16).copy()
    zeros[3, 1], scales[5, 0] = 16, np.inf
    with pytest.raises(tilusc.ArgumentError, match=r"zero point \[3, 1\] is 16, not 0 to 15 of u4"):
        p.pack(q.codes, q.scales, zeros)
    with pytest.raises(tilusc.ArgumentError, match=r"scale \[5, 0\] is inf, not a finite number"):
        p.pack(q.codes, scales, q.zeros)


def test_integers_beyond_the_library_are_refused():
    problem = Problem("u4", 64, 256)
    w, _ = matrices(problem)
    p = plan(problem, "cpu")
    packed = p.pack(*quantize(w, problem))
    for call, why in (
            (lambda: p.describe(2 ** 64 + 1), f"m = {2 ** 64 + 1} does not fit in 64 bits"),
            (lambda: p.kernels(2 ** 64 + 1), "m = "), (lambda: p.prepare(2 ** 64 + 1), "m = "),
            (lambda: p.kernels(-1), "m = -1, not a number of rows"), (lambda: p.describe(-1), "m = -1"),
            (lambda: p.prepare(1.0), "m is 1.0, not an integer"), (lambda: p.prepare("1"), "m is '1', not an integer"),
            (lambda: p.shard(packed, p, 2 ** 64), "n_first = "), (lambda: p.shard(packed, p, 0, 2 ** 64), "k_first = "),
            (lambda: p.shard(packed, p, 0.0), "n_first is 0.0, not an integer"),
            (lambda: quantize(w, problem, clip_steps=2 ** 32 + 20), "clip_steps = 4294967316 does not fit in 32 bits"),
            (lambda: quantize(w, problem, threads=-1), "threads = -1 does not fit in 32 bits"),
            (lambda: quantize(w, problem, clip_steps=1.5), "clip_steps is 1.5, not an integer"),
            (lambda: plan(problem, 2 ** 32), "device = 4294967296 does not fit in 32 bits")):
        with pytest.raises(tilusc.ArgumentError, match=why):
            call()
    assert p.describe(np.int64(5)) == p.describe(5) and [k.split("\t")[1] for k in p.kernels(0)][0] == "pack"


def test_shard():
    whole = Problem("u4", 256, 512, 128, "integer")
    w, a = matrices(whole)
    p = plan(whole, "cpu")
    packed = p.pack(*quantize(w, whole))
    columns = plan(Problem("u4", 128, 512, 128, "integer", n_tile=p.tile[0]), "cpu")
    halves = [p.shard(packed, columns, n_first=first) for first in (0, 128)]
    assert np.array_equal(np.concatenate([columns.run(a, half) for half in halves], 1), p.run(a, packed))
    rows = plan(Problem("u4", 256, 256, 128, "integer", result="f32", n_tile=p.tile[0]), "cpu")
    parts = [rows.run(np.ascontiguousarray(a[:, first:first + 256]), p.shard(packed, rows, k_first=first)) for first in (0, 256)]
    exact = plan(Problem("u4", 256, 512, 128, "integer", result="f32", n_tile=p.tile[0]), "cpu").run(a, packed)
    assert np.max(np.abs(sum(parts) - exact)) < 1e-4 * np.max(np.abs(exact))
    with pytest.raises(tilusc.Error, match="n_first|tile"):
        p.shard(packed, columns, n_first=5)
    with pytest.raises(tilusc.Error, match="packed has"):
        p.shard(packed[1:], columns)


TUNING = {"template": "0", "device": "NVIDIA H200", "driver": "13.0", "weights": "u4", "activations": "f16", "scales": "f16",
          "result": "f16", "group": 128, "zeros": "none", "n": 256, "k": 512, "m": 1, "rows": 64, "warps_n": 2,
          "warps_k": 2, "stage_k_tiles": 1, "stages": 2, "columns": 1, "tiles": 1, "prearranged_a": 2,
          "scale_weights": 0, "per_sm": 1, "zeros_by_mma": 0, "register_reallocation": 0, "us": 3.5}


@pytest.fixture
def tunings(tmp_path, monkeypatch):
    """Plans of a process whose TILUS_TUNINGS names a file of a text that the function takes."""
    from tilusc import _library, matmul

    def make(text, name="tunings.json"):
        if text is not None:
            (tmp_path / name).write_text(text)
        monkeypatch.setenv("TILUS_TUNINGS", str(tmp_path / name) if name else "")
        _library.tunings.cache_clear()
        monkeypatch.setattr(matmul, "_handles", _library.Handles(_library.matmul, "tilus_matmul", "tilus_compile_in_child",
                                                                 more=matmul._handles._more))
        return Plan

    yield make
    _library.tunings.cache_clear()


def test_tunings(tunings):
    """The process that packs has them, and the worker's, whose product would else read the weights otherwise."""
    problem = Problem("u4", 256, 512)
    w, a = matrices(problem)
    q, usual = quantize(w, problem), plan(problem, "cpu")
    tuned = tunings(json.dumps({"tilus-tune": 1, "tunings": [TUNING]}))(problem, "cpu")
    for device in ("cpu", "h200"):
        text = Plan(problem, device).describe(1)
        assert "by the given tunings" in text and "64 x 128" in text and "by the given" not in usual.describe(1)
    packed = tuned.pack(*q)
    exact = a.astype(np.float64) @ dequantize(q, problem).T
    assert np.max(np.abs(tuned.run(a, packed) - exact)) < 4e-3 * np.max(np.abs(exact))
    with pytest.raises(tilusc.ArgumentError, match="n_tile is 64, the plan's 32"):
        usual.check(packed)
    tunings(None, "")       # of one worker, both
    assert np.max(np.abs(usual.run(a, usual.pack(*q)) - exact)) < 4e-3 * np.max(np.abs(exact))


@pytest.mark.parametrize("text, why", [
    (None, "which cannot be read: No such file"), ("{", "whose tunings: line 1, column"), ("{}", "whose tunings: not tunings"),
    ('{"tilus-tune": 7, "tunings": []}', "whose tunings: tunings of format 7"),
    ('{"tilus-tune": 1, "tunings": [{}]}', "whose tunings: tuning 1: \"template\" is missing")])
def test_wrong_tunings(tunings, text, why):
    made = tunings(text, "some.json")
    for _ in range(2):
        with pytest.raises(tilusc.ArgumentError, match=f"TILUS_TUNINGS is '.*/some.json', {why}"):
            made(Problem("u4", 64, 256), "cpu")
    tunings(None, "")(Problem("u4", 64, 256), "cpu")
