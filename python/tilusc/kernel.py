"""Programs as functions of arrays: `tilusc.jit`."""
from __future__ import annotations

import ctypes
import numbers
import os
import struct
import sys
import weakref
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple, Union

from . import _declarations as c
from . import engines
from ._host_memory import HostMemory
from ._library import address_of, call_module, check, rt, target_for
from ._locks import Lock
from .arrays import Array, describe, fits, is_tensor, torch_module, torch_types
from .compiler import artefact_target, compile_source
from .errors import ArgumentError
from .runtime import capability, current_device, current_stream, driver, entered, is_current
from .signature import Argument, read_signature
from .source import Source, make_source

_ENGINES = ("gpu", "cpu", "interp")
_MASK = (1 << 64) - 1
_HALF = 1 << 63
_MOST_REAL = int(sys.float_info.max)
_HOST_ALIGN = 16        # that memory of NumPy and torch has; the engines' copies have all that is promised
_SPECIAL_STREAMS = 2    # 0 .. 2 are the driver's, of the current context


class Loaded:
    """An artefact in the runtime."""

    def __init__(self, artefact: bytes) -> None:
        library, self.handle = rt(), ctypes.c_void_p()
        check(library.tilus_kernel_load(driver(), artefact, len(artefact), ctypes.byref(self.handle)))
        info = library.tilus_artefact_kernel(library.tilus_kernel_artefact(self.handle))
        self.arguments = read_signature(info)
        described = ctypes.cast(info, ctypes.POINTER(c.tilus_kernel_info)).contents
        self.has_workspace = described.workspace_count > 0
        self._launch = library.tilus_launch
        self._scratch: Dict[Tuple[int, int], Tuple[int, int]] = {}
        weakref.finalize(self, library.tilus_kernel_unload, self.handle).atexit = False

    def launch(self, words: ctypes.Array, device: int, stream: int) -> None:
        address, size, kept = 0, 0, None
        if self.has_workspace:
            address, size, kept = self._workspace(words, device, stream)
        if stream <= _SPECIAL_STREAMS and not is_current(device):
            with entered(device):
                check(self._launch(self.handle, stream, words, len(words), address, size))
        else:
            status = self._launch(self.handle, stream, words, len(words), address, size)
            if status:
                check(status)
        del kept

    def _workspace(self, words: ctypes.Array, device: int, stream: int) -> Tuple[int, int, Any]:
        """Lends memory to one launch: torch's allocator keeps it for the stream, in a capture for the graph;
        without torch each stream has its own, for good."""
        need = ctypes.c_size_t()
        check(rt().tilus_workspace_size(self.handle, words, len(words), ctypes.byref(need)))
        torch = torch_module()
        if need.value == 0:
            return 0, 0, None
        if torch is not None and torch.cuda.is_initialized():
            lent = torch.empty(need.value, dtype=torch.uint8, device=torch.device("cuda", device))
            if stream != current_stream(device):
                lent.record_stream(torch.cuda.ExternalStream(stream, device=device))
            return lent.data_ptr(), need.value, lent
        address, size = self._scratch.get((device, stream), (0, 0))
        if size < need.value:
            fresh = ctypes.c_uint64()
            check(rt().tilus_rt_allocate(driver(), device, need, ctypes.byref(fresh)))
            if address:
                check(rt().tilus_rt_synchronize(driver(), device))
                check(rt().tilus_rt_release(driver(), device, address))
            address, size = self._scratch[device, stream] = fresh.value, need.value
        return address, size, None


