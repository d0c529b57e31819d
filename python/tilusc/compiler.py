"""Compiles programs in a child process, the package's tilus-llc."""
from __future__ import annotations

import ctypes
import os
import warnings
from typing import Dict, Tuple, Union

from . import _declarations as c
from ._library import check, child_options, encoded, rt, sized, status_name, target_for, warn_of_cache
from .errors import CompileError, CompileWarning, error_of, parse_diagnostics
from .source import Source, make_source

_OF_ITSELF = "tilus-llc: warning: "     # not of a program: its cache does not work
_artefacts: Dict[Tuple[Source, str], bytes] = {}    # of texts that import no other


def compile(source: Union[str, "os.PathLike[str]"], program: "str | None" = None, *, target: str = "sm_90a",
            import_paths: Tuple[str, ...] = (), parameters: "Dict[str, object] | None" = None,
            **params: object) -> bytes:
    """Compiles a program to an artefact: the bytes of a .tilusk file, for `tilusc.load` or libtilus_rt.

    `source` is a path, or a text of more than one line; `program` its name, where there are several. Keywords are
    values of the template's parameters, as tilus-llc's -D; those that are called as an argument here go into
    `parameters`. Raises CompileError, and warns with CompileWarning."""
    return compile_source(make_source(source, program, {**(parameters or {}), **params}, import_paths), target)


def compile_source(source: Source, target: str) -> bytes:
    """Compiles, or finds the result of an equal source: here, or in the cache on disk."""
    known = _artefacts.get((source, target))
    if known is None:
        known = _compile_in_child(source, target)
        if not source.imports:
            _artefacts[source, target] = known
    return known


def _compile_in_child(source: Source, target: str) -> bytes:
    text = source.text.encode()
    paths = (ctypes.c_char_p * len(source.import_paths))(*map(os.fsencode, source.import_paths))
    made, size, said = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p()
    what = sized(c.tilus_child_source, text=text, text_size=len(text), file=encoded(source.file),
                 import_paths=ctypes.cast(paths, ctypes.c_void_p), import_path_count=len(paths),
                 program=encoded(source.program), parameters=source.parameter_text.encode(), target=target.encode())
    status = rt().tilus_child_compile(ctypes.byref(child_options()), ctypes.byref(what), ctypes.byref(made),
                                      ctypes.byref(size), ctypes.byref(said))
    diagnostics = ctypes.string_at(said).decode(errors="replace") if said else ""
    rt().tilus_free(said)
    if status:
        raise failure(status_name(status), diagnostics)
    try:
        warn_of(diagnostics)
        for line in diagnostics.splitlines():
            if line.startswith(_OF_ITSELF):
                warn_of_cache(line[len(_OF_ITSELF):])
        return ctypes.string_at(made, size.value)
    finally:
        rt().tilus_free(made)


def failure(status: str, diagnostics: str) -> Exception:
    """Makes the exception of a compilation that failed."""
    if status == "TILUS_ERROR_PROGRAM":
        return CompileError(diagnostics, status)
    return error_of(status, diagnostics.strip())


def warn_of(diagnostics: str) -> None:
    for found in parse_diagnostics(diagnostics):
        if found.severity == "warning":
            where = f"{found.file}:{found.line}:{found.column}: " if found.file else ""
            warnings.warn(where + found.text, CompileWarning, stacklevel=2)


def artefact_target(artefact: bytes) -> str:
    """Returns the target that an artefact is for, "sm_90a"."""
    out, message = ctypes.c_void_p(), ctypes.create_string_buffer(512)
    check(rt().tilus_artefact_read(artefact, len(artefact), ctypes.byref(out), message, 512), message)
    try:
        return rt().tilus_artefact_target(out).decode()
    finally:
        rt().tilus_free(out)


__all__ = ["artefact_target", "compile", "compile_source", "target_for"]
