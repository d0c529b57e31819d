"""Adapters of PEFT (LoRA) beside packed weights:

    from tilusc.peft import register
    config = register(LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
    model = get_peft_model(model, config)

PEFT takes layers of other packages by its experimental dispatch of custom modules, which a configuration does not save:
`register` also goes before `PeftModel.from_pretrained(model, folder, config=register(LoraConfig.from_pretrained(folder)))`."""
from __future__ import annotations

from typing import Any

import torch
from peft import LoraConfig
from peft.tuners.lora.layer import LoraLayer

from .errors import ArgumentError, Error
from .nn import QuantizedLinear


class LoraQuantizedLinear(torch.nn.Module, LoraLayer):
    """A QuantizedLinear, whose weights stay as they are, and adapters beside it."""

    def __init__(self, base_layer: QuantizedLinear, adapter_name: str, config: LoraConfig, r: int = 0, lora_alpha: int = 1,
                 **_: Any) -> None:
        super().__init__()
        LoraLayer.__init__(self, base_layer)
        first = base_layer.get_base_layer() if hasattr(base_layer, "get_base_layer") else base_layer
        if first.problem.residual or first.problem.prologue != "none":
            raise ArgumentError(f"adapters are of layers of one argument, and the problem is {first.problem}")
        self._active_adapter = adapter_name
        self.update_layer(adapter_name, r, lora_alpha=lora_alpha, config=config)

    def resolve_lora_variant(self, *, config: LoraConfig, **_: Any) -> None:
        """Refuses variants of LoRA, which compute from a layer's weights or its results."""
        start = config.init_lora_weights
        wanted = [name for name in ("use_dora", "velora_config", "use_qalora", "alora_invocation_tokens", "arrow_config")
                  if getattr(config, name, None)]
        if not isinstance(start, bool) and str(start).lower() not in ("gaussian", "eva"):
            wanted.append(f"init_lora_weights={start!r}")
        if wanted:
            raise ArgumentError(f"adapters beside packed weights do not take {', '.join(wanted)}")

    def forward(self, x: torch.Tensor, *args: Any, **more: Any) -> torch.Tensor:
        self._check_forward_args(x, *args, **more)
        if more.pop("adapter_names", None) is not None:
            raise ArgumentError("adapters beside packed weights do not take adapter_names: rows have the active ones")
        y = self.base_layer(x, *args, **more)
        if self.disable_adapters:
            return y
        for name in self.active_adapters:
            if name in self.lora_A:
                down, up = self.lora_A[name], self.lora_B[name]
                rows = self.lora_dropout[name](self._cast_input_dtype(x, down.weight.dtype))
                y = (y + up(down(rows)) * self.scaling[name]).to(y.dtype)
        return y

    def merge(self, *_: Any, **__: Any) -> None:
        raise Error("adapters are not merged into packed weights: add them to dequantize(), and quantize the sum again")

    unmerge = merge

    def __repr__(self) -> str:
        return "lora." + super().__repr__()


def register(config: LoraConfig) -> LoraConfig:
    """Has a configuration put adapters beside QuantizedLinear, too, and returns it."""
    config._register_custom_module({QuantizedLinear: LoraQuantizedLinear})
    return config
