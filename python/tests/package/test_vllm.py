"""The plugin of vLLM: layers of vLLM load a checkpoint's tensors and multiply, on a GPU where there is one, else on the
CPU engine."""
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import tilusc
from tilusc.quantize import Scheme, quantize

PACKAGE = str(pathlib.Path(tilusc.__file__).resolve().parents[1])
N, K = 96, 256


def run(code, path=""):
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(path), PACKAGE]))}
    return subprocess.run([sys.executable, "-W", "always", "-c", code], env=where, check=True, capture_output=True,
                          text=True)


def test_entry_point():
    try:
        points = importlib.metadata.distribution("tilusc").entry_points
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    assert [point.value for point in points if point.group == "vllm.general_plugins"] == ["tilusc.vllm:register"]


def test_import_is_light():
    assert run("import sys, tilusc.vllm; print({'torch', 'vllm', 'numpy'} & set(sys.modules))").stdout == "set()\n"


def test_other_vllm_is_warned_of(tmp_path):
    """A vLLM without the names, twice: nothing is raised."""
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    said = run("import tilusc.vllm as plugin\nplugin.register()\nplugin.register()\nprint('done')", tmp_path)
    assert said.stdout == "done\n"
    assert re.search(r"tested with vLLM 0\.33\.0, and cannot register the quantization 'tilus'", said.stderr)
    assert re.search(r"cannot register TilusLinearKernel in this one: \w+: No module named", said.stderr)


# ---- with vLLM ----

@pytest.fixture(scope="module")
def vllm():
    torch = pytest.importorskip("torch")
    pytest.importorskip("vllm")
    from tilusc.vllm import register
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        register()
        register()
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):      # as vLLM's loader does
        yield torch


