"""Exact products of big integers on a GPU, by libtilus_bigint (docs/bigint.md).

    python3 -m tilusc.bigint DIRECTORY      compiles all kernels into a directory, once

    with Products("DIRECTORY") as products:
        products.mul(3 ** 1000, 5 ** 2000)              # Python's integers
        products.mul([a0, a1, ..], [b0, b1, ..])        # a batch
        products.square(a)

Numbers go to the device and back. Programs whose numbers stay there call the C interface, include/tilus/bigint.h.
"""
import argparse
import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path

from . import _library

TARGETS = ("sm_80", "sm_90a")       # of kernels: any device, and Hopper
TRANSFORMS = ("spread", "gather", "forward", "backward")        # programs of bigint_ntt.tilus


class _Problem(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("a_bytes", c_int64), ("b_bytes", c_int64), ("batch", c_int64),
                ("square", c_bool), ("method", c_int)]


class _Call(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("a", c_uint64), ("b", c_uint64), ("c", c_uint64),
                ("workspace", c_uint64), ("workspace_size", c_size_t)]


class _Options(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("kernels", c_void_p), ("kernel_count", c_size_t),
                ("directory", c_char_p), ("compile", c_void_p), ("compile_data", c_void_p)]


PROTOTYPES = {
    "tilus_rt_open": (c_int, c_void_p, POINTER(c_void_p), c_char_p, c_size_t),
    "tilus_rt_close": (None, c_void_p),
    "tilus_rt_error": (c_char_p,),
    "tilus_rt_allocate": (c_int, c_void_p, c_int, c_size_t, POINTER(c_uint64)),
    "tilus_rt_release": (c_int, c_void_p, c_int, c_uint64),
    "tilus_rt_upload": (c_int, c_void_p, c_int, c_uint64, c_char_p, c_size_t),
    "tilus_rt_download": (c_int, c_void_p, c_int, c_char_p, c_uint64, c_size_t),
    "tilus_free": (None, c_void_p),
    "tilus_bigint_open": (c_int, c_void_p, POINTER(_Options), POINTER(c_void_p)),
    "tilus_bigint_close": (None, c_void_p),
    "tilus_bigint_kernels": (c_void_p, c_void_p),
    "tilus_bigint_plan_create": (c_int, c_void_p, POINTER(_Problem), c_int, POINTER(c_void_p)),
    "tilus_bigint_plan_free": (None, c_void_p),
    "tilus_bigint_describe": (c_void_p, c_void_p),
    "tilus_bigint_workspace_size": (c_size_t, c_void_p),
    "tilus_bigint_prepare": (c_int, c_void_p),
    "tilus_bigint_mul": (c_int, c_void_p, c_void_p, POINTER(_Call)),
}


class Error(Exception):
    """A call of the library failed; the text is tilus_rt_error's."""


def load(directory=None):
    """The library, which loads libtilus_rt too: in `directory`, else where those of the package are."""
    library = ctypes.CDLL(str(Path(directory or _library.folder()) / "libtilus_bigint.so.0.2"))
    for name, (result, *arguments) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _take_text(library, address):
    if not address:
        raise MemoryError
    text = ctypes.string_at(address).decode()
    library.tilus_free(address)
    return text


def kernels(library):
    """Name, which ends with the target, program and parameters of each kernel."""
    return [line.split("\t") for line in _take_text(library, library.tilus_bigint_kernels(None)).splitlines()]


def _template(program):
    """The text of the template that has the program, as the compiler library holds it; loads LLVM."""
    text = _library.compiler().tilus_template_text
    text.restype, text.argtypes = c_char_p, [c_char_p, POINTER(c_size_t)]
    return text(b"bigint_ntt" if program in TRANSFORMS else b"bigint", byref(c_size_t()))


def compile_kernels(directory, library, llc="tilus-llc", target="sm_90a", names=None, jobs=os.cpu_count()):
    """Compiles all kernels of a target, or those of these names, into the directory, by the program `llc`."""
    if target not in TARGETS:
        raise ValueError(f"target is {target!r}, not one of {', '.join(TARGETS)}")
    os.makedirs(directory, exist_ok=True)

    def compile_one(kernel):
        name, program, parameters = kernel
        defines = [word for parameter in parameters.split() for word in ("-D", parameter)]
        limits = ["--limit", "optimized=1048576"] if program in TRANSFORMS else []
        subprocess.run([llc, f"-mcpu={target}", f"--program=@{program}", *defines, *limits, "-", "-o",
                        str(Path(directory) / f"{name}.tilusk")],
                       input=_template(program), check=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(compile_one, [kernel for kernel in kernels(library) if kernel[0].endswith(f"_{target}") and
                                    (names is None or kernel[0] in names)]))


