"""Machete, the Hopper product of vLLM, from the library that strip_machete.py makes of vLLM's
wheel; TILUS_MACHETE names the file."""
import os

import torch

import operands as ops

# vLLM's numbers of the types uint4b8, uint4 and uint8b128.
TYPES = {("u4", "none"): 1125899907892224, ("u4", "integer"): 1125899906843648,
         ("u8", "none"): 1125899923621888}


def name():
    return "Machete of vLLM " + os.environ.get("TILUS_MACHETE_VERSION", "0.20.2")


def serves(problem):
    return (problem.weights, problem.zeros) in TYPES and "TILUS_MACHETE" in os.environ


def compile_all(_cases):
    return 0, []


class System:
    loaded = False

    def __init__(self, plain):
        if not System.loaded:
            torch.ops.load_library(os.environ["TILUS_MACHETE"])
            System.loaded = True
        problem, half = plain.problem, torch.float16
        self.problem, self.type = problem, TYPES[problem.weights, problem.zeros]
        codes = plain.packed().view(torch.int32).view(plain.n, plain.k * plain.bits // 32).t()
        zeros = None
        if plain.zeros is not None:
            zeros = (-1.0 * plain.scales * plain.zeros.half()).t().contiguous()
        self.copies = ops.copies({
            "weight": torch.ops._C.machete_prepack_B(codes, half, self.type, half),
            "scales": plain.scales.t().contiguous(), "zeros": zeros})
        self.offset = 0.0 if plain.zeros is not None else float(1 << (plain.bits - 1))

    def schedules(self):
        zeros = torch.float16 if self.copies[0]["zeros"] is not None else None
        return torch.ops._C.machete_supported_schedules(torch.float16, self.type, torch.float16,
                                                        zeros, None, None, torch.float16)

    def launches(self, _m, a):
        """Its own choice, and each of its schedules."""
        for schedule in [None, *self.schedules()]:
            def launch(i, schedule=schedule):
                t = self.copies[i]
                return torch.ops._C.machete_mm(a, t["weight"], self.type, None, t["scales"],
                                               t["zeros"], self.problem.group, None, None,
                                               schedule)
            yield schedule or "own choice", launch