def here(torch, array):
    """Returns an array as a tensor where layers are."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(torch.get_default_device())


def as_rank(monkeypatch, rank, size):
    """Has layers believe that they are one of `size` ranks."""
    from vllm.model_executor import parameter
    from vllm.model_executor.layers import linear
    for module in (parameter, linear):
        monkeypatch.setattr(module, "get_tensor_model_parallel_rank", lambda: rank)
        monkeypatch.setattr(module, "get_tensor_model_parallel_world_size", lambda: size)


@pytest.fixture
def one_rank(vllm, monkeypatch):
    as_rank(monkeypatch, 0, 1)
    return vllm


def config(scheme, **more):
    from vllm.model_executor.layers.quantization import get_quantization_config
    made = get_quantization_config("tilus").from_config(
        {"quant_method": "tilus", "version": 1, "weights": scheme.weights, "group": scheme.group, "zeros": scheme.zeros,
         "ignore": ["lm_head"], **more})
    made.packed_modules_mapping = {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]}
    return made


def matrix(n=N, k=K, seed=0):
    return np.random.default_rng(seed).normal(0, 0.1, (n, k)).astype(np.float32)


def tensors_of(torch, weight):
    """Returns the tensors of a weight, as tilus-quantize writes them, by suffix."""
    from tilusc.formats.write import tilus_tensors
    types = {"U8": torch.uint8, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}
    return {name[2:]: torch.from_numpy(stored.bits.view(np.uint8).reshape(-1).copy()).view(types[stored.dtype])
            .reshape(stored.shape) for name, stored in tilus_tensors("m", weight).items()}


def load(layer, weight, torch, *shard):
    for name, value in tensors_of(torch, weight).items():
        parameter = getattr(layer, name)
        parameter.weight_loader(parameter, value, *shard)


def near(torch, have, x, dense, share=0.01):
    want = x.float() @ here(torch, dense).t()
    return have.dtype is x.dtype and (have.float() - want).norm() < share * want.norm()


SCHEMES = [Scheme("u4", 128, "integer"), Scheme("f6e3m2", 32), Scheme("u3", 64, "float"),
           Scheme("i5", 0, scales="bf16")]


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.weights)
def test_column_parallel(one_rank, scheme):
    from vllm.model_executor.layers.linear import ColumnParallelLinear
    torch, weight = one_rank, quantize(matrix(), scheme)
    layer = ColumnParallelLinear(K, N, bias=True, params_dtype=torch.bfloat16, quant_config=config(scheme),
                                 prefix="model.layers.0.o")
    load(layer, weight, torch)
    layer.bias.data.copy_(torch.arange(N))
    layer.quant_method.process_weights_after_loading(layer)
    layer.quant_method.process_weights_after_loading(layer)
    assert {name for name, _ in layer.named_parameters()} == {"packed", "bias"}
    x = torch.randn(5, K).bfloat16()
    assert near(torch, layer.quant_method.apply(layer, x, None), x, weight.dequantize())
    y, nothing = layer(x)
    assert nothing is None and torch.equal(y, layer.quant_method.apply(layer, x, layer.bias))
    assert near(torch, y - layer.bias, x, weight.dequantize(), 0.3) and not near(torch, y, x, weight.dequantize(), 0.3)


def test_fused_layers(one_rank):
    from vllm.model_executor.layers.linear import MergedColumnParallelLinear, QKVParallelLinear
    torch, scheme = one_rank, Scheme("u4", 64, "integer")
    sizes = {"q": 128, "k": 64, "v": 64}
    weights = {name: quantize(matrix(n, seed=n + ord(name)), scheme) for name, n in sizes.items()}
    fused = QKVParallelLinear(K, 32, 4, 2, bias=False, params_dtype=torch.float16, quant_config=config(scheme),
                              prefix="model.layers.0.self_attn.qkv_proj")
    merged = MergedColumnParallelLinear(K, [N, N], bias=False, params_dtype=torch.float16, quant_config=config(scheme),
                                        prefix="model.layers.0.mlp.gate_up_proj")
    for name, weight in weights.items():
        load(fused, weight, torch, name)
    halves = [quantize(matrix(seed=seed), scheme) for seed in (1, 2)]
    for i, weight in enumerate(halves):
        load(merged, weight, torch, i)
    x = torch.randn(3, K).half()
    for layer, parts in ((fused, weights.values()), (merged, halves)):
        layer.quant_method.process_weights_after_loading(layer)
        assert near(torch, layer.quant_method.apply(layer, x), x, np.concatenate([w.dequantize() for w in parts]))


@pytest.mark.parametrize("scheme", [Scheme("u3", 64, "float"), Scheme("i5", 0)], ids=lambda scheme: scheme.weights)
def test_two_ranks(vllm, monkeypatch, scheme):
    """Parts of rows and of columns, as the ranks load them, give the whole product."""
    from vllm.model_executor.layers.linear import ColumnParallelLinear, RowParallelLinear
    torch, weight = vllm, quantize(matrix(), scheme)
    x, rows, total = torch.randn(3, K).half(), [], 0
    for rank in range(2):
        as_rank(monkeypatch, rank, 2)
        for kind in (ColumnParallelLinear, RowParallelLinear):
            layer = kind(K, N, bias=False, params_dtype=torch.float16, quant_config=config(scheme), prefix="m")
            load(layer, weight, torch)
            layer.quant_method.process_weights_after_loading(layer)
            if kind is ColumnParallelLinear:
                rows.append(layer.quant_method.apply(layer, x))
            else:
                total = total + layer.quant_method.apply(layer, x[:, rank * K // 2:(rank + 1) * K // 2])
    assert near(torch, torch.cat(rows, 1), x, weight.dequantize()) and near(torch, total, x, weight.dequantize())


def test_cuts_that_are_none(vllm, monkeypatch):
    from vllm.model_executor.layers.linear import RowParallelLinear
    as_rank(monkeypatch, 0, 4)
    with pytest.raises(tilusc.ArgumentError, match="the 64 of 256 columns of a rank are not whole bytes of codes"):
        RowParallelLinear(K, N, bias=False, quant_config=config(Scheme("u4", 128, "integer")), prefix="m")


def test_which_layers(one_rank):
    from vllm.model_executor.layers.linear import ReplicatedLinear, UnquantizedLinearMethod
    torch = one_rank
    made = config(SCHEMES[0], ignore=["a.q_proj", "a.k_proj", "a.v_proj", "b.q_proj", "re:.*router"])
    layer = ReplicatedLinear(K, N, quant_config=made, prefix="a.o_proj")
    assert type(layer.quant_method).__name__ == "TilusLinearMethod"
    for name in ("a.qkv_proj", "c.router"):
        assert type(made.get_quant_method(layer, name)) is UnquantizedLinearMethod
    assert made.get_quant_method(torch.nn.Embedding(1, 1), "embed") is None
    with pytest.raises(tilusc.ArgumentError, match="of b.q_proj to b.v_proj some are quantized and some not"):
        made.get_quant_method(layer, "b.qkv_proj")


def test_names_of_what_stays_become_vllm_s(vllm):
    from vllm.model_executor.models.utils import WeightsMapper
    made = config(SCHEMES[0], ignore=["lm_head", "re:.*router", "layers.0.o_proj"])
    made.apply_vllm_mapper(WeightsMapper(orig_to_new_prefix={"": "model."}))
    assert made.config["ignore"] == ["model.lm_head", "re:.*router", "model.layers.0.o_proj"]


def test_configurations(vllm):
    for wrong, said in (({"version": 2}, "version is 2"), ({"packed": {"a": "b"}}, "for one kind of GPU"),
                        ({"weights": "u9"}, "u9"), ({"group": 40}, "40"), ({"zeros": "none"}, "zero points")):
        with pytest.raises(ValueError, match=said):
            config(SCHEMES[0], **wrong)


# ---- experts ----

EXPERTS, TOP, HIDDEN = 4, 2, 128        # of a layer [EXPERTS, HIDDEN, K]
NAMES = ("gate_proj", "down_proj", "up_proj")


def mixture(torch, monkeypatch, quantization, rank=0, ranks=1, dtype="float16", **options):
    """A layer of vLLM with experts, of one rank."""
    from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.fused_moe import FusedMoEFactory, config as its
    monkeypatch.setattr(its, "get_tensor_model_parallel_rank", lambda: rank)
    made = VllmConfig(device_config=DeviceConfig(device=torch.get_default_device().type))
    with set_current_vllm_config(made):
        layer = FusedMoEFactory(EXPERTS, TOP, K, HIDDEN, params_dtype=getattr(torch, dtype), quant_config=quantization,
                                tp_size=ranks, dp_size=1, pcp_size=1, prefix="model.layers.0.mlp.experts", **options)
    layer.made_with = made
    return layer


def expert_weights(scheme):
    """Returns the weights of experts by their names in the checkpoint."""
    shapes = {"gate_proj": (HIDDEN, K), "up_proj": (HIDDEN, K), "down_proj": (K, HIDDEN)}
    return {f"{number}.{name}": quantize(matrix(*shape, seed=10 * number + i), scheme)
            for number in range(EXPERTS) for i, (name, shape) in enumerate(shapes.items())}


def load_experts(torch, layer, weights):
    """Has vLLM load them, by the names that the layer says the checkpoint has."""
    its = layer.routed_experts
    known = dict(zip(NAMES, (its.ckpt_gate_proj_name, its.ckpt_down_proj_name, its.ckpt_up_proj_name)))
    named = [(number, known[part], tensors_of(torch, weight)) for (number, part), weight in
             ((name.split("."), weight) for name, weight in weights.items())]
    loaded = list(layer.load_weights((f"{number}.{part}.{suffix}", value) for number, part, tensors in named
                                     for suffix, value in tensors.items()))
    assert set(loaded) == {f"routed_experts.{name}" for name, _ in its.named_parameters()}
    its.quant_method.process_weights_after_loading(its)
    its.quant_method.process_weights_after_loading(its)
    assert not list(its.named_parameters()) and type(its.packed).__name__ == "QuantizedExperts"


def mixed(torch, x, chosen, route, weights):
    """The experts' sum by dequantized matrices."""
    dense = {name: here(torch, weight.dequantize()).t() for name, weight in weights.items()}
    rows = []
    for token, ids, shares in zip(x.float(), chosen.tolist(), route):
        hidden = [torch.nn.functional.silu(token @ dense[f"{e}.gate_proj"]) * (token @ dense[f"{e}.up_proj"])
                  for e in ids]
        rows.append(sum(share * (one @ dense[f"{e}.down_proj"]) for share, one, e in zip(shares, hidden, ids)))
    return torch.stack(rows)


