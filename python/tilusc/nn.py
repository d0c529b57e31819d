"""Modules of torch with packed weights."""
from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable, Optional, Tuple, Union

import torch
from torch.compiler import is_compiling

from . import torch_ops
from ._torch_experts import sort_by_torch
from ._torch_gradient import Transformed, in_transform, type_name
from ._torch_matmul import in_forward_mode, result_type
from .errors import ArgumentError
from .matmul import Plan, Problem, default_device, plan, quantize

#: of the problem of the gate and up of a mixture's experts, whose n / 2 rows of gate lie above those of up
GATE_UP = {"function": "silu", "gated": True, "gather": True}
_APART = "gate and up of the experts are not one gated product: pack again what earlier versions packed apart"


def _usual_zeros(weights: str) -> str:
    return "integer" if isinstance(weights, str) and weights[:1] == "u" else "none"


def _cast(x: torch.Tensor, name: str) -> torch.Tensor:
    return x.to(result_type(name)) if x.is_floating_point() else x


def _check_loaded(its: Callable[[], Plan], state_dict: Any, name: str) -> None:
    """Raises where packed weights of a state are not of the plan; says which."""
    packed = state_dict.get(name)
    if packed is None or packed.is_meta:
        return
    try:
        its().check(packed)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}", error.status) from None


