"""Humming (PyPI: humming-kernels). Its kernels are compiled when they are first needed, into
HUMMING_CACHE_DIR."""
import importlib.metadata
import json

import torch

import operands as ops

TYPES = {"u8": "uint8", "u6": "uint6", "u5": "uint5", "u4": "uint4", "u3": "uint3", "u2": "uint2",
         "u1": "uint1", "f8e4m3": "float8e4m3", "f6e3m2": "float6e3m2", "f5e2m2": "float5e2m2",
         "f4e2m1": "float4e2m1", "f3e1m1": "float3e1m1"}


def name():
    return "Humming " + importlib.metadata.version("humming-kernels")


def serves(problem):
    return problem.weights in TYPES


def _mma(m, n, k, warp_n, warp_k, stages, blocks):
    return {"mma_type": "mma", "block_shape": [m, n, k], "warp_shape": [m, warp_n, warp_k],
            "num_stages": stages, "num_ctas_per_sm": blocks, "use_stream_k": True,
            "use_tma": False, "use_warp_spec": False}


def _wgmma(m, n, k, warp_n, warp_k, stages, blocks):
    return {"mma_type": "wgmma", "block_shape": [m, n, k], "warp_shape": [m, warp_n, warp_k],
            "num_stages": stages, "num_ctas_per_sm": blocks, "use_stream_k": True,
            "use_tma": True, "use_warp_spec": True}


def _layer(problem):
    from humming.config import LayerConfig
    return LayerConfig(sm_version=90, a_dtype="float16", b_dtype=TYPES[problem.weights],
                       bs_dtype="float16", c_dtype="float16", shape_n=problem.n,
                       shape_k=problem.k, weight_scale_group_size=problem.group,
                       weight_scale_type="group", has_zero_point=problem.zeros == "integer")


def schedules(problem, m):
    """The library's own choice first, then others that were the best somewhere before."""
    from humming.tune import get_heuristics_config
    own = dict(get_heuristics_config(_layer(problem), shape_m=m))
    own["block_shape"], own["warp_shape"] = list(own["block_shape"]), list(own["warp_shape"])
    if m <= 16:
        rows = 8 if m <= 8 else 16
        more = [_mma(rows, 128, 128, 32, 64, 4, 2), _mma(rows, 256, 128, 64, 64, 3, 2),
                _mma(rows, 128, 128, 64, 64, 4, 2)]
        if problem.n < 57344:
            more += [_mma(rows, 64, 512, 64, 64, 4, 1), _mma(rows, 128, 256, 64, 64, 4, 1)]
    elif m <= 32:
        more = [_wgmma(32, 256, 128, 32, 64, 4, 1)]
    elif m <= 64:
        more = [_wgmma(64, 128, 64, 32, 64, 4, 2), _wgmma(64, 256, 64, 32, 64, 4, 1)]
    else:
        more = [_wgmma(128, 128, 64, 32, 64, 4, 2), _wgmma(128, 256, 64, 32, 64, 4, 1)]
    for each in more:
        each["raster_group_m"] = own.get("raster_group_m", 1) or 1
    return [("own choice", own)] + [(label(each), each) for each in more]


def label(schedule):
    shape = "x".join(map(str, schedule["block_shape"]))
    return f"{schedule['mma_type']} {shape} {schedule['num_stages']} stages"


def compile_all(cases):
    """Fills the cache of kernels, in parallel; (problem, m) whose schedules are wanted."""
    from humming.kernel.humming import HummingKernel
    register = HummingKernel.register_kernel
    HummingKernel.register_kernel = lambda self: None       # no device code is loaded yet
    import concurrent.futures
    import os

    def compile_one(case):
        problem, _, schedule = case
        layer, compute, tuning = HummingKernel._resolve_configs(
            _layer(problem).to_str(), None, json.dumps(schedule), 0)
        config = layer | compute | tuning
        config.pop("num_sms", 0)
        try:
            HummingKernel(**config)
        except Exception as error:              # a schedule that this type does not have
            return f"{problem.weights} {case[1]}: {str(error)[:120]}"
        return None
    work = [(problem, tag, schedule) for problem, m in cases if serves(problem)
            for tag, schedule in schedules(problem, m)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [text for text in pool.map(compile_one, work) if text]
    HummingKernel.register_kernel = register
    return len(work), failed


class System:
    def __init__(self, plain):
        from humming.schema import HummingWeightSchema
        from humming.transform import prepare_and_transform_humming_tensors
        problem, n, k, width = plain.problem, plain.n, plain.k, plain.bits
        tensors = {"weight": plain.packed().view(torch.int32).view(n, k * width // 32),
                   "weight_scale": plain.scales}
        if plain.zeros is not None:
            packed = ops.pack_bits(plain.zeros.t().contiguous(), width).view(torch.int32)
            tensors["zero_point"] = packed.view(plain.groups, n * width // 32).t().contiguous()
        schema = HummingWeightSchema(b_dtype=TYPES[problem.weights],
                                     weight_scale_group_size=problem.group,
                                     has_zero_point=plain.zeros is not None)
        config, packed = prepare_and_transform_humming_tensors(tensors, n, k, schema,
                                                               torch_dtype=torch.float16)
        self.problem, self.n, self.layer = problem, n, config.to_str()
        self.copies = ops.copies(packed)
        self.locks = torch.zeros(16384, dtype=torch.int32, device=ops.DEVICE)
        # Unsigned integers without zero points count from the middle.
        self.offset = float(1 << (width - 1)) \
            if problem.weights[0] == "u" and plain.zeros is None else 0.0

    def launches(self, m, a):
        """(label, launch, C) for each schedule that there is."""
        from humming.ops.gemm import humming_gemm
        out = torch.empty(m, self.n, dtype=torch.float16, device=ops.DEVICE)
        for tag, schedule in schedules(self.problem, m):
            tuning = json.dumps(schedule)
            def launch(i, tuning=tuning):
                t = self.copies[i]
                humming_gemm(layer_config=self.layer, inputs=a, weight=t["weight"],
                             weight_scale=t["weight_scale"], zero_point=t.get("zero_point"),
                             weight_scale_2=t.get("weight_scale_2"), outputs=out,
                             locks=self.locks, tuning_config=tuning)
                return out
            yield tag, launch