def tokens(torch, dtype="float16", count=5):
    torch.manual_seed(3)
    route, chosen = torch.softmax(torch.randn(count, EXPERTS), -1).topk(TOP)
    return torch.randn(count, K).to(getattr(torch, dtype)), route, chosen.int()


@pytest.mark.parametrize("scheme", [*SCHEMES, Scheme("f4e2m1", 16)], ids=lambda scheme: scheme.weights)
@pytest.mark.parametrize("names", [NAMES, ("w1", "w2", "w3")], ids=["gate_proj", "w1"])
def test_experts(vllm, monkeypatch, scheme, names):
    dtype = "bfloat16" if scheme.weights == "i5" else "float16"
    layer = mixture(vllm, monkeypatch, config(scheme), dtype=dtype, ckpt_names=names)
    weights = expert_weights(scheme)
    load_experts(vllm, layer, weights)
    x, route, chosen = tokens(vllm, dtype)
    y = layer.routed_experts.forward_modular(x, route, chosen)
    want = mixed(vllm, x, chosen, route, weights)
    assert y.dtype is x.dtype and (y.float() - want).norm() < 0.02 * want.norm()


@pytest.mark.parametrize("scheme", [Scheme("u3", 64, "float"), Scheme("i5", 0)], ids=lambda scheme: scheme.weights)
def test_experts_of_two_ranks(vllm, monkeypatch, scheme):
    weights, (x, route, chosen) = expert_weights(scheme), tokens(vllm)
    total = 0
    for rank in range(2):
        layer = mixture(vllm, monkeypatch, config(scheme), rank, 2)
        load_experts(vllm, layer, weights)
        assert layer.routed_experts.packed.problem.columns == HIDDEN // 2
        total = total + layer.routed_experts.forward_modular(x, route, chosen).float()
    want = mixed(vllm, x, chosen, route, weights)
    assert (total - want).norm() < 0.02 * want.norm()


