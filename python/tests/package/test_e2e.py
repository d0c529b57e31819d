"""bench/e2e on the CPU engine: small models by the gallery's kernels, beside torch and weights of f32."""
import dataclasses
import os
import pathlib
import subprocess
import sys

import pytest
import tilusc
from tilusc.matmul import plan

torch = pytest.importorskip("torch")
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[3] / "bench" / folder) for folder in ("", "e2e")]
import experts  # noqa: E402
import kernels  # noqa: E402
import layers  # noqa: E402
import model as models  # noqa: E402
import shapes  # noqa: E402

TINY = shapes.Model("tiny", 2, 256, 4, 2, 64, 384, 300)
KINDS = {"llama": TINY, "gemma": dataclasses.replace(TINY, sandwich=True, softcap=50, gelu=True, logits_cap=30.0),
         "mixture": dataclasses.replace(TINY, head_norms=True, bias=True, experts=4, top=2, intermediate=128)}
TOKENS = torch.arange(71) * 3


def near(have, want, share=1e-2):
    return (have.float() - want.float()).norm() < share * want.float().norm()


def steps(decoder, way):
    """Logits of a prompt, and of the token after it."""
    state = kernels.State(decoder.model, 2, 100, "cpu")
    with torch.inference_mode():
        for sequence in (1, 0):
            prompt = decoder(way, TOKENS[:70] + sequence, state.prefill(sequence, 70), True)
        return prompt, decoder(way, TOKENS[70:].repeat(2), state.decode_at(70))


def dense(problem, quantized):
    """Returns the weights of a quantized layer, by a product with the identity that does nothing else."""
    plain = dataclasses.replace(problem, bias=False, residual=False, gated=False, function="none", experts=0, top=0,
                                gather=False, combine=False, early_routing=False)
    return plan(plain, "cpu").run(torch.eye(plain.k).half(), layers.pack(plain, "cpu", *quantized)).t().contiguous()


@pytest.mark.parametrize("kind", KINDS)
def test_gallery_is_near_torch(kind):
    torch.manual_seed(1)
    decoder = models.Decoder(KINDS[kind], "u4", "cpu")
    found = steps(decoder, kernels.Gallery(KINDS[kind]))
    wanted = steps(decoder, kernels.Torch(KINDS[kind]))
    assert near(found[0], wanted[0]) and near(found[1], wanted[1])
    state = kernels.State(KINDS[kind], 1, 100, "cpu")
    with torch.inference_mode():
        longer = decoder(kernels.Torch(KINDS[kind]), TOKENS, state.prefill(0, 71), True)
    assert near(found[1][:1], longer)       # a token more is as a longer prompt


@pytest.mark.parametrize("weights, count", [("u4", 1), ("f16", 2 * TINY.layers + 1)])
def test_products_take_norms(monkeypatch, weights, count):
    """Packed products of the gallery's way take the norms of what they multiply, all but the last one."""
    norms, norm = [], kernels.Gallery.norm
    monkeypatch.setattr(kernels.Gallery, "norm", lambda way, x, weight: norms.append(len(x)) or norm(way, x, weight))
    with torch.inference_mode():
        state = kernels.State(TINY, 2, 100, "cpu").decode_at(0)
        models.Decoder(TINY, weights, "cpu")(kernels.Gallery(TINY), TOKENS[:2], state)
    assert norms == [2] * count


def test_quantized_is_near_dense(monkeypatch):
    """Gates are those of products in one, and of a kernel behind them in the other."""
    torch.manual_seed(2)
    made, pack = {}, layers.pack

    def keep(problem, device, *quantized):
        packed = pack(problem, device, *quantized)
        made[packed.data_ptr()] = problem, quantized
        return packed

    monkeypatch.setattr(layers, "pack", keep)
    decoder, same = (models.Decoder(TINY, weights, "cpu") for weights in ("u6", "f16"))
    for name in ("embedding", "head"):
        setattr(same, name, getattr(decoder, name))
    for layer, other in zip(decoder.layers, same.layers):
        for name in ("qkv", "o", "gate_up", "down"):
            getattr(other, name).weight = dense(*made[getattr(layer, name).packed.data_ptr()])
    assert decoder.layers[0].gate_up.problem.gated and other.gate_up.weight.shape == (768, 256)
    way = kernels.Torch(TINY)
    for have, want in zip(steps(decoder, way), steps(same, way)):
        assert near(have, want, 2e-2)


