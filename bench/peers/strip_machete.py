#!/usr/bin/env python3
"""Makes a library that holds Machete alone out of vLLM's wheel, small enough to carry along:

    strip_machete.py vllm-0.20.2-*.whl machete.so

Device code of other architectures than sm_90 is zeroed, so that the file compresses well.
"""
import struct
import subprocess
import sys
import zipfile

FATBIN, KEEP, PTX = 0xBA55ED50, 90, 1


def sections(data):
    """(name, offset, size) of an ELF file's sections."""
    table, = struct.unpack_from("<Q", data, 0x28)
    entry, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * entry) for i in range(count)]
    strings = headers[names][4]
    for header in headers:
        begin = strings + header[0]
        yield data[begin:data.index(b"\0", begin)].decode(), header[4], header[5]


def zero_others(data, begin, end):
    while begin < end:
        magic, _, header, size = struct.unpack_from("<IHHQ", data, begin)
        if magic != FATBIN:
            begin += 8
            continue
        entry, begin = begin + header, begin + header + size
        while entry < begin:
            kind, _, head, length = struct.unpack_from("<HHIQ", data, entry)
            architecture, = struct.unpack_from("<I", data, entry + 28)
            if architecture != KEEP or kind == PTX:
                data[entry + head:entry + head + length] = bytes(length)
            entry += head + length


def main():
    wheel, out = sys.argv[1:]
    data = bytearray(zipfile.ZipFile(wheel).read("vllm/_C.abi3.so"))
    for name, offset, size in list(sections(data)):
        if name == ".nv_fatbin":
            zero_others(data, offset, offset + size)
    with open(out, "wb") as file:
        file.write(data)
    subprocess.run(["strip", out], check=True)


if __name__ == "__main__":
    main()
