"""The quantizer of transformers, with random models of one or two layers: on a GPU where there is one, else on the CPU
engine. References compute in f32 in host memory."""
import dataclasses
import json

import numpy as np
import pytest
import tilusc.formats
from tiny_models import (MATRIX, TOKENS, dense, load, logits, near, of_checkpoint, random_model, restored, save, torch,
                         transformers)
from tilusc._torch_checkpoint import join_gates, with_one_scales_type
from tilusc.matmul import Problem, quantize
from tilusc.nn import QuantizedExperts, QuantizedLinear
from tilusc.quantize import Scheme, quantize as quantize_matrix
from tilusc.quantize_checkpoint import Job
from tilusc.transformers import TilusConfig, _expert_names, _has_floats, config_for

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MATRICES = 14       # of two layers


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    """A folder with a model of f16."""
    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=64, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2, attention_bias=True,
                                      tie_word_embeddings=False, initializer_range=0.1)
    model = transformers.LlamaForCausalLM(config)
    for name, value in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(value)
    model.half().save_pretrained(folder)
    return folder


def layers(model):
    return {name: module for name, module in model.named_modules() if isinstance(module, QuantizedLinear)}


def nearest(folder, weights="u4", group=128, zeros="integer"):
    """The matrices of a model, each to the nearest code."""
    from safetensors.torch import load_file
    made = {}
    for name, value in load_file(folder / "model.safetensors").items():
        if MATRIX.search(name):
            problem = Problem(weights, *value.shape, group, zeros)
            codes, scales, grid = quantize(value, problem)
            known = tilusc.formats.MatmulWeights(weights, *value.shape, group, "f16", zeros, codes, scales, grid,
                                                 None, None)
            made[name] = known.dequantize()
    return made


@pytest.mark.parametrize("weights, group, zeros", [("u4", 128, "integer"), ("f6e3m2", 32, "none"), ("u3", 64, "float")])
def test_floats_are_quantized_while_they_are_loaded(floats, weights, group, zeros):
    model = load(floats, quantization_config=TilusConfig(weights, group, zeros))
    assert len(layers(model)) == MATRICES and type(model.lm_head) is torch.nn.Linear
    layer = model.model.layers[0].self_attn.k_proj
    assert str(layer.problem) == f"weights={weights} n=64 k=128" + (f" group={group}" if group != 128 else "") + \
        (f" zeros={zeros}" if zeros != "none" else "") + " scales=f16 result=f16 bias=1"
    assert near(logits(model), dense(floats, nearest(floats, weights, group, zeros)))


@pytest.mark.parametrize("scheme", [Scheme("u4", 128, "integer"), Scheme("f6e3m2", 32), Scheme("u3", 64, "float"),
                                    Scheme("i5", 0, scales="bf16")], ids=lambda scheme: scheme.weights)
def test_own_layout(floats, tmp_path, scheme):
    """What tilus-quantize wrote is loaded without an argument; f16 scales serve a model of bf16."""
    Job(str(floats), str(tmp_path / "codes"), scheme, layout="tilus").run()
    want = dense(floats, of_checkpoint(tmp_path / "codes"))
    for dtype, share in ((torch.float16, 0.01), (torch.bfloat16, 0.05)):
        model = load(tmp_path / "codes", dtype=dtype)
        assert len(layers(model)) == MATRICES and model.dtype is dtype
        assert {layer.problem.result for layer in layers(model).values()} == {str(dtype)[6:].replace("loat", "")}
        assert near(logits(model), want, share)


@pytest.mark.parametrize("scheme", [Scheme("u4", 128, "integer"), Scheme("i3", 64), Scheme("f8e4m3", 0)],
                         ids=lambda scheme: scheme.weights)
def test_compressed_tensors(floats, tmp_path, scheme):
    Job(str(floats), str(tmp_path), scheme).run()
    config = config_for(tmp_path)
    assert config.quantization_config["source"]["quant_method"] == "compressed-tensors"
    model = load(tmp_path, config=config)
    assert {layer.problem.weights for layer in layers(model).values()} == {scheme.weights}
    assert near(logits(model), dense(floats, of_checkpoint(tmp_path)))


