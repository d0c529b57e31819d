"""A process of its own for what needs LLVM: the interpreter, the CPU engine, products on it.

It answers requests of `engines.py`: a pickled dictionary each way, with its length before. LLVM, and whatever a
program makes it do, stays in here; the process that asks loads nothing of it."""
from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import struct
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import _declarations as c
from ._library import check, compiler, encoded, matmul, rt, sized, status_name, take_text
from .errors import Error
from .signature import read_signature

_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_WARN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Failure(Exception):
    """An answer that is a status with the compiler's messages, while it compiled or ran."""

    def __init__(self, status: str, text: str, when: str = "compile") -> None:
        super().__init__(status, text)
        self.status, self.text, self.when = status, text, when


class Module:
    """A parsed text, with its diagnostics."""

    def __init__(self, request: Dict[str, Any]) -> None:
        library, text = compiler(), request["text"].encode()
        self.diag = library.tilus_diag_new()
        self.module = None
        for path in request["import_paths"]:
            library.tilus_add_import_path(self.diag, os.fsencode(path))
        rows = [(name.encode(), value.encode()) for name, value in request["parameters"]]
        defines = (c.tilus_define * len(rows))(*rows)
        self.module = library.tilus_parse(self.diag, encoded(request["file"] or "<text>"), text, len(text), 1, defines,
                                          len(rows))
        if not self.module:
            raise self.failure()

    def __enter__(self) -> "Module":
        return self

    def __exit__(self, *_: object) -> None:
        compiler().tilus_module_free(self.module)
        compiler().tilus_diag_free(self.diag)

    def messages(self) -> str:
        return take_text(compiler().tilus_diag_format(self.diag))

    def failure(self, status: str = "TILUS_ERROR_PROGRAM", when: str = "compile") -> Failure:
        return Failure(status, self.messages(), when)

    def run_passes(self, pipeline: Optional[bytes], target: Optional[str]) -> None:
        options = sized(c.tilus_pass_options, target=encoded(target), verify_each=True)
        if not compiler().tilus_run_passes(self.module, pipeline, ctypes.byref(options)):
            raise self.failure()

    def program(self, name: Optional[str]) -> bytes:
        """Returns the name of the program that is meant, and raises where there is none."""
        names = [compiler().tilus_program_name(self.module, i)
                 for i in range(compiler().tilus_program_count(self.module))]
        if name is None and len(names) == 1:
            return names[0]
        if name is None or name.encode() not in names:
            listed = ", ".join("@" + n.decode() for n in names) or "none"
            what = f"no program @{name}" if name else "program is not named"
            raise Failure("TILUS_ERROR_PROGRAM", f"error: {what}; the text has {listed}")
        return name.encode()


def signature(request: Dict[str, Any]) -> Dict[str, Any]:
    with Module(request) as module:
        module.run_passes(b"infer-layouts", None)
        name = module.program(request["program"])
        info = compiler().tilus_module_kernel_info(module.module, name)
        if not info:
            raise module.failure()
        return {"program": name.decode(), "arguments": read_signature(info)}


def run(request: Dict[str, Any]) -> Dict[str, Any]:
    """Runs a program on the blocks of the request; returns those that it changed, and what it printed."""
    with Module(request) as module:
        on_cpu = request["engine"] == "cpu"
        module.run_passes(None if on_cpu else b"infer-layouts", request["target"] if on_cpu else None)
        name = module.program(request["program"])
        blocks = [ctypes.create_string_buffer(data, len(data) + 1) for data in request["blocks"]]
        buffers, args = _arguments(request["args"], blocks)
        printed: List[bytes] = []
        write = _WRITE(lambda _, text, length: printed.append(ctypes.string_at(text, length)))
        function = _run_on_cpu if on_cpu else _interpret
        status = function(request, module.module, name, args, buffers, ctypes.cast(write, ctypes.c_void_p))
        if status:
            raise module.failure(status_name(status), "run")
        after = [block.raw[:-1] for block in blocks]
        return {"blocks": [None if data == before else data for data, before in zip(after, request["blocks"])],
                "printed": b"".join(printed).decode(errors="replace"), "messages": module.messages()}


