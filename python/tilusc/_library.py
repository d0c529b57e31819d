"""Loads the libraries, once each, when something first asks for them."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import re
import stat
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from . import _declarations as c
from ._locks import Lock
from .errors import ArgumentError, error_of

_SUFFIX = ".so.0.2"
_HERE = Path(__file__).resolve().parent
MESSAGE = 4096      # bytes of a function's text


@functools.lru_cache(maxsize=None)
def folder() -> Path:
    """Returns the folder of the libraries: TILUS_LIBRARY_DIR, the package's own, or that of the checkout's build."""
    named = os.environ.get("TILUS_LIBRARY_DIR")
    places = [Path(named)] if named else [_HERE / "native/lib", _HERE.parents[1] / "build/release/lib"]
    for place in places:
        if (place / f"libtilus_rt{_SUFFIX}").exists():
            return place
    raise ImportError(f"tilusc finds no libtilus_rt{_SUFFIX} in {' or '.join(map(str, places))}: install the wheel,"
                      " or build the checkout")


def _load(name: str, table: Dict[str, Tuple]) -> ctypes.CDLL:
    library = ctypes.CDLL(str(folder() / f"libtilus_{name}{_SUFFIX}"))
    for function, (result, arguments) in table.items():
        entry = getattr(library, function)
        entry.restype, entry.argtypes = result, arguments
    return library


@functools.lru_cache(maxsize=None)
def rt() -> ctypes.CDLL:
    return _load("rt", c.RT)


@functools.lru_cache(maxsize=None)
def matmul() -> ctypes.CDLL:
    rt()        # which it needs, from the same folder
    return _load("matmul", c.MATMUL)


@functools.lru_cache(maxsize=None)
def attention() -> ctypes.CDLL:
    rt()
    return _load("attention", c.ATTENTION)


@functools.lru_cache(maxsize=None)
def compiler() -> ctypes.CDLL:
    """Loads LLVM with it: for the worker process only."""
    rt()
    return _load("compiler", c.COMPILER)


@functools.lru_cache(maxsize=None)
def call_module() -> Optional[Any]:
    """Loads tilusc._call, which lies beside the libraries and makes calls without ctypes. None: TILUS_PYTHON_CALL is
    "ctypes", or there is no such module for this Python."""
    spec = None
    if os.environ.get("TILUS_PYTHON_CALL") != "ctypes":
        spec = importlib.machinery.PathFinder.find_spec("tilusc._call", [str(folder())])
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def address_of(function: Any) -> int:
    """Returns the address of a function of a library."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def status_name(status: int) -> str:
    return rt().tilus_status_name(status).decode()


def check(status: int, message: Optional[ctypes.Array] = None) -> None:
    """Raises for a status that is not TILUS_OK, with the call's message, or tilus_rt_error()."""
    if status:
        text = message.value if message is not None else rt().tilus_rt_error()
        raise error_of(status_name(status), text.decode(errors="replace"))


def take_text(address: Optional[int]) -> str:
    """Copies and frees a text that a function returned for the caller to free."""
    if not address:
        raise MemoryError("out of memory")
    try:
        return ctypes.string_at(address).decode(errors="replace")
    finally:
        rt().tilus_free(address)


def sized(struct: type, **fields: object) -> ctypes.Structure:
    """Makes a struct that begins with its size."""
    return struct(struct_size=ctypes.sizeof(struct), **fields)


