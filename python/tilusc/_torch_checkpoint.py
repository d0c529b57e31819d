"""Quantized checkpoints in torch: which tensors a matrix has, and the layer that they become. The plugins for
transformers and vLLM share it."""
from __future__ import annotations

import dataclasses
import fnmatch
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

import numpy as np
import torch

from . import torch_ops
from .errors import ArgumentError
from .formats.compressed_tensors import group_of, why_transformed
from .formats.gptq import override_of
from .formats.layer import matches, section
from .formats.memory import read_module
from .formats.safetensors import DTYPES
from .formats.types import is_exact, narrow, type_bits, widen
from .formats.weight import MatmulWeights, QuantizedWeight
from .formats.write import Stored
from .matmul import Problem, plan
from .nn import GATE_UP, QuantizedExperts, QuantizedLinear, experts_problems

METHOD = "tilus"        # quant_method of Tilus's own layout
_NAMES = {torch.uint8: "U8", torch.int8: "I8", torch.int32: "I32", torch.int64: "I64", torch.float16: "F16",
          torch.bfloat16: "BF16", torch.float32: "F32", torch.float8_e4m3fn: "F8_E4M3",
          torch.float8_e5m2: "F8_E5M2"}
_ACTIVATIONS = {torch.float16: "f16", torch.bfloat16: "bf16"}


# ---- which tensors there are ----

# Types and shapes by suffix. Scales are f32, which holds those of any type of a file exactly.
Expected = Dict[str, Tuple[torch.dtype, Tuple[int, ...]]]


def expected_tensors(config: Dict[str, Any], module: str, n: int, k: int) -> Expected:
    """Returns the tensors that a checkpoint of this quantization_config has for a matrix [n, k]; {}: the matrix is
    not quantized. ArgumentError: the quantization is of a kind that is not loaded."""
    return {} if is_ignored(config, module) else _kind(config)(config, module, n, k)


def is_ignored(config: Dict[str, Any], module: str) -> bool:
    """Tells whether the configuration leaves a module as it is."""
    if any(matches(x[3:], module) if x.startswith("re:") else x == module for x in _ignored(config)):
        return True
    if config.get("quant_method") == "gptq" and override_of(config, module) is None:
        return True
    inside = _quantized_inside(config)
    return inside is not None and not module.endswith(inside)


def _ignored(config: Dict[str, Any]) -> List[str]:
    """Returns names of modules that are not quantized, and patterns after "re:"."""
    if config.get("quant_method") in ("gptq", "awq"):       # parts of names
        parts = [*(config.get("modules_to_not_convert") or ()), *(() if config.get("lm_head") else ("lm_head",))]
        return ["re:.*" + re.escape(part) for part in parts]
    if config.get("quant_method") == "modelopt":            # whole names, or patterns of a shell
        return ["re:" + fnmatch.translate(x) for x in config.get("ignore") or config.get("exclude_modules") or ()]
    return config.get("ignore") or []


def _quantized_inside(config: Dict[str, Any]) -> Optional[Tuple[str, ...]]:
    """Returns ends of the names of all modules that GPTQ of optimum quantized; None: the configuration has none."""
    lists = config.get("modules_in_block_to_quantize") if config.get("quant_method") == "gptq" else None
    return tuple(name for names in lists for name in names) if lists else None


def check_method(config: Dict[str, Any]) -> None:
    """Raises ArgumentError where expected_tensors would for any matrix."""
    _kind(config)


def _kind(config: Dict[str, Any]) -> Callable[[Dict[str, Any], str, int, int], Expected]:
    known = {METHOD: _own, "compressed-tensors": _compressed, "gptq": _gptq, "awq": _awq, "modelopt": _modelopt}
    method = config.get("quant_method")
    if method not in known:
        raise ArgumentError(f"the checkpoint's quantization is {method!r}, not one of {', '.join(known)}")
    reason = why_transformed(config)
    if reason:
        raise ArgumentError(f"the checkpoint's {reason}")
    return known[method]