class Kernel:
    """A program that is called with its arguments, by position or by name.

    Pointers take torch tensors, objects with `__cuda_array_interface__`, `__array_interface__` (NumPy) or
    `__dlpack__`, or addresses as integers; scalars take numbers. Arrays must be contiguous and of the type that
    the program names: integers of the same width for a type that others lack, bytes for packed codes.

    Arrays on a GPU are launched on there: on torch's current stream where torch is loaded, else on the default
    stream, or on `stream`. Nothing waits. Arrays in host memory are for the CPU engine, which runs the compiled
    code, or the interpreter (`engine`); the call returns when they are changed. Calls of any threads."""

    def __init__(self, source: Optional[Source], artefact: Optional[bytes] = None, *, engine: Optional[str] = None,
                 target: Optional[str] = None, check_races: bool = False) -> None:
        if engine not in (None,) + _ENGINES:
            raise ArgumentError(f"engine is {engine!r}, not one of {', '.join(_ENGINES)}")
        self.source, self.engine, self.target, self.check_races = source, engine, target, check_races
        self._artefact = artefact
        self._loaded: Dict[str, Loaded] = {}        # by target
        self._quick: Optional[_Quick] = None        # of the last launch of torch tensors
        self._lock = Lock()
        self._arguments: Optional[List[Argument]] = None

    @property
    def arguments(self) -> List[Argument]:
        """The arguments that the program takes, with their facts."""
        if self._arguments is None:
            self._arguments = self._find_arguments()
        return self._arguments

    def _find_arguments(self) -> List[Argument]:
        if self.source is None:
            return _artefact_arguments(self._artefact)
        for loaded in self._loaded.values():
            return loaded.arguments
        return engines.signature(self.source)["arguments"]

    def artefact(self, target: Optional[str] = None) -> bytes:
        """Returns the compiled program for a target, by default that of the current GPU."""
        if self.source is None:
            return self._artefact or b""
        return compile_source(self.source, target or self.target or target_for(capability(current_device())))

    def prepare(self, device: Optional[int] = None) -> None:
        """Does all that is slow, so that the launches on a GPU are quick, and may be captured into a graph."""
        device = current_device() if device is None else device
        check(rt().tilus_kernel_prepare(self._load(device).handle, device))

    def __call__(self, *args: Any, stream: Optional[int] = None, **named: Any) -> None:
        if named:
            args = self._place(args, named)
        if self._quick is not None and self._quick.launch(args, stream):
            return
        arrays = [value if type(value) in (int, float) else self._describe(i, value) for i, value in enumerate(args)]
        if self._runs_on_host(arrays):
            self._run_on_host(arrays)
        else:
            self._launch(arrays, stream)

    def _describe(self, number: int, value: Any) -> Any:
        try:
            return _describe(value)
        except ArgumentError as error:
            if number >= len(self.arguments):
                raise
            argument = self.arguments[number]
            if argument.kind == "pointer":
                raise ArgumentError(f"argument {argument.name}: {error}") from None
            raise ArgumentError(f"argument {argument.name} is {value!r}; the program takes {_kind(argument)}") from None

    # ---- a GPU ----

    def _load(self, device: int) -> Loaded:
        target = self.target or (artefact_target(self._artefact) if self._artefact else target_for(capability(device)))
        loaded = self._loaded.get(target)
        if loaded is None:
            with self._lock:
                loaded = self._loaded.get(target)
                if loaded is None:
                    loaded = self._loaded[target] = Loaded(self.artefact(target))
        return loaded

    def _launch(self, values: Sequence[Any], stream: Optional[int]) -> None:
        device = _device_of(values)
        loaded = self._load(device)
        _check_count(values, loaded.arguments)
        words = (ctypes.c_uint64 * len(values))(*(_word(a, v, device) for a, v in zip(loaded.arguments, values)))
        loaded.launch(words, device, current_stream(device) if stream is None else stream)
        if any(isinstance(v, Array) and is_tensor(v.owner) for v in values):
            self._quick = _Quick(loaded, device)

    # ---- this machine ----

    def _runs_on_host(self, values: Sequence[Any]) -> bool:
        if self.engine is not None:
            return self.engine != "gpu"
        arrays = [v for v in values if isinstance(v, Array)]
        return bool(arrays) and all(a.device is None for a in arrays)

    def _run_on_host(self, values: Sequence[Any]) -> None:
        if self.source is None:
            raise ArgumentError("an artefact runs on a GPU; tilusc.jit(text) makes a kernel for the engines, too")
        _check_count(values, self.arguments)
        for argument, value in zip(self.arguments, values):
            _check_host_value(argument, value)
        memory = HostMemory([(a.name, v) for a, v in zip(self.arguments, values) if isinstance(v, Array)])
        places = iter(memory.places)
        sent = [(a.kind, next(places) if isinstance(v, Array) else v) for a, v in zip(self.arguments, values)]
        memory.take(engines.run(self.source, self.engine or "cpu", sent, [block.data for block in memory.blocks],
                                self.target or "sm_90a", self.check_races))

    def _place(self, args: Tuple[Any, ...], named: Dict[str, Any]) -> Tuple[Any, ...]:
        names = [a.name for a in self.arguments]
        rest = names[len(args):]
        if sorted(rest) != sorted(named):
            raise TypeError(f"{len(args)} arguments by position leave {', '.join(rest) or 'none'}; by name come"
                            f" {', '.join(named)}")
        return (*args, *(named[name] for name in rest))