class Products:
    """Multiplies on one device. Not thread safe."""

    def __init__(self, directory, library=None, device=0, runtime_options=None):
        self._library, self._device = library or load(), device
        self._rt, self._bigint, self._addresses = c_void_p(), c_void_p(), []
        message = ctypes.create_string_buffer(512)
        if self._library.tilus_rt_open(runtime_options, byref(self._rt), message, len(message)):
            raise Error(message.value.decode())
        options = _Options(ctypes.sizeof(_Options), directory=os.fsencode(directory))
        try:
            self._ok(self._library.tilus_bigint_open(self._rt, byref(options), byref(self._bigint)))
        except Error:
            self.close()
            raise

    def close(self):
        """Unloads the kernels and leaves the device; the object is of no use then."""
        self._library.tilus_bigint_close(self._bigint)
        if self._rt:
            self._library.tilus_rt_close(self._rt)
        self._rt, self._bigint = c_void_p(), c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _ok(self, status):
        if status:
            raise Error(self._library.tilus_rt_error().decode())

    def _plan(self, a_bytes, b_bytes, batch, square):
        plan = c_void_p()
        problem = _Problem(ctypes.sizeof(_Problem), a_bytes, b_bytes, batch, square)
        self._ok(self._library.tilus_bigint_plan_create(self._bigint, byref(problem), self._device, byref(plan)))
        return plan

    def describe(self, a_bytes, b_bytes, batch=1, square=False):
        """How products of these sizes are computed."""
        plan = self._plan(a_bytes, b_bytes, batch, square)
        text = _take_text(self._library, self._library.tilus_bigint_describe(plan))
        self._library.tilus_bigint_plan_free(plan)
        return text

    def _allocate(self, size):
        address = c_uint64()
        self._ok(self._library.tilus_rt_allocate(self._rt, self._device, size, byref(address)))
        self._addresses.append(address.value)
        return address.value

    def _upload(self, numbers, size):
        data = b"".join(number.to_bytes(size, "little") for number in numbers)
        address = self._allocate(len(data))
        self._ok(self._library.tilus_rt_upload(self._rt, self._device, address, data, len(data)))
        return address

    def _run(self, plan, a, b, a_bytes, b_bytes):
        size = a_bytes + b_bytes
        self._ok(self._library.tilus_bigint_prepare(plan))
        call = _Call(ctypes.sizeof(_Call), self._upload(a, a_bytes), 0 if b is a else self._upload(b, b_bytes),
                     self._allocate(size * len(a)))
        call.workspace_size = self._library.tilus_bigint_workspace_size(plan)
        call.workspace = self._allocate(call.workspace_size)
        self._ok(self._library.tilus_bigint_mul(plan, None, byref(call)))
        result = ctypes.create_string_buffer(size * len(a))
        self._ok(self._library.tilus_rt_download(self._rt, self._device, result, call.c, len(result)))
        return [int.from_bytes(result.raw[i * size:(i + 1) * size], "little") for i in range(len(a))]

    def _products(self, a, b):
        if len(a) != len(b):
            raise ValueError(f"{len(a)} numbers times {len(b)}")
        if not a:
            return []
        # Lengths of the longest, in units of 16 bytes
        a_bytes, b_bytes = (max(1, *((number.bit_length() + 127) // 128 for number in numbers)) * 16
                            for numbers in (a, b))
        plan = self._plan(a_bytes, b_bytes, len(a), b is a)
        try:
            return self._run(plan, a, b, a_bytes, b_bytes)
        finally:
            while self._addresses:
                self._library.tilus_rt_release(self._rt, self._device, self._addresses.pop())
            self._library.tilus_bigint_plan_free(plan)

    def mul(self, a, b):
        """a * b, of integers from 0 on, or of each pair of two sequences of them."""
        if isinstance(a, int):
            return self._products([a], [b])[0]
        return self._products(list(a), list(b))

    def square(self, a):
        """a * a, of an integer from 0 on, or of each of a sequence; faster than mul(a, a)."""
        numbers = [a] if isinstance(a, int) else list(a)
        squares = self._products(numbers, numbers)
        return squares[0] if isinstance(a, int) else squares


def main():
    parser = argparse.ArgumentParser(prog="tilusc.bigint", description="Compiles the kernels of products of integers.")
    parser.add_argument("directory")
    inside = _library.folder().parent / "bin/tilus-llc"
    parser.add_argument("--llc", default=str(inside) if inside.exists() else "tilus-llc")
    parser.add_argument("--target", choices=TARGETS, default="sm_90a")
    arguments = parser.parse_args()
    compile_kernels(arguments.directory, load(), arguments.llc, arguments.target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
