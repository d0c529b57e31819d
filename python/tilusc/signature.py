"""Arguments of a program and their facts."""
from __future__ import annotations

import ctypes
from typing import List, NamedTuple, Optional

from . import _declarations as c


class Argument(NamedTuple):
    """An argument of a program."""

    name: str           # without %
    kind: str           # pointer, integer, real
    dtype: str          # "f16"; of a pointer that of the elements
    divisible: int      # integers are a multiple of this ...
    min: int            # ... and lie in min .. max, inclusive
    max: int
    align: int          # bytes, of a pointer


_KINDS = {c.TILUS_ARG_POINTER: "pointer", c.TILUS_ARG_I32: "integer", c.TILUS_ARG_U32: "integer",
          c.TILUS_ARG_I64: "integer"}


def read_signature(info: Optional[int]) -> List[Argument]:
    """Reads the arguments of the tilus_kernel_info at an address."""
    described = ctypes.cast(info, ctypes.POINTER(c.tilus_kernel_info)).contents
    rows = ctypes.cast(described.args, ctypes.POINTER(c.tilus_arg_info))
    return [Argument(rows[i].name.decode(), _KINDS.get(rows[i].kind, "real"), rows[i].dtype.decode(),
                     rows[i].divisible, rows[i].min, rows[i].max, rows[i].align)
            for i in range(described.arg_count)]
