#!/usr/bin/env python3
"""Measures what a call from Python costs on the host, without a GPU: the tests' driver, which only records launches,
stands for libcuda, and torch's tensors in host memory for those on a GPU.

    ninja -C build/release && python3 bench/python_calls.py [--json]

The driver's own launch is therefore not in it; torch's stream and capture are asked of functions that do nothing. Each
time is the least mean of many short rows of calls, so that other work on the machine counts little, in us; once by
tilusc._call and once by ctypes, with two processes."""
import argparse
import gc
import json
import os
import subprocess
import sys
import timeit
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests" / "package"))
from programs import SCALE  # noqa: E402

LIBRARIES = ROOT / "build/release/lib"
CALLS, ROWS = 40, 1000


def microseconds(call):
    call()
    return min(timeit.repeat(call, number=CALLS, repeat=ROWS)) / CALLS * 1e6


def aligned(torch, shape, dtype):
    """Returns zeros at a multiple of 256 bytes, as a GPU's memory begins."""
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    memory = torch.zeros(size + 256, dtype=torch.uint8)
    first = -memory.data_ptr() % 256
    return memory[first:first + size].view(dtype).view(shape)


def product_calls(torch, rows=4, size=2048):
    """Yields names and functions of products of a plan whose tensors are in host memory, device -1 of torch."""
    from tilusc import _torch_matmul, _workspaces, matmul, torch_ops
    from tilusc.nn import QuantizedLinear
    _torch_matmul._stream_of, _torch_matmul.is_capturing = (0).__mul__, bool
    problem = matmul.Problem("u4", size, size, 128, "integer", bias=True)
    plan = matmul.plan(problem, 0)
    runner = _torch_matmul.Runner(plan)
    runner.device, runner.place = -1, torch.device("cpu")
    x, out = (aligned(torch, (rows, size), torch.float16) for _ in range(2))
    packed = aligned(torch, (plan.packed_size,), torch.uint8)
    bias = aligned(torch, (size,), torch.float16)
    need = plan.prepare(rows)
    _workspaces.streams[-1, 0] = _workspaces._allocate(0, need), need
    runner.checked.remember(packed)
    plan._multiply = runner.function()
    torch_ops.plan = lambda *_: plan
    layer, text = QuantizedLinear(problem, packed, bias), str(problem)
    yield "plan.run(a, packed, out)", lambda: plan.run(x, packed, out, bias=bias)
    yield "plan.run(a, packed)", lambda: plan.run(x, packed, bias=bias)
    yield "torch.ops.tilusc.matmul", lambda: torch.ops.tilusc.matmul(x, packed, text, bias)
    yield "QuantizedLinear", lambda: layer(x)


def kernel_calls(torch):
    """Yields the call of a kernel with four arguments, and its name."""
    import tilusc
    from tilusc import kernel
    scale = tilusc.jit(SCALE)
    scale.prepare(0)
    places = {"_cuda_getCurrentRawStream": (0).__mul__, "_cuda_getDevice": (-1).__int__}
    with mock.patch.multiple(torch._C, create=True, **places):
        scale._quick = kernel._Quick(scale._load(0), -1)
    kernel.is_current = bool        # what ctypes asks instead
    x = aligned(torch, (256,), torch.float32)
    yield "jit kernel", lambda: scale(x, x, 1.0, 256)


def measure():
    sys.path.insert(0, str(ROOT / "python"))
    import torch
    from tilusc._library import call_module
    if os.environ["TILUS_PYTHON_CALL"] == "module" and call_module() is None:
        sys.exit(f"python_calls.py: {LIBRARIES} has no module tilusc._call for this Python")
    torch.set_num_threads(1)
    gc.disable()
    calls = [*product_calls(torch), *kernel_calls(torch)]
    a = torch.zeros(16, 16)
    calls += [("torch.empty_like", lambda: torch.empty_like(a)), ("torch.mm in host memory", lambda: torch.mm(a, a))]
    with torch.no_grad():
        return {name: microseconds(call) for name, call in calls}


def measure_in_child(how):
    environment = dict(os.environ, TILUS_LIBCUDA=str(LIBRARIES / "libfake_cuda.so"), TILUS_LIBRARY_DIR=str(LIBRARIES),
                       TILUS_PYTHON_CALL=how)
    child = subprocess.run([sys.executable, __file__, "--measure"], env=environment, stdout=subprocess.PIPE)
    if child.returncode:
        sys.exit(child.returncode)
    return json.loads(child.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="prints the times as JSON")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure()))
        return
    times = {how: measure_in_child(how) for how in ("module", "ctypes")}
    if options.json:
        print(json.dumps(times))
        return
    print(f"| call | {' | '.join(times)} |\n|---|---|---|")
    for name in times["module"]:
        print(f"| {name} | {' | '.join(f'{row[name]:.2f}' for row in times.values())} |")


if __name__ == "__main__":
    main()
