"""Programs without a GPU: asks the worker process, which has the interpreter and the CPU engine."""
from __future__ import annotations

import atexit
import fcntl
import io
import os
import pickle
import struct
import subprocess
import sys
from typing import Any, Dict, List, Optional, Tuple

from ._library import folder
from ._locks import Lock
from .compiler import failure, warn_of
from .errors import EngineError, Error
from .source import Source

# Imports this package from its folder, and all else from the interpreter's: the current folder, which -c puts first, is
# left out, and so is the package's, whose other modules would come before Python's own.
_START = """import sys
sys.path[:] = [entry for entry in sys.path if entry]
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
spec = PathFinder.find_spec("tilusc", [sys.argv[1]])
sys.modules["tilusc"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["tilusc"])
from tilusc._worker import main
main(int(sys.argv[2]))
"""
_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LONGEST = 1 << 40      # bytes of an answer
_STANDARD = 3           # descriptors: input, output and errors


class Worker:
    """The process, which starts with the first request and again after it died."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: Optional[subprocess.Popen] = None
        self._answers: Optional[io.FileIO] = None
        os.register_at_fork(after_in_child=self._leave)     # a forked child has a worker of its own

    def ask(self, what: str, **request: Any) -> Dict[str, Any]:
        """Sends a request and returns the answer; raises what the answer says is wrong."""
        with self._lock:
            answer = self._exchange(pickle.dumps({"what": what, **request}, protocol=4))
        if "status" not in answer:
            return answer
        status, text = answer["status"], answer["text"]
        if answer["when"] == "run" and status == "TILUS_ERROR_PROGRAM":
            raise EngineError(text, status)
        raise failure(status, text)

    def _exchange(self, request: bytes) -> Dict[str, Any]:
        process = self._started()
        try:
            self._write(process, struct.pack("<Q", len(request)))
            self._write(process, request)
            size, = struct.unpack("<Q", self._read(8))
            if size > _LONGEST:
                raise Error(f"the worker process announces an answer of {size} bytes, not of {_LONGEST} at most",
                            "TILUS_ERROR_CHILD")
            return pickle.loads(self._read(size))
        except (OSError, EOFError):
            self.stop()
            raise Error(f"the worker process ended with status {process.returncode}: the program, or a fault of the"
                        " compiler, has ended it", "TILUS_ERROR_CHILD") from None
        except BaseException:       # such as an interrupt: what comes next is not the answer to the next request
            self.stop()
            raise

    @staticmethod
    def _write(process: subprocess.Popen, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[process.stdin.write(left):]

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        left = memoryview(data)
        while left:
            count = self._answers.readinto(left)
            if not count:
                raise EOFError
            left = left[count:]
        return data

    def _started(self) -> subprocess.Popen:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._answers, answers = _make_pipe()
        try:
            # Without buffers, whose locks and rest a fork would copy. What the interpreter prints at its start is dropped.
            self._process = subprocess.Popen([sys.executable, "-c", _START, _FOLDER, str(answers)], stdin=subprocess.PIPE,
                                             stdout=subprocess.DEVNULL, bufsize=0, env=_environment(), pass_fds=[answers])
        finally:
            os.close(answers)
        return self._process

    def stop(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            process.stdin.close()
            self._answers.close()

    def _leave(self) -> None:
        """Leaves the process to the parent of this one, which is a child that was forked."""
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0      # nobody waits for it here
            process.stdin.close()
            self._answers.close()


def _make_pipe() -> Tuple[io.FileIO, int]:
    """Returns a pipe's end for reading, without a buffer, and that for writing, which no standard descriptor of a child
    takes the place of."""
    reader, writer = os.pipe()
    try:
        return io.FileIO(reader), fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, _STANDARD)
    finally:
        os.close(writer)


def _environment() -> Dict[str, str]:
    """Returns the environment of the process; PYTHONPATH without entries that are relative to the current folder."""
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return dict(os.environ, TILUS_LIBRARY_DIR=str(folder()), PYTHONPATH=os.pathsep.join(filter(os.path.isabs, entries)))


worker = Worker()
atexit.register(worker.stop)


def describe_source(source: Source) -> Dict[str, Any]:
    return {"text": source.text, "file": source.file, "program": source.program, "parameters": source.parameters,
            "import_paths": source.import_paths}


def signature(source: Source) -> Dict[str, Any]:
    """Returns the name of the program and its arguments."""
    return worker.ask("signature", **describe_source(source))


def run(source: Source, engine: str, args: list, blocks: List[bytes], target: str,
        check_races: bool) -> List[Optional[bytes]]:
    """Runs a program; a pointer among `args` is a place in one of the blocks: its number, the first byte, bytes.
    Returns the blocks' bytes afterwards, or None for one that is as it was. What it prints goes to standard output."""
    answer = worker.ask("run", engine=engine, args=args, blocks=blocks, target=target, check_races=check_races,
                        **describe_source(source))
    sys.stdout.write(answer["printed"])
    warn_of(answer["messages"])
    return answer["blocks"]