def _groups(group: Optional[int], k: int) -> int:
    return -(-k // group) if group and group > 0 else 1


def _own(config: Dict[str, Any], module: str, n: int, k: int) -> Expected:
    grid = n, _groups(config["group"], k)
    tensors = {"weight_codes": (torch.uint8, (n, -(-k * type_bits(config["weights"]) // 8))),
               "weight_scales": (torch.float32, grid), "weight_shape": (torch.int64, (2,))}
    if config["zeros"] != "none":
        tensors["weight_zeros"] = (torch.uint8 if config["zeros"] == "integer" else torch.float32, grid)
    return tensors


def check_cut(config: Dict[str, Any], module: str, k: int, whole: int) -> None:
    """Raises ArgumentError where a matrix of Tilus's own layout with `whole` columns cannot be cut into parts of k."""
    group = config["group"]
    if k != whole and (k * type_bits(config["weights"]) % 8 or group and k % group):
        raise ArgumentError(f"{module}: the {k} of {whole} columns of a rank are not whole bytes of codes and whole"
                            f" groups of {group}")


def _compressed(config: Dict[str, Any], module: str, n: int, k: int) -> Expected:
    group = group_of(config, module)
    if not group:
        return {}
    scheme, form = section(group, "weights"), group.get("format") or config.get("format")
    scales = n, _groups(scheme.get("group_size"), k)
    if form == "float-quantized" and not group.get("input_activations"):
        return {"weight": (torch.float8_e4m3fn, (n, k)), "weight_scale": (torch.float32, scales)}
    if form == "nvfp4-pack-quantized":
        return _nvfp4("weight_packed", "weight_global_scale", (1,), n, k)
    if form == "mxfp4-pack-quantized":
        return {"weight_packed": (torch.uint8, (n, k // 2)), "weight_scale": (torch.uint8, (n, _groups(32, k)))}
    if form != "pack-quantized":
        raise ArgumentError(f"{module} is {form} with activations of its own, not pack-quantized, nvfp4-pack-quantized,"
                            " mxfp4-pack-quantized, or float-quantized weights alone")
    bits = scheme.get("num_bits", 4)
    tensors = {"weight_packed": (torch.int32, (n, -(-k * bits // 32))), "weight_scale": (torch.float32, scales),
               "weight_shape": (torch.int64, (2,))}
    if not scheme.get("symmetric", True):
        tensors["weight_zero_point"] = torch.int32, (-(-n * bits // 32), scales[1])
    if scheme.get("actorder") in ("group", "dynamic"):
        tensors["weight_g_idx"] = torch.int32, (k,)
    return tensors


def _nvfp4(codes: str, factor: str, shape: Tuple[int, ...], n: int, k: int) -> Expected:
    return {codes: (torch.uint8, (n, k // 2)), "weight_scale": (torch.float8_e4m3fn, (n, _groups(16, k))),
            factor: (torch.float32, shape)}


def _modelopt(config: Dict[str, Any], module: str, n: int, k: int) -> Expected:
    if config.get("quant_algo") != "NVFP4":
        raise ArgumentError(f"the checkpoint of modelopt is {config.get('quant_algo')}, not NVFP4")
    return _nvfp4("weight", "weight_scale_2", (), n, k)


def _gptq(config: Dict[str, Any], module: str, n: int, k: int) -> Expected:
    settings = {**config, **(override_of(config, module) or {})}
    bits, groups = settings.get("bits", 4), _groups(settings.get("group_size"), k)
    return {"qweight": (torch.int32, (-(-k * bits // 32), n)), "qzeros": (torch.int32, (groups, -(-n * bits // 32))),
            "scales": (torch.float32, (groups, n)), "g_idx": (torch.int32, (k,))}


def _awq(config: Dict[str, Any], module: str, n: int, k: int) -> Expected:
    groups = _groups(config.get("group_size"), k)
    return {"qweight": (torch.int32, (k, n // 8)), "qzeros": (torch.int32, (groups, n // 8)),
            "scales": (torch.float32, (groups, n))}


# ---- what they become ----

def store(tensor: torch.Tensor) -> Stored:
    """Returns a tensor as a safetensors file has it, with bits in host memory; f32 as f16 or bf16 where that is exact,
    as the scales were in their file."""
    tensor = narrow_exactly(tensor)
    if tensor.dtype not in _NAMES:
        raise ArgumentError(f"a tensor is of {tensor.dtype}, which quantized checkpoints do not have")
    name, shape = _NAMES[tensor.dtype], tuple(tensor.shape)
    raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return Stored(name, shape, raw.view(DTYPES[name][1]).reshape(shape))


def narrow_exactly(tensor: torch.Tensor) -> torch.Tensor:
    """Returns f32 as f16 or else bf16 where that holds all values; other tensors as they are."""
    if tensor.dtype is torch.float32:
        for dtype in (torch.float16, torch.bfloat16):
            if torch.equal(tensor.to(dtype).float(), tensor):
                return tensor.to(dtype)
    return tensor


def activations_of(dtype: torch.dtype) -> str:
    """Returns the type of activations of a model. ArgumentError: products do not take it."""
    if dtype not in _ACTIVATIONS:
        raise ArgumentError(f"the model computes in {dtype}: products with packed weights take torch.float16 and"
                            " torch.bfloat16")
    return _ACTIVATIONS[dtype]


def dtype_of(activations: str) -> torch.dtype:
    """Returns the type of a model by that of its activations."""
    return {name: dtype for dtype, name in _ACTIVATIONS.items()}[activations]


def read_weight(tensors: Mapping[str, torch.Tensor], config: Dict[str, Any], module: str) -> QuantizedWeight:
    """Reads the matrix of a module from its tensors by suffix. FormatError: see formats.memory."""
    return read_module({name: store(tensor) for name, tensor in tensors.items()}, config, module)


def make_layer(weight: QuantizedWeight, dtype: torch.dtype, bias: Optional[torch.Tensor] = None,
               device: Union[int, str, None] = None) -> QuantizedLinear:
    """Packs a weight for a model that computes in `dtype`: activations, bias and result are of it."""
    known = weight.to_matmul()
    if bias is not None:
        known = known._replace(bias=bias.detach().float().cpu().numpy())
    name = activations_of(dtype)
    return QuantizedLinear.from_weight(known, activations=name, result=name, device=device)


def make_experts(weights: Mapping[str, List[MatmulWeights]], dtype: torch.dtype, device: Union[int, str],
                 **shape: Any) -> QuantizedExperts:
    """Packs experts, whose weights are given by part, for a model that computes in `dtype`; `shape` has n, k, experts
    and top of the problem of `gate_up`. ArgumentError: their types differ, or they have act-order."""
    parts = QuantizedExperts.PARTS
    known = with_one_scales_type([weight for part in parts for weight in weights[part]])
    one, count, name = known[0], shape["experts"], activations_of(dtype)
    group = max(weight.group for weight in known)       # 0 where one group is a whole row
    problem = Problem(one.weights, group=group, zeros=one.zeros_kind, activations=name, scales=one.scales_type,
                      result=name, **GATE_UP, **shape)
    packed = [_pack_experts(known[i * count:(i + 1) * count], its, device)
              for i, its in enumerate(experts_problems(problem).values())]
    return QuantizedExperts(*packed, problem, device)


def join_gates(weights: Mapping[str, List[MatmulWeights]]) -> Dict[str, List[MatmulWeights]]:
    """Returns experts with the rows of gate above those of up, from the parts gate, up and down. ArgumentError: gate
    and up differ in their types, or have act-order."""
    joined = [_join(*one) for one in zip(weights["gate"], weights["up"], weights["down"])]
    return {part: [one[i] for one in joined] for i, part in enumerate(QuantizedExperts.PARTS)}


def _join(gate: MatmulWeights, up: MatmulWeights, down: MatmulWeights) -> Tuple[MatmulWeights, MatmulWeights]:
    gate, up = with_one_scales_type([gate, up])
    if _form(gate) != _form(up) or gate.permutation is not None or up.permutation is not None:
        raise ArgumentError(f"of the experts some have act-order, or differ: gate is {_form(gate)}, up {_form(up)}")
    fields = ["codes", "scales"] + ["zeros"] * (gate.zeros is not None)
    rows = {field: np.concatenate([getattr(gate, field), getattr(up, field)]) for field in fields}
    return gate._replace(n=gate.n + up.n, **rows), _with_ratio(down, gate.factor, up.factor)


def _with_ratio(down: MatmulWeights, gate: Optional[np.ndarray], up: Optional[np.ndarray]) -> MatmulWeights:
    """Returns `down` with the ratio of up's factor to gate's, which multiplies both now, in its own, rounded to f32 at
    the end: sums of `down` are linear in what up gives, so that codes and scales stay. Numbers between the products
    are divided by the ratio, and keep their precision within their type's range. A gate of 0 makes all 0."""
    if gate is None or down.factor is None or gate[0] in (0, up[0]):
        return down
    return down._replace(factor=(down.factor * (up.astype(np.float64) / gate)).astype(np.float32))


def _form(weight: MatmulWeights) -> Tuple[Any, ...]:
    """Returns what must be the same of experts."""
    return weight.weights, weight.n, weight.k, weight.group or weight.k, weight.zeros_kind, weight.scales_type


def _pack_experts(weights: List[MatmulWeights], problem: Problem, device: Union[int, str]) -> torch.Tensor:
    """Packs the experts of one product, [experts, bytes]."""
    packed = []
    for weight in weights:
        group = problem.group or problem.k
        if _form(weight) != (problem.weights, problem.n, problem.k, group, problem.zeros, problem.scales) or \
                weight.permutation is not None:
            raise ArgumentError(f"of the experts some have act-order, or differ: {_form(weight)} beside {problem}")
        given = weight.codes, weight.scales, weight.zeros, weight.factor
        packed.append(torch.from_numpy(plan(problem, device).pack(*given)))
    return torch.stack(packed)


def with_one_scales_type(weights: List[MatmulWeights]) -> List[MatmulWeights]:
    """Returns experts with scales of bf16 where some have these and some f16, as each took what holds its own. Those
    that bf16 does not hold stay."""
    types = {weight.scales_type for weight in weights}
    return [_with_bf16(weight) for weight in weights] if types == {"bf16", "f16"} else weights


def _with_bf16(weight: MatmulWeights) -> MatmulWeights:
    fields = ["scales"] + ["zeros"] * (weight.zeros_kind == "float")
    values = {field: widen(getattr(weight, field), weight.scales_type) for field in fields}
    if not all(is_exact(value, "bf16") for value in values.values()):
        return weight
    return weight._replace(scales_type="bf16", **{field: narrow(value, "bf16") for field, value in values.items()})


class Product:
    """Multiplies by the packed weights of a layer, with a bias or without: both are packed alike. ArgumentError: the
    layer has act-order."""

    def __init__(self, layer: QuantizedLinear) -> None:
        if layer.permutation is not None:
            raise ArgumentError("weights with act-order are not served")
        self.plain = str(dataclasses.replace(layer.problem, bias=False))
        self.biased = str(dataclasses.replace(layer.problem, bias=True))

    def __call__(self, x: torch.Tensor, packed: torch.Tensor, bias: Optional[torch.Tensor]) -> torch.Tensor:
        return torch_ops.matmul(x, packed, self.plain if bias is None else self.biased, bias)


def device_of(tensor: torch.Tensor) -> Union[int, str]:
    """Returns the device, as plans name it, of a tensor."""
    return tensor.get_device() if tensor.is_cuda else "cpu"
