"""Models of transformers with packed weights: importing this registers a quantizer, "tilus".

    from tilusc.transformers import TilusConfig
    model = AutoModelForCausalLM.from_pretrained(name, dtype="auto", quantization_config=TilusConfig("u4"))

quantizes the matrices of a checkpoint of floats while it is loaded. What tilus-quantize wrote in Tilus's own layout
is loaded without an argument; `config_for` has compressed-tensors, GPTQ, AWQ and ModelOpt's NVFP4 run by Tilus.
docs/python.md has more."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import torch
from transformers import AutoConfig
from transformers.activations import ACT2FN
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import ConversionOps, WeightConverter, WeightRenaming
from transformers.integrations.moe import _default_apply_gate
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.quantizers.quantizers_utils import should_convert_module
from transformers.utils import logging
from transformers.utils.quantization_config import QuantizationConfigMixin

from ._torch_checkpoint import (METHOD, Expected, activations_of, check_method, device_of, dtype_of, expected_tensors,
                                is_ignored, join_gates, make_experts, make_layer, read_weight)
from .errors import ArgumentError
from .formats.errors import FormatError
from .formats.layer import check_patterns
from .formats.types import type_bits
from .formats.weight import QuantizedWeight
from .formats.write import VERSION
from .matmul import Problem, default_device, plan, quantize
from .nn import GATE_UP, QuantizedExperts, QuantizedLinear, experts_problems
from .quantize import Scheme
from .quantize_checkpoint import IGNORE

__all__ = ["TilusConfig", "config_for"]

logger = logging.get_logger(__name__)


@register_quantization_config(METHOD)
class TilusConfig(QuantizationConfigMixin):
    """How matrices are quantized: `quantization_config` of from_pretrained and of config.json.

    `weights`, `group` and `zeros` are those of `tilus-quantize`: zero points are by default integers for u1 to u8, and
    none for others. `ignore` has modules that stay as they are: names, or patterns after "re:"; by default the head,
    embeddings and routers. `clip_steps` > 0 looks for the range of each group with the least squared error. Other
    fields are written by save_pretrained and by config_for. ValueError: no such type, group or zero points, or a pattern
    that is none."""

    def __init__(self, weights: str = "u4", group: int = 128, zeros: Optional[str] = None,
                 ignore: Optional[Sequence[str]] = None, clip_steps: int = 0, version: int = VERSION,
                 source: Optional[Dict[str, Any]] = None, packed: Optional[Dict[str, str]] = None,
                 quant_method: str = METHOD) -> None:
        if quant_method != METHOD or version != VERSION:
            raise ValueError(f"quant_method is {quant_method} of version {version}, not {METHOD} of version {VERSION}")
        zeros = zeros or ("integer" if weights[:1] == "u" else "none")
        Scheme(weights, group, zeros)       # raises
        self.quant_method, self.version = METHOD, VERSION
        self.weights, self.group, self.zeros, self.clip_steps = weights, group, zeros, clip_steps
        self.ignore = [*IGNORE] if ignore is None else list(ignore)
        check_patterns(self.ignore)
        self.source, self.packed = source, packed

    def to_dict(self) -> Dict[str, Any]:
        """Returns what config.json has: the fields of docs/quantize.md, and `source` or `packed` where there is one."""
        optional = ("clip_steps", "source", "packed")
        return {name: value for name, value in super().to_dict().items() if name not in optional or value}


def config_for(name: str, **options: Any) -> Any:
    """Returns AutoConfig.from_pretrained(name, **options) of a checkpoint of compressed-tensors, GPTQ, AWQ or ModelOpt,
    changed so that Tilus runs it: AutoModelForCausalLM.from_pretrained(name, config=config_for(name)).
    ArgumentError: it is of none of them."""
    config = AutoConfig.from_pretrained(name, **options)
    source = getattr(config, "quantization_config", None) or {}
    if source.get("quant_method") != METHOD:
        check_method(source)
        config.quantization_config = {"quant_method": METHOD, "source": source}
    return config


class _Tensors(torch.nn.Module):
    """Stands for a Linear until its tensors are there as the checkpoint has them."""

    def __init__(self, expected: Expected, bias: Optional[torch.nn.Parameter]) -> None:
        super().__init__()
        for name, (dtype, shape) in expected.items():
            self.register_buffer(name, torch.empty(shape, dtype=dtype, device="meta"))
        self.register_parameter("bias", bias)


class _Experts(torch.nn.Module):
    """Stands for experts until their tensors are there as the checkpoint has them, as 0.gate_proj.weight_scale.
    `names` has, by part (gate, up and down), what the checkpoint calls the matrices, with * for an expert's number."""

    def __init__(self, source: Dict[str, Any], names: Dict[str, str], shape: Dict[str, Any]) -> None:
        super().__init__()
        self.names, self.shape = names, shape
        for number in range(shape["experts"]):
            self.add_module(str(number), torch.nn.Module())
            for part, name in names.items():
                self._expect(source, name.replace("*", str(number)), part == "down")

    def _expect(self, source: Dict[str, Any], name: str, down: bool) -> None:
        size = self.shape["n"] // 2, self.shape["k"]
        expected = expected_tensors(source, name, *(size[::-1] if down else size))
        if not expected:
            raise ArgumentError(f"{name} is not quantized, but others of these experts are")
        number, part = name.split(".")[-2:]
        self.get_submodule(number).add_module(part, _Tensors(expected, None))

    def tensors(self, part: str) -> List[Tuple[str, _Tensors]]:
        """Returns what stands for a part of each expert, with its name in the checkpoint."""
        names = [self.names[part].replace("*", str(number)) for number in range(self.shape["experts"])]
        return [(name, self.get_submodule(".".join(name.split(".")[-2:]))) for name in names]