def test_experts_behind_a_router(vllm, monkeypatch):
    """vLLM's whole layer, as an operator of torch; the router is torch's, as vLLM's own is of its compiled part."""
    from vllm.forward_context import set_forward_context

    def choose(hidden_states, gating_output, topk, renormalize):
        route, chosen = vllm.softmax(gating_output.float(), -1).topk(topk)
        return route / route.sum(-1, keepdim=True), chosen.int()
    layer = mixture(vllm, monkeypatch, config(SCHEMES[0]), custom_routing_function=choose)
    weights, (x, _, _), logits = expert_weights(SCHEMES[0]), tokens(vllm), vllm.randn(5, EXPERTS).half()
    load_experts(vllm, layer, weights)
    with set_forward_context(None, layer.made_with):
        y = layer(x, logits)
    route, chosen = choose(x, logits, TOP, True)
    want = mixed(vllm, x, chosen, route, weights)
    assert (y.float() - want).norm() < 0.02 * want.norm()


def test_experts_in_a_graph(vllm, monkeypatch):
    """A captured call serves other tokens and another choice."""
    if not vllm.cuda.is_available():
        pytest.skip("no GPU")
    layer, weights = mixture(vllm, monkeypatch, config(SCHEMES[0])), expert_weights(SCHEMES[0])
    load_experts(vllm, layer, weights)
    its, (x, route, chosen) = layer.routed_experts, tokens(vllm)
    its.forward_modular(x, route, chosen)
    graph = vllm.cuda.CUDAGraph()
    with vllm.cuda.graph(graph):
        y = its.forward_modular(x, route, chosen)
    x.copy_(x.flip(0) + 1)
    chosen.copy_(EXPERTS - 1 - chosen)
    graph.replay()
    want = mixed(vllm, x, chosen, route, weights)
    assert (y.float() - want).norm() < 0.02 * want.norm()