def as_gptq(weight):
    """Tensors of version 1, with columns of a group far from each other (act-order)."""
    from tilusc.formats.bits import pack_rows
    order = np.random.default_rng(weight.n).permutation(weight.k)
    codes = np.empty_like(weight.codes)
    codes[:, order] = weight.codes
    groups = np.empty(weight.k, np.int32)
    groups[order] = np.arange(weight.k) // weight.group
    zeros = (weight.zeros.T.astype(np.uint8) - 1) & 15
    return {"qweight": pack_rows(codes, 4, 4).view(np.int32).T, "qzeros": pack_rows(zeros, 4, 4).view(np.int32),
            "scales": weight.scales.T.astype(np.float16), "g_idx": groups}


def as_awq(weight):
    """Tensors packed along n, in the order of nibbles that AWQ has."""
    from tilusc.formats.bits import pack_rows

    def pack(rows):
        rows = rows.astype(np.uint8).reshape(len(rows), -1, 8)[:, :, [0, 2, 4, 6, 1, 3, 5, 7]]
        return pack_rows(rows.reshape(len(rows), -1), 4, 4).view(np.int32)
    return {"qweight": pack(weight.codes.T), "qzeros": pack(weight.zeros.T),
            "scales": weight.scales.T.astype(np.float16)}


def write_checkpoint(floats, folder, make, left="nothing", **quantization):
    """Writes the model's matrices as `make` has them, but for those whose names have `left`."""
    from safetensors.torch import load_file, save_file
    tensors = load_file(floats / "model.safetensors")
    for name in [x for x in tensors if MATRIX.search(x) and left not in x]:
        weight = quantize_matrix(tensors.pop(name).float().numpy(), Scheme("u4", 64, "integer"))
        for suffix, value in make(weight).items():
            tensors[name.replace("weight", suffix)] = \
                value if torch.is_tensor(value) else torch.from_numpy(np.ascontiguousarray(value))
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((floats / "config.json").read_text())
    config["quantization_config"] = {"bits": 4, "group_size": 64, "desc_act": True, "sym": False, "version": "gemm",
                                     "zero_point": True, **quantization}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("method, make", [("gptq", as_gptq), ("awq", as_awq)])
def test_gptq_and_awq(floats, tmp_path, method, make):
    write_checkpoint(floats, tmp_path, make, quant_method=method)
    model = load(tmp_path, config=config_for(tmp_path))
    moved = {layer.permutation is not None for layer in layers(model).values()}
    assert len(layers(model)) == MATRICES and moved == {method == "gptq"}
    assert near(logits(model), dense(floats, of_checkpoint(tmp_path)))
    if method == "gptq":
        with pytest.raises(tilusc.ArgumentError, match="q_proj has act-order"):
            model.save_pretrained(tmp_path / "again")