@pytest.mark.parametrize("way", [kernels.Torch, kernels.Gallery])
@pytest.mark.parametrize("weights", ["f16", "u6"])
def test_mixture_is_near_its_experts(way, weights, monkeypatch):
    """Experts of f16 by kernels/moe_gemm.tilus and packed ones, chosen by torch and by kernels/router_step.tilus."""
    torch.manual_seed(3)
    tiny, made, pack = KINDS["mixture"], [], layers.pack
    with monkeypatch.context() as patch:
        patch.setattr(layers, "pack", lambda *its: made.append((its[0], its[2:])) or pack(*its))
        mixture, x = layers.Mixture(weights, tiny, "cpu"), torch.randn(3, 256).half()
    norm = 0.5 + torch.rand(256).half()
    found, its = mixture(way(tiny), x.clone(), norm), mixture.experts
    h = (torch.nn.functional.rms_norm(x.double(), (256,), eps=shapes.EPSILON) * norm).half()
    matrices = [dense(*one) for one in made] if made else [*its.up, *its.down]
    scores = torch.softmax(h.float() @ mixture.router.t().float(), -1)
    for t in range(3):
        route, chosen = torch.topk(scores[t], tiny.top)
        want = x[t].double()
        for share, e in zip(route / route.sum(), chosen):
            gate, up = (matrices[e].double() @ h[t].double()).chunk(2)
            want = want + share * (matrices[tiny.experts + e].double() @ (torch.nn.functional.silu(gate) * up))
        assert near(found[t], want)


def test_floor_counts_bytes():
    model = shapes.MODELS["Llama-3.3-70B"]
    elements = 80 * (8192 * 10240 + 8192 * 8192 + 3 * 8192 * 28672) + 128256 * 8192
    assert shapes.step_bytes(model, "f16", 1, 0) == 2 * elements
    assert shapes.cache_bytes(model, 2, 512) == 2 * 512 * 80 * 8 * 128 * 2 * 2
    mixture = shapes.MODELS["Qwen3-30B-A3B"]
    assert shapes.touched_experts(mixture, 1) == pytest.approx(8) and shapes.touched_experts(mixture, 64) < 128


EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "tensor_parallel.py"


@pytest.mark.parametrize("share", [0, 1])
def test_addition_tells_peers(share, monkeypatch):
    """Rank 1 of three, whose peers have told it all: it adds, tells each peer, and takes its flags down."""
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    import tensor_parallel
    ranks, rank, rows, hidden = 3, 1, 4, 1024
    x, w, *parts = (torch.randn(n, hidden).half() for n in (rows, 1, *[rows] * ranks))
    flags = [torch.full((rows, 2, ranks), i == rank, dtype=torch.int32) for i in range(ranks)]
    results = [torch.zeros_like(x) for _ in range(ranks)]
    wanted = x + sum(part.float() for part in parts)
    normed = wanted * torch.rsqrt(wanted.square().mean(-1, keepdim=True) + shapes.EPSILON) * w
    add_norm = tensor_parallel.add_norm_kernel(hidden, ranks, rank, share)
    add_norm(x, w, *parts, *results, *flags, rows, shapes.EPSILON)
    added = slice(rank, rows, ranks) if share else slice(0, rows)
    blocks, told = (2, 2) if share else (rows, 1)
    assert near(x[added], wanted[added]) and not flags[rank][:blocks].any()
    for i in range(ranks):
        if share or i == rank:
            assert near(results[i][added], normed[added])
        if i != rank:
            assert flags[i][:blocks, :told, rank].all() and flags[i].sum() == blocks * told


def test_tensor_parallel():
    """Two ranks as threads are near one."""
    package = str(pathlib.Path(tilusc.__file__).resolve().parents[1])
    run = subprocess.run([sys.executable, EXAMPLE, "--threads=2", "--check", "--tiny"], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": package})
    assert run.returncode == 0 and "2 x threads beside one: prompt" in run.stdout, run.stdout + run.stderr


@pytest.mark.parametrize("weights, group", [("u4", 128), ("f4e2m1", 32), ("f8e4m3", 128)])
def test_experts_beside_f64(weights, group):
    """bench/experts.py compares its layers with f64, and finds what is wrong."""
    torch.manual_seed(3)
    mixture = experts.table.Mixture("tiny", 8, 2, 256, 128, weights, group)
    layer = experts.Layer(mixture, "cpu", True)
    given = experts.Given(mixture, 9, "cpu", layer.experts.texts["gate_up"])
    with torch.inference_mode():
        assert experts.error_of(mixture, layer, given) < 1e-3
        first = given.chosen[0, 0].item()
        layer.experts.down[[first, (first + 1) % 8]] = layer.experts.down[[(first + 1) % 8, first]]
        with pytest.raises(SystemExit, match="tiny .*, 9 tokens: relative error"):
            experts.error_of(mixture, layer, given)
