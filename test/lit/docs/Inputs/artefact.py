"""artefact.py FILE ...: reads artefacts by docs/artefact.md alone, section by section, and prints of each its name, arguments,
workspace, maps and cluster. Fails where a file is not what the document says."""
import struct
import sys
import zlib
from pathlib import Path

MAGIC = b"\x89TILUSK\n"
VERSION, SECTIONS = 6, 8
TEXTS = (1, 3, 5, 6, 7)


def sections(data):
    magic, version, checksum, size, zero = struct.unpack_from("<8sIIQQ", data)
    assert (magic, version, size, zero) == (MAGIC, VERSION, len(data), 0)
    assert checksum == zlib.crc32(data[:12] + data[16:])
    found, at = [], 32
    while at < len(data):
        number, zero, size = struct.unpack_from("<IIQ", data, at)
        begin, end = at + 16, at + 16 + size
        at = end + -end % 16
        assert zero == 0 and number == len(found) and data[end:at] == bytes(at - end)
        found.append(data[begin:end])
    assert at == len(data) and len(found) == SECTIONS
    for number in TEXTS:
        assert found[number].index(0) == len(found[number]) - 1 and found[number].decode()
    return found


class Signature:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def word(self):
        size = self.take("I")
        text, end = struct.unpack_from(f"<{size}sB", self.data, self.at)
        assert end == 0
        self.at += size + 1
        return text.decode()

    def codes(self):
        return [self.take("Bq") for _ in range(self.take("I"))]

    def list(self, read):
        return [read() for _ in range(self.take("I"))]

    def argument(self):
        return self.word(), self.word(), self.take("B"), self.take("4q")

    def tensor(self):
        return self.word(), self.take("I"), self.take("B"), self.list(self.codes)

    def map(self):
        argument, element, _ = self.take("I"), self.take("B"), self.take("II")
        dims = self.take("I")
        for dim in range(dims):
            assert 1 <= self.take("I") <= 256 and self.codes()
            assert dim == dims - 1 or self.codes()
        return argument, element, dims


def main():
    for name in sys.argv[1:]:
        found = sections(Path(name).read_bytes())
        s = Signature(found[0])
        program, threads, shared = s.word(), s.take("I"), s.take("Q")
        arguments, grid, workspace, overlaps = s.list(s.argument), s.list(s.codes), s.list(s.tensor), s.take("B")
        maps, cluster, cooperative = s.list(s.map), s.take("III"), s.take("B")
        assert s.at == len(found[0]) and 1 <= len(grid) <= 3
        print(f"@{program} of {threads} threads, {shared} bytes for", found[1][:-1].decode())
        for argument, element, kind, facts in arguments:
            print(f"  %{argument} {element} {kind} divisible {facts[0]} align {facts[3]}")
        for tensor, bits, zeroed, extents in workspace:
            print(f"  workspace {tensor} {bits} {zeroed} {len(extents)}")
        print(f"  maps {maps}, cluster {cluster}, overlaps {overlaps}, cooperative {cooperative}")


main()