class _Pack(ConversionOps):
    """Makes the float weights of a Linear or of experts packed bytes, while they are loaded."""

    def __init__(self, quantizer: "TilusQuantizer") -> None:
        self.quantizer = quantizer

    def convert(self, input_dict: Dict[str, Any], full_layer_name: str = "", **unused: Any) -> Dict[str, torch.Tensor]:
        value = next(iter(input_dict.values()))
        return {full_layer_name: self.quantizer.pack(full_layer_name, value[0] if isinstance(value, list) else value)}


@register_quantizer(METHOD)
class TilusQuantizer(HfQuantizer):
    """Puts QuantizedLinear in place of nn.Linear: of floats while they are loaded, of codes after that, and of what
    save_pretrained wrote, which is packed already. Experts become QuantizedExperts likewise."""

    quantization_config: TilusConfig

    def __init__(self, quantization_config: TilusConfig, **options: Any) -> None:
        super().__init__(quantization_config, **options)
        self.problems: Dict[str, Problem] = {}      # of matrices that are floats or packed bytes when they are loaded
        self.dtype = torch.bfloat16

    def validate_environment(self, *args: Any, **options: Any) -> None:
        device_map = options.get("device_map")
        if isinstance(device_map, dict) and "disk" in device_map.values():
            raise ValueError("packed weights stay in memory: device_map has the disk")

    def update_dtype(self, dtype: torch.dtype) -> torch.dtype:
        for text in (self.quantization_config.packed or {}).values():       # all are for one type
            dtype = dtype_of(Problem.parse(text).activations)
            break
        if dtype not in (torch.float16, torch.bfloat16):
            logger.warning_once(f"products with packed weights take no {dtype}: the model computes in torch.bfloat16")
            dtype = torch.bfloat16
        self.dtype = dtype
        return dtype

    def update_device_map(self, device_map: Any) -> Any:
        if device_map is None and torch.cuda.is_available():
            return {"": torch.cuda.current_device()}
        return device_map

    @property
    def quantized_element_size(self) -> float:
        return type_bits(self.quantization_config.weights) / 8

    # ---- before loading ----

    def _process_model_before_weight_loading(self, model: Any, **options: Any) -> Any:
        config = self.quantization_config
        if config.packed:
            self._expect_packed(model, options.get("device_map"))
        elif self.pre_quantized:
            self._expect_tensors(model, config.source or config.to_dict())
        else:
            self._expect_floats(model)
        return model

    def _expect_packed(self, model: Any, device_map: Any) -> None:
        device = "cpu" if _is_host(device_map) else default_device()
        for name, text in self.quantization_config.packed.items():
            problem = self.problems[name] = Problem.parse(text)
            if problem.experts:
                sizes = [plan(its, device).packed_size for its in experts_problems(problem).values()]
                packed = [_meta(problem.experts, size) for size in sizes]
                model.set_submodule(name, QuantizedExperts(*packed, problem, device))
                continue
            bias = torch.empty(problem.n, dtype=self.dtype, device="meta") if problem.bias else None
            packed = _meta(plan(problem, device).packed_size)
            model.set_submodule(name, QuantizedLinear(problem, packed, bias, None, device))

    def _expect_tensors(self, model: Any, source: Dict[str, Any]) -> None:
        mixtures = _mixtures(model)
        known = {name: module for name, module in model.named_modules() if _has_experts(module)}
        names = _expert_names(model, known)
        floats = [name for name, module in known.items() if _has_floats(source, names[name], len(module.gate_up_proj))]
        if 0 < len(floats) < len(known):
            raise ArgumentError(f"of the model's experts some are quantized, and some, as {floats[0]}, are not")
        for name in known if not floats else ():
            if name not in mixtures:
                raise ArgumentError(f"{name} has experts that compute otherwise than tilusc.nn.QuantizedExperts")
            model.set_submodule(name, _Experts(source, names[name], mixtures[name]))
        for name, linear in _linears(model).items():
            expected = expected_tensors(source, name, linear.out_features, linear.in_features)
            if expected:
                model.set_submodule(name, _Tensors(expected, linear.bias))
        model._keys_to_ignore_on_load_unexpected.add(r"\.input_(global_)?scale$")       # activations are not quantized

    def _expect_floats(self, model: Any) -> None:
        config = self.quantization_config
        wide = [*(model._keep_in_fp32_modules or ()), *(model._keep_in_fp32_modules_strict or ())]
        kept = self.get_modules_to_not_convert(model, None, wide)
        known = {name: dict(n=linear.out_features, k=linear.in_features, bias=linear.bias is not None)
                 for name, linear in _linears(model).items()}
        for name, shape in {**known, **_mixtures(model)}.items():
            if should_convert_module(name, kept) and not is_ignored(config.to_dict(), name):
                self.problems[name] = Problem(config.weights, group=config.group, zeros=config.zeros, **shape,
                                              activations=activations_of(self.dtype),
                                              **(GATE_UP if "experts" in shape else {}))

    # ---- while tensors are loaded ----

    def update_weight_conversions(self, weight_conversions: Any, model: Any) -> Any:
        """Has tensors of quantized experts keep their names: nothing merges them."""
        if any(isinstance(module, _Experts) for module in model.modules()):
            return [known for known in weight_conversions
                    if not (isinstance(known, WeightConverter) and "experts" in str(known.target_patterns))]
        return super().update_weight_conversions(weight_conversions, model)

    def param_needs_quantization(self, model: Any, param_name: str, **unused: Any) -> bool:
        """Also says that shapes of tensors need not be those of the model's parameters; readers check them."""
        module, _, name = param_name.rpartition(".")
        return name != "bias" and (module in self.problems or isinstance(model.get_submodule(module), _Tensors))

    def get_quantize_ops(self) -> ConversionOps:
        return _Pack(self)

    def pack(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Returns the packed bytes of a weight by its full name, on its device; of experts [experts, bytes]."""
        module, _, parameter = name.rpartition(".")
        problem = self.problems[module]
        if not problem.experts:
            return self._pack_one(problem, value)
        its = experts_problems(problem)[parameter.removesuffix("_proj")]
        return torch.stack([self._pack_one(its, one) for one in value])

    def _pack_one(self, problem: Problem, value: torch.Tensor) -> torch.Tensor:
        quantized = quantize(value.detach().cpu().contiguous(), problem,
                             clip_steps=self.quantization_config.clip_steps)
        return torch.from_numpy(plan(problem, device_of(value)).pack(*quantized)).to(value.device)

    # ---- after loading ----

    def _process_model_after_weight_loading(self, model: Any, **unused: Any) -> Any:
        for name in [name for name, module in model.named_modules() if isinstance(module, _Experts)]:
            model.set_submodule(name, self._of_experts(model.get_submodule(name)))
        for name, module in list(model.named_modules()):
            if isinstance(module, _Tensors):
                model.set_submodule(name, self._of_tensors(name, module))
            elif isinstance(module, torch.nn.Linear) and module.weight.dtype is torch.uint8:
                model.set_submodule(name, self._of_packed(name, module))
            elif name in self.problems and hasattr(module, "gate_up_proj"):
                packed = module.gate_up_proj.detach(), module.down_proj.detach()
                model.set_submodule(name, QuantizedExperts(*packed, self.problems[name], device_of(packed[0])))
            elif name in (self.quantization_config.packed or {}):
                _check_loaded(name, dict(module.named_buffers(recurse=False)))
                module.check()
        return model

    def _read(self, name: str, module: _Tensors) -> QuantizedWeight:
        tensors = dict(module.named_buffers(recurse=False))
        _check_loaded(name, tensors)
        config = self.quantization_config
        return read_weight(tensors, config.source or config.to_dict(), name)

    def _of_tensors(self, name: str, module: _Tensors) -> QuantizedLinear:
        return make_layer(self._read(name, module), self.dtype, module.bias, device_of(next(module.buffers())))

    def _of_experts(self, module: _Experts) -> QuantizedExperts:
        weights = {part: [self._read(name, tensors).to_matmul() for name, tensors in module.tensors(part)]
                   for part in module.names}
        place = next(module.buffers())
        return make_experts(join_gates(weights), self.dtype, device_of(place), **module.shape).to(place.device)

    def _of_packed(self, name: str, linear: torch.nn.Linear) -> QuantizedLinear:
        bias = None if linear.bias is None else linear.bias.detach().to(self.dtype)
        return QuantizedLinear(self.problems[name], linear.weight.detach(), bias, None, device_of(linear.weight))

    # ---- saving ----

    def get_state_dict_and_metadata(self, model: Any) -> Any:
        """Has save_pretrained write packed weights, and their problems into config.json. They are for GPUs of the kind
        that they were packed for; tilus-quantize writes checkpoints for any."""
        layers = {name: module for name, module in model.named_modules()
                  if isinstance(module, (QuantizedExperts, QuantizedLinear))}
        moved = [name for name, layer in layers.items() if getattr(layer, "permutation", None) is not None]
        if moved:
            raise ArgumentError(f"{moved[0]} has act-order, and packed weights are saved without: keep the checkpoint")
        self.quantization_config.packed = {name: str(layer.problem) for name, layer in layers.items()}
        self.quantization_config.source = None
        return None, {}

    def is_serializable(self) -> bool:
        return True

    @property
    def is_trainable(self) -> bool:
        """Whether adapters may be trained beside the weights."""
        return True


def _linears(model: Any) -> Dict[str, torch.nn.Linear]:
    """Returns the modules that are nn.Linear itself: what derives from it may compute otherwise."""
    return {name: module for name, module in model.named_modules() if type(module) is torch.nn.Linear}


def _mixtures(model: Any) -> Dict[str, Dict[str, Any]]:
    """Returns the shapes of `gate_up` of modules that compute as QuantizedExperts does: gates above, SiLU, no biases,
    and nothing behind."""
    found = {}
    for name, module in model.named_modules():
        top = getattr(getattr(module, "config", None), "num_experts_per_tok", None)
        if top and _has_experts(module) and _is_plain_mixture(module):
            experts, n, k = module.gate_up_proj.shape
            found[name] = dict(n=n, k=k, experts=experts, top=top)
    return found


def _has_experts(module: Any) -> bool:
    parts = [getattr(module, name, None) for name in ("gate_up_proj", "down_proj")]
    return all(isinstance(part, torch.nn.Parameter) and part.dim() == 3 for part in parts)


def _expert_names(model: Any, modules: Iterable[str]) -> Dict[str, Dict[str, str]]:
    """Returns what checkpoints call the matrices of modules with experts, by part, with * for an expert's number."""
    conversions = get_model_conversion_mapping(model, add_legacy=False)
    parts = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj", **_other_parts(conversions)}
    renamings = [known.reverse_transform() for known in conversions if isinstance(known, WeightRenaming)]
    found = {}
    for module in modules:
        name = f"{module}.*"
        for renaming in renamings:
            name, _ = renaming.rename_source_key(name)
        found[module] = {part: f"{name}.{its}" for part, its in parts.items()}
    return found


def _other_parts(conversions: Iterable[Any]) -> Dict[str, str]:
    """Returns the names of matrices of experts which transformers merges, as w1, w3 and w2 of Mixtral."""
    merged = {"gate_up_proj": ("gate", "up"), "down_proj": ("down",)}
    return {part: pattern.split(".")[-2] for known in conversions if isinstance(known, WeightConverter)
            for name, parts in merged.items() if f"experts.{name}" in str(known.target_patterns)
            for part, pattern in zip(parts, known.source_patterns)}


def _has_floats(source: Dict[str, Any], names: Dict[str, str], experts: int) -> bool:
    """Tells whether the checkpoint has none of a module's experts as codes. Their shapes do not matter here."""
    return not any(expected_tensors(source, name.replace("*", str(number)), 128, 128)
                   for number in range(experts) for name in names.values())


def _is_plain_mixture(module: Any) -> bool:
    said = {"has_gate": True, "is_concatenated": True, "has_bias": False, "is_transposed": False,
            "has_post_expert_norm": False, "_is_expert_parallel": False}
    silu = isinstance(getattr(module, "act_fn", None), (torch.nn.SiLU, type(ACT2FN["silu"])))
    return silu and getattr(type(module), "_apply_gate", None) is _default_apply_gate and \
        all(getattr(module, name, None) is value for name, value in said.items())


def _meta(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.uint8, device="meta")


def _is_host(device_map: Any) -> bool:
    places = device_map.values() if isinstance(device_map, dict) else [device_map]
    return all(place is None or str(place) == "cpu" for place in places)


def _check_loaded(name: str, tensors: Dict[str, torch.Tensor]) -> None:
    """Raises FormatError where a tensor was not in the checkpoint; it has arbitrary bytes then."""
    for suffix, tensor in tensors.items():
        if not getattr(tensor, "_is_hf_initialized", False):
            raise FormatError("the checkpoint", f"{name}.{suffix}", "there is no such tensor")