class _Quick:
    """Launches of torch tensors on one device: takes those that are right, and leaves the rest, and what is to be
    said of them, to the kernel. `launch` is a function of arguments and stream that returns false where the arguments
    are others, and has done nothing then."""

    def __init__(self, loaded: Loaded, device: int) -> None:
        torch, native = torch_module(), call_module()
        self.loaded, self.device, self.handle, self.check = loaded, device, loaded.handle.value, check
        self.stream_of, self.current_device = torch._C._cuda_getCurrentRawStream, torch._C._cuda_getDevice
        self.types = torch.Tensor, torch.nn.Parameter
        self.kinds = tuple(_torch_types(a.dtype) if a.kind == "pointer" else a.kind for a in loaded.arguments)
        self.words = ctypes.c_uint64 * len(self.kinds)
        self.launch_address = address_of(loaded._launch)
        self.launch: Callable[[Sequence[Any], Optional[int]], bool] = self._launch
        if native and not loaded.has_workspace and len(self.kinds) <= native.MAX_ARGUMENTS:
            self.launch = native.Launch(self)

    def _launch(self, args: Sequence[Any], stream: Optional[int]) -> bool:
        words, device = [], self.device
        if len(args) != len(self.kinds):
            return False
        for value, kind in zip(args, self.kinds):
            if kind == "integer":
                if type(value) is not int or not -_HALF <= value < _HALF:
                    return False
                words.append(value & _MASK)
            elif kind == "real":
                if type(value) is not float:
                    return False
                words.append(_bits(value))
            elif is_tensor(value) and value.dtype in kind and value.get_device() == device and value.is_contiguous():
                words.append(value.data_ptr())
            else:
                return False
        self.loaded.launch(self.words(*words), device, self.stream_of(device) if stream is None else stream)
        return True


def _torch_types(dtype: str) -> FrozenSet[Any]:
    return frozenset(kind for kind, have in torch_types().items() if fits(have, dtype))


def _artefact_arguments(artefact: bytes) -> List[Argument]:
    out, message = ctypes.c_void_p(), ctypes.create_string_buffer(512)
    check(rt().tilus_artefact_read(artefact, len(artefact), ctypes.byref(out), message, 512), message)
    try:
        return read_signature(rt().tilus_artefact_kernel(out))
    finally:
        rt().tilus_free(out)


def _describe(value: Any) -> Any:
    """Returns a number as Python's, anything else as an Array."""
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else describe(value)


def _check_count(values: Sequence[Any], arguments: Sequence[Argument]) -> None:
    if len(values) != len(arguments):
        raise TypeError(f"{len(values)} arguments, but the program takes {len(arguments)}:"
                        f" {', '.join(a.name for a in arguments)}")


def _device_of(values: Sequence[Any]) -> int:
    devices = {v.device for v in values if isinstance(v, Array)}
    if len(devices) > 1:
        spelled = ", ".join("host memory" if d is None else f"cuda:{d}" for d in sorted(devices, key=str))
        raise ArgumentError(f"arrays are in different places: {spelled}")
    device = devices.pop() if devices else current_device()
    if device is None:
        raise ArgumentError("arrays are in host memory, not on a GPU")
    return device


def _check_array(argument: Argument, array: Array) -> None:
    if not fits(array.dtype, argument.dtype):
        raise ArgumentError(f"argument {argument.name} is an array of {array.dtype}; the program takes"
                            f" {argument.dtype}")
    if not array.contiguous:
        raise ArgumentError(f"argument {argument.name} is not contiguous")


def _kind(argument: Argument) -> str:
    return f"{'an integer' if argument.kind == 'integer' else 'a number'} of {argument.dtype}"


