#!/usr/bin/env python3
"""Launches @accumulate of test/gpu/runtime_check/programs.tilus, y = y + x, on torch
tensors and torch's stream, with nothing but ctypes:

    torch_launch.py build/release/lib/libtilus_rt.so accumulate.tilusk
"""
import ctypes
import sys

import torch

tilus = ctypes.CDLL(sys.argv[1])
tilus.tilus_rt_error.restype = ctypes.c_char_p
artefact = open(sys.argv[2], "rb").read()
rt, kernel, message = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(1024)


def check(status):
    if status != 0:
        raise RuntimeError(tilus.tilus_rt_error().decode())


def launch(*args):
    """Tensors go by address, numbers by value; a tilus_arg is 64 bits of either."""
    words = [a.data_ptr() if isinstance(a, torch.Tensor) else a & (1 << 64) - 1 for a in args]
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    check(tilus.tilus_launch(kernel, stream, (ctypes.c_uint64 * len(words))(*words),
                             ctypes.c_size_t(len(words)), ctypes.c_uint64(0), ctypes.c_size_t(0)))


x = torch.arange(4096, dtype=torch.int32, device="cuda")
y = torch.zeros_like(x)
check(tilus.tilus_rt_open(None, ctypes.byref(rt), message, ctypes.c_size_t(len(message))))
check(tilus.tilus_kernel_load(rt, artefact, ctypes.c_size_t(len(artefact)), ctypes.byref(kernel)))
check(tilus.tilus_kernel_prepare(kernel, x.device.index))
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())     # which makes x and y
with torch.cuda.stream(stream):
    for _ in range(3):
        launch(x, y, x.numel())
torch.cuda.synchronize()
assert torch.equal(y, 3 * x)
print("PASSED: y is 3 * x")
tilus.tilus_kernel_unload(kernel)
tilus.tilus_rt_close(rt)
