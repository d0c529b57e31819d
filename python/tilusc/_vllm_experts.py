"""Mixtures of experts of vLLM with weights in Tilus's own layout."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch
from vllm.model_executor.layers.fused_moe import (FusedMoeWeightScaleSupported, FusedMoEMethodBase, MoEActivation,
                                                  RoutedExperts)
from vllm.model_executor.utils import set_weight_attrs

from ._torch_checkpoint import check_cut, device_of, expected_tensors, make_experts, read_weight
from .errors import ArgumentError
from .formats.weight import MatmulWeights


class TilusExpertsMethod(FusedMoEMethodBase):
    """Loads codes, scales and zero points of a layer's experts, packs them, and multiplies.

    vLLM's w13 is `gate_up`, and w2 is `down`. ArgumentError: the experts compute otherwise than QuantizedExperts, or
    are cut between ranks by their numbers."""

    def __init__(self, config: Dict[str, Any], prefix: str, layer: RoutedExperts) -> None:
        super().__init__(layer.moe_config)
        self.config, self.prefix = {**config, "ignore": []}, prefix
        self.shape: Dict[str, int] = {}
        self.suffixes: Tuple[str, ...] = ()
        wrong = [reason for reason, holds in _reasons(layer).items() if holds]
        if wrong:
            raise ArgumentError(f"the experts of {prefix} {wrong[0]}")

    def create_weights(self, layer: RoutedExperts, num_experts: int, hidden_size: int,
                       intermediate_size_per_partition: int, params_dtype: torch.dtype,
                       **extra_weight_attrs: Any) -> None:
        """Registers the tensors of a rank's part of the checkpoint. ArgumentError: codes or groups of `down` cannot be
        cut at this rank's columns."""
        n, k = intermediate_size_per_partition, hidden_size
        check_cut(self.config, f"{self.prefix}.w2", n, self.moe.intermediate_size)
        self.shape = dict(n=2 * n, k=k, experts=num_experts, top=self.moe.experts_per_token)
        for name, rows, columns in (("w13", 2 * n, k), ("w2", k, n)):
            expected = expected_tensors(self.config, self.prefix, rows, columns)
            self.suffixes = tuple(expected)
            for suffix, (dtype, shape) in expected.items():
                parameter = torch.nn.Parameter(torch.empty(num_experts, *shape, dtype=dtype), requires_grad=False)
                set_weight_attrs(parameter, {"quant_method": self._scales(), **extra_weight_attrs})
                layer.register_parameter(f"{name}_{suffix}", parameter)

    def _scales(self) -> str:
        """Returns how vLLM cuts scales and zero points: those of whole rows not along columns."""
        kinds = FusedMoeWeightScaleSupported
        return (kinds.GROUP if self.config["group"] else kinds.CHANNEL).value

    def process_weights_after_loading(self, layer: RoutedExperts) -> None:
        """Packs the weights for the device that they are on; the checkpoint's tensors go. Another call does nothing."""
        if hasattr(layer, "packed"):
            return
        place = layer.w2_weight_codes
        n, k = self.shape["n"], self.shape["k"]
        weights = {"gate_up": self._read(layer, "w13", n, k), "down": self._read(layer, "w2", k, n // 2)}
        packed = make_experts(weights, layer.params_dtype, device_of(place), **self.shape).to(place.device)
        for name in ("w13", "w2"):
            for suffix in self.suffixes:
                delattr(layer, f"{name}_{suffix}")
        layer.packed = packed

    def _read(self, layer: RoutedExperts, name: str, *shape: int) -> List[MatmulWeights]:
        """Reads a matrix of each expert, of which the rank's part has the shape."""
        whole = {suffix: getattr(layer, f"{name}_{suffix}").data for suffix in self.suffixes}
        return [read_weight({**{suffix: tensor[number] for suffix, tensor in whole.items()},
                             "weight_shape": torch.tensor(shape)}, self.config, self.prefix).to_matmul()
                for number in range(self.shape["experts"])]

    def get_fused_moe_quant_config(self, layer: RoutedExperts) -> None:
        return None

    def apply(self, layer: RoutedExperts, x: torch.Tensor, topk_weights: torch.Tensor, topk_ids: torch.Tensor,
              shared_experts: Optional[Any] = None,
              shared_experts_input: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Returns the sum over the chosen experts; vLLM itself computes the shared ones, and adds ranks' results."""
        return layer.packed(x, topk_ids, topk_weights)


def _reasons(layer: RoutedExperts) -> Dict[str, bool]:
    """Returns what a layer can have that QuantizedExperts does not compute, and whether it does."""
    config = layer.moe_config
    limits = (config.swiglu_limit, config.swiglu_alpha, config.swiglu_beta)
    return {f"have {config.activation.value}, not a gate with SiLU": config.activation is not MoEActivation.SILU,
            "have gates that are limited or scaled": any(limit is not None for limit in limits),
            "have biases": config.has_bias,
            "take activations that the router has weighted": layer.apply_router_weight_on_input,
            "are cut between ranks by their numbers (expert parallelism), and not by their columns":
                config.moe_parallel_config.use_ep}