def _check_scalar(argument: Argument, value: Any) -> None:
    if isinstance(value, Array):
        raise ArgumentError(f"argument {argument.name} is an array; the program takes {_kind(argument)}")
    if argument.kind == "integer" and not isinstance(value, int):
        raise ArgumentError(f"argument {argument.name} is {value}; the program takes {_kind(argument)}")
    if argument.kind == "integer" and not -_HALF <= value < _HALF:
        raise ArgumentError(f"argument {argument.name} = {value} does not fit in {argument.dtype}")
    if argument.kind == "real" and isinstance(value, int) and not -_MOST_REAL <= value <= _MOST_REAL:
        raise ArgumentError(f"argument {argument.name} is an integer beyond f64; the program takes {_kind(argument)}")


def _word(argument: Argument, value: Any, device: int) -> int:
    """Returns the 64 bits of a tilus_arg."""
    if argument.kind == "pointer":
        if isinstance(value, Array):
            _check_array(argument, value)
            return value.address
        if isinstance(value, float):
            raise ArgumentError(f"argument {argument.name} is {value}; the program takes an array of {argument.dtype}")
        if not 0 <= value <= _MASK:
            raise ArgumentError(f"argument {argument.name} = {value} is no address")
        return value
    _check_scalar(argument, value)
    if argument.kind == "integer":
        return value & _MASK
    return _bits(value)


def _bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def _check_host_value(argument: Argument, value: Any) -> None:
    if argument.kind != "pointer":
        _check_scalar(argument, value)
    elif isinstance(value, Array):
        _check_array(argument, value)
        if value.device is not None:
            raise ArgumentError(f"argument {argument.name} is on cuda:{value.device}, not in host memory")
        align = min(argument.align, _HOST_ALIGN)
        if value.address % align and value.size:
            raise ArgumentError(f"argument {argument.name} = {value.address:#x} is not aligned to {align} bytes")
    else:
        raise ArgumentError(f"argument {argument.name} is a number; an engine takes an array of {argument.dtype}")


# ---- the functions ------------------------------------------------------------------

_kernels: Dict[Tuple, Kernel] = {}      # of texts that import no other


def jit(source: Union[str, "os.PathLike[str]"], program: Optional[str] = None, *, engine: Optional[str] = None,
        target: Optional[str] = None, check_races: bool = False, import_paths: Tuple[str, ...] = (),
        parameters: Optional[Dict[str, object]] = None, **params: object) -> Kernel:
    """Makes a function of a program. It is compiled at the first call, for the GPU that has the arrays; compiled
    programs are kept in the cache on disk (docs/cache.md). Equal calls give the same kernel.

    `source` is a path, or a text of more than one line; `program` its name, where there are several. Keywords are
    values of the template's parameters; those that are called as an argument here go into `parameters`.
    `engine` "gpu", "cpu" or "interp" says where it runs, by default where the arrays are; `target` ("sm_90a") what
    it is compiled for; `check_races` has the CPU engine look for races."""
    made = make_source(source, program, {**(parameters or {}), **params}, import_paths)
    key = made, engine, target, check_races
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = Kernel(made, engine=engine, target=target, check_races=check_races)
        if not made.imports:
            _kernels[key] = kernel
    return kernel


def load(artefact: Union[bytes, str, "os.PathLike[str]"]) -> Kernel:
    """Makes a function of an artefact: its bytes, or the path of a .tilusk file."""
    if not isinstance(artefact, (bytes, bytearray)):
        with open(artefact, "rb") as file:
            artefact = file.read()
    _artefact_arguments(bytes(artefact))        # so that a damaged one is refused here
    return Kernel(None, bytes(artefact))


def interpret(source: Union[str, "os.PathLike[str]"], program: Optional[str], *args: Any, engine: str = "interp",
              check_races: bool = False, import_paths: Tuple[str, ...] = (),
              parameters: Optional[Dict[str, object]] = None, **params: object) -> None:
    """Runs a program on arrays in host memory, which it changes: on the interpreter, which defines every op and
    finds races, accesses out of bounds and reads of undefined data, or with engine="cpu" as compiled code."""
    jit(source, program, engine=engine, check_races=check_races, import_paths=import_paths, parameters=parameters,
        **params)(*args)
