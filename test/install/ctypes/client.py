"""client.py LIBRARIES: plans, quantizes, packs, compiles and interprets by ctypes alone, in about a hundred
lines: what a binding of another language needs."""
import ctypes
import sys
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

FOLDER = Path(sys.argv[1])
rt, matmul, compiler = (ctypes.CDLL(FOLDER / f"libtilus_{name}.so.0.2") for name in ("rt", "matmul", "compiler"))


class Sized(ctypes.Structure):
    """A struct that begins with its size."""
    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class RtOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("library", c_char_p), ("log", c_void_p), ("log_data", c_void_p),
                ("devices", c_void_p), ("device_count", c_size_t)]


class Problem(Sized):
    _fields_ = [("struct_size", c_size_t), ("weights", c_char_p), ("activations", c_char_p), ("scales", c_char_p),
                ("result", c_char_p), ("n", c_int64), ("k", c_int64), ("group", c_int64), ("zeros", c_int),
                ("function", c_int), ("bias", c_bool), ("residual", c_bool)]


class Weights(Sized):
    _fields_ = [("struct_size", c_size_t), ("codes", c_void_p), ("scales", c_void_p), ("zeros", c_void_p),
                ("transposed", c_bool)]


class Quantization(Sized):
    _fields_ = [("struct_size", c_size_t), ("values", c_char_p), ("weights", c_char_p), ("scales", c_char_p),
                ("n", c_int64), ("k", c_int64), ("group", c_int64), ("zeros", c_int), ("range", c_int)]


class Quantized(Sized):
    _fields_ = [("struct_size", c_size_t), ("codes", c_void_p), ("codes_size", c_size_t), ("scales", c_void_p),
                ("scales_size", c_size_t), ("zeros", c_void_p), ("zeros_size", c_size_t)]


class Jit(Sized):
    _fields_ = [("struct_size", c_size_t), ("target", c_char_p), ("capability", c_int), ("opt_level", c_uint)]


class Buffer(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


rt.tilus_find_device.restype = rt.tilus_rt_error.restype = rt.tilus_status_name.restype = c_void_p
rt.tilus_rt_error.restype = rt.tilus_status_name.restype = c_char_p
rt.tilus_free.argtypes = matmul.tilus_matmul_plan_free.argtypes = [c_void_p]
matmul.tilus_matmul_packed_size.restype, matmul.tilus_matmul_packed_size.argtypes = c_size_t, [c_void_p]
compiler.tilus_diag_new.restype = compiler.tilus_parse.restype = compiler.tilus_diag_format.restype = c_void_p
compiler.tilus_parse.argtypes = [c_void_p, c_char_p, c_char_p, c_size_t, c_uint, c_void_p, c_size_t]
compiler.tilus_interpret.argtypes = [c_void_p, c_char_p, POINTER(c_uint64), c_size_t, POINTER(Buffer), c_size_t,
                                     c_void_p]
message = ctypes.create_string_buffer(256)


def check(status, why=None):
    if status:
        raise RuntimeError(f"{rt.tilus_status_name(status).decode()}: {(why or rt.tilus_rt_error()).decode()}")


def plan_and_pack(n, k):
    """Packs a matrix for a device that is only described."""
    runtime, library, plan = c_void_p(), c_void_p(), c_void_p()
    options = RtOptions(devices=rt.tilus_find_device(b"h200"), device_count=1)
    check(rt.tilus_rt_open(byref(options), byref(runtime), message, c_size_t(256)), message.value)
    check(matmul.tilus_matmul_open(runtime, None, byref(library)))
    problem = Problem(weights=b"f6e3m2", n=n, k=k, group=128)
    check(matmul.tilus_matmul_plan_create(library, byref(problem), 0, byref(plan)))
    how, out = Quantization(values=b"f32", weights=b"f6e3m2", n=n, k=k, group=128), Quantized()
    check(rt.tilus_quantized_sizes(byref(how), byref(out), message, c_size_t(256)), message.value)
    codes, scales = (ctypes.create_string_buffer(size) for size in (out.codes_size, out.scales_size))
    out.codes, out.scales = ctypes.addressof(codes), ctypes.addressof(scales)
    values = (ctypes.c_float * (n * k))(*(0.25 * (i % 7) for i in range(n * k)))
    check(rt.tilus_quantize(byref(how), values, c_size_t(4 * n * k), byref(out), message, c_size_t(256)), message.value)
    packed = ctypes.create_string_buffer(matmul.tilus_matmul_packed_size(plan))
    check(matmul.tilus_matmul_pack(plan, byref(Weights(codes=out.codes, scales=out.scales)), packed))
    print(f"packed {len(packed)} bytes")
    matmul.tilus_matmul_plan_free(plan)
    matmul.tilus_matmul_close(library)
    rt.tilus_rt_close(runtime)


def compile_and_run(text):
    artefact, size, diag = c_void_p(), c_size_t(), c_void_p(compiler.tilus_diag_new())
    check(compiler.tilus_jit(diag, text, c_size_t(len(text)), byref(Jit(target=b"sm_90a", opt_level=3)),
                             byref(artefact), byref(size)), b"compiling")
    print(f"artefact: {ctypes.string_at(artefact, 6)!r}")
    rt.tilus_free(artefact)
    compiler.tilus_diag_free(diag)
    diag, data = c_void_p(compiler.tilus_diag_new()), (ctypes.c_float * 32)(*range(32))
    module = c_void_p(compiler.tilus_parse(diag, b"twice", text, len(text), 1, None, 0))
    check(compiler.tilus_interpret(module, b"twice", (c_uint64 * 1)(0), 1,
                                   byref(Buffer(ctypes.addressof(data), 128)), 1, None), b"interpreter")
    print(f"twice: {data[0]:g} {data[31]:g}")
    compiler.tilus_module_free(module)
    compiler.tilus_diag_free(diag)


plan_and_pack(1024, 512)
compile_and_run(b"tilus 1\nprogram @twice<1>(%x: ptr<f32>) warps(1) {\n  %g = view_global %x : f32[32]\n"
                b"  %a = load_global %g[0] : f32[32] @ spatial(32)\n  %b = add %a, %a\n  store_global %b, %g[0]\n}\n")
