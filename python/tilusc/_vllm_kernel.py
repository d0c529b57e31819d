"""Products for vLLM's own loaders of GPTQ, AWQ and compressed-tensors (pack-quantized)."""
from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from vllm.model_executor.kernels.linear import MPLinearKernel, MPLinearLayerConfig, register_linear_kernel
from vllm.model_executor.kernels.linear import _POSSIBLE_KERNELS as _kernels
from vllm.model_executor.utils import replace_parameter
from vllm.platforms.interface import PlatformEnum

from ._torch_checkpoint import Product, device_of, make_layer, read_weight


def register() -> None:
    """Adds the kernel to vLLM's for GPUs, behind all others, once."""
    if TilusLinearKernel not in _kernels.get(PlatformEnum.CUDA, ()):
        register_linear_kernel(TilusLinearKernel, PlatformEnum.CUDA, "mp")


class TilusLinearKernel(MPLinearKernel):
    """Integers of 2 to 8 bits, with zero points or symmetric, in groups or rows, for f16 and bf16."""

    @classmethod
    def get_min_capability(cls) -> int:
        return 80

    @classmethod
    def can_implement(cls, c: MPLinearLayerConfig) -> Tuple[bool, Optional[str]]:
        kind, (k, _) = c.weight_type, c.partition_weight_shape
        symmetric = kind.has_bias() and kind.bias == 1 << (kind.size_bits - 1)
        reasons = {
            f"weights of {kind} are not integers of 2 to 8 bits with zero points, or around the middle one":
                not kind.is_integer() or kind.is_signed() or kind.size_bits > 8 or
                (kind.has_bias() or not c.zero_points) and not (symmetric and not c.zero_points),
            f"activations of {c.act_type} are neither torch.float16 nor torch.bfloat16":
                c.act_type not in (torch.float16, torch.bfloat16),
            f"the result's type {c.out_type} is not that of activations": c.out_type not in (None, c.act_type),
            f"{k} columns are not whole words": k * kind.size_bits % 32 != 0,
            f"groups of {c.group_size} are not -1, or a multiple of 32 that divides {k} columns":
                c.group_size != -1 and (c.group_size <= 0 or c.group_size % 32 != 0 or k % c.group_size != 0)}
        wrong = [reason for reason, holds in reasons.items() if holds]
        return not wrong, wrong[0] if wrong else None

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Packs the weights for the device that they are on, in place of vLLM's parameter of codes; scales and zero
        points become empty."""
        c, (codes, scales, zeros) = self.config, self._get_weight_params(layer)
        tensors = {"weight_packed": _by_rows(codes), "weight_scale": _by_rows(scales),
                   "weight_shape": torch.tensor(c.partition_weight_shape[::-1])}
        if c.zero_points:
            tensors["weight_zero_point"] = _by_rows(zeros)
        scheme = {"num_bits": c.weight_type.size_bits, "group_size": c.group_size,
                  "strategy": "channel" if c.group_size == -1 else "group"}
        config = {"config_groups": {"group_0": {"targets": ["Linear"], "weights": scheme}}, "version": "0.18"}
        made = make_layer(read_weight(tensors, config, type(layer).__name__), c.act_type, device=device_of(codes))
        self.product = Product(made)
        replace_parameter(layer, self.w_q_name, made.packed)
        for name in [self.w_s_name, self.w_zp_name] if c.zero_points else [self.w_s_name]:
            replace_parameter(layer, name, made.packed.new_empty(0))

    def apply_weights(self, layer: torch.nn.Module, x: torch.Tensor,
                      bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        return self.product(x, getattr(layer, self.w_q_name), bias)


def _by_rows(parameter: Any) -> torch.Tensor:
    """Returns a parameter with output features first, as compressed-tensors has it."""
    return parameter.data.t() if parameter.output_dim == 1 else parameter.data
