"""Arrays in host memory as blocks of the worker process, where those that overlap share one."""
from __future__ import annotations

import ctypes
import dataclasses
from typing import List, Optional, Sequence, Tuple

from .arrays import Array
from .errors import ArgumentError


@dataclasses.dataclass
class Block:
    """Memory of one array, or of arrays that overlap, without gaps."""

    begin: int
    end: int
    members: List[Tuple[str, Array]]
    data: bytes = b""       # as it was sent

    def part(self, data: bytes, array: Array) -> bytes:
        """Returns the array's bytes of the block's."""
        return data[array.address - self.begin:][:array.size]

    def check(self, data: bytes) -> None:
        """Raises where `data` changes a read-only array by more than what another one may change."""
        if not any(array.readonly for _, array in self.members):
            return
        allowed = bytearray(self.data)
        for _, array in self.members:
            if not array.readonly:
                first = array.address - self.begin
                allowed[first:first + array.size] = self.part(data, array)
        for name, array in self.members:
            if array.readonly and self.part(data, array) != self.part(bytes(allowed), array):
                raise ArgumentError(f"argument {name} is a read-only array, and the program has written to it")


class HostMemory:
    """Named arrays, in the order of a program's pointers: `blocks`, and for each array its `places`: number of the
    block, first byte in it, bytes."""

    def __init__(self, arrays: Sequence[Tuple[str, Array]]) -> None:
        self.blocks: List[Block] = []
        self.places: List[Tuple[int, int, int]] = [(0, 0, 0)] * len(arrays)
        # Those without elements first, each in a block of its own.
        for i in sorted(range(len(arrays)), key=lambda i: (arrays[i][1].size > 0, arrays[i][1].address)):
            name, array = arrays[i]
            last = self.blocks[-1] if self.blocks else None
            if last is None or last.begin == last.end or array.address >= last.end:
                last = Block(array.address, array.address, [])
                self.blocks.append(last)
            last.end = max(last.end, array.address + array.size)
            last.members.append((name, array))
            self.places[i] = len(self.blocks) - 1, array.address - last.begin, array.size
        for block in self.blocks:
            block.data = ctypes.string_at(block.begin, block.end - block.begin)

    def take(self, results: Sequence[Optional[bytes]]) -> None:
        """Copies what has changed into the arrays: bytes of blocks, or None for those that are as they were. Changes
        none where one that is read-only would change."""
        changed = [(block, data) for block, data in zip(self.blocks, results) if data is not None]
        for block, data in changed:
            block.check(data)
        for block, data in changed:
            for _, array in block.members:
                if not array.readonly:
                    ctypes.memmove(array.address, block.part(data, array), array.size)
