"""Says what the package finds, a line each, and checks a small program on each engine."""
from __future__ import annotations

import ctypes
import os
import shutil
import sys
import time
from typing import Callable, List

from . import __version__
from ._library import cache_directory, call_module, folder, rt

_PROGRAM = """tilus 1
program @triple<%n / 128>(%x: ptr<f32> {align = 16}, %n: i32 {divisible = 128}) warps(1) {
  %block = block_indices
  %g = view_global %x : f32[%n]
  %a = load_global %g[%block * 128] : f32[128] @ spatial(32).local(4)
  %b = mul %a, 3.0
  store_global %b, %g[%block * 128]
}
"""
_COUNT = 1024


def main(words: List[str]) -> int:
    """Prints the report; returns 1 where something that is there does not work."""
    if words:
        print(f"python -m tilusc doctor takes no arguments, got {words[0]!r}", file=sys.stderr)
        return 2
    return not all([_row("tilusc", lambda: f"{__version__}, Python {sys.version.split()[0]}"),
                    _row("libraries", lambda: f"{rt().tilus_rt_version().decode()} in {folder()}"),
                    _row("compiler", _compiler), _row("ptxas", _ptxas), _row("cache", _cache),
                    _row("torch", _torch), _row("calls", _calls), _row("driver", _driver),
                    *(_row(f"on {engine}", lambda engine=engine: _run(engine)) for engine in ("interp", "cpu", "gpu"))])


def _row(name: str, find: Callable[[], str]) -> bool:
    from .errors import NoDevice
    try:
        text, good = find(), True
    except NoDevice as error:
        text, good = f"none: {error}", True
    except Exception as error:      # what it is belongs into the report
        text, good = f"FAILED: {type(error).__name__}: {error}", False
    print(f"{name:10} {text}")
    return good


def _compiler() -> str:
    from .engines import worker
    found = worker.ask("describe")
    program = os.environ.get("TILUS_LLC") or str(folder().parent / "bin/tilus-llc")
    return f"{found['compiler']}, LLVM {found['llvm']}, revision {found['revision']}; {program}"


def _ptxas() -> str:
    return shutil.which("ptxas") or "none; the driver makes machine code"


def _cache() -> str:
    place = cache_directory()
    if place is None:
        return "off"
    files = os.listdir(place) if os.path.isdir(place) else []
    return f"{place}, {len(files)} files"


def _torch() -> str:
    import importlib.util
    if importlib.util.find_spec("torch") is None:
        return "none"
    from importlib.metadata import version
    return version("torch")


def _calls() -> str:
    return "tilusc._call" if call_module() else "ctypes, slower"


def _driver() -> str:
    from .runtime import devices, driver
    version = rt().tilus_rt_driver_version(driver())
    rows = [f"CUDA {version // 1000}.{version % 1000 // 10}"]
    rows += [f"{' ' * 10} {d.number}: {d.name}, {d.capability / 10:.1f}, {d.multiprocessors} multiprocessors,"
             f" {d.memory / 2**30:.0f} GiB" for d in devices()]
    return "\n".join(rows)


def _run(engine: str) -> str:
    """Triples numbers; on a GPU by the runtime alone."""
    from .kernel import jit
    values = (ctypes.c_float * _COUNT)(*range(_COUNT))
    started = time.perf_counter()
    kernel = jit(_PROGRAM, engine=engine)
    if engine == "gpu":
        _run_on_gpu(kernel, values)
    else:
        kernel(_Values(values), _COUNT)
    if any(value != 3 * i for i, value in enumerate(values)):
        raise ArithmeticError("wrong results")
    return f"a program compiled, ran and gave the right numbers, in {time.perf_counter() - started:.2f} s"


class _Values:
    """An array of ctypes with NumPy's interface."""

    def __init__(self, values: ctypes.Array) -> None:
        self.__array_interface__ = {"data": (ctypes.addressof(values), False), "shape": (len(values),),
                                    "typestr": "<f4", "version": 3}


def _run_on_gpu(kernel: object, values: ctypes.Array) -> None:
    from ._library import check
    from .runtime import driver
    address, size = ctypes.c_uint64(), ctypes.sizeof(values)
    check(rt().tilus_rt_allocate(driver(), 0, size, ctypes.byref(address)))
    try:
        check(rt().tilus_rt_upload(driver(), 0, address, values, size))
        kernel(address.value, _COUNT)
        check(rt().tilus_rt_download(driver(), 0, values, address, size))
    finally:
        check(rt().tilus_rt_release(driver(), 0, address))
