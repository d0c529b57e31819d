"""The quantization of Tilus's own layout in vLLM, and its linear layers."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch
from vllm.model_executor.layers.fused_moe import RoutedExperts, UnquantizedFusedMoEMethod
from vllm.model_executor.layers.linear import LinearBase, LinearMethodBase, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS, register_quantization_config
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig
from vllm.model_executor.utils import set_weight_attrs

from ._torch_checkpoint import (METHOD, Product, check_cut, device_of, expected_tensors, is_ignored, make_layer,
                                read_weight)
from ._vllm_experts import TilusExpertsMethod
from .errors import ArgumentError
from .formats.write import VERSION
from .quantize import Scheme


def register() -> None:
    """Registers the quantization with vLLM, once."""
    if METHOD not in QUANTIZATION_METHODS:
        register_quantization_config(METHOD)(TilusConfig)


class TilusConfig(QuantizationConfig):
    """quantization_config of Tilus's own layout, as docs/quantize.md has it."""

    def __init__(self, config: Dict[str, Any]) -> None:
        super().__init__()
        self.config = config

    def __repr__(self) -> str:
        return f"TilusConfig({self.config})"

    def get_name(self) -> str:
        return METHOD

    def get_supported_act_dtypes(self) -> List[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    @classmethod
    def get_min_capability(cls) -> int:
        return 80

    @staticmethod
    def get_config_filenames() -> List[str]:
        return []

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> "TilusConfig":
        """Checks the configuration. ArgumentError: it is of another version, or not one of codes; ValueError: its type,
        group or zero points are none."""
        if config.get("version") != VERSION:
            raise ArgumentError(f"the layout's version is {config.get('version')}, not {VERSION}")
        for name in ("source", "packed"):
            if config.get(name):
                raise ArgumentError(f"the checkpoint has {name}, as transformers writes it for one kind of GPU:"
                                    " vLLM loads what tilus-quantize writes")
        Scheme(config.get("weights", ""), config.get("group", -1), config.get("zeros", ""))     # raises
        return cls(dict(config))

    def apply_vllm_mapper(self, hf_to_vllm_mapper: Any) -> None:
        """Has modules that stay as they are go by vLLM's names; patterns are kept."""
        self.config["ignore"] = [new for name in self.config.get("ignore") or [] for new in
                                 ([name] if name.startswith("re:") else hf_to_vllm_mapper.apply_list([name]))]

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> Optional[Any]:
        if isinstance(layer, RoutedExperts):
            stays = self._stay(_experts_of(layer, prefix))
            return UnquantizedFusedMoEMethod(layer.moe_config) if stays else \
                TilusExpertsMethod(self.config, prefix, layer)
        if not isinstance(layer, LinearBase):
            return None
        parent, dot, last = prefix.rpartition(".")
        parts = [parent + dot + part for part in self.packed_modules_mapping.get(last, [last])]
        return UnquantizedLinearMethod() if self._stay(parts) else TilusLinearMethod(self.config, prefix)

    def _stay(self, parts: List[str]) -> bool:
        """Tells whether the matrices that vLLM fuses are not quantized, all alike."""
        stays = {is_ignored(self.config, part) for part in parts}
        if len(stays) > 1:
            raise ArgumentError(f"of {parts[0]} to {parts[-1]} some are quantized and some not, but vLLM fuses them")
        return stays.pop()


def _experts_of(layer: RoutedExperts, prefix: str) -> List[str]:
    """Returns the names of the matrices of all experts in the checkpoint."""
    names = layer.ckpt_gate_proj_name, layer.ckpt_up_proj_name, layer.ckpt_down_proj_name
    return [f"{prefix}.{number}.{name}" for number in range(layer.moe_config.num_logical_experts) for name in names]


class TilusLinearMethod(LinearMethodBase):
    """Loads codes, scales and zero points of one layer, packs them, and multiplies."""

    def __init__(self, config: Dict[str, Any], prefix: str) -> None:
        self.config, self.prefix = {**config, "ignore": []}, prefix
        self.shape, self.dtype, self.names = (0, 0), torch.float16, []
        self.product: Optional[Product] = None

    def create_weights(self, layer: torch.nn.Module, input_size_per_partition: int, output_partition_sizes: List[int],
                       input_size: int, output_size: int, params_dtype: torch.dtype, **extra_weight_attrs: Any) -> None:
        """Registers the tensors of a rank's part of the checkpoint; matrices of a fused layer lie one below the other.
        ArgumentError: codes or groups cannot be cut at this rank's columns."""
        self.shape, self.dtype = (sum(output_partition_sizes), input_size_per_partition), params_dtype
        check_cut(self.config, self.prefix, input_size_per_partition, input_size)
        expected = expected_tensors(self.config, self.prefix, *self.shape)
        self.names = list(expected)
        for name, (dtype, shape) in expected.items():
            parameter = torch.nn.Parameter(torch.empty(shape, dtype=dtype), requires_grad=False)
            set_weight_attrs(parameter, {**self._dimensions(name), **extra_weight_attrs})
            layer.register_parameter(name, parameter)

    def _dimensions(self, name: str) -> Dict[str, Any]:
        """Returns the dimensions along which vLLM cuts a tensor: weight_shape has none, and scales of whole rows are
        not cut along columns."""
        if name == "weight_shape":
            return {"ignore_warning": True}
        if name != "weight_codes" and not self.config["group"]:
            return {"output_dim": 0}
        return {"output_dim": 0, "input_dim": 1}

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Packs the weights for the device that they are on; the checkpoint's tensors go. Another call does nothing."""
        if self.product is not None:
            return
        tensors = {name: getattr(layer, name).data for name in self.names}
        tensors["weight_shape"] = torch.tensor(self.shape)      # of the rank's part, and of a fused layer's sum
        made = make_layer(read_weight(tensors, self.config, self.prefix), self.dtype,
                          device=device_of(tensors["weight_codes"]))
        for name in self.names:
            delattr(layer, name)
        layer.register_parameter("packed", torch.nn.Parameter(made.packed, requires_grad=False))
        self.product = Product(made)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        return self.product(x, layer.packed, bias)