def _arguments(values: List[Tuple[str, Any]], blocks: List[ctypes.Array]) -> Tuple[ctypes.Array, ctypes.Array]:
    """Makes the buffers, one for each place in a block that a pointer has, and the arguments."""
    places: Dict[Tuple[int, int, int], int] = {}
    args = (c.tilus_arg * max(1, len(values)))()
    for arg, (kind, value) in zip(args, values):
        if kind == "pointer":
            arg.pointer = places.setdefault(value, len(places))
        elif kind == "integer":
            arg.integer = value
        else:
            arg.real = value
    buffers = ((ctypes.addressof(blocks[number]) + first, size) for number, first, size in places)
    return (c.tilus_buffer * len(places))(*buffers), args


def _interpret(request, module, name, args, buffers, write) -> int:
    options = sized(c.tilus_interpret_options, print=write)
    return compiler().tilus_interpret(module, name, args, len(request["args"]), buffers, len(buffers),
                                      ctypes.byref(options))


def _run_on_cpu(request, module, name, args, buffers, write) -> int:
    options = sized(c.tilus_cpu_options, cpu=request["target"].encode(), host_threads=1, print=write,
                    check_races=request["check_races"])
    return compiler().tilus_run_on_cpu(module, name, args, len(request["args"]), buffers, len(buffers),
                                       ctypes.byref(options), None)


# ---- products ----------------------------------------------------------------------

class Products:
    """The matmul library on a software device whose launches the CPU engine runs."""

    def __init__(self, device: str, tunings: Optional[bytes]) -> None:
        described = c.tilus_device_description.from_buffer_copy(
            (ctypes.c_char * ctypes.sizeof(c.tilus_device_description)).from_address(
                rt().tilus_find_device(device.encode())))
        options = sized(c.tilus_rt_options, devices=ctypes.addressof(described), device_count=1,
                        engine=compiler().tilus_cpu_engine())
        self.rt, self.library, message = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(512)
        check(rt().tilus_rt_open(ctypes.byref(options), ctypes.byref(self.rt), message, 512), message)
        compile_ = ctypes.cast(compiler().tilus_matmul_compile, ctypes.c_void_p)
        where = sized(c.tilus_cache_options, warn=ctypes.cast(_warn, ctypes.c_void_p))
        options = sized(c.tilus_matmul_options, compile=compile_, tunings=tunings,
                        compile_data=compiler().tilus_cache_open(ctypes.byref(where)))
        check(matmul().tilus_matmul_open(self.rt, ctypes.byref(options), ctypes.byref(self.library)))

    def upload(self, data: Optional[bytes]) -> int:
        address = ctypes.c_uint64()
        if data is None:
            return 0
        check(rt().tilus_rt_allocate(self.rt, 0, len(data), ctypes.byref(address)))
        check(rt().tilus_rt_upload(self.rt, 0, address, data, len(data)))
        return address.value

    def release(self, address: int) -> None:
        if address:
            check(rt().tilus_rt_release(self.rt, 0, address))

    def download(self, address: int, size: int) -> bytes:
        made = ctypes.create_string_buffer(size)
        check(rt().tilus_rt_download(self.rt, 0, made, address, size))
        return made.raw

    @contextlib.contextmanager
    def planned(self, request: Dict[str, Any]) -> Iterator[ctypes.c_void_p]:
        """Makes the plan of a request."""
        fields = {name: value.encode() if isinstance(value, str) else value
                  for name, value in request["problem"].items()}
        plan = ctypes.c_void_p()
        problem = sized(c.tilus_matmul_problem, **fields)
        check(matmul().tilus_matmul_plan_create(self.library, ctypes.byref(problem), 0, ctypes.byref(plan)))
        try:
            yield plan
        finally:
            matmul().tilus_matmul_plan_free(plan)

    @contextlib.contextmanager
    def prepared(self, request: Dict[str, Any]) -> Iterator[ctypes.c_void_p]:
        """Makes the plan of a request, whose kernels are compiled."""
        with self.planned(request) as plan:
            check(matmul().tilus_matmul_prepare(plan, request["m"]))
            yield plan

    def multiply(self, request: Dict[str, Any]) -> bytes:
        with self.prepared(request) as plan:
            return self._run(plan, request)

    def _run(self, plan: ctypes.c_void_p, request: Dict[str, Any]) -> bytes:
        size = matmul().tilus_matmul_workspace_size(plan, request["m"])
        result = request.get("c") or bytes(request["result_size"])      # rows that no expert has stay
        given = ("a", "bias", "residual", "a_scales", "norm", "offsets", "ids", "route")
        taken = {name: self.upload(request.get(name)) for name in given}
        taken |= {"c": self.upload(result), "workspace": self.upload(bytes(size)), "weights": self.upload(request["packed"])}
        out = taken["c"]
        try:
            call = sized(c.tilus_matmul_call, m=request["m"], workspace_size=size, **taken)
            check(matmul().tilus_matmul_run(plan, None, ctypes.byref(call)))
            return self.download(out, len(result))
        finally:
            for address in taken.values():
                self.release(address)

    def unpack(self, request: Dict[str, Any]) -> bytes:
        with self.planned(request) as plan:
            packed = to = 0
            try:
                packed = self.upload(request["packed"])
                to = self.upload(bytes(request["result_size"]))
                check(matmul().tilus_matmul_unpack_device(plan, None, packed, request["k_first"], request["k_count"],
                                                          request["type"].encode(), to))
                return self.download(to, request["result_size"])
            finally:
                self.release(packed)
                self.release(to)


