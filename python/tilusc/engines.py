"""Programs without a GPU: asks the worker process, which has the interpreter and the CPU engine."""
from __future__ import annotations

import atexit
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

from ._library import folder
from ._locks import Lock
from .compiler import failure, warn_of
from .errors import EngineError, Error
from .source import Source

_START = "import sys; sys.path.insert(0, sys.argv[1]); from tilusc._worker import main; main()"


class Worker:
    """The process, which starts with the first request and again after it died."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: Optional[subprocess.Popen] = None
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
            size, = struct.unpack("<Q", self._read(process, 8))
            return pickle.loads(self._read(process, size))
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

    @staticmethod
    def _read(process: subprocess.Popen, size: int) -> bytearray:
        data = bytearray(size)
        left = memoryview(data)
        while left:
            count = process.stdout.readinto(left)
            if not count:
                raise EOFError
            left = left[count:]
        return data

    def _started(self) -> subprocess.Popen:
        if self._process is not None and self._process.poll() is None:
            return self._process
        environment = dict(os.environ, TILUS_LIBRARY_DIR=str(folder()))
        package = str(Path(__file__).resolve().parents[1])
        # Without buffers, whose locks and rest a fork would copy.
        self._process = subprocess.Popen([sys.executable, "-c", _START, package], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, bufsize=0, env=environment)
        return self._process

    def stop(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def _leave(self) -> None:
        """Leaves the process to the parent of this one, which is a child that was forked."""
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0      # nobody waits for it here
            process.stdin.close()
            process.stdout.close()


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