def random_fours(weight, group, scales):
    """Returns two random codes of f4e2m1 a byte, the bytes of as random scales, and a number from 0.8 to 1.25. They are
    others for each matrix."""
    random = np.random.default_rng(weight.codes.sum(dtype=np.int64))
    return (random.integers(0, 256, (weight.n, weight.k // 2), np.uint8),
            random.integers(*scales, (weight.n, weight.k // group), np.uint8), random.uniform(0.8, 1.25))


def as_nvfp4(weight):
    """Tensors of compressed-tensors, whose global scale divides, with that of activations."""
    codes, scales, factor = random_fours(weight, 16, (0x30, 0x40))
    return {"weight_packed": codes, "weight_scale": torch.from_numpy(scales).view(torch.float8_e4m3fn),
            "weight_global_scale": torch.tensor([35 * factor]).float(), "input_global_scale": torch.tensor([100.0])}


def as_modelopt(weight):
    codes, scales, factor = random_fours(weight, 16, (0x30, 0x40))
    return {"weight": codes, "weight_scale": torch.from_numpy(scales).view(torch.float8_e4m3fn),
            "weight_scale_2": torch.tensor(0.03 * factor).float(), "input_scale": torch.tensor(0.01)}


def as_mxfp4(weight):
    codes, scales, _ = random_fours(weight, 32, (120, 124))
    return {"weight_packed": codes, "weight_scale": scales}


def compressed(form, **weights):
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"], "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "symmetric": True, **weights}}}}


@pytest.mark.parametrize("make, group, scales, quantization", [
    (as_nvfp4, 16, "f8e4m3", compressed("nvfp4-pack-quantized", strategy="tensor_group", group_size=16)),
    (as_mxfp4, 32, "f16", compressed("mxfp4-pack-quantized", strategy="group", group_size=32)),
    (as_modelopt, 16, "f8e4m3", {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_*", "*.embed*"]})],
    ids=["nvfp4", "mxfp4", "modelopt"])
def test_floats_of_4_bits(floats, tmp_path, make, group, scales, quantization):
    write_checkpoint(floats, tmp_path, make, **quantization)
    model, info = load(tmp_path, config=config_for(tmp_path), output_loading_info=True)
    assert not info["unexpected_keys"] and not info["missing_keys"]
    known = {(x.problem.weights, x.problem.group, x.problem.scales) for x in layers(model).values()}
    assert len(layers(model)) == MATRICES and known == {("f4e2m1", group, scales)}
    assert near(logits(model), dense(floats, of_checkpoint(tmp_path)))
    model.save_pretrained(tmp_path / "packed")
    assert torch.equal(logits(load(tmp_path / "packed")), logits(model))


def test_other_kinds_of_modelopt_are_refused(floats, tmp_path):
    write_checkpoint(floats, tmp_path, as_modelopt, quant_method="modelopt", quant_algo="NVFP4_AWQ")
    with pytest.raises(tilusc.ArgumentError, match="modelopt is NVFP4_AWQ, not NVFP4"):
        load(tmp_path, config=config_for(tmp_path))


@pytest.mark.parametrize("said", [
    {"dynamic": {"+:.*up_proj": {"bits": 4}, r"-:.*\.down_proj$": {}}},
    {"modules_in_block_to_quantize": [[f"self_attn.{x}_proj" for x in "qkvo"], ["mlp.gate_proj", "mlp.up_proj"]]}],
    ids=lambda said: next(iter(said)))
def test_gptq_with_matrices_of_floats(floats, tmp_path, said):
    write_checkpoint(floats, tmp_path, as_gptq, left="down_proj", quant_method="gptq", **said)
    model = load(tmp_path, config=config_for(tmp_path))
    assert len(layers(model)) == MATRICES - 2 and not any("down_proj" in name for name in layers(model))
    stays = {name: value.float().numpy() for name, value in load(floats).state_dict().items()
             if name.endswith("down_proj.weight")}
    assert near(logits(model), dense(floats, {**of_checkpoint(tmp_path), **stays}))


def test_what_transformers_keeps_in_f32_stays(floats, monkeypatch):
    """Patterns of transformers are ends of names, too."""
    monkeypatch.setattr(transformers.LlamaForCausalLM, "_keep_in_fp32_modules", ["down_proj"])
    monkeypatch.setattr(transformers.LlamaForCausalLM, "_keep_in_fp32_modules_strict", ["layers.1.mlp.up_proj"])
    model = load(floats, quantization_config=TilusConfig("u4"))
    stays = [*(layer.mlp.down_proj for layer in model.model.layers), model.model.layers[1].mlp.up_proj]
    assert len(layers(model)) == MATRICES - len(stays)
    assert all(type(module) is torch.nn.Linear and module.weight.dtype is torch.float32 for module in stays)


def test_saved_as_packed(floats, tmp_path):
    model = load(floats, quantization_config=TilusConfig("u4", ignore=["model.layers.1.mlp.down_proj", "lm_head"]))
    assert len(layers(model)) == MATRICES - 1
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())["quantization_config"]
    assert config["quant_method"] == "tilus" and len(config["packed"]) == MATRICES - 1
    again = load(tmp_path, dtype=torch.bfloat16)        # but it was packed for f16
    assert again.dtype is torch.float16
    assert layers(again).keys() == layers(model).keys() and torch.equal(logits(again), logits(model))


def test_device_map(floats, tmp_path):
    pytest.importorskip("accelerate")
    model = load(floats, quantization_config=TilusConfig("u2"), device_map=DEVICE)
    model.save_pretrained(tmp_path)
    assert torch.equal(logits(load(tmp_path, device_map="auto")), logits(model))
    with pytest.raises(ValueError, match="disk"):
        load(tmp_path, device_map={"": "disk"})


def change(folder, edit):
    """Changes the tensors of a folder's first file that has matrices."""
    from safetensors.torch import load_file, save_file
    for path in sorted(folder.glob("*.safetensors")):
        tensors = load_file(path)
        if edit(tensors):
            return save_file(tensors, path, {"format": "pt"})
    raise AssertionError("nothing was changed")


def test_packed_for_another_gpu_is_refused(floats, tmp_path):
    load(floats, quantization_config=TilusConfig("u4")).save_pretrained(tmp_path)

    def edit(tensors):
        tensors["model.layers.1.self_attn.q_proj.packed"][-256:] += 1
        return True
    change(tmp_path, edit)
    with pytest.raises(tilusc.Error, match="packed|identity|weights"):
        load(tmp_path)


def test_missing_tensor_is_said(floats, tmp_path):
    Job(str(floats), str(tmp_path), Scheme("u4", 128, "integer"), layout="tilus").run()
    change(tmp_path, lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight_zeros", None) is not None)
    with pytest.raises(tilusc.formats.FormatError, match="layers.1.mlp.up_proj.weight_zeros: there is no such tensor"):
        load(tmp_path)


def test_wrong_shape_is_said(floats, tmp_path):
    Job(str(floats), str(tmp_path), Scheme("u4", 128, "integer"), layout="tilus").run()

    def edit(tensors):
        name = "model.layers.0.mlp.up_proj.weight_scales"
        if name in tensors:
            tensors[name] = tensors[name][:-1].contiguous()
        return name in tensors
    change(tmp_path, edit)
    with pytest.raises(tilusc.formats.FormatError, match="weight_scales"):
        load(tmp_path)


def test_configurations():
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING
    assert AUTO_QUANTIZATION_CONFIG_MAPPING["tilus"] is TilusConfig and "tilus" in AUTO_QUANTIZER_MAPPING
    config = TilusConfig("i6", 64, ignore=["lm_head"])
    assert config.to_dict() == {"quant_method": "tilus", "version": 1, "weights": "i6", "group": 64, "zeros": "none",
                                "ignore": ["lm_head"]}
    assert TilusConfig.from_dict(config.to_dict()).to_dict() == config.to_dict()
    for wrong in ({"weights": "u9"}, {"group": 40}, {"zeros": "none"}, {"version": 2}, {"quant_method": "gptq"}):
        with pytest.raises(ValueError):
            TilusConfig(**wrong)
    with pytest.raises(ValueError, match=r"'\(' is no pattern"):
        TilusConfig(ignore=["lm_head", "re:("])


def test_other_quantizations_are_refused(floats, tmp_path):
    config = json.loads((floats / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "quantization_config": {"quant_method": "hqq"}}))
    with pytest.raises(tilusc.ArgumentError, match="'hqq', not one of tilus, compressed-tensors, gptq, awq, modelopt"):
        config_for(tmp_path)


def test_rotations_are_refused(floats, tmp_path):
    """Their logits were those of weights that are rotated alone."""
    Job(str(floats), str(tmp_path), Scheme("i8", 64)).run()
    config = json.loads((tmp_path / "config.json").read_text())
    places = [{"targets": ["re:.*up_proj$"], "location": place} for place in ("weight_input", "input")]
    for applied in (places[:1], places):
        transforms = {"config_groups": {"v": {"type": "hadamard", "apply": applied}}}
        config["quantization_config"]["transform_config"] = transforms
        (tmp_path / "config.json").write_text(json.dumps(config))
        if applied is not places:
            assert config_for(tmp_path).quantization_config["quant_method"] == "tilus"
    with pytest.raises(tilusc.ArgumentError, match="the checkpoint's transform_config rotates activations, at input"):
        config_for(tmp_path)


def test_f32_becomes_bf16(floats):
    model = load(floats, dtype=torch.float32, quantization_config=TilusConfig("u8"))
    assert model.dtype is torch.bfloat16 and near(logits(model), logits(load(floats)), 0.05)


# ---- experts ----

def experts_of(model):
    return model.model.layers[0].mlp.experts


@pytest.mark.parametrize("name", ["Qwen3Moe", "Mixtral"])
def test_experts(tmp_path, name):
    folder = save(tmp_path / "floats", name)
    model = load(folder, quantization_config=TilusConfig("u4"))
    assert type(experts_of(model)) is QuantizedExperts and len(layers(model)) == 4
    assert near(logits(model), dense(folder, nearest(folder)))
    model.save_pretrained(tmp_path / "packed")
    again = load(tmp_path / "packed")
    assert type(experts_of(again)) is QuantizedExperts and torch.equal(logits(again), logits(model))


@pytest.mark.parametrize("said", [{"ignore": ["lm_head", "re:.*experts"]}, {"act": "gelu"}], ids=["ignored", "gelu"])
def test_experts_that_stay(tmp_path, said):
    folder = save(tmp_path, "Qwen3Moe", hidden_act=said.pop("act", "silu"))
    model = load(folder, quantization_config=TilusConfig("u8", **said))
    assert experts_of(model).gate_up_proj.dtype is torch.float16 and len(layers(model)) == 4
    assert near(logits(model), logits(load(folder, dtype=torch.float32)), 0.05)


def job(scheme, **layout):
    return lambda folder, to: Job(str(folder), str(to), scheme, **layout).run()


def nvfp4(folder, to):
    to.mkdir()
    write_checkpoint(folder, to, as_nvfp4, **compressed("nvfp4-pack-quantized", strategy="tensor_group", group_size=16))


def mxfp4(folder, to):
    to.mkdir()
    write_checkpoint(folder, to, as_mxfp4, **compressed("mxfp4-pack-quantized", strategy="group", group_size=32))


CODES = {"tilus": job(Scheme("u3", 32, "float"), layout="tilus"),
         "compressed-tensors": job(Scheme("u4", 64, "integer")), "nvfp4": nvfp4, "mxfp4": mxfp4}


@pytest.mark.parametrize("name", ["Qwen3Moe", "Mixtral"])
@pytest.mark.parametrize("make", CODES.values(), ids=CODES)
def test_experts_of_codes(tmp_path, name, make):
    """Tensors of experts keep the names that they have in files."""
    folder, codes = save(tmp_path / "floats", name), tmp_path / "codes"
    make(folder, codes)
    model, info = load(codes, config=config_for(codes), output_loading_info=True)
    assert not info["unexpected_keys"] and not info["missing_keys"]
    assert type(experts_of(model)) is QuantizedExperts and len(layers(model)) == 4
    assert near(logits(model), dense(folder, of_checkpoint(codes)))


@pytest.mark.parametrize("where, parts, inside, floats", [
    ("mlp", ("gate_proj", "up_proj", "down_proj"), ["mlp.experts.1.down_proj"], False),
    ("block_sparse_moe", ("w1", "w3", "w2"), ["block_sparse_moe.experts.0.w1"], False),
    ("block_sparse_moe", ("w1", "w3", "w2"), ["mlp.experts.0.w1", "self_attn.q_proj"], True)])
def test_experts_are_found_by_their_names(where, parts, inside, floats):
    name = "Qwen3Moe" if where == "mlp" else "Mixtral"
    names = _expert_names(random_model(name), ["model.layers.0.mlp.experts"])["model.layers.0.mlp.experts"]
    experts = f"model.layers.0.{where}.experts.*"
    assert names == {part: f"{experts}.{its}" for part, its in zip(("gate", "up", "down"), parts)}
    source = {"quant_method": "gptq", "bits": 4, "group_size": 64, "modules_in_block_to_quantize": [inside]}
    assert _has_floats(source, names, 2) is floats


def test_scales_of_experts_get_one_type():
    def weight(type_, value):
        scales = tilusc.formats.types.narrow(np.full((8, 1), value, np.float32), type_)
        codes = np.zeros(512, np.uint8)
        return tilusc.formats.MatmulWeights("u4", 8, 128, 128, type_, "none", codes, scales, None, None, None)
    small, large = weight("bf16", 2.0 ** -127), weight("f16", 0.5)
    alike = with_one_scales_type([small, large])
    assert [one.scales_type for one in alike] == ["bf16", "bf16"]
    assert np.all(tilusc.formats.types.widen(alike[1].scales, "bf16") == 0.5)
    odd = weight("f16", 1 + 2.0 ** -10)
    assert with_one_scales_type([small, odd])[1] is odd and with_one_scales_type([large, odd])[0] is large


def matmul_weight(n=8, k=128, factor=None, zeros="none", seed=0):
    """Returns random codes of u4, and scales of f8e4m3 beside a factor or else of f16."""
    random = np.random.default_rng(seed)
    scales = tilusc.formats.types.narrow(random.choice([0.5, 1, 1.5], (n, k // 16)).astype(np.float32),
                                         "f16" if factor is None else "f8e4m3")
    return tilusc.formats.MatmulWeights(
        "u4", n, k, 16, "f16" if factor is None else "f8e4m3", zeros, random.integers(0, 256, n * k // 2, np.uint8),
        scales, random.integers(0, 16, (n, k // 16), np.uint8) if zeros == "integer" else None, None, None,
        factor=None if factor is None else np.array([factor], np.float32))


@pytest.mark.parametrize("gate, up, down", [(None, None, None), (0.5, 0.5, 3.0), (0.5, 0.125, 3.0), (0.3, 0.7, 0.1),
                                            (0.0, 0.7, 0.1), (0.3, 0.0, 0.1)])
def test_gates_lie_above(gate, up, down):
    """Codes, scales and zero points stay; up times down is the same where gate and up have other factors."""
    zeros = "integer" if gate is None else "none"
    parts = [matmul_weight(factor=gate, zeros=zeros), matmul_weight(factor=up, zeros=zeros, seed=1),
             matmul_weight(128, 16, down, zeros, 2)]
    joined = join_gates({part: [one] for part, one in zip(("gate", "up", "down"), parts)})
    both, last = joined["gate_up"][0], joined["down"][0]
    assert both.n == 16 and np.array_equal(both.dequantize()[:8], parts[0].dequantize())
    upper = parts[1] if gate is None else parts[1]._replace(factor=parts[0].factor)
    assert np.array_equal(both.dequantize()[8:], upper.dequantize())
    assert np.array_equal(last.codes, parts[2].codes) and np.array_equal(last.scales, parts[2].scales)
    if gate:
        assert last.factor.dtype == np.float32 and last.factor * np.float64(gate) == pytest.approx(up * down, rel=2e-7)
    if gate == 0.5:
        assert last.factor == 3 * up / gate


def test_other_gates_than_ups_are_refused():
    with pytest.raises(tilusc.ArgumentError, match="'none', 'f16'.*, up .*'integer', 'f16'"):
        join_gates({"gate": [matmul_weight()], "up": [matmul_weight(zeros="integer")],
                    "down": [matmul_weight(128, 16)]})


def test_experts_saved_by_earlier_versions_are_refused(tmp_path):
    folder = save(tmp_path / "floats", "Qwen3Moe")
    load(folder, quantization_config=TilusConfig("u4")).save_pretrained(tmp_path / "packed")
    path = tmp_path / "packed" / "config.json"
    config = json.loads(path.read_text())
    packed = config["quantization_config"]["packed"]
    name = "model.layers.0.mlp.experts"
    known = Problem.parse(packed[name])
    packed[name] = str(dataclasses.replace(known, n=known.n // 2, function="none", gated=False))     # that of `up`
    assert known.gated and "gated" not in packed[name]
    path.write_text(json.dumps(config))
    with pytest.raises(tilusc.ArgumentError, match="pack again what earlier versions packed apart"):
        load(tmp_path / "packed")


def test_other_experts_of_codes_are_refused(tmp_path):
    folder = save(tmp_path, "Qwen3Moe", hidden_act="gelu")
    config = transformers.AutoConfig.from_pretrained(folder)
    config.quantization_config = TilusConfig("u4").to_dict()
    with pytest.raises(tilusc.ArgumentError, match="layers.0.mlp.experts has experts that compute otherwise"):
        load(folder, config=config)


# ---- text ----

@pytest.mark.parametrize("name", ["Llama", "Qwen3Moe", "Mixtral"])
@pytest.mark.parametrize("form", ["u4", "nvfp4", "mxfp4"])
def test_greedy_tokens(floats, tmp_path, name, form):
    """Each token that generate takes, with its cache, is the reference's, or one as good within rounding."""
    folder = floats if name == "Llama" else save(tmp_path / "floats", name)
    if form == "u4":
        model, matrices = load(folder, quantization_config=TilusConfig("u4")), nearest(folder)
    else:
        CODES[form](folder, tmp_path / "codes")
        model = load(tmp_path / "codes", config=config_for(tmp_path / "codes"))
        matrices = of_checkpoint(tmp_path / "codes")
    prompt = TOKENS.to(model.device)
    text = model.generate(prompt, max_new_tokens=12, do_sample=False, attention_mask=torch.ones_like(prompt),
                          pad_token_id=0, eos_token_id=[]).cpu()
    with torch.inference_mode():
        want = restored(folder, tmp_path, matrices)(text).logits[:, TOKENS.shape[1] - 1:-1]
    taken = want.gather(2, text[:, TOKENS.shape[1]:, None])[..., 0]
    assert text.shape[1] == TOKENS.shape[1] + 12 and (want.amax(2) - taken <= 0.01 * want.std()).all()