@pytest.mark.parametrize("options, said", [
    ({"activation": "gelu"}, "have gelu, not a gate with SiLU"), ({"has_bias": True}, "have biases"),
    ({"swiglu_limit": 7.0}, "limited"), ({"apply_router_weight_on_input": True}, "the router has weighted"),
    ({"ranks": 4}, "w2: the 32 of 128 columns of a rank are not whole bytes of codes and whole groups of 128")])
def test_experts_that_are_refused(vllm, monkeypatch, options, said):
    with pytest.raises(tilusc.ArgumentError, match=said):
        mixture(vllm, monkeypatch, config(SCHEMES[0]), **options)


def test_experts_that_stay(vllm, monkeypatch):
    from tilusc import _vllm_method
    monkeypatch.setattr(_vllm_method, "UnquantizedFusedMoEMethod", lambda config: "floats")
    layer = mixture(vllm, monkeypatch, config(SCHEMES[0])).routed_experts
    made = config(SCHEMES[0], ignore=["re:.*0.mlp.experts", "model.layers.1.mlp.experts.2.up_proj"])
    assert made.get_quant_method(layer, "model.layers.0.mlp.experts") == "floats"
    with pytest.raises(tilusc.ArgumentError, match="experts.0.gate_proj to .*experts.3.down_proj some are quantized"):
        made.get_quant_method(layer, "model.layers.1.mlp.experts")


# ---- the kernel for vLLM's own loaders ----

def kernel_config(torch, **changes):
    from vllm.model_executor.kernels.linear import MPLinearLayerConfig
    from vllm.scalar_type import scalar_types
    changes["weight_type"] = getattr(scalar_types, changes.pop("type", "uint4"))
    return MPLinearLayerConfig(**{"full_weight_shape": (K, N), "partition_weight_shape": (K, N), "group_size": 64,
                                  "act_type": torch.float16, "zero_points": True, **changes})


@pytest.mark.parametrize("kernels, name", [
    ("KERNELS", "TilusLinearKernel"), ("NVFP4_KERNELS", "TilusNvFp4LinearKernel"),
    ("MXFP4_KERNELS", "TilusMxFp4LinearKernel")])
def test_kernel_is_the_last(vllm, kernels, name):
    from vllm.model_executor.kernels import linear
    from vllm.platforms.interface import PlatformEnum
    names = [kernel.__name__ for kernel in getattr(linear, "_POSSIBLE_" + kernels)[PlatformEnum.CUDA]]
    assert names[-1] == name and names.count(name) == 1


def test_what_the_kernel_takes(vllm):
    from tilusc._vllm_kernel import TilusLinearKernel
    taken = [("uint4", True), ("uint4b8", False), ("uint3b4", False), ("uint7", True), ("uint8b128", False)]
    for type_, zeros in taken:
        assert TilusLinearKernel.can_implement(kernel_config(vllm, type=type_, zero_points=zeros)) == (True, None)
    for changes in ({"zero_points": False}, {"type": "uint4b8"}, {"type": "int8", "zero_points": False},
                    {"type": "float4_e2m1f", "zero_points": False}, {"act_type": vllm.float32}, {"group_size": 48},
                    {"out_type": vllm.bfloat16}, {"partition_weight_shape": (100, N)}):
        possible, why = TilusLinearKernel.can_implement(kernel_config(vllm, **changes))
        assert not possible and why