class QuantizedLinear(torch.nn.Module):
    """y = function(x W^T + bias) with W[n, k] of 1 to 8 bits, as torch.nn.Linear; + residual, the second argument, where
    the problem has one; of the RMS norm of x, whose weights are the third, where its prologue is one.

    Made by `from_float` or `from_weight`. Its state is `packed`, in the form of the plan that packed it, `bias` and
    `permutation`; a state that was packed in another form is refused when it is loaded. It runs on GPUs of the kind
    that it was packed for, in torch.compile and in CUDA graphs (call `prepare` before), and in host memory on the CPU
    engine, slowly. Its arguments and its bias have gradients, packed weights do not; forward mode (torch.func.jvp) has
    tangents where the result is linear in x, and raises elsewhere."""

    def __init__(self, problem: Problem, packed: torch.Tensor, bias: Optional[torch.Tensor] = None,
                 permutation: Optional[torch.Tensor] = None, packed_for: Union[int, str] = "cpu") -> None:
        super().__init__()
        if problem.experts or problem.bias != (bias is not None):
            raise ArgumentError("a layer has no experts, and a bias where its problem has one")
        self.problem, self.problem_text, self.packed_for = problem, str(problem), packed_for
        self.in_features = problem.k if permutation is None else int(permutation.max()) + 1
        if problem.prologue != "none" and self.in_features != problem.k:
            raise ArgumentError(f"a norm is of all {problem.k} columns, but the permutation takes {self.in_features}")
        self.out_features = problem.columns
        self._activations, self._result = result_type(problem.activations), result_type(problem.result)
        self.register_buffer("packed", packed)
        self.register_buffer("bias", bias)
        self.register_buffer("permutation", permutation)

    @classmethod
    def from_float(cls, weight: Union[torch.Tensor, torch.nn.Linear], weights: str = "u4", *,
                   bias: Optional[torch.Tensor] = None, group: int = 128, zeros: Optional[str] = None,
                   activations: str = "", function: str = "none", gated: bool = False, clip_steps: int = 0,
                   device: Union[int, str, None] = None) -> "QuantizedLinear":
        """Quantizes a weight [n, k] of f16, bf16 or f32, or a Linear, to `weights`, each to the nearest code.

        `zeros` is by default integer for uN and none for others; `activations` f16 or bf16, by default bf16 for
        weights of it. `gated` is of a weight whose upper half is a gate's, as silu(gate(x)) * up(x) with the function
        silu. `device` is a GPU's number, by default that of the weight or the current one, or "cpu" where
        there is none; or a name as "h200", where it will run later. The module is on the GPU of a number, else in
        host memory."""
        if isinstance(weight, torch.nn.Linear):
            bias = weight.bias if bias is None else bias
            weight = weight.weight
        if not isinstance(weight, torch.Tensor) or weight.dim() != 2:
            raise ArgumentError(f"weight is {type(weight).__name__}"
                                f"{list(weight.shape) if isinstance(weight, torch.Tensor) else ''}, not a matrix [n, k]")
        weight = weight.detach()
        activations = activations or ("bf16" if weight.dtype is torch.bfloat16 else "f16")
        zeros = zeros or _usual_zeros(weights)
        problem = Problem(weights, weight.shape[0], weight.shape[1], group, zeros, activations, function=function,
                          bias=bias is not None, gated=gated)
        if device is None and weight.is_cuda:
            device = weight.get_device()
        host = weight.cpu().contiguous()
        return cls._make(problem, quantize(host, problem, clip_steps=clip_steps), bias, None, device)

    @classmethod
    def from_weight(cls, weight: Any, *, activations: str = "", result: str = "", function: str = "none",
                    gated: bool = False, approximate: bool = False, pad: bool = False,
                    device: Union[int, str, None] = None) -> "QuantizedLinear":
        """Takes a matrix of a checkpoint as it is: a QuantizedWeight of tilusc.formats, or the MatmulWeights of it.
        Columns of activations are put in order where it has a permutation (act-order). `result` is f16, bf16 or f32,
        by default the scales' type, of f8e4m3 that of activations. `gated` is as of `from_float`. `approximate` and
        `pad` are those of QuantizedWeight.to_matmul."""
        known = weight if hasattr(weight, "zeros_kind") else weight.to_matmul(approximate, pad)
        activations = activations or ("bf16" if known.scales_type == "bf16" else "f16")
        bias = None if known.bias is None else torch.from_numpy(known.bias)
        order = None if known.permutation is None else torch.from_numpy(known.permutation).to(torch.int64)
        problem = Problem(known.weights, known.n, known.k, known.group, known.zeros_kind, activations,
                          known.scales_type, result, function, bias is not None, gated=gated)
        return cls._make(problem, (known.codes, known.scales, known.zeros, known.factor), bias, order, device)

    @classmethod
    def _make(cls, problem: Problem, quantized: Any, bias: Any, order: Any, device: Any) -> "QuantizedLinear":
        device = default_device() if device is None else device
        packed = torch.from_numpy(plan(problem, device).pack(*quantized))
        bias = None if bias is None else bias.detach().to(result_type(problem.result))
        layer = cls(problem, packed, bias, order, device)
        return layer.to(torch.device("cuda", device)) if isinstance(device, int) else layer

    @property
    def qweight(self) -> torch.Tensor:
        """The packed weights, by the name at which PEFT looks for a layer's place."""
        return self.packed

    def plan(self) -> Plan:
        """Returns the plan of the device that the weights are on."""
        if self.packed.is_cuda:
            return plan(self.problem, self.packed.get_device())
        return plan(self.problem, self.packed_for if isinstance(self.packed_for, str) else "cpu")

    def dequantize(self, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        """Returns the weight [n, in_features] that the layer multiplies by, in the order of a Linear's, of float16, bfloat16
        or float32, by default the type of activations."""
        weight = self.plan().unpack(self.packed, "" if dtype is None else type_name(dtype))
        if self.permutation is None:
            return weight
        return weight.new_zeros(weight.shape[0], self.in_features).index_add_(1, self.permutation, weight)

    def check(self) -> None:
        """Raises where the packed weights are not of the layer's plan."""
        self.plan().check(self.packed)

    def prepare(self, *rows: int) -> "QuantizedLinear":
        """Does all that is slow for so many rows of activations; before a capture."""
        for m in rows:
            self.plan().prepare(m)
        return self

    def forward(self, x: torch.Tensor, residual: Optional[torch.Tensor] = None,
                norm: Optional[torch.Tensor] = None) -> torch.Tensor:
        held = self._buffers            # as attributes torch finds them by a function of Python
        if "packed" in held and "bias" in held and "permutation" in held:
            packed, bias, permutation = held["packed"], held["bias"], held["permutation"]
        else:                           # a parameter was put in the place of one, or a parametrization
            packed, bias, permutation = self.packed, self.bias, self.permutation
            if bias is not None and bias.dtype is not self._result:     # a parameter, which is trained in f32, say
                bias = bias.to(self._result)
        if x.dtype is not self._activations or residual is not None or norm is not None:
            x, residual, norm = self._cast(x, residual, norm)
        if permutation is not None:
            x = x.index_select(-1, permutation)
            norm = None if norm is None else norm.index_select(0, permutation)
        if in_forward_mode() or in_transform() and not is_compiling():
            return Transformed.apply(torch_ops.MATMUL, self._tangent if self._is_linear() else None, x, packed,
                                     self.problem_text, bias, residual, norm)
        if norm is not None:
            return torch_ops.matmul(x, packed, self.problem_text, bias, residual, norm)
        return torch_ops.matmul(x, packed, self.problem_text, bias, residual)

    def _is_linear(self) -> bool:
        """Tells whether a tangent of the result is the product of one of x, without the bias, plus one of the residual."""
        problem = self.problem
        return problem.function == "none" and problem.prologue == "none" and not problem.gated and not problem.multiply

    def _cast(self, x: torch.Tensor, residual: Optional[torch.Tensor], norm: Optional[torch.Tensor]) -> Any:
        """Gives tensors the types of the product, under autocast, as torch does for its own layers."""
        problem = self.problem
        if not isinstance(x, torch.Tensor) or x.is_meta or not torch.is_autocast_enabled(x.device.type):
            return x, residual, norm
        return (_cast(x, problem.activations), None if residual is None else _cast(residual, problem.result),
                None if norm is None else _cast(norm, problem.activations))

    def _tangent(self, x: Optional[torch.Tensor], packed: None, problem: None, bias: Optional[torch.Tensor],
                 residual: Optional[torch.Tensor], norm: None) -> torch.Tensor:
        """Computes the tangent of a result from those of its arguments, of which x has its columns in order already."""
        y = None if x is None else self._multiply(x)
        parts = [part for part in (y, bias, residual) if part is not None]
        return functools.reduce(torch.add, parts)

    def _multiply(self, x: torch.Tensor) -> torch.Tensor:
        """Multiplies by the weights alone, whose columns x has."""
        problem = dataclasses.replace(self.problem, bias=False, residual=False)
        if in_forward_mode():
            return Transformed.apply(torch_ops.MATMUL, lambda x, *_: self._multiply(x), x, self.packed, str(problem), None,
                                     None, None)
        return torch_ops.matmul(x, self.packed, str(problem))

    def extra_repr(self) -> str:
        return self.problem_text

    def _apply(self, function: Any, *rest: Any, **more: Any) -> "QuantizedLinear":
        """Moves the layer. Its bias keeps its numbers and the type of results, whatever `half`, `float` and `to(dtype)` do."""
        kept = self._buffers.get("bias")
        super()._apply(function, *rest, **more)
        bias = self._buffers.get("bias")
        if bias is not None and bias.dtype is not self._result:
            self._buffers["bias"] = (bias if kept.is_meta else kept).to(bias.device, self._result)
        return self

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        _check_loaded(self.plan, state_dict, prefix + "packed")
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _of_experts(x: torch.Tensor, packed: torch.Tensor, problem: str, offsets: torch.Tensor, ids: torch.Tensor,
                route: Optional[torch.Tensor] = None, residual: Optional[torch.Tensor] = None) -> torch.Tensor:
    if in_forward_mode() or in_transform() and not is_compiling():
        return Transformed.apply(torch_ops.MATMUL_EXPERTS, None, x, packed, problem, offsets, ids, route, None, residual)
    return torch_ops.matmul_experts(x, packed, problem, offsets, ids, route, None, residual)


class QuantizedExperts(torch.nn.Module):
    """The experts of a mixture: y[t] = sum over i of route[t, i] * down_e(silu(gate_e(x[t])) * up_e(x[t])), where e is
    chosen[t, i], with weights of 1 to 8 bits.

    Made by `from_float`. Its state is `gate_up` and `down`, the packed experts [experts, bytes] of the two products; a
    state that was packed in another form is refused when it is loaded. Nothing waits for the host, so that it runs in
    CUDA graphs (call `prepare` before) for any choice of experts. Tokens, routes and residual have gradients; a
    backward pass waits for the host."""

    PARTS = ("gate_up", "down")

    def __init__(self, gate_up: torch.Tensor, down: torch.Tensor, problem: Problem,
                 packed_for: Union[int, str] = "cpu") -> None:
        """Takes packed experts; `problem` is that of `gate_up`: experts, top, n of both, k, types and GATE_UP; with
        residual, `down` has one."""
        super().__init__()
        self.problem, self.packed_for, self.problems = problem, packed_for, experts_problems(problem)
        self.texts = {part: str(known) for part, known in self.problems.items()}
        for part, packed in zip(self.PARTS, (gate_up, down)):
            self.register_buffer(part, packed)

    @classmethod
    def from_float(cls, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor, weights: str = "u4", *, top: int,
                   group: int = 128, zeros: Optional[str] = None, activations: str = "", residual: bool = False,
                   clip_steps: int = 0, device: Union[int, str, None] = None) -> "QuantizedExperts":
        """Quantizes weights of f16, bf16 or f32: gate and up [experts, n, k], down [experts, k, n], where n is a
        multiple of 8. Arguments are those of QuantizedLinear.from_float; `top` experts are chosen for each token; with
        `residual` each call adds one."""
        if up.dim() != 3:
            raise ArgumentError(f"up is {list(up.shape)}, not [experts, n, k]")
        experts, n, k = up.shape
        if gate.shape != up.shape or down.shape != (experts, k, n):
            raise ArgumentError(f"gate, up and down are {list(gate.shape)}, {list(up.shape)} and {list(down.shape)}, not"
                                f" {[experts, n, k]} twice and {[experts, k, n]}")
        activations = activations or ("bf16" if up.dtype is torch.bfloat16 else "f16")
        zeros = zeros or _usual_zeros(weights)
        problem = Problem(weights, 2 * n, k, group, zeros, activations, residual=residual, experts=experts, top=top,
                          **GATE_UP)
        if device is None and up.is_cuda:
            device = up.get_device()
        device = default_device() if device is None else device
        both = (torch.cat([half.detach().cpu() for half in halves]) for halves in zip(gate, up))
        packed = []
        for known, given in zip(experts_problems(problem).values(), (both, down)):
            its = plan(known, device)
            packed.append(torch.stack([
                torch.from_numpy(its.pack(*quantize(one.detach().cpu().contiguous(), known, clip_steps=clip_steps)))
                for one in given]))
        made = cls(*packed, problem, device)
        return made.to(torch.device("cuda", device)) if isinstance(device, int) else made

    def _device(self) -> Union[int, str]:
        if self.down.is_cuda:
            return self.down.get_device()
        return self.packed_for if isinstance(self.packed_for, str) else "cpu"

    def dequantize(self, dtype: Optional[torch.dtype] = None) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns gate, up and down as `from_float` takes them, of float16, bfloat16 or float32, by default the type of
        activations."""
        name = "" if dtype is None else type_name(dtype)
        gate_up, down = (plan(problem, self._device()).unpack(getattr(self, part), name)
                         for part, problem in self.problems.items())
        gate, up = gate_up.chunk(2, 1)
        return gate.contiguous(), up.contiguous(), down

    def check(self) -> None:
        """Raises where packed weights are not of the layer's plans."""
        for part, problem in self.problems.items():
            plan(problem, self._device()).check(getattr(self, part))

    def prepare(self, *tokens: int) -> "QuantizedExperts":
        """Does all that is slow for so many tokens; before a capture."""
        for count in tokens:
            for problem in self.problems.values():
                plan(problem, self._device()).prepare(count * (problem.top or 1))
        return self

    def forward(self, x: torch.Tensor, chosen: torch.Tensor, route: torch.Tensor,
                residual: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Computes tokens x [.., k], whose `top` experts and their weights are chosen and route [.., top], plus a
        residual of the same shape, if the problem has one. A number that is no expert's, as of another device's, must
        have a weight of 0: nothing computes its row, and nothing checks it."""
        top = self.problem.top or 1
        for name, given in (("chosen", chosen), ("route", route)):
            if given.shape[-1:] != (top,) or given.numel() * self.problem.k != x.numel() * top:
                raise ArgumentError(f"{name} is {list(given.shape)}, not {[*x.shape[:-1], top]}")
        if not x.is_meta and torch.is_autocast_enabled(x.device.type):
            x = _cast(x, self.problem.activations)
            residual = None if residual is None else _cast(residual, self.problem.result)
        rows = x.reshape(-1, x.shape[-1])
        if residual is not None and residual.shape != x.shape and residual.shape != rows.shape:
            raise ArgumentError(f"residual is {list(residual.shape)}, not {list(x.shape)}")
        offsets, ids = torch_ops.sort_experts(chosen, self.texts["gate_up"])
        added = None if residual is None else residual.reshape(rows.shape)
        y = self.products(rows, offsets, ids, route.reshape(-1).float(), added)
        return y.view(x.shape)

    def products(self, x: torch.Tensor, offsets: torch.Tensor, ids: torch.Tensor, route: torch.Tensor,
                 residual: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Computes tokens x [tokens, k] with `offsets`, `ids` and `route` as of tilus_matmul_call: for routers that sort
        themselves."""
        texts = self.texts
        hidden = _of_experts(x, self.gate_up, texts["gate_up"], offsets, ids)
        return _of_experts(hidden, self.down, texts["down"], offsets, ids, route, residual)

    def extra_repr(self) -> str:
        return self.texts["gate_up"]

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        if prefix + "gate" in state_dict:
            raise ArgumentError(_APART)
        for part, problem in self.problems.items():
            _check_loaded(functools.partial(plan, problem, self._device()), state_dict, prefix + part)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def experts_problems(gate_up: Problem) -> dict:
    """Returns the problems of the two products of a mixture's experts, from that of `gate_up` with the residual of
    `down`. ArgumentError: it is not gated."""
    if not gate_up.gated:
        raise ArgumentError(_APART)
    return {"gate_up": dataclasses.replace(gate_up, residual=False),
            "down": dataclasses.replace(gate_up, n=gate_up.k, k=gate_up.columns, function="none", gated=False,
                                        gather=False, combine=True, early_routing=True)}


def sort_experts(chosen: torch.Tensor, experts: int) -> Tuple[torch.Tensor, torch.Tensor]:
    """Returns offsets and ids, i32, of rows that go to the experts chosen [tokens, top], by torch: any number of them."""
    return sort_by_torch(experts, chosen)
