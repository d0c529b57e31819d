"""Products for what vLLM loads in NVFP4 and MXFP4, of compressed-tensors and ModelOpt; activations stay as they are."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch
from vllm.model_executor.kernels.linear import _POSSIBLE_MXFP4_KERNELS as _mxfp4_kernels
from vllm.model_executor.kernels.linear import _POSSIBLE_NVFP4_KERNELS as _nvfp4_kernels
from vllm.model_executor.kernels.linear import register_linear_kernel
from vllm.model_executor.kernels.linear.mxfp4.base import MxFp4LinearKernel
from vllm.model_executor.kernels.linear.nvfp4.base import NvFp4LinearKernel
from vllm.model_executor.layers.quantization.utils.quant_utils import kMxfp4Dynamic
from vllm.model_executor.utils import replace_parameter
from vllm.platforms import current_platform
from vllm.platforms.interface import PlatformEnum

from ._torch_checkpoint import Product, device_of, make_layer, read_weight


def register() -> None:
    """Adds the kernels to vLLM's for GPUs, behind all others, once."""
    for kernel, known, name in ((TilusNvFp4LinearKernel, _nvfp4_kernels, "nvfp4"),
                                (TilusMxFp4LinearKernel, _mxfp4_kernels, "mxfp4")):
        if kernel not in known.get(PlatformEnum.CUDA, ()):
            register_linear_kernel(kernel, PlatformEnum.CUDA, name)


class _Fours:
    """What both kernels do. `NAMES`: vLLM's parameter by the suffix that a checkpoint's tensor has."""

    NAMES: Dict[str, str]

    @classmethod
    def is_supported(cls, compute_capability: Optional[int] = None) -> Tuple[bool, Optional[str]]:
        known = compute_capability is not None
        enough = compute_capability >= 80 if known else current_platform.has_device_capability(80)
        return enough, None if enough else "products with packed weights need compute capability 8.0"

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Packs the weights for the device that they are on, in place of vLLM's codes; scales become empty."""
        tensors = {suffix: getattr(layer, name).data for suffix, name in self.NAMES.items()}
        made = make_layer(read_weight(tensors, {}, type(layer).__name__), layer.params_dtype,
                          device=device_of(layer.weight))
        self.product = Product(made)
        for name in self.NAMES.values():
            replace_parameter(layer, name, made.packed if name == "weight" else made.packed.new_empty(0))

    def apply_weights(self, layer: torch.nn.Module, x: torch.Tensor,
                      bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        return self.product(x, layer.weight, bias)


class TilusNvFp4LinearKernel(_Fours, NvFp4LinearKernel):
    """f4e2m1 in groups of 16 with scales of f8e4m3 and a factor, for f16 and bf16."""

    NAMES = {"weight": "weight", "weight_scale": "weight_scale", "weight_scale_2": "weight_global_scale"}

    @classmethod
    def can_implement(cls, config: Any) -> Tuple[bool, Optional[str]]:
        return True, None


class TilusMxFp4LinearKernel(_Fours, MxFp4LinearKernel):
    """f4e2m1 in groups of 32 with scales that are powers of two, for f16 and bf16."""

    NAMES = {"weight_packed": "weight", "weight_scale": "weight_scale"}

    @classmethod
    def can_implement(cls, config: Any) -> Tuple[bool, Optional[str]]:
        if config.activation_quant_key in (None, kMxfp4Dynamic):
            return True, None
        return False, f"activations of {config.activation_quant_key} are not quantized"