@pytest.mark.parametrize("weights, group", [("u4", 64), ("i4", 0), ("i3", 32), ("u7", 128)])
def test_compressed_tensors(one_rank, monkeypatch, weights, group):
    """vLLM's scheme for pack-quantized loads what tilus-quantize writes, and takes the kernel."""
    from vllm.model_executor.kernels import linear
    from vllm.model_executor.layers.quantization.compressed_tensors.schemes import compressed_tensors_wNa16 as wna16
    from tilusc._vllm_kernel import TilusLinearKernel
    from tilusc.formats.write import compressed_tensors
    torch = one_rank
    monkeypatch.setitem(linear._POSSIBLE_KERNELS, linear.current_platform._enum, [TilusLinearKernel])
    weight = quantize(matrix(), Scheme(weights, group, "integer" if weights[0] == "u" else "none"))
    scheme = wna16.CompressedTensorsWNA16("group" if group else "channel", int(weights[1]), group or None,
                                          weights[0] == "i", "m")
    layer = torch.nn.Module()
    scheme.create_weights(layer, output_size=N, input_size=K, output_partition_sizes=[N], input_size_per_partition=K,
                          params_dtype=torch.float16, weight_loader=None)
    for name, stored in compressed_tensors("m", weight).items():
        bits = torch.from_numpy(stored.bits.view(np.int16) if stored.dtype == "F16" else stored.bits)
        getattr(layer, name[2:]).data.copy_(bits.view(torch.float16) if stored.dtype == "F16" else bits)
    scheme.process_weights_after_loading(layer)
    x, bias = torch.randn(3, K).half(), torch.randn(N).half()
    y = scheme.apply_weights(layer, x, None)
    assert near(torch, y, x, weight.dequantize())
    assert torch.allclose(scheme.apply_weights(layer, x, bias), y + bias, atol=0.02)


def test_gptq_order(one_rank):
    """Codes packed along the first dimension, and scales of [groups, n], as vLLM's loader of GPTQ has them."""
    from vllm.model_executor.parameter import GroupQuantScaleParameter, PackedvLLMParameter
    from tilusc._vllm_kernel import TilusLinearKernel
    from tilusc.formats.write import compressed_tensors
    torch, weight = one_rank, quantize(matrix(), Scheme("i4", 64))
    stored = compressed_tensors("m", weight)
    layer = torch.nn.Module()
    layer.qweight = PackedvLLMParameter(data=here(torch, stored["m.weight_packed"].bits.T), input_dim=0, output_dim=1,
                                        packed_dim=0, packed_factor=8, weight_loader=None)
    layer.scales = GroupQuantScaleParameter(data=here(torch, weight.scales.T).half(), input_dim=0, output_dim=1,
                                            weight_loader=None)
    kernel = TilusLinearKernel(kernel_config(torch, type="uint4b8", zero_points=False), "qweight", "scales")
    kernel.process_weights_after_loading(layer)
    x = torch.randn(3, K).half()
    assert near(torch, kernel.apply_weights(layer, x), x, weight.dequantize())


