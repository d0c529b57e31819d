"""Multiplies Python's integers on the CPU engine: bigint.py DIRECTORY."""
import ctypes
import os
import random
import sys

from tilusc import bigint


class Options(ctypes.Structure):
    """tilus_rt_options."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("library", ctypes.c_char_p), ("log", ctypes.c_void_p),
                ("log_data", ctypes.c_void_p), ("devices", ctypes.c_void_p), ("device_count", ctypes.c_size_t),
                ("engine", ctypes.c_void_p)]


library = bigint.load()
compiler = ctypes.CDLL(os.path.join(os.environ["TILUS_LIBRARY_DIR"], "libtilus_compiler.so.0.2"))
for function in (library.tilus_find_device, compiler.tilus_cpu_engine):
    function.restype = ctypes.c_void_p
options = Options(ctypes.sizeof(Options), devices=library.tilus_find_device(b"h200"), device_count=1,
                  engine=compiler.tilus_cpu_engine())
bigint.compile_kernels(sys.argv[1], library, names=["bigint_product_512_sm_90a"])
rng = random.Random(1)
with bigint.Products(sys.argv[1], library, runtime_options=ctypes.byref(options)) as products:
    print(products.describe(128, 256, 3))
    a, b = ([rng.getrandbits(bits) for bits in sizes] for sizes in ((1000, 0, 1023), (2000, 17, 2048)))
    assert products.mul(a, b) == [x * y for x, y in zip(a, b)]
    assert products.mul(3 ** 500, 7) == 3 ** 500 * 7 and products.mul(0, 0) == 0 and products.mul([], []) == []
    assert products.square(a) == [x * x for x in a] and products.square(5) == 25
    print("equal")
    try:
        products.mul(1 << 8000, 1 << 8000)
    except bigint.Error as error:
        print(error)