def encoded(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else os.fsencode(text)


def cache_directory() -> Optional[str]:
    """Returns where compiled programs are kept, as docs/cache.md says; None for no cache."""
    if os.environ.get("TILUS_CACHE") == "off":
        return None
    named, xdg, home = (os.environ.get(name) for name in ("TILUS_CACHE_DIR", "XDG_CACHE_HOME", "HOME"))
    return named or (os.path.join(xdg, "tilus") if xdg else os.path.join(home, ".cache/tilus") if home else None)


def warn_of_cache(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def check_cache() -> None:
    """Warns, as tilus_cache_open does, where plans' child processes will keep nothing, or not as much as was said."""
    if os.environ.get("TILUS_CACHE") == "off":
        return
    size, place = os.environ.get("TILUS_CACHE_SIZE"), cache_directory()
    if size and not re.fullmatch(r"0*[1-9][0-9]*[KMG]?", size):
        warn_of_cache(f'TILUS_CACHE_SIZE is a number of bytes, "500M", not "{size[:40]}": taken to be 1 GiB')
    reason = _why_refused(place) if place else None
    if reason or not place:
        warn_of_cache(f"no cache in '{place}': {reason}" if place else
                      "no cache: none of TILUS_CACHE_DIR, XDG_CACHE_HOME and HOME is set")


def _why_refused(place: str) -> Optional[str]:
    """Returns why a directory is no cache; None: it is one, or can be made."""
    try:
        info = os.lstat(place)
    except FileNotFoundError:
        above = next(path for path in Path(place).absolute().parents if path.exists())
        return None if os.access(above, os.W_OK | os.X_OK) else f"{above} cannot be written to"
    except OSError as error:
        return error.strerror
    if stat.S_ISLNK(info.st_mode):
        return "it is a symbolic link"
    if not stat.S_ISDIR(info.st_mode):
        return "it is not a directory"
    if info.st_uid != os.geteuid():
        return f"it belongs to user {info.st_uid}, this process is user {os.geteuid()}"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write there: its mode is {info.st_mode & 0o777:03o}, at most 755 is allowed"
    return None if os.access(place, os.W_OK | os.X_OK) else "it cannot be written to"


def child_options() -> ctypes.Structure:
    """Options of compiling in a child process: tilus-llc beside the libraries, and the cache."""
    return sized(c.tilus_child_options, cache_directory=encoded(cache_directory()))


@functools.lru_cache(maxsize=None)
def tunings() -> Optional[bytes]:
    """Reads the file that TILUS_TUNINGS names, which `tilus-tune export` wrote: once, so that all plans of the process
    have the same. None: it names none."""
    path = os.environ.get("TILUS_TUNINGS")
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArgumentError(f"TILUS_TUNINGS is {path!r}, which cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def tunings_named() -> Iterator[None]:
    """Names the file in what the library says of its text."""
    try:
        yield
    except ArgumentError as error:
        if not str(error).startswith("tunings: "):
            raise
        raise ArgumentError(f"TILUS_TUNINGS is {os.environ.get('TILUS_TUNINGS')!r}, whose {error}",
                            error.status) from None


class Handles:
    """Handles of a library of kernels, one for each runtime, which live as long as the process. Kernels come from the
    directory that the environment variable `directory` names, where it has them, else from a child process, by the
    function `compiler` of libtilus_rt. `more` returns other options. Thread safe."""

    def __init__(self, load: Callable[[], ctypes.CDLL], prefix: str, compiler: str, directory: str = "",
                 more: Callable[[], Dict[str, Any]] = dict) -> None:
        self._load, self._prefix, self._compiler, self._directory, self._more = load, prefix, compiler, directory, more
        self._lock = Lock()
        self._open: Dict[int, ctypes.c_void_p] = {}

    def of(self, runtime: ctypes.c_void_p, compiles: bool) -> ctypes.c_void_p:
        """Finds or opens the handle for a tilus_rt; `compiles`: of a driver, so that the cache matters."""
        with self._lock:
            key = runtime.value or 0
            if key not in self._open:
                self._open[key] = self._opened(runtime)
                if compiles:
                    check_cache()
            return self._open[key]

    def _opened(self, runtime: ctypes.c_void_p) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        options = sized(getattr(c, f"{self._prefix}_options"), directory=encoded(os.environ.get(self._directory)),
                        compile=ctypes.cast(getattr(rt(), self._compiler), ctypes.c_void_p),
                        compile_data=ctypes.addressof(self._child), **self._more())
        with tunings_named():
            check(getattr(self._load(), f"{self._prefix}_open")(runtime, ctypes.byref(options), ctypes.byref(handle)))
        return handle

    @functools.cached_property
    def _child(self) -> ctypes.Structure:
        return child_options()


def target_for(capability: int) -> str:
    """Returns the best target for a device of a compute capability, 90 for 9.0, as tilus_target_for does."""
    best = None
    for name, sm, own in c.TARGETS:
        runs = sm == capability if own else sm <= capability
        if runs and (best is None or sm > best[1] or own):
            best = name, sm
    if best is None:
        raise error_of("TILUS_ERROR_UNSUPPORTED", f"no target for a device of compute capability {capability}")
    return best[0]