def test_awq(one_rank):
    """What vLLM's loader makes of AWQ's order: codes packed along the first dimension, zero points along the rows."""
    from vllm.model_executor.layers.quantization.auto_awq import _convert_awq_to_standard_format
    from vllm.model_executor.parameter import GroupQuantScaleParameter, PackedvLLMParameter
    from tilusc._vllm_kernel import TilusLinearKernel
    torch, weight = one_rank, quantize(matrix(), Scheme("u4", 64, "integer"))
    layer, cut = torch.nn.Module(), {"input_dim": 0, "output_dim": 1, "weight_loader": None}
    for name, rows in (("qweight", weight.codes.T), ("qzeros", weight.zeros.T)):
        nibbles = rows.astype(np.uint32).reshape(len(rows), -1, 8)[:, :, [0, 2, 4, 6, 1, 3, 5, 7]]
        words = (nibbles << np.arange(0, 32, 4, dtype=np.uint32)).sum(2, dtype=np.uint32).view(np.int32)
        parameter = PackedvLLMParameter(data=here(torch, words), packed_dim=1, packed_factor=8, **cut)
        layer.register_parameter(name, parameter)
    layer.scales = GroupQuantScaleParameter(data=here(torch, weight.scales.T).half(), **cut)
    _convert_awq_to_standard_format(layer, "qweight", "qzeros", 4)
    kernel = TilusLinearKernel(kernel_config(torch), "qweight", "scales", "qzeros")
    kernel.process_weights_after_loading(layer)
    x = torch.randn(3, K).half()
    assert near(torch, kernel.apply_weights(layer, x), x, weight.dequantize())


# ---- NVFP4 and MXFP4 ----