_products: Dict[Tuple[str, Optional[bytes]], Products] = {}


def _products_of(request: Dict[str, Any]) -> Products:
    key = request["device"], request["tunings"]     # those of the process that packed the weights
    if key not in _products:
        _products[key] = Products(*key)
    return _products[key]


def multiply(request: Dict[str, Any]) -> Dict[str, Any]:
    return {"result": _products_of(request).multiply(request), "warnings": _taken_warnings()}


def unpack(request: Dict[str, Any]) -> Dict[str, Any]:
    return {"result": _products_of(request).unpack(request), "warnings": _taken_warnings()}


def prepare(request: Dict[str, Any]) -> Dict[str, Any]:
    with _products_of(request).prepared(request):
        return {"warnings": _taken_warnings()}


# What the cache has to say, until an answer takes it.
_warnings: List[str] = []
_warn = _WARN(lambda _, text: _warnings.append(text.decode(errors="replace")))


def _taken_warnings() -> List[str]:
    taken = list(_warnings)
    _warnings.clear()
    return taken


def describe(_: Dict[str, Any]) -> Dict[str, Any]:
    library = compiler()
    return {"compiler": library.tilus_version().decode(), "llvm": library.tilus_llvm_version().decode(),
            "revision": library.tilus_git_revision().decode()}


def target_for(request: Dict[str, Any]) -> Dict[str, Any]:
    name = compiler().tilus_target_for(request["capability"])
    return {"target": name.decode() if name else None}


_ANSWERS: Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]] = {
    "signature": signature, "run": run, "multiply": multiply, "unpack": unpack, "prepare": prepare,
    "describe": describe, "target_for": target_for}


def answer(data: bytes) -> Dict[str, Any]:
    try:
        request = pickle.loads(data)
        return _ANSWERS[request["what"]](request)
    except Failure as failure:
        return {"status": failure.status, "text": failure.text, "when": failure.when}
    except Error as error:
        return {"status": error.status, "text": str(error), "when": "run"}
    except MemoryError:
        return {"status": "TILUS_ERROR_MEMORY", "text": "out of memory", "when": "run"}
    except Exception as error:      # a fault of one request, which is no reason to end
        return {"status": "TILUS_ERROR_INTERNAL", "text": f"{type(error).__name__}: {error}", "when": "run"}


def main(answers_fd: int) -> None:
    """Answers until the other end is closed. Standard output goes to standard error, where there is one."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(answers_fd, "wb")
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    while len(head := requests.read(8)) == 8:
        made = pickle.dumps(answer(requests.read(*struct.unpack("<Q", head))), protocol=4)
        answers.write(struct.pack("<Q", len(made)) + made)
        answers.flush()
    sys.exit(0)
