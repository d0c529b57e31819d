"""Modules of torch with packed weights."""
from __future__ import annotations

from typing import Any, Optional, Union

import torch

from . import torch_ops
from .errors import ArgumentError
from .matmul import Plan, Problem, default_device, plan, quantize

_FLOATS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}


class QuantizedLinear(torch.nn.Module):
    """y = function(x W^T + bias) with W[n, k] of 1 to 8 bits, as torch.nn.Linear.

    Made by `from_float` or `from_weight`. Its state is `packed`, in the form of the plan that packed it, `bias` and
    `permutation`; a state that was packed in another form is refused when it is loaded. It runs on GPUs of the kind
    that it was packed for, in torch.compile and in CUDA graphs (call `prepare` before), and in host memory on the CPU
    engine, slowly. There is no gradient."""

    def __init__(self, problem: Problem, packed: torch.Tensor, bias: Optional[torch.Tensor] = None,
                 permutation: Optional[torch.Tensor] = None, packed_for: Union[int, str] = "cpu") -> None:
        super().__init__()
        if problem.residual or problem.bias != (bias is not None):
            raise ArgumentError("a layer has no residual, and a bias where its problem has one")
        self.problem, self.problem_text, self.packed_for = problem, str(problem), packed_for
        self.in_features = problem.k if permutation is None else int(permutation.max()) + 1
        self.out_features = problem.n
        self.register_buffer("packed", packed)
        self.register_buffer("bias", bias)
        self.register_buffer("permutation", permutation)

    @classmethod
    def from_float(cls, weight: Union[torch.Tensor, torch.nn.Linear], weights: str = "u4", *,
                   bias: Optional[torch.Tensor] = None, group: int = 128, zeros: Optional[str] = None,
                   activations: str = "", function: str = "none", clip_steps: int = 0,
                   device: Union[int, str, None] = None) -> "QuantizedLinear":
        """Quantizes a weight [n, k] of f16, bf16 or f32, or a Linear, to `weights`, each to the nearest code.

        `zeros` is by default integer for uN and none for others; `activations` f16 or bf16, by default bf16 for
        weights of it. `device` is a GPU's number, by default that of the weight or the current one, or "cpu" where
        there is none; or a name as "h200", where it will run later. The module is on the GPU of a number, else in
        host memory."""
        if isinstance(weight, torch.nn.Linear):
            bias = weight.bias if bias is None else bias
            weight = weight.weight
        weight = weight.detach()
        activations = activations or ("bf16" if weight.dtype is torch.bfloat16 else "f16")
        zeros = zeros or ("integer" if weights[0] == "u" else "none")
        problem = Problem(weights, weight.shape[0], weight.shape[1], group, zeros, activations, function=function,
                          bias=bias is not None)
        if device is None and weight.is_cuda:
            device = weight.get_device()
        host = weight.cpu().contiguous()
        return cls._make(problem, quantize(host, problem, clip_steps=clip_steps), bias, None, device)

    @classmethod
    def from_weight(cls, weight: Any, *, activations: str = "", function: str = "none", approximate: bool = False,
                    pad: bool = False, device: Union[int, str, None] = None) -> "QuantizedLinear":
        """Takes a matrix of a checkpoint as it is: a QuantizedWeight of tilusc.formats, or the MatmulWeights of it.
        Columns of activations are put in order where it has a permutation (act-order). `approximate` and `pad` are
        those of QuantizedWeight.to_matmul."""
        known = weight if hasattr(weight, "zeros_kind") else weight.to_matmul(approximate, pad)
        activations = activations or ("bf16" if known.scales_type == "bf16" else "f16")
        bias = None if known.bias is None else torch.from_numpy(known.bias)
        order = None if known.permutation is None else torch.from_numpy(known.permutation).to(torch.int64)
        problem = Problem(known.weights, known.n, known.k, known.group, known.zeros_kind, activations,
                          known.scales_type, function=function, bias=bias is not None)
        return cls._make(problem, (known.codes, known.scales, known.zeros), bias, order, device)

    @classmethod
    def _make(cls, problem: Problem, quantized: Any, bias: Any, order: Any, device: Any) -> "QuantizedLinear":
        device = default_device() if device is None else device
        packed = torch.from_numpy(plan(problem, device).pack(*quantized))
        from ._torch_matmul import result_type
        bias = None if bias is None else bias.detach().to(result_type(problem.result))
        layer = cls(problem, packed, bias, order, device)
        return layer.to(torch.device("cuda", device)) if isinstance(device, int) else layer

    def plan(self) -> Plan:
        """Returns the plan of the device that the weights are on."""
        if self.packed.is_cuda:
            return plan(self.problem, self.packed.get_device())
        return plan(self.problem, self.packed_for if isinstance(self.packed_for, str) else "cpu")

    def prepare(self, *rows: int) -> "QuantizedLinear":
        """Does all that is slow for so many rows of activations; before a capture."""
        for m in rows:
            self.plan().prepare(m)
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.permutation is not None:
            x = x.index_select(-1, self.permutation)
        return torch_ops.matmul(x, self.packed, self.problem_text, self.bias)

    def extra_repr(self) -> str:
        return self.problem_text

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        packed = state_dict.get(prefix + "packed")
        if packed is not None and not packed.is_meta:
            self.plan().check(packed)
        super()._load_from_state_dict(state_dict, prefix, *rest)