def fours(torch, group, scales):
    """Returns a random weight as vLLM's schemes load it: codes and bytes of scales from a range."""
    draw = np.random.default_rng(group).integers
    return [torch.from_numpy(draw(*bounds, (N, columns), np.uint8))
            for bounds, columns in (((0, 256), K // 2), (scales, K // group))]


def dequantized(codes, scales, factor=1.0):
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    values = table[np.stack([codes & 15, codes >> 4], -1).reshape(N, K)]
    return (values * np.repeat(scales, K // scales.shape[1], 1) * factor).astype(np.float32)


@pytest.fixture
def capable(one_rank, monkeypatch):
    """Has vLLM's platform be one that the kernels take, and no others."""
    from vllm.model_executor.kernels import linear
    from tilusc import _vllm_fours
    monkeypatch.setattr(type(_vllm_fours.current_platform), "has_device_capability", lambda *_, **__: True)
    for kernels, kernel in ((linear._POSSIBLE_NVFP4_KERNELS, _vllm_fours.TilusNvFp4LinearKernel),
                            (linear._POSSIBLE_MXFP4_KERNELS, _vllm_fours.TilusMxFp4LinearKernel)):
        monkeypatch.setitem(kernels, linear.current_platform._enum, [kernel])
    return one_rank


def loaded(torch, scheme, dtype, **tensors):
    """A layer of a scheme of compressed-tensors, with these tensors."""
    layer = torch.nn.Module()
    layer.params_dtype = dtype
    scheme.create_weights(layer, output_partition_sizes=[N], input_size_per_partition=K, params_dtype=dtype,
                          weight_loader=None)
    for name, value in tensors.items():
        getattr(layer, name).data.copy_(value)
    scheme.process_weights_after_loading(layer)
    return layer


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nvfp4(capable, dtype):
    from vllm.model_executor.layers.quantization.compressed_tensors.schemes import CompressedTensorsW4A4Fp4
    torch, dtype = capable, getattr(capable, dtype)
    codes, scales = fours(torch, 16, (0x30, 0x40))
    scales = scales.view(torch.float8_e4m3fn)
    scheme = CompressedTensorsW4A4Fp4()
    layer = loaded(torch, scheme, dtype, weight_packed=codes, weight_scale=scales,
                   weight_global_scale=torch.tensor([35.0]), input_global_scale=torch.tensor([100.0]))
    x = torch.randn(3, K).to(dtype)
    want = dequantized(codes.numpy(), scales.float().numpy(), 1 / 35)
    assert near(torch, scheme.apply_weights(layer, x), x, want)


def test_mxfp4(capable):
    from vllm.model_executor.layers.quantization.compressed_tensors.schemes import CompressedTensorsW4A4Mxfp4
    torch, (codes, scales) = capable, fours(capable, 32, (120, 124))
    scheme = CompressedTensorsW4A4Mxfp4()
    layer = loaded(torch, scheme, torch.float16, weight_packed=codes, weight_scale=scales)
    x, bias = torch.randn(3, K).half(), torch.randn(N).half()
    y = scheme.apply_weights(layer, x, bias)
    assert near(torch, y - bias, x, dequantized(codes.numpy(), 2.0 ** (scales.numpy().astype(int) - 127)))


# ---- models ----

@pytest.fixture(scope="module")
def one_process(vllm, tmp_path_factory):
    """vLLM's groups of processes, of this one alone."""
    from vllm import distributed
    from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config
    with set_current_vllm_config(VllmConfig(device_config=DeviceConfig(device=vllm.get_default_device().type))):
        distributed.init_distributed_environment(1, 0, f"file://{tmp_path_factory.mktemp('group')}/store", 0, "gloo")
        distributed.initialize_model_parallel(1, 1)
    yield vllm
    distributed.cleanup_dist_env_and_memory()


def causal_attention(torch):
    """Returns a class that stands for vLLM's Attention: of one sequence, and without a cache."""
    class Attention(torch.nn.Module):
        def __init__(self, num_heads, head_size, scale, num_kv_heads, **unused):
            super().__init__()
            self.heads, self.kv_heads, self.size, self.scale = num_heads, num_kv_heads, head_size, scale

        def forward(self, q, k, v):
            q, k, v = (x.view(len(x), heads, self.size).transpose(0, 1)[None]
                       for x, heads in ((q, self.heads), (k, self.kv_heads), (v, self.kv_heads)))
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale,
                                                                 enable_gqa=True)
            return y[0].transpose(0, 1).reshape(q.shape[2], -1)
    return Attention


def softmax_of_best(weights, indices, unused, logits, renormalize=False):
    """The router's operator, which vLLM has compiled."""
    best, chosen = logits.float().softmax(-1).topk(indices.shape[1])
    indices.copy_(chosen)
    return weights.copy_(best / best.sum(-1, keepdim=True) if renormalize else best), indices


@pytest.mark.parametrize("name", ["Llama", "Qwen3Moe", "Mixtral"])
def test_models(one_process, monkeypatch, tmp_path, name):
    """vLLM makes its model of what tilus-quantize wrote; only attention and the router's choice are torch's."""
    import tiny_models
    from tilusc.quantize_checkpoint import Job
    from vllm.config import CompilationConfig, DeviceConfig, ModelConfig, VllmConfig, set_current_vllm_config
    from vllm.forward_context import set_forward_context
    from vllm.model_executor.layers.fused_moe.router import fused_topk_router
    from vllm.model_executor.model_loader import get_model
    torch, codes = one_process, str(tmp_path / "codes")
    floats = tiny_models.save(tmp_path / "floats", name)
    Job(str(floats), codes, Scheme("u4", 32, "integer"), layout="tilus").run()
    module = {"Llama": "llama", "Qwen3Moe": "qwen3_moe", "Mixtral": "mixtral"}[name]
    monkeypatch.setattr(f"vllm.model_executor.models.{module}.Attention", causal_attention(torch))
    monkeypatch.setattr(fused_topk_router, "vllm_topk_softmax", softmax_of_best)
    made = VllmConfig(model_config=ModelConfig(codes, dtype="float16", skip_tokenizer_init=True, max_model_len=64),
                      device_config=DeviceConfig(device=torch.get_default_device().type),
                      compilation_config=CompilationConfig(mode=0, custom_ops=["none"]))
    with set_current_vllm_config(made), set_forward_context(None, made), torch.inference_mode():
        model = get_model(vllm_config=made)
        tokens = tiny_models.TOKENS[0].to(torch.get_default_device())
        have = model.compute_logits(model(tokens, torch.arange(len(tokens)), None, None))
    with torch.device("cpu"):
        want = tiny_models.dense(floats, tiny_models.of_checkpoint(codes))[0]
    assert tiny_models.near(have.float().cpu(), want)
    assert len([1 for module in model.modules() if hasattr(module, "packed")]) == (4 if name == "Llama" else 3)
